"""Features found in the rows, where none are stated: kinds of columns, limits, lists of values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from guardband.errors import InvalidValueError
from guardband.features import Features, Hashed
from guardband.kernels.types import Floats
from guardband.studies.logs import Ints

__all__ = ["changes_within_labels", "find_features"]

MOST_VALUES = 50  # of a category that is listed
BUCKETS = 64
# A positive number is taken by its logarithm where its limits differ by more than this factor, and
# half of its values lie in this part of the range.
DECADES, SKEWED = 100.0, 0.1
TAILS = (0.001, 0.999)  # limits of numbers: what is beyond is clipped
MISSING = "(missing)"
DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?")
ROUNDING = 1e-6  # of the range of a number: what differs by less is the same, up to rounding
LARGE = 2.0**53  # from here on several whole numbers are rounded to one float


class _Found:
    """Columns as they are found, one by one."""

    def __init__(self) -> None:
        self.numbers: dict[str, Any] = {}
        self.categories: dict[str, Any] = {}
        self.vectors: dict[str, Any] = {}
        self.fill: dict[str, Any] = {}  # what stands for missing values
        self.notes: list[str] = []

    def take(self, name: str, column: pd.Series, lost: bool) -> None:
        """Take a column as what it seems to be, or leave it out; `lost`: values are missing."""
        given = column.dropna()
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
        if not np.isfinite(values).all():
            raise InvalidValueError(f"column {name!r} has numbers that are not finite.")
        largest = float(np.abs(values).max())
        if largest >= LARGE and np.ptp(values) <= ROUNDING * largest:
            self.notes.append(
                f"Column {name!r} has numbers too large to be told apart and was left out: it "
                "looks like an id. As texts they could be a category."
            )
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
        if all(DECIMAL_COMMA.fullmatch(value) for value in values):
            self.notes.append(
                f"Column {name!r} has texts such as {values[0]!r} and is taken as a category: "
                "write numbers with a point."
            )


def find_features(
    columns: Mapping[str, pd.Series],
    first: Mapping[str, int],
    action: str,
    labels: Sequence[Any],
    own: bool,
) -> tuple[Features, list[str]]:
    """Return features of columns, and what was decided about them, in sentences.

    Parameters
    ----------
    columns
        The columns that may be features, by name.
    first
        How many values of each are looked at, the first ones. Of the others it counts alone whether
        some are missing.
    action, labels
        The action's column, and its labels.
    own
        Whether the label itself is a feature: nothing else tells actions apart.
    """
    found = _Found()
    for name, column in columns.items():
        found.take(name, column[: first[name]], bool(column.isna().any()))
    if own:
        few = len(labels) <= 4 * MOST_VALUES
        found.categories[action] = list(labels) if few else Hashed(4 * BUCKETS)
    if found.numbers:
        limits = [
            f"{name} {low:.4g} to {high:.4g}{' (log)' if rest else ''}"
            for name, (low, high, *rest) in found.numbers.items()
        ]
        found.notes.append(f"Limits of numbers were taken from the rows: {', '.join(limits)}.")
    listed = [f"{n} ({len(v)})" for n, v in found.categories.items() if not isinstance(v, Hashed)]
    if listed:
        found.notes.append(f"Categories, and how many values they have: {', '.join(listed)}.")
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


def changes_within_labels(columns: Mapping[str, pd.Series], actions: Ints) -> dict[str, float]:
    """Return how often columns change from one play of a label to its next.

    In units of what it would be if they had nothing to do with labels, found by mixing these up:
    0 where every label has one value, little where a price changes now and then or is wrong in a
    row, about 1 for columns of the round, even those that hardly ever change, and for constants.
    Missing values do not count.

    Parameters
    ----------
    columns
        The columns, by name.
    actions
        (n,) codes of the labels that were played, in the order of time.
    """
    begins = np.concatenate(([True], actions[1:] != actions[:-1]))
    # Whole runs of a label are mixed: a rule may play one label all day, and days differ, too.
    mixed = np.random.default_rng(0).permutation(actions[begins])[np.cumsum(begins) - 1]
    orders = [(labels, np.argsort(labels, kind="stable")) for labels in (actions, mixed)]
    return {name: _changes(column, orders) for name, column in columns.items()}


def _changes(column: pd.Series, orders: Sequence[tuple[Ints, Ints]]) -> float:
    known = column.notna().to_numpy()
    values, near = _comparable(column[known])
    if not (np.abs(values - values[:1]) > near).any():
        return 1.0
    places = np.cumsum(known) - 1
    counts = []
    for labels, order in orders:
        rows = order[known[order]]
        there, same = values[places[rows]], labels[rows[1:]] == labels[rows[:-1]]
        counts.append(int((same & (np.abs(np.diff(there)) > near)).sum()))
    own, among = counts
    return own / among if own and among else float(own > 0)


def _comparable(given: pd.Series) -> tuple[Floats, float]:
    """Return numbers that tell values apart, and how far they may differ and be the same."""
    if given.dtype.kind in "fiub":
        numbers = given.to_numpy(np.float64)
        return numbers, ROUNDING * float(np.ptp(numbers)) if len(numbers) else 0.0
    if len(given) and isinstance(given.iloc[0], list | tuple | np.ndarray):
        given = given.map(tuple)
    return pd.factorize(given)[0].astype(np.float64), 0.0


def _vector(given: pd.Series, name: str, lost: bool) -> tuple[int, float]:
    sizes = {len(each) for each in given}
    if len(sizes) > 1 or lost:
        what = "some rows have none" if lost else f"sizes {sorted(sizes)[:5]}"
        raise InvalidValueError(
            f"column {name!r} holds vectors, and they must all have one size: {what}."
        )
    lengths = [float(np.linalg.norm(np.asarray(each, np.float64))) for each in given]
    return sizes.pop(), max(*lengths, 1e-12)
