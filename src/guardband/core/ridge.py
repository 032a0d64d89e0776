"""Ridge statistics of one agent: V, its inverse, log det V, U and theta-hat, in O(d^2) a round."""

from __future__ import annotations

import math

from guardband.core._jit import kernel
from guardband.core.linalg import copy, dot, invert, least_eigenvalue, rank_one

__all__ = [
    "absorb",
    "absorb_tidily",
    "copy_estimate",
    "exact_eigenvalue",
    "horizon_radius",
    "radius",
    "refresh",
]

TIDY = 1024.0  # observations between two rebuilds
REFINEMENTS = 3  # V^-1 U, corrected twice: right to rounding even where V is nearly singular


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
    """Learn from reward y of the vector x; return the growth of det V, which is at least 1.

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
    return gain


@kernel
def absorb_tidily(state, pooled, x, y, weight, guess, ridge):
    """Absorb, and now and then rebuild the estimate from the sums.

    Heavy weights and long runs without a pooling would otherwise wear the inverse down until a
    step shrinks det V, which no observation can.
    """
    gain = absorb(state, x, y, weight, guess)
    if not gain >= 1.0 or state.own.scalars[0] % TIDY == 0.0:
        refresh(state, pooled, ridge)


@kernel
def refresh(state, pooled, ridge):
    """Rebuild the estimate from the sums it follows from, free of rounding drift.

    What is known of lambda_min(V) stays true: V never shrinks.
    """
    own, estimate, work = state
    d = own.moment.size
    estimate.scalars[1] = _add_up(state, pooled, ridge)
    estimate.scalars[0] = invert(work[4:], estimate.inverse) - d * math.log(ridge)
    for i in range(d):
        estimate.theta[i] = 0.0
    for _ in range(REFINEMENTS):
        for i in range(d):  # what theta leaves unexplained: U - V theta
            rest = pooled.moment[i] + own.moment[i] - ridge * estimate.theta[i]
            for j in range(d):
                rest -= (pooled.gram[i, j] + own.gram[i, j]) * estimate.theta[j]
            work[2, i] = rest
        for i in range(d):
            estimate.theta[i] += dot(estimate.inverse[i], work[2])


@kernel
def _add_up(state, pooled, ridge):
    """Write V to the agent's scratch; return its trace."""
    matrix = state.work[4:]
    trace = 0.0
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[i, j] = pooled.gram[i, j] + state.own.gram[i, j]
        matrix[i, i] += ridge
        trace += matrix[i, i]
    return trace


@kernel
def exact_eigenvalue(state, pooled, ridge):
    """Return lambda_min(V), and remember it together with today's trace."""
    _add_up(state, pooled, ridge)
    least = least_eigenvalue(state.work[4:], state.work[2], state.work[3])
    state.estimate.scalars[2] = least
    state.estimate.scalars[3] = state.estimate.scalars[1]
    return least


@kernel
def copy_estimate(source, target):
    """Copy an estimate."""
    copy(source.inverse, target.inverse)
    for i in range(source.theta.size):
        target.theta[i] = source.theta[i]
    for i in range(source.scalars.size):
        target.scalars[i] = source.scalars[i]
