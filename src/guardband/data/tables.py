"""Readers of the original text files.

They take any well-formed file of the format, also a smaller one; the cache checks that a file is
the original one. Every error names the file and the line.
"""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from guardband.data.catalogue import CATALOGUE, DataError, Dataset

__all__ = ["LARGEST", "Entries", "Field", "read_lastfm", "read_movielens"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

LARGEST = 10**12  # a whole number above this is no identifier, count or time


class Entries(NamedTuple):
    """The observed entries of a matrix, in the order of the file."""

    rows: IntArray  # (n,) user of each entry, from 0
    columns: IntArray  # (n,) item of each entry, from 0
    values: FloatArray  # (n,)
    shape: tuple[int, int]

    @classmethod
    def all_of(cls, matrix: NDArray[np.generic]) -> Self:
        """Take every entry of a matrix as observed.

        Parameters
        ----------
        matrix
            (users, items) numbers.
        """
        users, items = matrix.shape
        rows, columns = np.divmod(np.arange(users * items), items)
        return cls(rows, columns, matrix.ravel().astype(np.float64), (users, items))


class Field(NamedTuple):
    """A column of whole numbers and their range."""

    name: str
    low: int = 1
    high: int = LARGEST


def read_movielens(path: str | PathLike[str]) -> Entries:
    """Read ratings in the format of MovieLens-100K.

    Parameters
    ----------
    path
        A file like `u.data`: user, movie, rating 1 to 5 and time, separated by tabs, no header;
        users and movies are numbered from 1.

    Returns
    -------
    The ratings, 1 to 5, as observed entries of a users x movies matrix.

    Raises
    ------
    DataError
        If the file is not of that format.
    """
    columns = (
        Field("user"),
        Field("movie"),
        Field("rating", 1, 5),
        Field("time", 0),
    )
    table = _read(Path(path), columns, CATALOGUE["movielens"], header=False)
    users, movies = table[:, 0] - 1, table[:, 1] - 1
    shape = (int(users.max()) + 1, int(movies.max()) + 1)
    return Entries(users, movies, table[:, 2].astype(np.float64), shape)


def read_lastfm(path: str | PathLike[str], *, least: int = 30) -> NDArray[np.uint8]:
    """Read who listens to whom in the format of HetRec 2011 Last.fm.

    Parameters
    ----------
    path
        A file like `user_artists.dat`: user, artist and play count, separated by tabs, after a
        header line `userID artistID weight`.
    least
        Artists with fewer listeners are dropped, then users with fewer of the artists left.

    Returns
    -------
    (users, artists) matrix, 1 where the user listens to the artist, else 0; rows and columns
    in the order of their numbers in the file. The original file gives 741 x 538.

    Raises
    ------
    DataError
        If the file is not of that format, or the filter leaves nothing.
    """
    columns = (Field("userID"), Field("artistID"), Field("weight"))
    entry = CATALOGUE["lastfm"]
    table = _read(Path(path), columns, entry, header=True)
    pairs = _frequent(_frequent(table[:, :2], column=1, least=least), column=0, least=least)
    if not len(pairs):
        raise DataError(
            path,
            "an empty matrix",
            f"users with {least} or more artists that have {least} or more listeners",
            entry.remedy,
        )
    users, row = np.unique(pairs[:, 0], return_inverse=True)
    artists, column = np.unique(pairs[:, 1], return_inverse=True)
    matrix = np.zeros((len(users), len(artists)), np.uint8)
    matrix[row, column] = 1
    return matrix


def _frequent(pairs: IntArray, *, column: int, least: int) -> IntArray:
    """Keep the pairs whose entry in `column` occurs at least `least` times."""
    _, which, counts = np.unique(pairs[:, column], return_inverse=True, return_counts=True)
    kept: IntArray = pairs[counts[which] >= least]
    return kept


def _read(path: Path, columns: tuple[Field, ...], entry: Dataset, *, header: bool) -> IntArray:
    """Read a table of whole numbers separated by tabs; no two rows begin with the same pair."""
    names = [column.name for column in columns]
    lines = _lines(path, entry)
    if header:
        first = next(lines)
        if first.split("\t") != names:
            raise _at(path, 1, _shown(first), "the header " + " ".join(names), entry)
    start = 2 if header else 1
    rows = [_row(path, number, line, columns, entry) for number, line in enumerate(lines, start)]
    if not rows:
        raise DataError(path, "no line of data", " ".join(names), entry.remedy)
    table = np.array(rows, np.int64)
    pairs, first_at = np.unique(table[:, :2], axis=0, return_index=True)
    if len(pairs) < len(table):
        number = int(np.setdiff1d(np.arange(len(table)), first_at)[0])
        found = f"{names[0]} {rows[number][0]} with {names[1]} {rows[number][1]} once more"
        raise _at(path, number + start, found, "each pair once", entry)
    return table


def _lines(path: Path, entry: Dataset) -> Iterator[str]:
    """Yield the lines of a file without their ends, after checking that the last one has one."""
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise DataError(path, error.strerror or str(error), entry.file, entry.remedy) from error
    if not text.strip():
        raise DataError(path, "an empty file", f"a file like {entry.file}", entry.remedy)
    lines = text.split("\n")
    last = lines.pop()
    if last:
        found = f"{_shown(last)} without a line end"
        raise _at(path, len(lines) + 1, found, "a whole line; the file is cut short", entry)
    return (line.removesuffix("\r") for line in lines)


def _row(
    path: Path, number: int, line: str, columns: tuple[Field, ...], entry: Dataset
) -> list[int]:
    fields = line.split("\t")
    if len(fields) != len(columns):
        names = ", ".join(column.name for column in columns)
        expected = f"{len(columns)} columns separated by tabs ({names})"
        raise _at(path, number, f"{len(fields)} in {_shown(line)}", expected, entry)
    return [
        _whole(path, number, field, column, entry)
        for field, column in zip(fields, columns, strict=True)
    ]


def _whole(path: Path, number: int, field: str, column: Field, entry: Dataset) -> int:
    digits = field.strip(" ")  # a few lines of the Last.fm file pad their numbers
    if digits.isascii() and digits.isdigit() and column.low <= int(digits[:20]) <= column.high:
        return int(digits)
    limits = f"from {column.low}" + (f" to {column.high}" if column.high < LARGEST else "")
    expected = f"a whole number {limits}"
    raise _at(path, number, f"{column.name} {_shown(field)}", expected, entry)


def _at(path: Path, number: int, found: str, expected: str, entry: Dataset) -> DataError:
    return DataError(f"{path}, line {number}", found, expected, entry.remedy)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
