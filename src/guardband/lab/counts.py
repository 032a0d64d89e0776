"""Numbers from counts and powers: shares with intervals, exponents with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from guardband.kernels.types import Floats
from guardband.sim import mean_interval

__all__ = ["growth", "misfit", "share_interval"]


def share_interval(hits: int, trials: int, error: float = 0.05) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a probability from so many hits in trials.

    Examples
    --------
    >>> low, high = share_interval(0, 50)
    >>> low, round(high, 4)  # 1 - 0.025^(1/50)
    (0.0, 0.0711)
    """
    low = 0.0 if hits == 0 else _solve(lambda p: 1.0 - _at_most(hits - 1, trials, p), error / 2)
    high = 1.0 if hits == trials else _solve(lambda p: -_at_most(hits, trials, p), -error / 2)
    return low, high


def growth(sizes: Floats, samples: Floats) -> tuple[float, float, float]:
    """Return the exponent p of sample ~ size^p, with its 95 % interval over trials.

    The interval tells how much trials differ, not whether there is such a p: see `misfit`.

    Parameters
    ----------
    sizes
        (n,) positive.
    samples
        (trials, n) positive; each trial has its own least-squares line through the logarithms.
    """
    x = np.log(sizes) - np.log(sizes).mean()
    slopes = np.log(samples) @ x / (x @ x)
    return mean_interval(slopes)


def misfit(sizes: Floats, samples: Floats) -> float:
    """Return by which share of it, at most, a mean over trials is off its power of the size.

    Examples
    --------
    >>> round(misfit(np.array([1.0, 2.0, 4.0]), np.array([[1.0, 4.0, 16.0]])), 9)  # size^2
    0.0
    """
    x, y = np.log(sizes) - np.log(sizes).mean(), np.log(samples).mean(axis=0)
    off = y - y.mean() - (y @ x) / (x @ x) * x
    return float(np.expm1(np.abs(off).max()))


def _at_most(hits: int, trials: int, p: float) -> float:
    """Return the probability of at most so many hits."""
    return math.fsum(
        math.comb(trials, k) * p**k * (1.0 - p) ** (trials - k) for k in range(hits + 1)
    )


def _solve(rising: Callable[[float], float], level: float) -> float:
    """Return where a rising function on [0, 1] reaches a level, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if rising(middle) < level:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
