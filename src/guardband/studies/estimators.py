"""Off-policy estimates: what another rule would have earned, from rows that a logged one played.

With w = pi(action) / propensity, the reward r and a model's q:

    IPS    mean of w r
    SNIPS  sum of w r / sum of w
    DM     mean of q(what pi plays)
    DR     mean of q(what pi plays) + w (r - q(what was played))
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from guardband.kernels.types import Floats
from guardband.studies.intervals import (
    binomial_interval,
    lower_mean,
    lower_ratio,
    normal_quantile,
)

__all__ = ["RuleEstimate", "difference", "doubly_robust", "effective_size", "ips", "snips"]


class RuleEstimate(NamedTuple):
    """An estimate, an interval that holds for every number of rows, and the one for many."""

    value: float
    low: float
    high: float
    asymptotic_low: float
    asymptotic_high: float
    kind: str  # how the interval was made: "binomial", "betting", "model" or "none"


def effective_size(weights: Floats) -> float:
    """Return how many unweighted rows the weighted ones are worth: (sum w)^2 / sum w^2."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def ips(weights: Floats, rewards: Floats, delta: float, *, alike: bool = False) -> RuleEstimate:
    """Return the estimate by inverse propensities.

    V = E[w r] = 1 - E[w (1 - r)], since E[w] = 1: both ends come from variables that are not
    negative, and need no bound on weights. If the mean of weights cannot be 1, the interval is
    empty. Where no weight can be other than 0 or the one that is seen (`alike`; that is not so
    where some actions are rare and were just not seen), and rewards are yes or no, the sum is
    binomial.
    """
    terms = weights * rewards
    value = float(terms.mean())
    spread = _asymptotic(value, float(terms.std()) / math.sqrt(len(terms)), delta)
    if alike and _binary(rewards):
        top = float(weights.max())
        low, high = binomial_interval(int((terms > 0).sum()), len(terms), delta)
        return RuleEstimate(value, top * low, min(top * high, 1.0), *spread, "binomial")
    low = lower_mean(terms, delta / 2)
    high = 1.0 - lower_mean(weights * (1.0 - rewards), delta / 2)
    return RuleEstimate(value, *_within(low, high), *spread, "betting")


def snips(
    weights: Floats, rewards: Floats, delta: float, most: float, *, alike: bool = False
) -> RuleEstimate:
    """Return the self-normalised estimate; no weight can be larger than `most`; see `ips`."""
    total = float(weights.sum())
    value = float(weights @ rewards) / total
    error = math.sqrt(float((weights**2) @ ((rewards - value) ** 2))) / total
    spread = _asymptotic(value, error, delta)
    used = weights > 0
    if alike and _binary(rewards):
        low, high = binomial_interval(int(rewards[used].sum()), int(used.sum()), delta)
        return RuleEstimate(value, low, high, *spread, "binomial")
    low = lower_ratio(weights, rewards, delta / 2, most)
    high = 1.0 - lower_ratio(weights, 1.0 - rewards, delta / 2, most)
    return RuleEstimate(value, low, high, *spread, "betting")


def doubly_robust(
    weights: Floats, rewards: Floats, target: Floats, played: Floats, delta: float, most: float
) -> RuleEstimate:
    """Return the doubly robust estimate; no weight can be larger than `most`.

    Parameters
    ----------
    weights, rewards
        (n,).
    target, played
        (n,): the model's values of what the rule plays and of what was played, in [0, 1].
    delta, most
        The interval's level, and a bound on weights.
    """
    terms = target + weights * (rewards - played)
    value = float(terms.mean())
    least = -most
    low = lower_mean(terms, delta / 2, least)
    high = 1.0 - lower_mean(1.0 - terms, delta / 2, least)
    spread = _asymptotic(value, float(terms.std()) / math.sqrt(len(terms)), delta)
    return RuleEstimate(value, *_within(low, high), *spread, "betting")


def difference(terms: Floats, delta: float, most: float) -> RuleEstimate:
    """Return the mean of differences of two rules' terms, none of them beyond +-most."""
    value = float(terms.mean())
    low = lower_mean(terms, delta / 2, -most)
    high = -lower_mean(-terms, delta / 2, -most)
    spread = _asymptotic(value, float(terms.std()) / math.sqrt(len(terms)), delta)
    return RuleEstimate(value, max(low, -1.0), min(high, 1.0), *spread, "betting")


def _within(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an interval for a reward, which lies in [0, 1]."""
    return min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)


def _asymptotic(value: float, error: float, delta: float) -> tuple[float, float]:
    half = normal_quantile(delta) * error
    return value - half, value + half


def _binary(rewards: Floats) -> bool:
    return bool(np.isin(rewards, (0.0, 1.0)).all())
