"""Rounds of the simulator with values or costs: what is wished for, paid and counted."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.environment import Metric
from guardband.kernels.purse import limits_of, pay, worth_of_cost
from guardband.kernels.types import Wish

__all__ = ["TOLERANCE", "count_worth", "pay_round", "wish_of"]

TOLERANCE = 1e-12  # a reward this close below the floor is not a violation
VALUE, BASELINE_VALUE = int(Metric.VALUE), int(Metric.BASELINE_VALUE)
VALUE_REGRET, COST = int(Metric.VALUE_REGRET), int(Metric.COST)


@kernel
def wish_of(env, clock, slot, m, b):
    """Return what actions are worth, and what they cost agent m, where that counts."""
    nothing, price, room = env.theta[:0], 0.0, math.inf
    value = env.values[slot] if env.values.size > 0 else nothing
    cost = nothing
    if clock.purses.size > 0:
        cost = env.costs[slot]
        price, room = limits_of(clock.purses[m], cost[b])
    return Wish(value, cost, price, room)


@kernel
def pay_round(clock, wish, scores, m, b, k):
    """Let agent m pay for action k, where it has a budget; the scores are of its decision."""
    if clock.purses.size > 0:
        ratio, dearest = worth_of_cost(wish, scores, b)
        pay(clock.purses[m], wish.cost[k], wish.cost[b], ratio, dearest)


@kernel
def count_worth(env, totals, slot, expected, keep, b, k):
    """Count what action k costs, its value, that of the baseline b, and of the best safe action.

    `expected` are the rewards of all actions; those from `keep` times the baseline's on are safe.
    """
    if env.costs.size > 0:
        totals[COST] += env.costs[slot, k]
    if env.values.size == 0:
        return
    values = env.values[slot]
    best = values[b]
    for j in range(values.size):
        if expected[j] >= keep * expected[b] - TOLERANCE:
            best = max(best, values[j])
    totals[VALUE] += values[k]
    totals[BASELINE_VALUE] += values[b]
    totals[VALUE_REGRET] += best - values[k]
