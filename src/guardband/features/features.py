"""`gb.Features`: which columns of data are features, between which limits, under which names."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from guardband.checks import check_choice, check_ordered, nearest
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.features.columns import Category, Column, Hashed, Number, Vector
from guardband.features.definitions import (
    as_category_column,
    as_number_column,
    as_plain_value,
    as_vector_column,
    plain_columns,
    read_columns,
    restored_columns,
    with_name,
)
from guardband.features.reading import Reading, Treatment, Value
from guardband.features.rows import Rows
from guardband.features.transformers import read_transformer
from guardband.forks import ForkSafe
from guardband.kernels.types import Floats

__all__ = ["LARGEST_DIM", "Features"]

FORMAT = "guardband features"
VERSION = 1
INTERCEPT = "intercept"
LARGEST_DIM = 10_000  # agents compute with d^2 numbers


class Features:
    """Named columns of data, and the table of numbers that agents learn from.

    Every number is mapped to [0, 1] by fixed limits, every category to one column per value, and
    every row is divided by the largest length that a row can have: no row is longer than 1, and
    equal rows of data have equal features, whatever else is in the data and on whichever day.
    The object does not change; it only counts what did not fit. It may be used by several threads.

    Parameters
    ----------
    numbers
        Column -> (low, high), or (low, high, "log") where it spans decades.
    categories
        Column -> its values, texts or numbers; or `gb.Hashed(size)` where they are too many.
    vectors
        Column -> the vector's size, or (size, bound); no vector is longer than its bound, 1 if
        none is stated.
    crosses
        Groups of columns whose products are features, too: for two categories one column for each
        pair of values, for a number and a category one slope for each value.
    intercept
        Whether a column is 1 in every row.
    unknown
        A category's value that is not listed: "zeros" (0 in all of its columns) or "error".
    beyond
        A number beyond its limits, or a vector longer than its bound: "clip" (it is moved to the
        limit, or shortened) or "error".
    missing
        None and NaN: "error", "zeros" (0 in all columns, which for a number is its lower limit),
        or column -> the value to take instead; other columns are then an error.

    Attributes
    ----------
    names
        The names of the table's columns, in order.
    columns
        The columns that the data must have; others are ignored.

    Examples
    --------
    >>> import guardband as gb
    >>> features = gb.Features(numbers={"minutes": (0, 240)}, categories={"kind": ["film", "tv"]})
    >>> features.names
    ('intercept', 'minutes', 'kind=film', 'kind=tv')
    >>> features.table([{"minutes": 120, "kind": "tv"}]).round(3)
    array([[0.577, 0.289, 0.   , 0.577]])
    """

    def __init__(
        self,
        numbers: Mapping[str, Sequence[Any] | Number] | None = None,
        categories: Mapping[str, Iterable[Value] | Hashed] | None = None,
        vectors: Mapping[str, int | tuple[int, float]] | None = None,
        crosses: Sequence[Sequence[str]] = (),
        intercept: bool = True,
        *,
        unknown: str = "zeros",
        beyond: str = "clip",
        missing: str | Mapping[str, Value] = "error",
    ) -> None:
        self._numbers = read_columns("numbers", numbers, as_number_column)
        self._categories = read_columns("categories", categories, as_category_column)
        self._vectors = read_columns("vectors", vectors, as_vector_column)
        if not isinstance(intercept, bool | np.bool_):
            raise InvalidTypeError(f"intercept must be True or False, not {intercept!r}.")
        self._intercept = bool(intercept)
        self._columns: dict[str, Column] = {}
        for part in (self._numbers, self._categories, self._vectors):
            if twice := [name for name in part if name in self._columns]:
                raise InvalidValueError(f"column {twice[0]!r} is given as two kinds: choose one.")
            self._columns |= part
        check_ordered("crosses", crosses)
        self._crosses = tuple(self._as_cross(cross) for cross in crosses)
        if len(set(self._crosses)) < len(self._crosses):
            raise InvalidValueError(f"a cross is given twice: {list(self._crosses)}.")
        self._treatment = Treatment(
            check_choice("unknown", unknown, ("zeros", "error")),
            check_choice("beyond", beyond, ("clip", "error")),
            self._as_missing(missing),
        )
        self._origin: tuple[dict[str, Any], ...] = ()
        self._lay_out()
        self._guard, self._rows = ForkSafe(2), 0
        self._counts: Counter[tuple[str, str]] = Counter()

    def _lay_out(self) -> None:
        """Give every column its place in the table, and find the largest length of a row."""
        wide = {name: column.width for name, column in self._columns.items()}
        wide |= {":".join(c): math.prod(wide[name] for name in c) for c in self._crosses}
        if sum(wide.values()) > LARGEST_DIM:
            most = max(wide, key=wide.__getitem__)
            raise InvalidValueError(
                f"{most!r} alone has {wide[most]:,} of more than {LARGEST_DIM:,} features: list "
                "fewer values, or use gb.Hashed(size)."
            )
        self._spans: dict[str, slice] = {}
        self.columns = tuple(self._columns)
        self._widths = {
            name: column.width if isinstance(column, Vector) else 1
            for name, column in self._columns.items()
        }
        names: list[str] = [INTERCEPT] if self._intercept else []
        squares = float(self._intercept)
        if self._intercept:
            self._spans[INTERCEPT] = slice(0, 1)
        for name, column in self._columns.items():
            if name in self._spans:
                raise InvalidValueError(
                    f"{name!r} is the name of the intercept: rename the column."
                )
            self._spans[name] = slice(len(names), len(names) + column.width)
            names += column.names(name)
            squares += column.reach**2
        for cross in self._crosses:
            parts = [self._columns[name].names(name) for name in cross]
            pairs = reduce(lambda left, right: [f"{a}:{b}" for a in left for b in right], parts)
            self._spans[":".join(cross)] = slice(len(names), len(names) + len(pairs))
            names += pairs
            squares += math.prod(self._columns[name].reach ** 2 for name in cross)
        if not names:
            raise InvalidValueError(
                "there are no features: give numbers, categories or vectors, such as "
                'numbers={"minutes": (5, 240)}.'
            )
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise InvalidValueError(f"two features are called {twice!r}: rename a column.")
        self.names = tuple(names)
        self._length = math.sqrt(squares)

    def _as_cross(self, cross: Any) -> tuple[str, ...]:
        check_ordered("a cross", cross)
        if isinstance(cross, str) or len(cross) < 2 or len(set(cross)) < len(cross):
            raise InvalidValueError(
                f"a cross must have two or more different columns, such as ('format', 'segment'), "
                f"not {cross!r}."
            )
        for name in cross:
            if name not in self._columns:
                raise InvalidValueError(
                    f"a cross has {name!r}, which is no column; there are "
                    f"{', '.join(self._columns) or 'none'}."
                    f"{nearest(name, [*self._columns])}"
                )
        return tuple(cross)

    def _as_missing(self, missing: Any) -> str | dict[str, Value]:
        if not isinstance(missing, Mapping):
            return check_choice("missing", missing, ("error", "zeros"))
        found = {name: as_plain_value(value) for name, value in missing.items()}
        for name, value in found.items():
            if name not in self._columns:
                raise InvalidValueError(f"missing names {name!r}, which is no column.")
            if not isinstance(value, Value):
                raise InvalidTypeError(
                    f"missing[{name!r}]: {value!r} must be a text, an int or a float."
                )
            with_name(f"missing[{name!r}]", self._columns[name].check, value)
        return found

    def __repr__(self) -> str:
        return f"<Features: {self.dim} columns from {', '.join(self.columns) or 'nothing'}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.names)

    def __reduce__(self) -> tuple[Any, ...]:
        return Features.from_dict, (self.to_dict(),)

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return len(self.names)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that hold texts, also where these look like numbers."""
        return tuple(
            name
            for name, each in self._categories.items()
            if isinstance(each, Hashed) or all(isinstance(value, str) for value in each.values)
        )

    @property
    def counts(self) -> dict[str, Any]:
        """How many rows were read, and in which columns values did not fit.

        {"rows": n, "unknown": {column: n}, "beyond": {column: n}, "missing": {column: n}}, since
        this object was made. Data that `table` refused do not count. Rows that it has read count
        also where an agent then refuses them for something else, such as their baseline.
        """
        with self._guard.lock:
            found: dict[str, Any] = {"rows": self._rows, "unknown": {}, "beyond": {}, "missing": {}}
            for (kind, name), count in self._counts.items():
                found[kind][name] = count
        return found

    def table(self, data: Any, *, labels: Sequence[Any] | None = None) -> Floats:
        """Return the features of rows of data.

        Parameters
        ----------
        data
            A DataFrame, a list or dict of dicts, a dict of columns, or a sparse matrix with the
            columns of `columns` in this order (a vector has as many as its size). More columns
            than these are ignored, except in a matrix.
        labels
            What the rows are called in errors; None: by a frame's index, or by number.

        Returns
        -------
        Floats
            (n, dim): one row of length at most 1 for each row of data.
        """
        rows = Rows(data, self._widths, labels)
        table, counts = np.zeros((rows.count, self.dim)), Counter[tuple[str, str]]()
        if self._intercept:
            table[:, 0] = 1.0
        for name, column in self._columns.items():
            reading = Reading(name, rows, self._treatment, counts)
            column.encode(reading, table[:, self._spans[name]])
        for cross in self._crosses:
            blocks = [table[:, self._spans[name]] for name in cross]
            table[:, self._spans[":".join(cross)]] = reduce(_products, blocks)
        table /= self._length
        with self._guard.lock:
            self._rows += rows.count
            self._counts.update(counts)
        return table

    def indices(self, names: Iterable[str | int]) -> list[int]:
        """Return the places of features in the table, such as those that a task of a fleet uses.

        Parameters
        ----------
        names
            Names of columns, which stand for all of their features; of crosses, "format:segment";
            of single features, "format=film"; "intercept"; or places, which stay as they are.
        """
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InvalidTypeError(f"give a list of features, not {names!r}.")
        found: list[int] = []
        for name in sorted(names, key=repr) if isinstance(names, set | frozenset) else names:
            if not isinstance(name, str):
                found.append(name)
            elif name in self._spans:
                span = self._spans[name]
                found += range(span.start, span.stop)
            elif name in self.names:
                found.append(self.names.index(name))
            else:
                raise InvalidValueError(
                    f"there is no feature {name!r}; there are {', '.join(self._spans)}."
                    f"{nearest(name, [*self._spans, *self.names])}"
                )
        return list(dict.fromkeys(found))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, for JSON; `from_dict` reads it."""
        missing = self._treatment.missing
        return {
            "format": FORMAT,
            "version": VERSION,
            "numbers": plain_columns(self._numbers),
            "categories": plain_columns(self._categories),
            "vectors": plain_columns(self._vectors),
            "crosses": [list(cross) for cross in self._crosses],
            "intercept": self._intercept,
            "unknown": self._treatment.unknown,
            "beyond": self._treatment.beyond,
            "missing": missing if isinstance(missing, str) else dict(missing),
            "origin": [dict(each) for each in self._origin],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Features:
        """Return the features that `to_dict` wrote."""
        given = dict(data) if isinstance(data, Mapping) else {}
        if given.pop("format", None) != FORMAT:
            raise InvalidValueError("this does not describe features: gb.Features.to_json does.")
        version = given.pop("version", None)
        if type(version) is not int or version != VERSION:  # True == 1
            raise InvalidValueError(
                f"these features have format version {version!r}, and this version of guardband "
                f"reads {VERSION}: upgrade guardband."
            )
        try:
            origin = tuple(dict(each) for each in given.pop("origin"))
            parts: dict[str, Any] = {
                "numbers": restored_columns(given.pop("numbers"), Number),
                "categories": restored_columns(given.pop("categories"), Category, Hashed),
                "vectors": restored_columns(given.pop("vectors"), Vector),
            }
            features = cls(**parts, **given)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise InvalidValueError(f"the description of features is damaged: {error}") from error
        features._origin = origin
        return features

    def to_json(self) -> str:
        """Return all of it as a text in JSON, with the version of the format."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Features:
        """Return the features that `to_json` wrote."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError) as error:
            raise InvalidValueError(f"the description of features is no JSON: {error}") from error
        return cls.from_dict(data)

    @classmethod
    def from_sklearn(
        cls, transformer: Any, *, limit: float | None = None, intercept: bool = True
    ) -> Features:
        """Return features that are what a fitted transformer of scikit-learn gives, over a length.

        What it was fitted to is written down, and scikit-learn is not needed afterwards. Taken are
        `OneHotEncoder`, `MinMaxScaler`, `MaxAbsScaler`, `StandardScaler`, each after a
        `SimpleImputer` or not, in a `Pipeline` or a `ColumnTransformer`, fitted to a DataFrame.
        Others are refused, and so are columns that pass through without limits.

        The table's columns are in the order of all `Features`, the intercept first, then numbers,
        then categories, and not in that of `transform`: go by `names`.

        Parameters
        ----------
        transformer
            What was fitted.
        limit
            How many standard deviations `StandardScaler` may give; what is beyond is clipped, and
            counted. It has no limits of its own: without this one it is refused.
        intercept
            Whether a column is 1 in every row.
        """
        found = read_transformer(transformer, limit)
        features = cls(
            found.numbers,
            found.categories,
            intercept=intercept,
            unknown=found.unknown,
            missing=found.missing or "error",
        )
        features._origin = tuple(found.origin)
        return features


def _products(left: Floats, right: Floats) -> Floats:
    """Return the products of two blocks, (n, a) and (n, b), as (n, a b)."""
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
