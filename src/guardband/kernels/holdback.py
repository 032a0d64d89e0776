"""The holdback: a coin of its own plays the baseline, so that what is earned can be measured.

With probability h the baseline is played, whatever the agent has chosen; the coin depends on
nothing. docs/guard-ucb-math.md says what follows from the rewards without any model.
"""

from __future__ import annotations

from guardband.kernels._jit import kernel
from guardband.kernels.environment import Metric
from guardband.kernels.types import Outcome, Reason

__all__ = ["count_gain", "gain_of", "hold_back"]

HOLDBACK = int(Reason.HOLDBACK)
HELD_BACK, LEAD = int(Metric.HELD_BACK), int(Metric.LEAD)
GAIN, GAIN_SQUARES = int(Metric.GAIN), int(Metric.GAIN_SQUARES)


@kernel
def hold_back(terms, given, scores, outcome, coin):
    """Toss the holdback's coin; return the outcome, and the stake that `gain_of` takes.

    The agent's own choice, P, plays the target with probability |chance|, else the partner. With
    the coin the baseline has probability h + (1 - h) P(b), every other action (1 - h) P(k). Where
    P(b) = 1 there is nothing to hold back.
    """
    b, h, chance = given.baseline, terms.holdback, abs(outcome.chance)
    own = (chance if outcome.target == b else 0.0) + (1.0 - chance if outcome.partner == b else 0.0)
    if own >= 1.0:
        return outcome, (0.0, 0.0, 0.0)
    held, action, reason, charge = coin < h, outcome.action, outcome.reason, outcome.charge
    if held:
        action, reason, charge = b, HOLDBACK, 0.0
    if action == b:
        propensity = h + (1.0 - h) * own
        share = -(1.0 - own) / propensity
    else:
        propensity, share = (1.0 - h) * outcome.propensity, 1.0 / (1.0 - h)
    mean = scores.mean
    choice = (1.0 - chance) * _unit(mean[outcome.partner]) + chance * _unit(mean[outcome.target])
    stake = (choice - _unit(mean[b]), share, _unit(mean[action]))
    after = Outcome(
        action,
        outcome.conservative,
        reason,
        outcome.beta,
        outcome.plain,
        outcome.scanned,
        outcome.target,
        outcome.partner,
        outcome.chance,
        propensity,
        outcome.margin,
        charge,
        outcome.pooled,
    )
    return after, stake


@kernel
def gain_of(stake, reward):
    """Return what a round says about the agent's lead, and the square of what surprises in it.

    The stake is the lead D that was predicted, the weight s = (P(a) - [a = b]) / p(a) of the
    action played, and the prediction m of its reward: D + s (y - m) has the lead for a mean.
    """
    lead, share, guess = stake
    if share == 0.0:
        return 0.0, 0.0
    rest = share * (reward - guess)
    return lead + rest, rest * rest


@kernel
def count_gain(env, metrics, terms, slot, m, outcome, stake, y):
    """Count what a round says about the lead of agent m's choices, and what it really was."""
    if terms.holdback == 0.0:
        return
    expected, totals = env.expected[slot, env.group[m]], metrics.totals[m]
    chance = abs(outcome.chance)
    gain, square = gain_of(stake, y)
    choice = (1.0 - chance) * expected[outcome.partner] + chance * expected[outcome.target]
    totals[HELD_BACK] += outcome.reason == HOLDBACK
    totals[GAIN] += gain
    totals[GAIN_SQUARES] += square
    totals[LEAD] += choice - expected[env.baseline[slot, m]]


@kernel
def _unit(value):
    """Return the value, cut to [0, 1]; 0 where it is not a number."""
    return min(value, 1.0) if value > 0.0 else 0.0
