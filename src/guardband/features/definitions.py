"""Columns as users state them, as objects, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from guardband.checks import as_float, check_ordered
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.features.columns import Category, Column, Hashed, Number, Vector

__all__ = [
    "as_category_column",
    "as_number_column",
    "as_plain_value",
    "as_vector_column",
    "plain_columns",
    "read_columns",
    "restored_columns",
    "with_name",
]

Kind = TypeVar("Kind", bound=Column)


def read_columns(
    part: str, given: Mapping[str, Any] | None, read: Callable[[Any], Kind]
) -> dict[str, Kind]:
    """Return the columns of one kind by name; an error says which it is."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"{part} must be a dict by column, not {given!r}.")
    for name in given:
        if not isinstance(name, str) or not name:
            raise InvalidTypeError(f"{part} names a column {name!r}: names are texts.")
    return {name: with_name(f"{part}[{name!r}]", read, value) for name, value in given.items()}


def with_name(name: str, call: Callable[[Any], Any], value: Any) -> Any:
    """Call with a value; let an error say where the value was given."""
    try:
        return call(value)
    except (InvalidValueError, InvalidTypeError) as error:
        raise type(error)(f"{name}: {error}") from None


def as_number_column(given: Any) -> Number:
    """Return a number from its limits: (low, high) or (low, high, "log")."""
    if isinstance(given, Number):
        return given
    wanted = "give (low, high) or (low, high, 'log')"
    if isinstance(given, str) or not isinstance(given, Sequence) or not 2 <= len(given) <= 3:
        raise InvalidTypeError(f"{wanted}, not {given!r}.")
    if given[2:] and given[2] != "log":
        raise InvalidValueError(f"{wanted}, not {given!r}.")
    if any(isinstance(limit, str | bool) for limit in given[:2]):
        raise InvalidTypeError(f"{wanted}, not {given!r}.")
    low, high = (as_float(name, limit) for name, limit in zip(("low", "high"), given, strict=False))
    return Number(low, high, log=len(given) == 3)


def as_category_column(given: Any) -> Category | Hashed:
    """Return a category from the list of its values."""
    if isinstance(given, Category | Hashed):
        return given
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidTypeError(f"give a list of values, or gb.Hashed(size), not {given!r}.")
    check_ordered("values", given)
    return Category(tuple(map(as_plain_value, given)))


def as_plain_value(value: Any) -> Any:
    """Return a NumPy number or text as Python's own, which JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def as_vector_column(given: Any) -> Vector:
    """Return a vector from its size, or from (size, bound)."""
    if isinstance(given, Vector):
        return given
    size, bound = given if isinstance(given, Sequence) and len(given) == 2 else (given, 1.0)
    return Vector(size, float(bound))


def plain_columns(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return columns as plain data, as a list: their order counts."""
    return [
        {"name": name, **{k: list(v) if isinstance(v, tuple) else v for k, v in each.items()}}
        for name, each in ((name, asdict(column)) for name, column in columns.items())
    ]


def restored_columns(entries: Sequence[Mapping[str, Any]], *kinds: Any) -> dict[str, Any]:
    """Return the columns that `plain_columns` wrote; the last kind is the one that has a size."""
    columns: dict[str, Any] = {}
    for entry in entries:
        kind = kinds[-1] if "size" in entry else kinds[0]
        settings = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
        name = str(settings.pop("name"))
        if name in columns:
            raise InvalidValueError(f"column {name!r} is listed twice.")
        columns[name] = kind(**settings)
    return columns
