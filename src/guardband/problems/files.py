"""A user's own problem from an npz or CSV file."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from guardband.checks import as_path, nearest
from guardband.errors import InvalidValueError
from guardband.files import in_words
from guardband.problems.noise import RewardNoise
from guardband.problems.tabular import Tabular

__all__ = ["from_file"]

ARRAYS = ("phi", "psi", "theta", "tasks", "baseline", "values", "costs")


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
    (M, d) table of zeros and ones, `baseline`, (M, C) actions or a rank, and `values` and
    `costs`, (K,) or (C, K), what actions are worth and what they cost.

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
    file = as_path("path", path)
    readers = {".npz": _read_npz, ".csv": _read_csv}
    if file.suffix.lower() not in readers:
        raise InvalidValueError(
            f"{file} is neither .npz nor .csv: save the problem as one of them."
        )
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}: check the path.")
    held = readers[file.suffix.lower()](file)
    given = {"theta": theta, "tasks": tasks, "baseline": baseline}
    held |= {name: value for name, value in given.items() if value is not None}
    if "theta" not in held:
        raise InvalidValueError(_no_theta(file))
    try:
        return Tabular(**held, reward_std=reward_std, name=file.stem)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{file}: {error}") from None


def _no_theta(file: Path) -> str:
    if file.suffix.lower() == ".npz":
        return f"{file} holds no array 'theta': save one of shape (d,) in it, or pass theta=[...]."
    beside = file.with_name("theta.csv")
    return f"{file} has no theta: pass theta=[...], or write its numbers to {beside}."


def _read_csv(file: Path) -> dict[str, Any]:
    from guardband.problems.csv_files import read_csv  # noqa: PLC0415 - pandas is slow to import

    return read_csv(file)


def _read_npz(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as source, np.load(source, allow_pickle=False) as archive:
            held = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, TypeError, OSError, EOFError) as error:
        raise InvalidValueError(
            f"{file} is no readable npz file ({in_words(error)}): write it with numpy.savez(path, "
            "phi=..., psi=..., theta=...)."
        ) from None
    for name in held:
        if name not in ARRAYS:
            raise InvalidValueError(
                f"{file} holds an array {name!r}; expected are {', '.join(ARRAYS)}."
                f"{nearest(name, ARRAYS)}"
            )
    for name in ("phi", "psi"):
        if name not in held:
            raise InvalidValueError(
                f"{file} holds {', '.join(held) or 'nothing'}, but no array {name!r}: save one of "
                "shape (contexts, actions, features); psi = phi where contexts are observed."
            )
    if "tasks" in held:
        held["tasks"] = _tasks_of(file, held["tasks"])
    return held


def _tasks_of(file: Path, table: Any) -> list[list[int]]:
    """Return index sets from a table of zeros and ones."""
    if table.ndim != 2 or not np.isin(table, (0, 1)).all():
        raise InvalidValueError(
            f"{file}: tasks must be an (agents, features) table of zeros and ones, not "
            f"{table.dtype} of shape {table.shape}."
        )
    return [np.flatnonzero(row).tolist() for row in table]
