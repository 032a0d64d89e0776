"""What is in the logs: counts, rates over time and by action, missing values, suspects of leaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from guardband.kernels.types import Floats
from guardband.studies.intervals import normal_quantile
from guardband.studies.logs import Ints, StudyLogs

__all__ = ["Contents", "MeanReward", "look_at", "spans"]

SPANS = 20  # parts of the time
SUSPECT = 0.5  # the share of a reward's variance that one column should not explain
APART, FEWEST = 0.97, 10  # the area that one column should not have, and rows of each kind for it
ABSENT = 0.3  # the correlation of a missing value with the reward that is a suspect
BINS = 20
SHOWN = 12  # labels
LEVEL = 0.05


@dataclass(frozen=True)
class MeanReward:
    """The mean reward of some rows, with a 95 % interval for many rows."""

    name: Any
    rows: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Contents:
    """What is in the logs.

    Attributes
    ----------
    rows
        Counts, as `--json` has them.
    rewards
        Their mean and spread, rates and suspects, as `--json` has them.
    by_time, by_action
        Rates; labels that were played most come first.
    suspects
        Columns that may hold what was known only afterwards, and why.
    """

    rows: dict[str, Any]
    rewards: dict[str, Any]
    by_time: list[MeanReward]
    by_action: list[MeanReward]
    suspects: dict[str, str]


def look_at(logs: StudyLogs) -> Contents:
    """Return what is in the rows that are looked at."""
    values = logs.rewards
    parts = spans(logs)
    by_time = _rates(values, parts, list(range(int(parts.max()) + 1)))
    by_action = _rates(values, logs.actions, logs.labels)
    by_action.sort(key=lambda rate: -rate.rows)
    suspects = _suspects(logs)
    sizes = logs.menus.sizes(len(logs))
    missing = _missing(logs)
    rows = {
        "total": logs.total,
        "looked_at": len(logs),
        "left_to_learn": logs.left,
        "labels": len(logs.labels),
        "on_offer": [int(sizes.min()), int(sizes.max())],
        "baseline_played": float((logs.actions == logs.baselines).mean()),
        "features": logs.dim,
        "missing": missing,
        "notes": list(logs.notes),
    }
    rewards = {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "least": float(values.min()),
        "most": float(values.max()),
        "binary": bool(np.isin(values, (0.0, 1.0)).all()),
        "by_time": [vars(rate) for rate in by_time],
        "by_action": [vars(rate) for rate in by_action],
        "suspects": suspects,
    }
    return Contents(rows, rewards, by_time, by_action, suspects)


def spans(logs: StudyLogs) -> Ints:
    """Return which of some equal spans of time each row is in; without times, of rows."""
    times = np.arange(len(logs), dtype=np.float64) if logs.times is None else logs.times
    length = times[-1] - times[0]
    if length <= 0:
        return np.zeros(len(logs), np.int64)
    count = min(SPANS, len(logs))
    parts: Ints = np.minimum((times - times[0]) / length * count, count - 1).astype(np.int64)
    return parts


def _rates(values: Floats, codes: Ints, names: list[Any]) -> list[MeanReward]:
    counts = np.bincount(codes, minlength=len(names))
    sums = np.bincount(codes, values, len(names))
    squares = np.bincount(codes, values**2, len(names))
    z, found = normal_quantile(LEVEL), []
    for name, count, total, square in zip(names, counts, sums, squares, strict=True):
        if count:
            mean = total / count
            half = z * np.sqrt(max(square / count - mean**2, 0.0) / count)
            found.append(
                MeanReward(name, int(count), float(mean), float(mean - half), float(mean + half))
            )
    return found


def _columns(logs: StudyLogs) -> dict[str, NDArray[Any]]:
    """Return the columns of what was played, as they were before they became features."""
    if logs.whole is not None and logs.whole.columns is not None:
        return {name: values[: len(logs)] for name, values in logs.whole.columns.items()}
    return dict(zip(logs.names, logs.played.T, strict=True))


def _missing(logs: StudyLogs) -> dict[str, int]:
    counts = {name: int(pd.isna(values).sum()) for name, values in _plain(logs).items()}
    return {name: count for name, count in counts.items() if count}


def _plain(logs: StudyLogs) -> dict[str, NDArray[Any]]:
    """Return the columns that are no vectors."""
    return {
        name: values
        for name, values in _columns(logs).items()
        if not (values.dtype == object and isinstance(values[0], list | tuple | np.ndarray))
    }


def _suspects(logs: StudyLogs) -> dict[str, str]:
    """Return columns that explain too much of the reward to have been known beforehand."""
    found: dict[str, str] = {}
    rewards = logs.rewards
    if rewards.std() == 0.0:
        return found
    for name, values in _plain(logs).items():
        absent = pd.isna(values)
        if absent.any() and not absent.all():
            related = float(np.corrcoef(absent, rewards)[0, 1])
            if abs(related) > ABSENT:
                found[name] = (
                    f"whether it is missing goes with the reward (correlation {related:.2f})"
                )
                continue
        share, apart = _explained(values, rewards), _told_apart(values, rewards)
        if share > SUSPECT:
            found[name] = f"it alone explains {share:.0%} of the reward's variance"
        elif apart > APART:
            found[name] = f"it alone tells rows with a reward from others (AUC {apart:.3g})"
    return found


def _explained(values: NDArray[Any], rewards: Floats) -> float:
    """Return the share of variance between bins of a column, corrected for their number."""
    codes, uniques = pd.factorize(values)
    if len(uniques) > BINS and values.dtype.kind in "fiu":
        # The value that most rows have is a bin of its own: a column that is 0 unless somebody
        # clicked would be one bin otherwise.
        usual = codes == np.bincount(codes[codes >= 0]).argmax()
        others = values[~usual].astype(np.float64)
        edges = np.unique(np.nanquantile(others, np.linspace(0, 1, BINS + 1)))
        places = np.searchsorted(edges[1:-1], values, side="right") + 1
        codes = np.where(codes < 0, -1, np.where(usual, 0, places))
    codes = codes + 1  # missing values are a bin of their own
    counts = np.bincount(codes)
    bins, rows = int((counts > 0).sum()), len(rewards)
    if bins < 2 or rows - bins < 10 or bins > rows / 5:
        return 0.0
    sums = np.bincount(codes, rewards)
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    inside = float(((rewards - means[codes]) ** 2).sum()) / (rows - bins)
    return 1.0 - inside / float(rewards.var(ddof=1))


def _told_apart(values: NDArray[Any], rewards: Floats) -> float:
    """Return how well a number tells rewards of 1 from those of 0: the area under the ROC curve.

    For rare rewards that is the better measure: no bin of a column need be full of them. 0.5 where
    it does not apply.
    """
    if values.dtype.kind not in "fiu" or not np.isin(rewards, (0.0, 1.0)).all():
        return 0.5
    there = ~pd.isna(values)
    ranks = pd.Series(values[there]).rank().to_numpy()
    won = rewards[there] == 1.0
    wins = int(won.sum())
    losses = won.size - wins
    if min(wins, losses) < FEWEST:
        return 0.5
    area = (float(ranks[won].sum()) - wins * (wins + 1) / 2) / (wins * losses)
    return float(max(area, 1.0 - area))
