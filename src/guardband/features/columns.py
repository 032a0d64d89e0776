"""What a column of data can be, and how its values become numbers.

Every column fills a block of the table; no row of a block is longer than the block's `reach`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guardband.checks import check_positive, check_whole
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.features.reading import Reading, Value
from guardband.features.rows import as_list, is_missing, is_sparse
from guardband.kernels.types import Floats

__all__ = ["Category", "Column", "Hashed", "Number", "Vector"]

LARGEST = 1e100  # differences and squares of numbers must be numbers, too
UNKNOWN = -1
INEXACT = 2.0**53  # from here on several whole numbers are rounded to one float


@dataclass(frozen=True)
class Number:
    """A number between fixed limits; they are mapped to `start` and `stop`, linearly or by log."""

    low: float
    high: float
    log: bool = False
    start: float = 0.0
    stop: float = 1.0
    width = 1

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        if not (abs(low) < LARGEST and abs(high) < LARGEST):
            raise InvalidValueError(
                f"its limits must be finite, below 1e100, not {low}, {high}: state the least and "
                "the greatest value that is usual; `beyond` says what becomes of others."
            )
        if not low < high:
            raise InvalidValueError(f"its limits must be two rising numbers, not {low}, {high}.")
        if not isinstance(self.log, bool):
            raise InvalidTypeError(f"log must be True or False, not {self.log!r}.")
        if self.log and low <= 0.0:
            raise InvalidValueError(f"a logarithm needs limits above 0, not {low}.")
        if self.log and math.log(low) == math.log(high):
            raise InvalidValueError(
                f"its limits {low!r}, {high!r} have the same logarithm: leave out 'log'."
            )
        if not -LARGEST < self.start < self.stop < LARGEST:
            raise InvalidValueError(f"it cannot be mapped to {self.start}, {self.stop}.")

    @property
    def reach(self) -> float:
        """The largest length that the block can have."""
        return max(abs(self.start), abs(self.stop))

    def names(self, column: str) -> list[str]:
        """Return the names of the block's columns."""
        return [column]

    def encode(self, reading: Reading, block: Floats) -> None:
        """Fill the block, (n, 1): start + (stop - start) (f(x) - f(low)) / (f(high) - f(low))."""
        x = _as_floats(reading)
        low, high, lost = self.low, self.high, np.isnan(x)
        if blank := bool(lost.any()):
            fill: Any = reading.instead(lost)
            blank = fill is None
            x = np.where(lost, low if blank else fill, x)
        reading.beyond((x < low) | (x > high), f"between {low:g} and {high:g}")
        x = np.clip(x, low, high)
        if self.log:
            low, high = math.log(low), math.log(high)
            x = np.clip(np.log(x), low, high)  # both logarithms may differ in the last digit
        block[:, 0] = self.start + (self.stop - self.start) * ((x - low) / (high - low))
        if blank:
            block[lost] = 0.0

    def check(self, value: Any) -> None:
        """Refuse what cannot stand for a missing value."""
        if not isinstance(value, int | float) or not self.low <= value <= self.high:
            raise InvalidValueError(
                f"{value!r} cannot stand for a missing number: it is not between {self.low:g} and "
                f"{self.high:g}."
            )


@dataclass(frozen=True)
class Category:
    """One of some listed values: 1 in the value's column, 0 in the others'.

    `dropped` are values that are known, too, but have no column: theirs are all 0.
    """

    values: tuple[Value, ...]
    dropped: tuple[Value, ...] = ()
    reach = 1.0

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidValueError("no values are listed.")
        for value in (*self.values, *self.dropped):
            if not isinstance(value, Value) or is_missing(value) or value in (math.inf, -math.inf):
                raise InvalidTypeError(
                    f"a listed value must be a text, an int or a float, not {value!r}."
                )
        if len(self._codes) < len(self.values) + len(self.dropped):
            raise InvalidValueError(f"a value is listed twice: {[*self.values, *self.dropped]}.")
        called: dict[str, Value] = {}
        for value in self.values:
            if (other := called.setdefault(str(value), value)) is not value:
                raise InvalidValueError(
                    f"the features of {other!r} and {value!r} would have the same name: list one "
                    "of them, and make the column's values all texts or all numbers."
                )

    @property
    def width(self) -> int:
        """How many columns the block has."""
        return len(self.values)

    @cached_property
    def _codes(self) -> dict[Value, int]:
        return {value: code for code, value in enumerate((*self.values, *self.dropped))}

    @cached_property
    def _large(self) -> bool:
        return any(isinstance(value, int) and abs(value) >= INEXACT for value in self._codes)

    def names(self, column: str) -> list[str]:
        """Return the names of the block's columns."""
        return [f"{column}={value}" for value in self.values]

    def encode(self, reading: Reading, block: Floats) -> None:
        """Fill the block, (n, width): one 1 in each row, none where nothing is known."""
        listed, code = as_list(reading.values), self._codes.get
        if self._large:
            _refuse_rounded(listed, reading)
        try:
            codes = [code(value, UNKNOWN) for value in listed]
        except TypeError:  # a list, or the like
            codes = [code(v, UNKNOWN) if _kind(v) else UNKNOWN for v in listed]
        _fill(block, np.array(codes, np.int64), listed, reading, self)

    def code(self, value: Value) -> int:
        """Return the number of a value's column; -1: it is not listed."""
        return self._codes.get(value, UNKNOWN)

    @property
    def wanted(self) -> str:
        """What every value is, listed or not: a text, a number, or either."""
        return " or ".join(sorted({f"a {_kind(value)}" for value in self._codes}, reverse=True))

    def fits(self, value: Any) -> bool:
        """Tell whether a value that is not listed is of the kind of those that are."""
        return f"a {_kind(value)}" in self.wanted

    def check(self, value: Any) -> None:
        """Refuse what cannot stand for a missing value."""
        if _kind(value) is None or value not in self._codes:
            raise InvalidValueError(
                f"{value!r} cannot stand for a missing value: it is not listed."
            )


@dataclass(frozen=True)
class Hashed:
    """A category with too many values to list: each falls into one of `size` buckets.

    Which one is decided by a fixed hash (BLAKE2b) of its text, the same everywhere and for ever:
    3, 3.0 and "3" are one value, and so are True and "True", but not True and 1. A float of 2^53
    or more is refused, because several whole numbers are rounded to it.

    Values in one bucket have one column and thus one weight. Where their rewards differ by up to
    2 b, the model is wrong by up to b: state `bias_bound=b`.

    Parameters
    ----------
    size
        The number of buckets, and of columns.

    Examples
    --------
    >>> import guardband as gb
    >>> gb.Features(categories={"user": gb.Hashed(4)}, intercept=False).table({"user": ["ann", 7]})
    array([[0., 1., 0., 0.],
           [0., 0., 1., 0.]])
    """

    size: int
    reach = 1.0
    wanted = "a text or a whole number"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_whole("size", self.size))  # JSON has no np.int64

    @property
    def width(self) -> int:
        """How many columns the block has."""
        return self.size

    def names(self, column: str) -> list[str]:
        """Return the names of the block's columns."""
        return [f"{column}#{bucket}" for bucket in range(self.size)]

    def encode(self, reading: Reading, block: Floats) -> None:
        """Fill the block, (n, size): a 1 in the value's bucket."""
        listed = as_list(reading.values)
        _refuse_rounded(listed, reading)
        codes = np.array([self.code(value) for value in listed], np.int64)
        _fill(block, codes, listed, reading, self)

    def code(self, value: Any) -> int:
        """Return a value's bucket; -1: it is neither a text nor a whole number."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # whole numbers beside missing ones are floats in a DataFrame
        if not isinstance(value, str | int):
            return UNKNOWN
        digest = blake2b(str(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.size

    def fits(self, value: Any) -> bool:
        """Tell whether a value without a bucket could have one: it could not."""
        return False

    def check(self, value: Any) -> None:
        """Refuse what cannot stand for a missing value."""
        if self.code(value) == UNKNOWN:
            raise InvalidValueError(
                f"{value!r} cannot stand for a missing value: it has no bucket."
            )


@dataclass(frozen=True)
class Vector:
    """Some numbers at once, such as an embedding, together no longer than `bound`: x / bound."""

    size: int
    bound: float = 1.0
    reach = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_whole("size", self.size))
        check_positive("bound", self.bound)

    @property
    def width(self) -> int:
        """How many columns the block has."""
        return self.size

    def names(self, column: str) -> list[str]:
        """Return the names of the block's columns."""
        return [f"{column}[{i}]" for i in range(self.size)]

    def encode(self, reading: Reading, block: Floats) -> None:
        """Fill the block, (n, size): x / bound, shortened to length 1 where it is longer."""
        x = self._as_table(reading)
        lost = np.asarray(np.isnan(x).any(axis=1))
        if lost.any():
            reading.instead(lost)
            x = np.where(lost[:, None], 0.0, x)
        if not np.isfinite(x).all():
            raise reading.error(int(np.argmin(np.isfinite(x).all(axis=1))), "it is not finite.")
        x = x / self.bound
        length = np.linalg.norm(x, axis=1)
        long = length > 1.0 + 1e-9  # vectors of length 1 are, up to rounding
        reading.beyond(long, f"of length {self.bound:g} at most")
        block[...] = x / np.maximum(length, 1.0)[:, None]

    def _as_table(self, reading: Reading) -> Floats:
        values = reading.values.toarray() if is_sparse(reading.values) else reading.values
        for given in (values, list(values)):  # a column of arrays is an array of objects
            try:
                table = np.asarray(given)
            except ValueError:  # of different lengths
                continue
            if table.dtype.kind in "fiub" and table.shape == (len(given), self.size):
                return table.astype(np.float64)
        return np.array([self._as_row(reading, i, v) for i, v in enumerate(values)])

    def _as_row(self, reading: Reading, i: int, value: Any) -> Floats:
        if is_missing(value):
            return np.full(self.size, math.nan)
        try:
            row = np.asarray(value.toarray().ravel() if is_sparse(value) else value)
        except ValueError:
            row = np.zeros(0)
        if row.dtype.kind not in "fiub" or row.shape != (self.size,):
            raise reading.error(i, f"it must be a vector of {self.size} numbers.")
        return row.astype(np.float64)

    def check(self, value: Any) -> None:
        """Refuse what cannot stand for a missing value: there is nothing but zeros for vectors."""
        raise InvalidValueError("nothing can stand for a missing vector: use missing='zeros'.")


Column: TypeAlias = Number | Category | Hashed | Vector


def _as_floats(reading: Reading) -> Floats:
    """Return a column of numbers, NaN where there is none; a text is refused by its row."""
    values = reading.values
    try:
        array = np.asarray(values)
    except ValueError:  # a list among numbers
        array = np.zeros((0, 0))
    if array.dtype.kind in "fiub" and array.ndim == 1:
        return array.astype(np.float64)
    return np.array([_as_float(reading, i, value) for i, value in enumerate(values)])


def _as_float(reading: Reading, i: int, value: Any) -> float:
    if is_missing(value):
        return math.nan
    if not isinstance(value, str | bytes | complex | np.datetime64 | np.timedelta64):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise reading.error(i, f"{value!r} is not a number.")


def _kind(value: Any) -> str | None:
    """Return what a value of a category is: a text or a number, or else None."""
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, Real) and not is_missing(value) else None


def _refuse_rounded(values: list[Any], reading: Reading) -> None:
    """Refuse floats that may stand for several whole numbers, such as ids beside missing ones."""
    for i, value in enumerate(values):
        if isinstance(value, float) and INEXACT <= abs(value) < math.inf:
            raise reading.error(
                i,
                f"{value!r} is a float of 2^53 or more, to which several whole numbers are "
                "rounded: give texts, or whole numbers in a column of dtype 'Int64', which may "
                "have missing values.",
            )


def _fill(
    block: Floats,
    codes: NDArray[np.int64],
    values: list[Any],
    reading: Reading,
    column: Category | Hashed,
) -> None:
    """Set a 1 in the column of each row's code; codes beyond the block have none."""
    if (codes == UNKNOWN).any():
        lost = np.zeros(codes.size, np.bool_)
        for i in np.flatnonzero(codes == UNKNOWN).tolist():
            lost[i] = is_missing(values[i])
            if not lost[i] and not column.fits(values[i]):
                raise reading.error(i, f"{values[i]!r} is not {column.wanted}.")
        reading.unknown((codes == UNKNOWN) & ~lost)
        fill = reading.instead(lost) if lost.any() else None
        if fill is not None:
            codes[lost] = column.code(fill)
    rows = np.flatnonzero((codes != UNKNOWN) & (codes < block.shape[1]))
    block[rows, codes[rows]] = 1.0
