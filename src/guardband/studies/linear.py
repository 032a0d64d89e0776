"""Linear fits of rewards: estimates, their covariance, and held-out errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from guardband.kernels.types import Floats
from guardband.studies.logs import Ints, StudyLogs

__all__ = ["CUT", "LinearFit", "fit_linear", "greedy_choices", "halves", "inverse_of", "score"]

CUT = 1e-9  # directions with less of the data's variance than this share are not estimated
MENU_BLOCK = 200_000  # entries of menus whose features are made at once


@dataclass(frozen=True)
class LinearFit:
    """A linear model of rewards.

    Attributes
    ----------
    theta
        (d,): the estimate; the shortest one where several fit alike.
    covariance
        (d, d): its covariance, whatever the noise of each row (White's).
    variance
        The variance of residuals.
    rank
        How many directions the rows determine.
    """

    theta: Floats
    covariance: Floats
    variance: float
    rank: int

    def values(self, rows: Floats) -> Floats:
        """Return expected rewards, which lie in [0, 1]."""
        found: Floats = np.clip(rows @ self.theta, 0.0, 1.0)
        return found


def fit_linear(rows: Floats, rewards: Floats, ridge: float = 0.0) -> LinearFit:
    """Return the least-squares fit.

    Parameters
    ----------
    rows, rewards
        (n, d) and (n,).
    ridge
        The penalty on theta's length, as that of an agent.
    """
    inverse, rank = inverse_of(rows.T @ rows + ridge * np.eye(rows.shape[1]))
    theta = inverse @ (rows.T @ rewards)
    residuals = rewards - rows @ theta
    meat = (rows * residuals[:, None] ** 2).T @ rows
    left = max(len(rewards) - rank, 1)
    scale = len(rewards) / left
    variance = float(residuals @ residuals) / left
    return LinearFit(theta, scale * inverse @ meat @ inverse, variance, rank)


def inverse_of(gram: Floats) -> tuple[Floats, int]:
    """Return the inverse in the directions that rows determine, and how many those are.

    Where columns say the same, as categories and an intercept do, the others hold nothing but
    rounding errors, and their inverse would be huge.
    """
    sizes, axes = np.linalg.eigh(gram)
    known = sizes > max(CUT * float(sizes[-1]), 1e-12)
    return (axes[:, known] / sizes[known]) @ axes[:, known].T, int(known.sum())


def halves(count: int) -> tuple[slice, slice]:
    """Return the rows that models are fitted to, and later ones on which they are judged."""
    return slice(0, count // 2), slice(count // 2, count)


def score(rows: Floats, rewards: Floats, guess: Floats) -> tuple[float, float]:
    """Return (z, p) of a test that rewards are linear in the rows, against a guess.

    The guess of what else is in the rewards comes from other rows. What of it is linear is taken
    out; the rest is compared with the residuals of the linear fit. z is about normal if rewards are
    linear, whatever the noise of each row, and large if the guess is right. A fit makes residuals
    smaller than the noise, those of unusual rows most; so they are made larger again (HC3).
    """
    inverse, _ = inverse_of(rows.T @ rows)
    rest = guess - rows @ (inverse @ (rows.T @ guess))
    residuals = rewards - rows @ (inverse @ (rows.T @ rewards))
    taken = ((rows @ inverse) * rows).sum(axis=1)
    noise = residuals / np.maximum(1.0 - taken, CUT)
    spread = math.sqrt(float((noise**2) @ (rest**2)))
    if spread <= 1e-12 * math.sqrt(len(rewards)):
        return 0.0, 1.0
    z = float(residuals @ rest) / spread
    return z, 0.5 * math.erfc(z / math.sqrt(2.0))


def greedy_choices(logs: StudyLogs, theta: Floats, rows: Ints) -> tuple[Floats, Ints, Ints]:
    """Return what theta thinks best in each row: its features and its label; and the baseline's.

    Parameters
    ----------
    logs
        The logs.
    theta
        (d,).
    rows
        (n,): which rows.

    Returns
    -------
    Floats, Ints, Ints
        (2, n, d): features of the best action and of the baseline; (n,) labels of both.
    """
    features = np.empty((2, len(rows), logs.dim))
    labels = np.empty((2, len(rows)), np.int64)
    size = max(1, MENU_BLOCK // max(1, int(logs.menus.sizes(len(logs)).mean())))
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        offers = logs.offers(rows[part])
        values = offers.features @ theta
        best = _first_largest(values, offers.starts)
        for place, where in enumerate((best, offers.baselines)):
            features[place, part] = offers.features[where]
            labels[place, part] = offers.labels[where]
    return features, labels[0], labels[1]


def _first_largest(values: Floats, starts: Ints) -> Ints:
    """Return the place of the first largest value in each part."""
    tops = np.maximum.reduceat(values, starts[:-1])
    owner = np.repeat(np.arange(len(tops)), np.diff(starts))
    at = np.flatnonzero(values == tops[owner])
    _, first = np.unique(owner[at], return_index=True)
    found: Ints = at[first]
    return found
