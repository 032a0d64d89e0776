"""Reading a problem from a CSV file, with errors that name the row and the column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from guardband.checks import nearest
from guardband.errors import InvalidValueError
from guardband.kernels.types import Floats
from guardband.row_files import EXACT

__all__ = ["read_csv"]


def read_csv(file: Path) -> dict[str, Any]:
    """Return the arrays of a CSV file, and theta where `theta.csv` lies beside it."""
    table = _table(file, header=0)
    columns = [str(column) for column in table.columns]
    dim = sum(column.startswith("phi_") for column in columns)
    wanted = ["context", "action"]
    wanted += [f"{name}_{i + 1}" for name in ("phi", "psi") for i in range(max(dim, 1))]
    missing = [column for column in wanted if column not in columns]
    if missing:
        raise InvalidValueError(
            f"{file} has the columns {', '.join(columns)}; missing: {', '.join(missing)}. Expected "
            "are context, action, phi_1 ... phi_d, psi_1 ... psi_d, separated by commas."
        )
    unknown = [column for column in columns if column not in wanted]
    if unknown:
        raise InvalidValueError(
            f"{file} has a column {unknown[0]!r} that means nothing here: remove it."
            f"{nearest(unknown[0], wanted)}"
        )
    table = table[wanted]
    _check_numbers(file, table)
    shape = _check_grid(file, table)
    rows = table.sort_values(["context", "action"]).to_numpy(np.float64)
    phi, psi = rows[:, 2 : 2 + dim], rows[:, 2 + dim :]
    held = {"phi": phi.reshape(*shape, dim), "psi": psi.reshape(*shape, dim)}
    beside = file.with_name("theta.csv")
    if beside.is_file() and beside != file:
        held["theta"] = _theta(beside)
    return held


def _table(file: Path, header: int | None) -> pd.DataFrame:
    try:
        table: pd.DataFrame = pd.read_csv(file, header=header, skipinitialspace=True, **EXACT)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"{file} is no table of comma-separated values ({error})."
        ) from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes surplus values for an index
        raise InvalidValueError(
            f"{file} has rows with more values than columns: remove the surplus."
        )
    if table.empty:
        raise InvalidValueError(f"{file} has no rows: write one per context and action.")
    return table


def _theta(file: Path) -> Floats:
    table = _table(file, header=None)
    _check_numbers(file, table)
    return table.to_numpy(np.float64).ravel()


def _check_numbers(file: Path, table: pd.DataFrame) -> None:
    numbers = table.apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    for row, column in np.argwhere(~np.isfinite(numbers)):
        raise InvalidValueError(
            f"{file}, row {row + 1}, column {table.columns[column]}: {table.iat[row, column]!r} is "
            "no finite number; rows are counted without the header."
        )


def _check_grid(file: Path, table: pd.DataFrame) -> tuple[int, int]:
    """Return (C, K) if every context has every action once."""
    pairs = table[["context", "action"]].to_numpy(np.float64)
    odd = (pairs != np.floor(pairs)) | (pairs < 0) | (pairs >= len(pairs))
    if odd.any():
        context, action = pairs[odd.any(axis=1)][0]
        raise InvalidValueError(
            f"{file} has context {context:g} with action {action:g} in {len(pairs)} rows: number "
            "both 0, 1, 2, ... without gaps."
        )
    contexts, actions = (int(n) + 1 for n in pairs.max(axis=0))
    seen, times = np.unique(pairs @ np.array([actions, 1.0]), return_counts=True)
    if times.max() > 1:
        context, action = divmod(int(seen[times.argmax()]), actions)
        raise InvalidValueError(
            f"{file} has context {context} with action {action} {times.max()} times: keep one."
        )
    if seen.size < contexts * actions:
        gaps = np.flatnonzero(seen != np.arange(seen.size))
        context, action = divmod(int(gaps[0]) if gaps.size else seen.size, actions)
        raise InvalidValueError(
            f"{file} has {contexts} contexts and {actions} actions, but no row for context "
            f"{context} with action {action}: every context needs every action."
        )
    return contexts, actions
