"""ROFUL: optimism in choosing a direction, caution in how far to go in it.

From a safe origin an agent goes towards the most promising action, and stops where the constraint
might be broken. Under a stage-wise constraint the origin is the baseline.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.linalg import dot, quadratic, root
from guardband.kernels.scan import argmax, scan
from guardband.kernels.types import Mix, Outcome, Reason

__all__ = ["largest_scale", "safe_scale", "towards_best"]

ACTION = int(Mix.ACTION)
LEARNED, EMPTY = int(Reason.LEARNED), int(Reason.EMPTY)


@kernel
def largest_scale(limit, cost):
    """Return the largest g in [0, 1] with g cost <= limit; 0 if there is none."""
    if cost <= limit:
        return 1.0
    return limit / cost if limit > 0.0 else 0.0


@kernel
def safe_scale(limit, cost, length, bound):
    """Return how far to go in a direction: max(g1, g2).

    g1 is sure by the largest `cost` in the confidence set, g2 by Cauchy-Schwarz, from the
    direction's `length` and the `bound` on the length of the constraint's parameter.
    """
    return max(largest_scale(limit, cost), largest_scale(limit, bound * length))


@kernel
def towards_best(state, beta, terms, given, scores):
    """Go from the baseline towards the action k with the largest upper bound, as far as is safe.

    z = psi_k - psi_b; what may be lost is alpha r_b, and -z'theta is at most beta ||z||_{V^-1} -
    z'theta-hat, and at most S ||z||. Overwrites work[1].
    """
    estimate, b = state.estimate, given.baseline
    scan(estimate, beta, given.coords, given.menu, scores)
    k, z = argmax(scores.upper), state.work[1]
    for i in range(z.size):
        z[i] = given.menu[i, k] - given.menu[i, b]
    cost = beta * root(quadratic(estimate.inverse, z, given.coords)) - dot(z, estimate.theta)
    limit = given.alpha * given.baseline_reward
    g = safe_scale(limit, cost, math.sqrt(dot(z, z)), terms.theta_bound)
    whole = g >= 1.0 or (terms.mix == ACTION and given.coin < g)
    chance = g if whole or terms.mix != ACTION else 1.0 - g
    reason = LEARNED if g >= 1.0 else EMPTY
    return Outcome(
        k if whole else b, g < 1.0, reason, beta, beta, True, k, b, g, chance, 0.0, 0.0, False
    )
