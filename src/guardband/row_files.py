"""Rows of CSV and Parquet files, in blocks; a file that is cut short is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from guardband.errors import InvalidValueError
from guardband.extras import how_to_install

__all__ = ["BLOCK", "EXACT", "LogFileError", "check_file", "is_parquet", "row_blocks"]

BLOCK = 65_536  # rows in memory at once
# Numbers are read to the last bit, or the ids that rows get from their content would differ.
ALWAYS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
EXACT: dict[str, Any] = {} if ALWAYS_EXACT else {"float_precision": "round_trip"}
Blocks: TypeAlias = Iterator[tuple[pd.DataFrame, float]]
# How files begin that are no CSV, whatever their name, and what to do.
OTHERS = {
    b"\x1f\x8b": "is compressed: unpack it first",
    b"PK\x03\x04": "is an archive or a workbook: write its table as CSV",
    b"PAR1": "is a Parquet file: let its name end with .parquet",
    b"\xff\xfe": "is in UTF-16: save it as UTF-8",
    b"\xfe\xff": "is in UTF-16: save it as UTF-8",
}
Find: TypeAlias = Callable[[list[str]], tuple[Sequence[str], Sequence[str]]]


class LogFileError(InvalidValueError):
    """A log cannot be used as it is in its file."""


def is_parquet(path: Path) -> bool:
    """Tell whether a file is Parquet by its name; all others are CSV."""
    return path.suffix in (".parquet", ".pq")


def check_file(path: Path) -> None:
    """Say that a file is missing, or is a folder."""
    if not path.is_file():
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder: give one file.")
        raise FileNotFoundError(f"there is no file {path}.")


def row_blocks(path: Path, find: Find, size: int = BLOCK) -> Blocks:
    """Yield the rows of a file, and which share of it each block is.

    Parameters
    ----------
    path
        The file.
    find
        Called with the names of its columns before anything is read, or raises. Returns those to
        read, and those of them that are texts in CSV, too, whatever they look like.
    size
        Rows of a block.
    """
    check_file(path)
    yield from (_parquet if is_parquet(path) else _csv)(path, find, size)


def _csv(path: Path, find: Find, rows: int) -> Blocks:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(4)
        for other, what in OTHERS.items():
            if start.startswith(other):
                raise LogFileError(f"{path} {what}.")
        file.seek(max(0, size - 1))
        if size and file.read() not in (b"\n", b"\r"):
            raise LogFileError(
                f"{path} does not end with a line break: its last row may be cut short. If it is "
                "whole, add one."
            )
        file.seek(0)
        done = 0
        try:
            header = pd.read_csv(path, header=None, nrows=1, dtype=str, skipinitialspace=True)
            names = _names(header.iloc[0])
            if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
                raise LogFileError(
                    f"{path} has one column alone, {names[0]!r}: separate values by commas, and "
                    "write numbers with a point."
                )
            wanted, texts = find(names)
            for table in pd.read_csv(
                file,
                chunksize=rows,
                dtype=dict.fromkeys(texts, str) or None,
                skipinitialspace=True,
                **EXACT,
            ):
                if not isinstance(table.index, pd.RangeIndex):  # surplus values make an index
                    raise LogFileError(f"{path} has rows with more values than columns.")
                done, before = file.tell(), done
                yield table[list(wanted)], (done - before) / size
        except UnicodeDecodeError:
            raise LogFileError(
                f"{path}: line {_other_line(path)} is not UTF-8: save it so."
            ) from None
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise LogFileError(
                f"{path} is no table of comma-separated values ({str(error).strip()})."
            ) from None


def _other_line(path: Path) -> int:
    """Return the first line that is not UTF-8, from 1."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    raise AssertionError("all of it is UTF-8")


def _names(header: pd.Series) -> list[str]:
    """Return the names of columns; those that have none get pandas' own."""
    return [f"Unnamed: {i}" if pd.isna(name) else str(name) for i, name in enumerate(header)]


def _parquet(path: Path, find: Find, rows: int) -> Blocks:
    try:
        import pyarrow as pa  # noqa: PLC0415 (an extra)
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Parquet needs pyarrow: {how_to_install('parquet')}, or write the log as CSV.",
            name="pyarrow",
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            wanted, _ = find(file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=rows, columns=list(wanted)):
                yield batch.to_pandas(), batch.num_rows / file.metadata.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise LogFileError(f"{path} is no Parquet file, or it is cut short ({error}).") from None
