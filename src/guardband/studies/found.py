"""Features found in the rows, where none are stated: kinds of columns, limits, lists of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from guardband.errors import InvalidValueError
from guardband.features import Features, Hashed
from guardband.studies.logs import Ints

__all__ = ["find_action_columns", "find_features"]

MOST_VALUES = 50  # of a category that is listed
BUCKETS = 64
# A positive number is taken by its logarithm where its limits differ by more than this factor, and
# half of its values lie in this part of the range.
DECADES, SKEWED = 100.0, 0.1
TAILS = (0.001, 0.999)  # limits of numbers: what is beyond is clipped
MISSING = "(missing)"


class _Found:
    """Columns as they are found, one by one."""

    def __init__(self) -> None:
        self.numbers: dict[str, Any] = {}
        self.categories: dict[str, Any] = {}
        self.vectors: dict[str, Any] = {}
        self.fill: dict[str, Any] = {}  # what stands for missing values
        self.notes: list[str] = []

    def take(self, name: str, column: pd.Series) -> None:
        """Take a column as what it seems to be, or leave it out."""
        given = column.dropna()
        lost = len(given) < len(column)
        if given.empty:
            self.notes.append(f"Column {name!r} has no values and was left out.")
        elif given.dtype.kind in "fiub":
            self._number(name, given.to_numpy(np.float64), lost)
        elif given.dtype.kind in "Mm":
            self.notes.append(
                f"Column {name!r} holds times and was left out: an hour or a weekday would be a "
                "number or a category."
            )
        elif isinstance(given.iloc[0], list | tuple | np.ndarray):
            self.vectors[name] = _vector(given, name, lost)
        else:
            self._category(name, given, lost)

    def _number(self, name: str, values: Any, lost: bool) -> None:
        if len(values) > 1 and (np.diff(values) == 1.0).all():
            self.notes.append(f"Column {name!r} counts the rows and was left out.")
            return
        low, high = (float(each) for each in np.quantile(values, TAILS))
        if not low < high:
            low, high = float(values.min()), float(values.max())
        if not low < high:
            self.notes.append(f"Column {name!r} has one value alone and was left out.")
            return
        skewed = np.median(values) - low < SKEWED * (high - low)
        by_log = low > 0 and high / low >= DECADES and skewed
        self.numbers[name] = (low, high, "log") if by_log else (low, high)
        if lost:
            self.fill[name] = float(np.clip(np.median(values), low, high))

    def _category(self, name: str, given: pd.Series, lost: bool) -> None:
        values = sorted(map(str, given.unique()))
        if len(values) > max(MOST_VALUES, len(given) / 5):
            self.notes.append(
                f"Column {name!r} has {len(values):,} different texts in {len(given):,} rows and "
                "was left out: it looks like an id."
            )
            return
        if len(values) > MOST_VALUES:
            self.categories[name] = Hashed(BUCKETS)
            self.notes.append(
                f"Column {name!r} has {len(values):,} values: they share {BUCKETS} buckets, which "
                "makes some of them alike (see bias_bound)."
            )
        else:
            self.categories[name] = [*values, MISSING] if lost else values
        if lost:
            self.fill[name] = MISSING


def find_features(
    columns: Mapping[str, pd.Series], action: str, labels: Sequence[Any], own: bool
) -> tuple[Features, list[str]]:
    """Return features of columns, and what was decided about them, in sentences.

    Parameters
    ----------
    columns
        The columns that may be features, by name.
    action, labels
        The action's column, and its labels.
    own
        Whether the label itself is a feature: nothing else tells actions apart.
    """
    found = _Found()
    for name, column in columns.items():
        found.take(name, column)
    if own:
        few = len(labels) <= 4 * MOST_VALUES
        found.categories[action] = list(labels) if few else Hashed(4 * BUCKETS)
    if found.numbers:
        limits = [
            f"{name} {low:.4g} to {high:.4g}{' (log)' if rest else ''}"
            for name, (low, high, *rest) in found.numbers.items()
        ]
        found.notes.append(f"Limits of numbers were taken from the rows: {', '.join(limits)}.")
    if found.fill:
        told = (
            f"{name}: {value if isinstance(value, str) else format(value, '.4g')}"
            for name, value in found.fill.items()
        )
        found.notes.append(f"Missing values are taken as: {', '.join(told)}.")
    features = Features(
        found.numbers, found.categories, found.vectors, missing=found.fill or "error"
    )
    return features, found.notes


def find_action_columns(frame: pd.DataFrame, columns: Sequence[str], actions: Ints) -> list[str]:
    """Return the columns that have one value for each label, and not the same for all."""
    found = []
    first = np.full(actions.max() + 1, -1)
    first[actions[::-1]] = np.arange(len(actions))[::-1]
    seen = first[first >= 0]
    for name in columns:
        values = frame[name]
        if values.dtype == object and isinstance(values.iloc[0], list | tuple | np.ndarray):
            values = values.map(lambda each: None if each is None else tuple(each))
        codes, _ = pd.factorize(values, use_na_sentinel=True)
        same = (codes == codes[first[actions]]).all()
        if same and len(set(codes[seen].tolist())) > 1:
            found.append(name)
    return found


def _vector(given: pd.Series, name: str, lost: bool) -> tuple[int, float]:
    sizes = {len(each) for each in given}
    if len(sizes) > 1 or lost:
        what = "some rows have none" if lost else f"sizes {sorted(sizes)[:5]}"
        raise InvalidValueError(
            f"column {name!r} holds vectors, and they must all have one size: {what}."
        )
    lengths = [float(np.linalg.norm(np.asarray(each, np.float64))) for each in given]
    return sizes.pop(), max(*lengths, 1e-12)
