"""Checks of arguments: every error names the value that was given and what to do about it."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.kernels.types import Floats

__all__ = [
    "as_alpha",
    "as_array",
    "as_float",
    "as_index_set",
    "as_path",
    "beyond_unit",
    "check_choice",
    "check_delta",
    "check_fraction",
    "check_not_negative",
    "check_ordered",
    "check_positive",
    "check_seed",
    "check_text",
    "check_whole",
    "nearest",
]

FLOAT = np.dtype(np.float64)  # the class would be looked up every time
LEAST_DELTA = 1e-200  # a space's is larger, so that its parts for tasks and epochs are not below
LARGEST = 2**63 - 1  # of whole numbers that count something


def check_positive(name: str, value: float, why: str = "") -> float:
    """Return `value` as a float if it is finite and above zero."""
    number = as_float(name, value)
    if not (math.isfinite(number) and number > 0):
        raise InvalidValueError(
            f"{name} must be a positive number, not {_shown(value)}.{_because(why)}"
        )
    if not 1e-100 < number < 1e100:  # its square must be a number, too
        raise InvalidValueError(f"{name} is {value!r}: use units in which it is not so extreme.")
    return number


def check_not_negative(name: str, value: float) -> float:
    """Return `value` as a float if it is finite and not below zero."""
    number = as_float(name, value)
    if not (math.isfinite(number) and number >= 0):
        raise InvalidValueError(f"{name} must be zero or a positive number, not {_shown(value)}.")
    return number


def check_fraction(name: str, value: float) -> float:
    """Return `value` as a float if it lies strictly between 0 and 1."""
    number = as_float(name, value)
    if not 0 < number < 1:
        raise InvalidValueError(f"{name} must lie strictly between 0 and 1, not {_shown(value)}.")
    return number


def check_delta(value: float) -> float:
    """Return delta, or a part of it, as a float if its logarithm and its parts are numbers."""
    number = check_fraction("delta", value)
    if number < LEAST_DELTA:
        raise InvalidValueError(
            f"delta must be at least {LEAST_DELTA:g}, not {_shown(value)}: parts of it must be "
            "numbers, too."
        )
    return number


def check_whole(name: str, value: int, least: int = 1, most: int | None = LARGEST) -> int:
    """Return `value` as an int if it is a whole number from `least` to `most`; None: any."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InvalidTypeError(f"{name} must be a whole number, not {value!r}.") from None
    if number < least:
        raise InvalidValueError(f"{name} must be at least {least}, not {_shown(value)}.")
    if most is not None and number > most:
        raise InvalidValueError(f"{name} must be at most {most:,}, not {_shown(value)}.")
    return number


def check_seed(value: int) -> int:
    """Return a seed: any whole number from 0 on."""
    return check_whole("seed", value, 0, None)


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        offered = ", ".join(repr(choice) for choice in choices)
        raise InvalidValueError(
            f"{name} must be one of {offered}, not {value!r}.{nearest(value, choices)}"
        )
    return value


def check_ordered(name: str, value: Any) -> None:
    """Refuse a set where order counts: it has another one in every process."""
    if isinstance(value, set | frozenset):
        raise InvalidTypeError(
            f"{name} must be a list or a tuple, not {value!r}: a set has another order in every "
            "process."
        )


def check_text(name: str, value: str) -> str:
    """Return `value` if files can hold it: no half of a character is in it."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        part = value[max(error.start - 20, 0) : error.end]
        raise InvalidValueError(
            f"{name} has half of a character, a lone surrogate, in {part!r}, which no file can "
            "hold: read the text with the encoding in which it was written."
        ) from None
    return value


def nearest(word: object, choices: Sequence[str]) -> str:
    """Return ' Did you mean ...?' where a choice is close to `word`, else an empty string."""
    close = get_close_matches(str(word), choices, n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def as_alpha(value: Any, agents: int | None = None) -> tuple[float, ...]:
    """Return alpha as one number for all tasks, or as one for each of them."""
    many = np.ndim(value) > 0
    numbers = tuple(as_float("alpha", v) for v in (value if many else (value,)))
    if not numbers:
        raise InvalidValueError("alpha is empty: give one number, or one per task.")
    for number in numbers:
        if not 0 < number <= 1:
            raise InvalidValueError(
                f"alpha must lie in (0, 1], not {number!r}: it is the share of the baseline's "
                "reward that may be lost (0.1 keeps at least 90 %)."
            )
    if agents is not None and len(numbers) not in (1, agents):
        raise InvalidValueError(
            f"alpha has {len(numbers)} values for {agents} tasks; give one number, or one per task."
        )
    return numbers if agents is None or len(numbers) == agents else numbers * agents


def as_array(name: str, value: Any, shape: tuple[int | None, ...]) -> Floats:
    """Return `value` as a finite, contiguous float64 array of this shape (None: any length > 0)."""
    try:
        array = np.array(value, dtype=FLOAT, order="C")
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"{name} must be an array of numbers, not {type(value).__name__}."
        ) from None
    except OverflowError:
        raise InvalidValueError(
            f"{name} has a number that is too large: every number must be finite."
        ) from None
    if array.shape != shape and not _fits(array.shape, shape):
        wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
        raise InvalidValueError(f"{name} must have shape {wanted}, not {array.shape}.")
    # Decisions wait for this: the sum of squares is quick, and finite if every number is moderate.
    flat = array if array.ndim == 1 else array.ravel()
    if not math.isfinite(flat.dot(flat)) and not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidValueError(
            f"{name}{list(where)} is {array[where]}: every number must be finite."
        )
    return array


def _fits(have: tuple[int, ...], want: tuple[int | None, ...]) -> bool:
    """Tell whether an array has the wanted shape; None stands for any length above 0."""
    return len(have) == len(want) and all(
        n > 0 if m is None else n == m for n, m in zip(have, want, strict=True)
    )


def as_index_set(name: str, value: Any, dim: int) -> tuple[int, ...]:
    """Return a task's feature indices, rising and without repetition."""
    try:
        indices = [operator.index(i) for i in value]
    except TypeError:
        raise InvalidTypeError(
            f"{name} must be a list of feature indices, not {value!r}."
        ) from None
    if not indices:
        raise InvalidValueError(f"{name} is empty: a task needs at least one feature.")
    for i in indices:
        if not 0 <= i < dim:
            raise InvalidValueError(
                f"{name} names feature {i}, but features are numbered 0 to {dim - 1}."
            )
    if len(set(indices)) < len(indices):
        raise InvalidValueError(f"{name} names a feature twice: {indices}.")
    return tuple(sorted(indices))


def as_float(name: str, value: Any) -> float:
    """Return `value` as a float; a whole number that is too large for one counts as infinite."""
    if isinstance(value, str | bytes | bool):
        raise InvalidTypeError(f"{name} must be a number, not {value!r}.")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"{name} must be a number, not {value!r}.") from None
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_path(name: str, value: Any) -> Path:
    """Return the path of a file or a folder."""
    try:
        return Path(value)
    except TypeError:
        raise InvalidTypeError(f"{name} must be a path, a text, not {value!r}.") from None


def _shown(value: Any) -> str:
    """Return what to show of a number that was given."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"a whole number of {value.bit_length()} bits"
    return repr(value)


def _because(why: str) -> str:
    return f" {why}" if why else ""


def beyond_unit(noise: float | None) -> float:
    """Return how far outside [0, 1] rewards may lie: 6 times the stated noise; None: not at all."""
    return 0.0 if noise is None else 6.0 * noise
