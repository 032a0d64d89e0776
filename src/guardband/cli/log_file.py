"""Reading logs from CSV and Parquet files in blocks, with errors that name the row and column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from guardband.checks import nearest
from guardband.errors import InputError
from guardband.features import Features
from guardband.kernels.types import Floats
from guardband.row_files import BLOCK, LogFileError, row_blocks

__all__ = ["LogColumns", "LogFile", "LogFileError"]

ROW, NUMBER = re.compile(r"\brows? \d+( and \d+)?"), re.compile(r"\d+")
Table = pd.DataFrame
Block = tuple[Any, Floats, Floats | None, list[str] | None]


class LogColumns:
    """The columns of a log: one for each feature, the reward, and perhaps ids and propensities.

    Parameters
    ----------
    features
        The task's features, in their order.
    renamed
        The columns of features that have another name there.
    reward, ident, propensity
        The other columns; None: `id` and `propensity`, if the file has them.
    named
        Where the space has named features: then `features` are the columns that these are made of.
    """

    def __init__(
        self,
        features: Sequence[str],
        renamed: Mapping[str, str],
        reward: str,
        ident: str | None,
        propensity: str | None,
        named: Features | None = None,
    ) -> None:
        for name in renamed:
            if name not in features:
                raise LogFileError(
                    f"--feature {name}=...: the task has no feature {name!r}."
                    f"{nearest(name, list(features))}"
                )
        self.features = [renamed.get(name, name) for name in features]
        self.names = {renamed.get(name, name): name for name in features}
        self.named = named is not None
        self._texts = [] if named is None else [renamed.get(name, name) for name in named.texts]
        self.reward, self.ident, self.propensity = reward, ident, propensity

    def find(self, file: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the columns to read of those that a file has, and those that are texts."""
        wanted = [*self.features, self.reward, self.ident, self.propensity]
        for name in wanted:
            if name is not None and names.count(name) != 1:
                how = "two columns" if name in names else "no column"
                raise LogFileError(
                    f"{file} has {how} {name!r}, only {', '.join(names)}.{nearest(name, names)} "
                    "Feature columns are named as in the space; see --feature, --reward, --id and "
                    "--propensity."
                )
        self.ident = "id" if self.ident is None and "id" in names else self.ident
        if self.propensity is None and "propensity" in names:
            self.propensity = "propensity"
        return self.all, self._texts + ([self.ident] if self.ident else [])

    @property
    def numbers(self) -> list[str]:
        """The columns that hold numbers."""
        features = [] if self.named else self.features
        return [*features, self.reward] + ([self.propensity] if self.propensity else [])

    @property
    def all(self) -> list[str]:
        """All columns that are read."""
        features = self.features if self.named else []
        return list(dict.fromkeys(features + self.numbers + ([self.ident] if self.ident else [])))


class LogFile:
    """A log in a CSV or Parquet file.

    Parameters
    ----------
    path
        The file; Parquet if its name ends with .parquet or .pq, else CSV.
    columns
        What is read from it.
    advance
        Called with the share of the file that each block is.
    """

    def __init__(
        self, path: Path, columns: LogColumns, advance: Callable[[float], object] = lambda _: None
    ) -> None:
        self.path, self.columns, self._advance = path, columns, advance
        self._first = 0  # the row with which the block being read begins

    def blocks(self) -> Iterator[Block]:
        """Yield features, rewards, propensities and ids, block by block.

        At the end of the file it is refused if an id is there twice.
        """
        self._first, hashes = 0, []
        for table, share in self._tables():
            if table.empty:
                continue
            numbers = self._numbers(table)
            size = 0 if self.columns.named else len(self.columns.features)
            features: Any = np.ascontiguousarray(numbers[:, :size])
            if self.columns.named:
                rows = table[self.columns.features].reset_index(drop=True)
                features = rows.rename(columns=self.columns.names)
            ids = None
            if self.columns.ident:
                ids = self._ids(table[self.columns.ident])
                hashes.append(pd.util.hash_array(np.array(ids, object)))
            chances = numbers[:, size + 1] if self.columns.propensity else None
            yield features, numbers[:, size], chances, ids
            self._first += len(table)
            self._advance(share)
        if not self._first:
            raise LogFileError(f"{self.path} has no rows.")
        if hashes:
            self._check_twice(np.concatenate(hashes))

    def named(self, error: InputError) -> LogFileError:
        """Return an error about a row of the newest block with the file and the row in it."""
        if isinstance(error, LogFileError):
            return error
        first = self._first + 1

        def in_file(words: re.Match[str]) -> str:
            return NUMBER.sub(lambda number: str(int(number[0]) + first), words[0])

        text = ROW.sub(in_file, str(error))
        return LogFileError(f"{self.path}: {text}")

    def _tables(self) -> Iterator[tuple[Table, float]]:
        return row_blocks(self.path, partial(self.columns.find, self.path), BLOCK)

    def _numbers(self, table: Table) -> Floats:
        """Return the columns of numbers, all finite."""
        part = table[self.columns.numbers]
        numbers: Floats = part.apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            value: Any = part.iat[row, column]
            shown = repr(value) if isinstance(value, str) else value
            what = "no value" if pd.isna(value) else f"{shown} is no finite number"
            raise LogFileError(
                f"{self.path}, row {self._first + row + 1}, column {part.columns[column]!r}: "
                f"{what}; rows are counted without the header."
            )
        return numbers

    def _ids(self, column: pd.Series) -> list[str]:
        missing = column.isna().to_numpy()
        if missing.any():
            row = self._first + int(np.argmax(missing)) + 1
            raise LogFileError(f"{self.path}, row {row}, column {column.name!r}: no id.")
        return [str(each) for each in column]

    def _check_twice(self, hashes: np.ndarray) -> None:
        """Refuse an id that two rows of the file have; 8 bytes are kept of each until here."""
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
        if same.size == 0:
            return
        suspects = np.flatnonzero(np.isin(hashes, hashes[order[same]])).tolist()
        rows = pd.concat(table[self.columns.ident] for table, _ in self._tables())
        seen: dict[str, int] = {}
        for row in suspects:
            name = str(rows.iat[row])
            if name in seen:
                raise LogFileError(
                    f"{self.path}, column {self.columns.ident!r}: rows {seen[name] + 1} and "
                    f"{row + 1} have the same id, {name!r}."
                )
            seen[name] = row
