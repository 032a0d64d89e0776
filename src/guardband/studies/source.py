"""The table that logs are read from, and its columns, checked: errors name the column and row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from guardband.checks import nearest
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.features import is_frame, is_named
from guardband.kernels.types import Floats
from guardband.row_files import row_blocks

__all__ = ["Source", "key_of"]

FEW = 0.1  # the share of texts among numbers that is taken for a mistake


class Source:
    """Rows of logs in memory.

    Parameters
    ----------
    data
        A DataFrame, a list of dicts, a dict of columns, or the path of a CSV or Parquet file.
    needed
        Columns that it must have.
    others
        Whether the other columns are needed, too.
    texts
        Those that are read as texts from CSV.
    hints
        What to say about columns that are not there.
    """

    def __init__(
        self,
        data: Any,
        needed: Sequence[str],
        *,
        others: bool = False,
        texts: Sequence[str] = (),
        hints: Mapping[str, str] | None = None,
    ) -> None:
        self._file: Path | None = None
        self._hints = hints or {}
        self._plain: dict[str, pd.Series] = {}
        if isinstance(data, str | Path):
            self._file = Path(data)
            self.frame = self._read(self._file, needed, others, texts)
        else:
            frame = _as_frame(data)
            names = [str(name) for name in frame.columns]
            self._find(names, needed)
            frame = frame.set_axis(names, axis=1) if names != list(frame.columns) else frame
            self.frame = frame if others else frame[list(needed)]
            if self.frame.columns.has_duplicates:
                twice = self.frame.columns[self.frame.columns.duplicated()][0]
                raise InvalidValueError(f"there are two columns {twice!r}: rename one.")
            self.frame = _without_arrow(self.frame)
        if self.frame.empty:
            raise InvalidValueError(f"{self._where}there are no rows.")

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def _where(self) -> str:
        return "" if self._file is None else f"{self._file}: "

    @property
    def row_names(self) -> Sequence[Any]:
        """What rows are called: by number from 1 in a file, else by the frame's index."""
        if self._file is not None:
            return range(1, len(self) + 1)
        names: Any = self.frame.index
        return names  # type: ignore[no-any-return]

    def row_name(self, row: int) -> Any:
        """Return what a row is called."""
        name = self.row_names[row]
        return name.item() if isinstance(name, np.generic) else name

    def error(self, column: str, row: int, what: str) -> InvalidValueError:
        """Return the error that names the column and the row."""
        told = "" if self._file is None else " Rows are counted from 1, without the header."
        return InvalidValueError(
            f"{self._where}column {column!r}, row {self.row_name(row)!r}: {what}{told}"
        )

    def named(self, error: Exception) -> InvalidValueError:
        """Return an error about rows of this table with the file's name in it."""
        return InvalidValueError(f"{self._where}{error}")

    def column(self, name: str) -> pd.Series:
        """Return a column as it is."""
        if name not in self.frame.columns:
            self._find([str(each) for each in self.frame.columns], [name])
        return self.frame[name]

    def plain(self, name: str, first: int) -> pd.Series:
        """Return a column of numbers as numbers; one of other values as it is.

        Which it is, the first rows say. A few texts among numbers are a mistake, not a category,
        and so is what is not finite.
        """
        if name not in self._plain:
            self._plain[name] = self._as_numbers(name, first)
            self._check_finite(name, self._plain[name])
        return self._plain[name]

    def _check_finite(self, name: str, found: pd.Series) -> None:
        if found.dtype.kind == "f":
            wrong = np.isinf(found.to_numpy(np.float64, na_value=np.nan))
            if wrong.any():
                row = int(np.argmax(wrong))
                what = f"{found.iloc[row]} is not finite: write the largest number that it can be, "
                raise self.error(name, row, what + "or nothing if it is not known.")

    def _as_numbers(self, name: str, first: int) -> pd.Series:
        given = self.column(name)
        filled = given[:first].dropna()
        if given.dtype.kind in "fiubMm" or filled.empty or not _are_plain(filled):
            return given
        found = pd.to_numeric(given, errors="coerce")
        wrong = (found.isna() & given.notna()).to_numpy()
        if wrong[:first].sum() > FEW * len(filled):
            return given
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self.error(
                name,
                row,
                f"{given.iloc[row]!r} is not a number, and nearly all other rows have one. If the "
                "column is a category, state its values: features.categories.",
            )
        return found

    def numbers(self, name: str, *, least: float, most: float, what: str) -> Floats:
        """Return a column of numbers between two limits; `what` tells what they are."""
        given = self.frame[name]
        if given.dtype.kind in "Mm":
            raise InvalidTypeError(f"{self._where}column {name!r} holds times, not numbers.")
        found: Floats = pd.to_numeric(given, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        if given.dtype.kind not in "fiub":  # a text that spells a number is one in a file alone
            lost = np.isnan(found) & ~given.isna().to_numpy()
            if self._file is None:
                lost |= np.array([isinstance(value, str) for value in given], np.bool_)
            if lost.any():
                row = int(np.argmax(lost))
                raise self.error(name, row, f"{given.iloc[row]!r} is not a number.")
        if np.isnan(found).any():
            row = int(np.argmax(np.isnan(found)))
            raise self.error(name, row, f"there is no value, and every row needs {what}.")
        wrong = ~((found >= least) & (found <= most))
        if wrong.any():
            row = int(np.argmax(wrong))
            told = repr(float(found[row])).removesuffix(".0")
            raise self.error(name, row, f"{told} is not {what}.")
        return found

    def complete(self, name: str, what: str) -> pd.Series:
        """Return a column in which every row has a value."""
        found = self.frame[name]
        missing = found.isna().to_numpy()
        if missing.any():
            row = int(np.argmax(missing))
            raise self.error(name, row, f"there is no value, and every row needs {what}.")
        return found

    def ids(self, name: str) -> pd.Series:
        """Return a column of ids, texts or whole numbers."""
        found = self.complete(name, "an id")
        if found.dtype.kind == "f":
            wrong = (found % 1.0 != 0.0).to_numpy()  # also where it is infinite
            if wrong.any():
                row = int(np.argmax(wrong))
                raise self.error(name, row, f"{found.iloc[row]} is no text or whole number.")
            return found.astype(np.int64)
        if found.dtype.kind not in "iu":
            for row, each in enumerate(found):
                if not isinstance(each, str | int | np.integer) or isinstance(each, bool):
                    raise self.error(name, row, f"{each!r} is no text or whole number.")
        return found

    def times(self, name: str) -> tuple[Floats, bool, str]:
        """Return times in seconds, if they are dates, and what was done about time zones."""
        given = self.complete(name, "a time")
        note = ""
        if given.dtype.kind == "O":  # texts that spell numbers are numbers, as in files
            numbers = pd.to_numeric(given, errors="coerce")
            given = given if numbers.isna().any() else numbers
        dated = given.dtype.kind not in "fiu"
        if not dated:
            seconds = given.to_numpy(np.float64)
            if not np.isfinite(seconds).all():
                row = int(np.argmin(np.isfinite(seconds)))
                raise self.error(name, row, f"{seconds[row]:g} is no time.")
        else:
            stamps, note = self._stamps(given)
            seconds = stamps.to_numpy("datetime64[ns]").astype(np.int64) / 1e9
        back = np.flatnonzero(np.diff(seconds) < 0)
        if back.size:
            raise self.error(
                name,
                int(back[0]) + 1,
                "it lies before the row above. Rows must be in the order of time, as agents learn "
                f"them: sort them by {name!r}.",
            )
        return seconds, dated, note

    def _stamps(self, given: pd.Series) -> tuple[pd.DatetimeIndex, str]:
        """Return points in time, in UTC where they have time zones."""
        if isinstance(given.dtype, pd.DatetimeTZDtype) or given.dtype.kind == "M":
            return pd.DatetimeIndex(given.dt.tz_convert(None) if given.dt.tz else given), ""
        texts = given.astype(str)
        zoned = texts.str.contains(r"(?:Z|UTC|[+-]\d\d:?\d\d)$", regex=True).to_numpy()
        if zoned.any() and not zoned.all():
            row = int(np.argmax(zoned != zoned[0]))
            has = "has a time zone" if zoned[row] else "has no time zone"
            raise self.error(
                str(given.name),
                row,
                f"{given.iloc[row]!s} {has}, other than rows above: write all times with their "
                "zone, or all without.",
            )
        stamps = pd.to_datetime(texts, errors="coerce", utc=True, format="ISO8601")
        if stamps.isna().any():
            row = int(np.argmax(stamps.isna().to_numpy()))
            raise self.error(
                str(given.name),
                row,
                f"{given.iloc[row]!r} is no time: give a number, or a date such as "
                "2026-03-01T12:30:00+01:00.",
            )
        several = zoned.any() and texts.str.extract(r"(Z|UTC|[+-]\d\d:?\d\d)$")[0].nunique() > 1
        note = f"Column {given.name!r} has several time zones; times were compared in UTC."
        return pd.DatetimeIndex(stamps.dt.tz_convert(None)), note if several else ""

    def _find(self, names: Sequence[str], needed: Sequence[str]) -> None:
        for name in needed:
            if name not in names:
                raise InvalidValueError(
                    f"{self._where}there is no column {name!r}; there are "
                    f"{', '.join(names) or 'none'}.{nearest(name, names)}"
                    f"{self._hints.get(name, '')}"
                )
            if names.count(name) > 1:
                raise InvalidValueError(f"{self._where}there are two columns {name!r}: rename one.")

    def _read(
        self, path: Path, needed: Sequence[str], others: bool, texts: Sequence[str]
    ) -> pd.DataFrame:
        def find(names: list[str]) -> tuple[Sequence[str], Sequence[str]]:
            self._find(names, [*needed, *names] if others else needed)
            return (names if others else needed), texts

        blocks = [block for block, _ in row_blocks(path, find)]
        if not blocks:
            raise InvalidValueError(f"{self._where}there are no rows.")
        table: pd.DataFrame = pd.concat(blocks, ignore_index=True)
        return table


def _are_plain(filled: pd.Series) -> bool:
    """Tell whether values are texts or numbers, and not lists."""
    return not isinstance(filled.iloc[0], list | tuple | np.ndarray | dict)


def key_of(label: Any) -> str:
    """Return a label's text; 3, 3.0 and "3" are one, as files do not tell them apart."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label)


def _as_frame(data: Any) -> pd.DataFrame:
    if is_frame(data):
        found: pd.DataFrame = data
        return found
    if isinstance(data, list) and not data:
        raise InvalidValueError("the logs are an empty list: a study needs one row per decision.")
    if not is_named(data):
        raise InvalidTypeError(
            "logs must be a DataFrame, a list of dicts, a dict of columns, or the path of a CSV or "
            f"Parquet file, not {type(data).__name__}."
        )
    try:
        if isinstance(data, Mapping):
            return pd.DataFrame({name: _one_column(values) for name, values in data.items()})
        return pd.DataFrame(list(data))
    except ValueError as error:
        raise InvalidValueError(f"the columns do not fit together: {error}.") from None


def _without_arrow(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose columns have pandas' own types, as those of a Parquet file get."""
    arrow = {
        str(name): column.array.__arrow_array__().to_pandas().set_axis(frame.index)
        for name, column in frame.items()
        if isinstance(column.dtype, pd.ArrowDtype)
    }
    return frame.assign(**arrow) if arrow else frame


def _one_column(values: Any) -> Any:
    """Return a column's values; a table stays one row each."""
    if isinstance(values, np.ndarray) and values.ndim > 1:
        return list(values)
    return values
