"""What an agent's choices earn over the baseline, by the rewards alone: an interval for all times.

A holdback plays the baseline by a coin of its own with probability h. Every round then says
something about the lead of the agent's choice over the baseline, g = D + s (y - m), whose mean is
that lead whatever the predictions D and m were (`kernels.holdback`). From the sums of g and of
(g - D)^2 follows an empirical Bernstein confidence sequence; docs/guard-ucb-math.md has the proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from guardband.checks import beyond_unit, check_fraction
from guardband.errors import InvalidValueError

__all__ = ["BETS", "LEVEL", "LOG_WEIGHTS", "PRICES", "GainSums", "Stake", "Uplift"]
__all__ += ["reach_of", "stake_of", "uplift_of"]

LEVEL = 0.95
# Bets a_j / reach with weights 1 / ((j + 1)(j + 2)), which sum to 1: one of them is near the best
# for any amount of data.
RANKS = np.arange(60)
BETS = 0.8 * 0.5**RANKS
LOG_WEIGHTS = -np.log((RANKS + 1.0) * (RANKS + 2.0))
PRICES = -np.log1p(-BETS) - BETS
HALVINGS = 60


class Uplift(NamedTuple):
    """What the agent's choices earn over the baseline, per round.

    Attributes
    ----------
    mean
        The estimate; NaN before the first reward.
    low, high
        The interval: at all times together it holds with probability `level`.
    rounds
        How many rewards it rests on.

    Examples
    --------
    >>> import guardband as gb
    >>> agent, menu = gb.Agent(dim=2, holdback=0.2, seed=0), [[0.6, 0.2], [0.1, 0.9]]
    >>> _ = agent.learn(menu * 200, [0.4, 0.8] * 200)
    >>> for _ in range(500):
    ...     decision = agent.decide(menu, baseline=0)
    ...     agent.observe(decision, reward=[0.4, 0.8][decision.action])
    >>> print(agent.uplift())
    +0.4000 per round over the baseline, between +0.3458 and +0.4541, from 500 rounds
    """

    mean: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        if not self.rounds:
            return "nothing is known yet of what the choices earn over the baseline"
        return (
            f"{self.mean:+.4f} per round over the baseline, between {self.low:+.4f} and "
            f"{self.high:+.4f}, from {self.rounds:,} rounds"
        )


class Stake(NamedTuple):
    """What a reward is compared with to measure what choices earn; see `kernels.holdback`."""

    lead: float  # of the choice over the baseline, as predicted
    share: float  # the weight of the action played
    guess: float  # of its reward


def stake_of(lead: float | None, share: float | None, guess: float | None) -> Stake | None:
    """Return the stake of a decision as it was written down; None: there was no holdback."""
    if lead is None or share is None or guess is None:
        return None
    return Stake(lead, share, guess)


class GainSums(NamedTuple):
    """All that is kept of the rounds of a holdback; sums of several tasks may be added."""

    rounds: float = 0.0
    gain: float = 0.0  # sum of g
    squares: float = 0.0  # sum of (g - D)^2

    def plus(self, rounds: float, gain: float, squares: float) -> GainSums:
        """Return the sums with more rounds in them."""
        return GainSums(self.rounds + rounds, self.gain + gain, self.squares + squares)


def reach_of(holdback: float, noise: float | None) -> float:
    """Return the most that |g - D| can be, for rewards that agents take; m lies in [0, 1]."""
    if not holdback > 0.0:
        raise InvalidValueError(
            "the uplift is measured by rounds in which a coin plays the baseline, and there are "
            "none: state holdback=..., such as 0.05."
        )
    return (1.0 + beyond_unit(noise)) / holdback


def uplift_of(sums: GainSums, reach: float, level: float = LEVEL) -> Uplift:
    """Return the mean lead of the agent's choices over the baseline, with its interval.

    Parameters
    ----------
    sums
        Of all rounds so far.
    reach
        A bound on |g - D|, see `reach_of`.
    level
        The probability with which the interval holds, at all times together.
    """
    check_fraction("level", level)
    rounds, gain, squares = sums
    if not (rounds > 0 and math.isfinite(gain) and math.isfinite(squares)):
        return Uplift(math.nan, -1.0, 1.0, int(rounds))
    mean = gain / rounds
    half = reach * _radius(squares / (reach * reach), math.log(2.0 / (1.0 - level))) / rounds
    # Expected rewards lie in [0, 1], and so does none of their differences beyond [-1, 1].
    low, high = max(-1.0, mean - half), min(1.0, mean + half)
    return Uplift(mean, min(low, 1.0), max(high, -1.0), int(rounds))


def _radius(squares: float, threshold: float) -> float:
    """Return the x at which log sum_j w_j exp(a_j x - price_j squares) is the threshold."""
    fixed = LOG_WEIGHTS - PRICES * squares
    low, high = 0.0, float(np.min((threshold - fixed) / BETS))  # one term alone reaches it there
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if np.logaddexp.reduce(fixed + BETS * middle) < threshold:
            low = middle
        else:
            high = middle
    return high
