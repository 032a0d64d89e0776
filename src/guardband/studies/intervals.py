"""Confidence intervals for means that hold for this number of rows, not only for many.

`lower_mean` bets against a mean: whoever claims that the mean is m must let us bet on observations
being larger, at fair odds. Wealth that starts at 1 then ever exceeds 1/delta with probability
delta at most (Ville's inequality), so every m at which it does is ruled out. How much to bet is
planned for the number of rows that there are. Nothing is needed
of the observations but a lower bound: weights may be as large as they are. Source: Waudby-Smith
and Ramdas, "Estimating means of bounded random variables by betting" (2024); for weighted rewards,
Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro, "Anytime-valid off-policy inference for
contextual bandits" (2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from guardband.kernels.types import Floats

__all__ = ["binomial_interval", "lower_mean", "lower_ratio", "normal_quantile"]

HALVINGS = 50
SHARE = 0.5  # of what could be lost at once, at most so much is bet
PRIOR = 0.25  # a variance that counts as one observation


def lower_mean(values: Floats, delta: float, least: float = 0.0) -> float:
    """Return what the mean of `values` is not below, with probability 1 - delta.

    Values are in the order in which they came, and each of them had this mean, given those before.

    Parameters
    ----------
    values
        (n,).
    delta
        The probability with which the bound may fail.
    least
        No value can be smaller.
    """
    above = values - least  # not negative
    bets = _bets(above, delta)

    def wealth(mean: float) -> float:
        stakes = np.minimum(bets, SHARE / mean) if mean > 0 else bets
        return float(np.cumsum(np.log1p(stakes * (above - mean))).max(initial=0.0))

    return least + _largest_refuted(wealth, delta, float(above.mean()) if len(above) else 0.0)


def lower_ratio(weights: Floats, rewards: Floats, delta: float, most: float) -> float:
    """Return what E[w r] / E[w] is not below, with probability 1 - delta, for E[w] > 0.

    Under m the terms w (r - m) are 0 on average, and none is below -most m.

    Parameters
    ----------
    weights, rewards
        (n,): weights between 0 and `most`, rewards between 0 and 1.
    delta
        The probability with which the bound may fail.
    most
        No weight can be larger.
    """
    seen = np.cumsum(weights)
    guess = np.concatenate(([0.5], (0.5 + np.cumsum(weights * rewards)) / (1.0 + seen)))[:-1]
    bets = _bets_for((weights * (rewards - guess)) ** 2, delta)

    def wealth(mean: float) -> float:
        stakes = np.minimum(bets, SHARE / (most * mean)) if mean > 0 else bets
        return float(np.cumsum(np.log1p(stakes * weights * (rewards - mean))).max(initial=0.0))

    return _largest_refuted(wealth, delta, 1.0)


def _bets(values: Floats, delta: float) -> Floats:
    """Return how much to bet on each value, by those before it alone."""
    count = np.arange(1, len(values) + 1)
    means = np.concatenate(([0.5], (0.5 + np.cumsum(values)) / (1 + count)))[:-1]
    return _bets_for((values - means) ** 2, delta)


def _bets_for(squares: Floats, delta: float) -> Floats:
    """Return sqrt(2 log(1/delta) / (n variance)), the variance from squares before."""
    count = np.arange(1, len(squares) + 1)
    variance = np.concatenate(([PRIOR], (PRIOR + np.cumsum(squares)) / (1 + count)))[:-1]
    found: Floats = np.sqrt(2.0 * math.log(1.0 / delta) / (len(squares) * variance))
    return found


def _largest_refuted(wealth: Callable[[float], float], delta: float, high: float) -> float:
    """Return the largest m in [0, high] at which wealth, which falls in m, reaches 1/delta."""
    goal, low = math.log(1.0 / delta), 0.0
    if wealth(low) < goal:
        return 0.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if wealth(middle) >= goal:
            low = middle
        else:
            high = middle
    return low


def binomial_interval(hits: int, count: int, delta: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval for a probability, exact for every count."""
    if count == 0:
        return 0.0, 1.0
    places = np.arange(1, count + 1)
    ways = np.concatenate(([0.0], np.cumsum(np.log((count - places + 1.0) / places))))
    return _smallest(hits, count, delta / 2, ways), 1.0 - _smallest(
        count - hits, count, delta / 2, ways
    )


def _smallest(hits: int, count: int, delta: float, ways: Floats) -> float:
    """Return the p at which so many hits, or more, have probability delta; ways: log n over k."""
    if hits == 0:
        return 0.0
    places = np.arange(hits, count + 1)
    low, high = 0.0, 1.0
    for _ in range(2 * HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        logs = ways[hits:] + places * math.log(middle) + (count - places) * math.log1p(-middle)
        top = float(logs.max())
        if top + math.log(float(np.exp(logs - top).sum())) < math.log(delta):
            low = middle
        else:
            high = middle
    return low


def normal_quantile(delta: float) -> float:
    """Return the z with which a normal variable is beyond +-z with probability delta."""
    low, high = 0.0, 40.0
    for _ in range(2 * HALVINGS):
        middle = 0.5 * (low + high)
        if math.erfc(middle / math.sqrt(2.0)) > delta:
            low = middle
        else:
            high = middle
    return low
