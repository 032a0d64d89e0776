"""Ridge statistics of one agent: V, its inverse, log det V, U and theta-hat, in O(d^2) a round."""

from __future__ import annotations

import math

from guardband.core._jit import kernel
from guardband.core.linalg import copy, dot, invert, least_eigenvalue, rank_one

__all__ = ["absorb", "copy_estimate", "exact_eigenvalue", "horizon_radius", "radius", "refresh"]


@kernel
def radius(estimate, terms):
    """Return beta, the radius of the confidence set (eq. conf, with sqrt(1 + sigma^2), delta / 2).

    sigma sqrt(2 log(det(V)^(1/2) det(ridge I)^(-1/2) / (delta / 2))) + sqrt(ridge) theta_bound
    """
    spread = math.sqrt(estimate.scalars[0] + terms.confidence)
    return terms.deviation * spread + math.sqrt(terms.ridge) * terms.theta_bound


@kernel
def horizon_radius(terms, dim, count, level):
    """Return beta in its horizon form, from the number of observations instead of det V.

    sigma sqrt(d log((1 + count L^2 / ridge) / delta')) + sqrt(ridge) theta_bound, where `level` is
    log(1 / delta').
    """
    grown = math.log1p(count * terms.feature_bound * terms.feature_bound / terms.ridge)
    spread = math.sqrt(dim * (grown + level))
    return terms.deviation * spread + math.sqrt(terms.ridge) * terms.theta_bound


@kernel
def absorb(state, x, y, weight, guess):
    """Learn from reward y of the vector x; changes `state.own` and `state.estimate`.

    `guess` is x'theta-hat as it was before the round's context was drawn.
    """
    own, estimate, work = state
    d = x.size
    scaled = work[1]
    gain = rank_one(estimate.inverse, x, weight, scaled)
    surprise = (weight / gain) * (y - dot(x, estimate.theta))
    norm = 0.0
    for i in range(d):
        estimate.theta[i] += surprise * scaled[i]
        own.moment[i] += weight * y * x[i]
        norm += x[i] * x[i]
        for j in range(d):
            own.gram[i, j] += weight * (x[i] * x[j])
    own.scalars[0] += 1.0
    own.scalars[1] += weight * y * y
    own.scalars[2] += weight * (guess * guess - 2.0 * y * guess)
    own.scalars[3] += weight
    estimate.scalars[0] += math.log(gain)
    estimate.scalars[1] += weight * norm


@kernel
def refresh(estimate, total, ridge, work):
    """Rebuild the estimate from the sums it follows from, free of rounding drift.

    What is known of lambda_min(V) stays true: V never shrinks. `work` is an agent's scratch.
    """
    d = total.moment.size
    matrix = work[4:]
    copy(total.gram, matrix)
    trace = 0.0
    for i in range(d):
        matrix[i, i] += ridge
        trace += matrix[i, i]
    estimate.scalars[0] = invert(matrix, estimate.inverse) - d * math.log(ridge)
    estimate.scalars[1] = trace
    for i in range(d):
        estimate.theta[i] = dot(estimate.inverse[i], total.moment)


@kernel
def copy_estimate(source, target):
    """Copy an estimate."""
    copy(source.inverse, target.inverse)
    for i in range(source.theta.size):
        target.theta[i] = source.theta[i]
    for i in range(source.scalars.size):
        target.scalars[i] = source.scalars[i]


@kernel
def exact_eigenvalue(state, pooled, ridge):
    """Return lambda_min(V), and remember it together with today's trace."""
    d = pooled.moment.size
    matrix = state.work[4:]
    for i in range(d):
        for j in range(d):
            matrix[i, j] = pooled.gram[i, j] + state.own.gram[i, j]
        matrix[i, i] += ridge
    least = least_eigenvalue(matrix, state.work[2], state.work[3])
    state.estimate.scalars[2] = least
    state.estimate.scalars[3] = state.estimate.scalars[1]
    return least
