"""Non-negative factors of a matrix, fitted to its observed entries alone.

Entries that were not observed are not zeros: they do not enter the fit, so that the product of
the factors completes the matrix. Each coordinate is minimised exactly in turn (coordinate
descent); a ridge pulls it towards the mean over all users, or items, so that those with few
entries get ordinary values and not zero.

All sums run in one fixed order on one thread (`bincount`) or are exact (`fsum`); no linear
algebra library takes part. The result does not depend on the number of cores.
"""

import math
from typing import NamedTuple

import numpy as np

from guardband.data.tables import Entries, FloatArray, IntArray

__all__ = ["Fit", "factorise", "held_out", "root_mean_square"]


class Fit(NamedTuple):
    """Factors whose product approximates a matrix."""

    users: FloatArray  # (users, rank), non-negative
    items: FloatArray  # (items, rank), non-negative

    def rmse(self, entries: Entries) -> float:
        """Return the root mean square error over some entries."""
        products = zip(self.users.T, self.items.T, strict=True)
        predicted = sum(user[entries.rows] * item[entries.columns] for user, item in products)
        return root_mean_square(entries.values - predicted)


def factorise(entries: Entries, *, rank: int, ridge: float, sweeps: int, seed: int) -> Fit:
    """Fit non-negative factors to the observed entries of a matrix.

    Parameters
    ----------
    entries
        What is observed; non-negative values.
    rank
        Number of factors.
    ridge
        Weight of the pull towards the mean, in entries.
    sweeps
        How often every coordinate is minimised.
    seed
        Of the random start.

    Returns
    -------
    The factors; the strongest comes first, and each has the same strength for users and items.
    """
    rng = np.random.default_rng(seed)
    level = math.sqrt(math.fsum(entries.values) / len(entries.values) / rank)
    users, items = (level * rng.uniform(0.5, 1.5, (rank, size)) for size in entries.shape)
    rows, columns = entries.rows, entries.columns
    residual = entries.values.copy()
    for user, item in zip(users, items, strict=True):
        residual -= user[rows] * item[columns]
    for _ in range(sweeps):
        for user, item in zip(users, items, strict=True):
            _minimise(user, rows, item[columns], residual, ridge)
            _minimise(item, columns, user[rows], residual, ridge)
    return _ordered(users, items)


def held_out(entries: Entries, *, share: float, seed: int) -> tuple[Entries, Entries]:
    """Split entries at random.

    Parameters
    ----------
    entries
        What is observed.
    share
        The part to hold out, 0 to 1.
    seed
        Of the split.

    Returns
    -------
    The entries to fit, and those held out.
    """
    order = np.random.default_rng(seed).permutation(len(entries.values))
    cut = round(share * len(order))
    kept, out = np.sort(order[cut:]), np.sort(order[:cut])
    return _some(entries, kept), _some(entries, out)


def root_mean_square(values: FloatArray) -> float:
    """Return the root of the mean square of some numbers, summed exactly."""
    return math.sqrt(math.fsum(values * values) / len(values))


def _minimise(
    mine: FloatArray,
    owner: IntArray,
    other: FloatArray,
    residual: FloatArray,
    ridge: float,
) -> None:
    """Minimise over one factor of all users (or items); changes `mine` and `residual`.

    `owner` is whose entry each one is, `other` the opposite factor of each entry.
    """
    mean = math.fsum(mine) / len(mine)
    curvature = np.bincount(owner, other * other, len(mine))
    slope = np.bincount(owner, residual * other, len(mine))
    # The tiny term keeps an item without entries, at ridge 0, from 0/0.
    best = (slope + curvature * mine + ridge * mean) / (curvature + ridge + 1e-12)
    step = np.maximum(best, 0.0) - mine
    mine += step
    residual -= step[owner] * other


def _ordered(users: FloatArray, items: FloatArray) -> Fit:
    """Share each factor's strength between users and items, strongest factor first."""
    strength = np.array([[root_mean_square(f) for f in factors] for factors in (users, items)])
    order = np.argsort(-strength[0] * strength[1], kind="stable")
    scale = np.sqrt(strength[1] / strength[0])[:, None]
    return Fit((users * scale)[order].T.copy(), (items / scale)[order].T.copy())


def _some(entries: Entries, which: IntArray) -> Entries:
    return Entries(
        entries.rows[which], entries.columns[which], entries.values[which], entries.shape
    )
