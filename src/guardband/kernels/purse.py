"""A budget in numbers: what was spent, what must stay for the baseline, and the price that paces.

A purse is a vector of PURSE numbers. The price is that of a unit of cost, in units of the value:
mirror descent on the dual of "most value, not more than the budget". It rises where more is spent
than is left for each round to come, falls where less is, and never exceeds the best value that a
unit of extra cost has bought, at which nothing dearer than the baseline would be played.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel

__all__ = [
    "ASIDE",
    "HORIZON",
    "LARGEST",
    "PURSE",
    "ROUNDS",
    "SPENT",
    "TOTAL",
    "limits_of",
    "pay",
    "worth_of_cost",
]

TOTAL, HORIZON = 0, 1
SPENT, ROUNDS = 2, 3  # what was paid or is reserved; rounds so far
NEED = 4  # the largest cost of a baseline so far
PRICE, RATIO, DEAREST, SQUARES = 5, 6, 7, 8
ASIDE = 9  # what the baselines of the rounds cost that are decided together, and were not yet
PURSE = 10
FIRST = 0.1  # of the best ratio: where the price starts
PACE = 2.0  # of a step of the logarithm of the price, in deviations of what is spent
STEEPEST = 1.0  # no step is larger
LARGEST = 1e100  # of a price; values and costs are no larger either, so that no product overflows
FINE = 1e-9  # of a cost: a smaller extra cost is rounding, and says nothing of what a unit buys


@kernel
def limits_of(purse, base):
    """Return the price, and what an action may cost so that the baseline can be paid to the end.

    `base` is the baseline's cost in this round; later ones are taken to cost no more than the
    dearest baseline so far.
    """
    after = max(0.0, purse[HORIZON] - purse[ROUNDS] - 1.0)
    need = max(purse[NEED], base)
    return purse[PRICE], purse[TOTAL] - purse[SPENT] - need * after


@kernel
def worth_of_cost(wish, scores, b):
    """Return the most value that a unit of extra cost buys, and the largest extra cost.

    Of the certified actions that cost more than the baseline b, and not too much.
    """
    ratio, dearest = 0.0, 0.0
    for k in range(wish.cost.size):
        extra = wish.cost[k] - wish.cost[b]
        dearer = extra > FINE * wish.cost[k]
        if dearer and scores.slack[k] >= 0.0 and wish.cost[k] <= wish.room:
            gain = scores.mean[k] - scores.mean[b]
            if wish.value.size > 0:
                gain = wish.value[k] - wish.value[b]
            ratio, dearest = max(ratio, gain / extra), max(dearest, extra)
    return min(ratio, LARGEST), dearest


@kernel
def pay(purse, cost, base, ratio, dearest):
    """Pay for a round, and set the price for the next.

    `base` is what the baseline would have cost, the others are from `worth_of_cost`.
    """
    left = max(1.0, purse[HORIZON] - purse[ROUNDS])
    purse[NEED] = max(purse[NEED], base)
    spare = (purse[TOTAL] - purse[SPENT]) / left - purse[NEED]  # for each round to come
    if ratio > purse[RATIO]:
        if purse[RATIO] == 0.0:
            purse[PRICE] = FIRST * ratio
        purse[RATIO] = ratio
    if dearest > purse[DEAREST]:  # steps are in its units, those before it too
        share = purse[DEAREST] / dearest
        purse[SQUARES] *= share * share
        purse[DEAREST] = dearest
    if purse[RATIO] > 0.0:
        step = (cost - base - spare) / purse[DEAREST]
        purse[SQUARES] += step * step
        if purse[SQUARES] > 0.0:
            move = PACE * step / math.sqrt(purse[SQUARES])
            move = min(max(move, -STEEPEST), STEEPEST)
            purse[PRICE] = min(purse[PRICE] * math.exp(move), purse[RATIO])
    purse[SPENT] += cost
    purse[ROUNDS] += 1.0
