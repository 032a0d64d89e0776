"""A user's own problem from an npz or CSV file."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from guardband.checks import nearest
from guardband.kernels.types import Floats
from guardband.problems.noise import RewardNoise
from guardband.problems.tabular import Tabular

__all__ = ["from_file"]

ARRAYS = ("phi", "psi", "theta", "tasks", "baseline")


def from_file(
    path: str | PathLike[str],
    *,
    theta: Any = None,
    tasks: Sequence[Sequence[int]] | None = None,
    baseline: Any = None,
    reward_std: float | RewardNoise = 0.0,
) -> Tabular:
    """Load a problem from a file; what is given here comes before what the file holds.

    An npz file holds arrays `phi` and `psi` (C, K, d) and `theta` (d,), and may hold `tasks`, an
    (M, d) table of zeros and ones, and `baseline`, (M, C) actions or a rank.

    A CSV file has one row per context and action, with the columns context, action, phi_1 ...
    phi_d, psi_1 ... psi_d; contexts and actions are numbered from 0, rows may come in any order.
    Its theta is given here or stands in `theta.csv` beside it, d numbers without a header.

    Parameters
    ----------
    path
        A file whose name ends in .npz or .csv.
    theta
        (d,): the parameter.
    tasks
        One list of feature indices per agent; by default one agent that uses all features.
    baseline
        (M, C) actions, or the rank of the baseline's action, 1 = best, which is the default.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or a noise model.

    Returns
    -------
    Tabular
        The problem, under the file's name.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it holds something else.
    """
    file = Path(path)
    readers = {".npz": _read_npz, ".csv": _read_csv}
    if file.suffix.lower() not in readers:
        raise ValueError(f"{file} is neither .npz nor .csv: save the problem as one of them.")
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}: check the path.")
    held = readers[file.suffix.lower()](file)
    given = {"theta": theta, "tasks": tasks, "baseline": baseline}
    held |= {name: value for name, value in given.items() if value is not None}
    if "theta" not in held:
        raise ValueError(_no_theta(file))
    try:
        return Tabular(**held, reward_std=reward_std, name=file.stem)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{file}: {error}") from None


def _no_theta(file: Path) -> str:
    if file.suffix.lower() == ".npz":
        return f"{file} holds no array 'theta': save one of shape (d,) in it, or pass theta=[...]."
    place = file.with_name("theta.csv")
    return f"{file} has no theta: pass theta=[...], or write its numbers to {place}."


def _read_npz(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as source, np.load(source, allow_pickle=False) as archive:
            held = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, TypeError, OSError, EOFError) as error:
        raise ValueError(
            f"{file} is no readable npz file ({error}): write it with numpy.savez(path, phi=..., "
            "psi=..., theta=...)."
        ) from None
    for name in held:
        if name not in ARRAYS:
            raise ValueError(
                f"{file} holds an array {name!r}; expected are {', '.join(ARRAYS)}."
                f"{nearest(name, ARRAYS)}"
            )
    for name in ("phi", "psi"):
        if name not in held:
            raise ValueError(
                f"{file} holds {', '.join(held) or 'nothing'}, but no array {name!r}: save one of "
                "shape (contexts, actions, features); psi = phi where contexts are observed."
            )
    if "tasks" in held:
        held["tasks"] = _tasks_of(file, held["tasks"])
    return held


def _tasks_of(file: Path, table: Any) -> list[list[int]]:
    """Return index sets from a table of zeros and ones."""
    if table.ndim != 2 or not np.isin(table, (0, 1)).all():
        raise ValueError(
            f"{file}: tasks must be an (agents, features) table of zeros and ones, not "
            f"{table.dtype} of shape {table.shape}."
        )
    return [np.flatnonzero(row).tolist() for row in table]


def _read_csv(file: Path) -> dict[str, Any]:
    table = _table(file, header=0)
    columns = [str(column) for column in table.columns]
    dim = sum(column.startswith("phi_") for column in columns)
    wanted = ["context", "action"]
    wanted += [f"{name}_{i + 1}" for name in ("phi", "psi") for i in range(max(dim, 1))]
    missing = [column for column in wanted if column not in columns]
    if missing:
        raise ValueError(
            f"{file} has the columns {', '.join(columns)}; missing: {', '.join(missing)}. Expected "
            "are context, action, phi_1 ... phi_d, psi_1 ... psi_d, separated by commas."
        )
    unknown = [column for column in columns if column not in wanted]
    if unknown:
        raise ValueError(
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
        table = pd.read_csv(file, header=header, skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is no table of comma-separated values ({error}).") from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes surplus values for an index
        raise ValueError(f"{file} has rows with more values than columns: remove the surplus.")
    if table.empty:
        raise ValueError(f"{file} has no rows: write one per context and action.")
    return table


def _theta(file: Path) -> Floats:
    table = _table(file, header=None)
    _check_numbers(file, table)
    return table.to_numpy(np.float64).ravel()


def _check_numbers(file: Path, table: pd.DataFrame) -> None:
    numbers = table.apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    for row, column in np.argwhere(~np.isfinite(numbers)):
        raise ValueError(
            f"{file}, row {row + 1}, column {table.columns[column]}: {table.iat[row, column]!r} is "
            "no finite number; rows are counted without the header."
        )


def _check_grid(file: Path, table: pd.DataFrame) -> tuple[int, int]:
    """Return (C, K) if every context has every action once."""
    pairs = table[["context", "action"]].to_numpy(np.float64)
    odd = (pairs != np.floor(pairs)) | (pairs < 0) | (pairs >= len(pairs))
    if odd.any():
        context, action = pairs[odd.any(axis=1)][0]
        raise ValueError(
            f"{file} has context {context:g} with action {action:g} in {len(pairs)} rows: number "
            "both 0, 1, 2, ... without gaps."
        )
    contexts, actions = (int(n) + 1 for n in pairs.max(axis=0))
    seen, times = np.unique(pairs @ np.array([actions, 1.0]), return_counts=True)
    if times.max() > 1:
        context, action = divmod(int(seen[times.argmax()]), actions)
        raise ValueError(
            f"{file} has context {context} with action {action} {times.max()} times: keep one."
        )
    if seen.size < contexts * actions:
        gaps = np.flatnonzero(seen != np.arange(seen.size))
        context, action = divmod(int(gaps[0]) if gaps.size else seen.size, actions)
        raise ValueError(
            f"{file} has {contexts} contexts and {actions} actions, but no row for context "
            f"{context} with action {action}: every context needs every action."
        )
    return contexts, actions
