"""Ridge regression of one agent: V, its inverse, log det V, U and theta-hat, in O(d^2) a round.

V = ridge I + W with W = sum w x x', U = sum w y x, theta-hat = V^-1 U; `pooled` is the statistic
of what all agents share, to which an agent adds its own.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.linalg import copy, dot, invert, least_eigenvalue, rank_one, times

__all__ = [
    "absorb",
    "absorb_tidily",
    "add_tidily",
    "copy_estimate",
    "count_reward",
    "exact_eigenvalue",
    "horizon_radius",
    "is_worn",
    "prediction",
    "radius",
    "refresh",
    "update",
    "write_unexplained",
]

TIDY = 1024.0  # observations between two rebuilds
REFINEMENTS = 3  # V^-1 U, corrected twice: right to rounding even where V is nearly singular


@kernel
def radius(estimate, terms):
    """Return beta, the radius of the confidence set (eq. conf, with sqrt(1 + sigma^2), delta / 2).

    sigma sqrt(2 log(det(V)^(1/2) det(ridge I)^(-1/2) / (delta / 2))) + sqrt(ridge) theta_bound
    """
    width = math.sqrt(estimate.scalars[0] + terms.confidence)
    return terms.sigma * width + math.sqrt(terms.ridge) * terms.theta_bound


@kernel
def horizon_radius(terms, dim, count, level):
    """Return beta in its horizon form, from the number of observations instead of det V.

    sigma sqrt(d log((1 + count L^2 / ridge) / delta')) + sqrt(ridge) theta_bound, where `level` is
    log(1 / delta').
    """
    grown = math.log1p(count * terms.feature_bound * terms.feature_bound / terms.ridge)
    width = math.sqrt(dim * (grown + level))
    return terms.sigma * width + math.sqrt(terms.ridge) * terms.theta_bound


@kernel
def absorb(state, x, y, weight, guess):
    """Learn from reward y of the vector x (d,); return the growth of det V, which is at least 1.

    W += w x x', U += w y x, and H += w (yhat^2 - 2 y yhat). `guess` is yhat, x'theta-hat as it was
    before the round's context was drawn.
    """
    gain = update(state, x, y, weight)
    count_reward(state.own, x, y, weight, guess)
    return gain


@kernel
def count_reward(own, x, y, weight, guess):
    """Add reward y of the vector x (d,) to a statistic."""
    for i in range(x.size):
        own.moment[i] += weight * y * x[i]
        for j in range(x.size):
            own.gram[i, j] += weight * (x[i] * x[j])
    own.scalars[0] += 1.0
    own.scalars[1] += weight * y * y
    own.scalars[2] += weight * (guess * guess - 2.0 * y * guess)
    own.scalars[3] += weight


@kernel
def absorb_tidily(state, pooled, terms, x, y, weight, guess):
    """Absorb with compensated sums, and now and then rebuild the estimate from them."""
    gain = add_tidily(state, terms, x, y, weight, guess)
    if is_worn(state.own, gain):
        refresh(state, pooled, terms.ridge)


@kernel
def add_tidily(state, terms, x, y, weight, guess):
    """Absorb with compensated sums; return the growth of det V, after which it may be worn.

    Heavy weights and long runs without a pooling would otherwise wear the inverse down until a
    step shrinks det V, which no observation can. And a term that is added to a large sum again and
    again is rounded the same way every time: W would in the end show information about
    directions that were never played.
    """
    own, work = state.own, state.work
    d = x.size
    gain = update(state, x, y, weight)
    rest = work[4 + d :]  # what rounding has left out: of W, of U, of three numbers; see `rows`
    same = True
    for k in range(4):
        same = same and rest[d + 4 + k, 0] == own.scalars[k]
    if not same:  # the sums come from elsewhere: from a file, from a pooling
        rest[:] = 0.0
    for i in range(d):
        own.moment[i], rest[d, i] = _plus(own.moment[i], rest[d, i], weight * y * x[i])
        for j in range(d):
            term = weight * (x[i] * x[j])
            own.gram[i, j], rest[i, j] = _plus(own.gram[i, j], rest[i, j], term)
    square, fit = weight * y * y, weight * (guess * guess - 2.0 * y * guess)
    own.scalars[0] += 1.0
    own.scalars[1], rest[d + 1, 0] = _plus(own.scalars[1], rest[d + 1, 0], square)
    own.scalars[2], rest[d + 2, 0] = _plus(own.scalars[2], rest[d + 2, 0], fit)
    own.scalars[3], rest[d + 3, 0] = _plus(own.scalars[3], rest[d + 3, 0], weight)
    own.scalars[4] += terms.by_variance
    for k in range(4):
        rest[d + 4 + k, 0] = own.scalars[k]
    return gain


@kernel
def is_worn(own, gain):
    """Tell whether an estimate must be rebuilt after an update; `gain` is the growth of det V."""
    return not gain >= 1.0 or own.scalars[0] % TIDY == 0.0


@kernel
def _plus(total, rest, term):
    """Add a term and what was left out before; return the sum and what is left out now (Kahan)."""
    wanted = term - rest
    found = total + wanted
    return found, (found - total) - wanted


@kernel
def update(state, x, y, weight):
    """Update the estimate by one observation, x (d,); return the growth of det V.

    theta-hat += w (y - x'theta-hat) V^-1 x / (1 + w x'V^-1 x), and V^-1 by `rank_one`.
    """
    estimate, scaled = state.estimate, state.work[1]
    gain = rank_one(estimate.inverse, x, weight, scaled)
    surprise = (weight / gain) * (y - dot(x, estimate.theta))
    norm = 0.0
    for i in range(x.size):
        estimate.theta[i] += surprise * scaled[i]
        norm += x[i] * x[i]
    estimate.scalars[0] += math.log(gain)
    estimate.scalars[1] += weight * norm
    return gain


@kernel
def prediction(x, theta):
    """Return x'theta-hat, which H is summed from, of x and theta (d,); 0 where that is no number.

    Any finite prediction is valid; one that is NaN would stay in H.
    """
    guess = dot(x, theta)
    return guess if math.isfinite(guess) else 0.0


@kernel
def refresh(state, pooled, ridge):
    """Rebuild the estimate from the sums it follows from, free of rounding drift.

    V = ridge I + W_pooled + W_own, and theta-hat = V^-1 (U_pooled + U_own), refined by what it
    leaves unexplained. What is known of lambda_min(V) stays true: V never shrinks.
    """
    own, estimate, work = state.own, state.estimate, state.work
    d = own.moment.size
    estimate.scalars[1] = _add_up(state, pooled, ridge)
    estimate.scalars[0] = invert(work[4 : 4 + d], estimate.inverse) - d * math.log(ridge)
    for i in range(d):
        estimate.theta[i] = 0.0
    for _ in range(REFINEMENTS):
        write_unexplained(own, pooled, ridge, estimate.theta, work[2])
        times(estimate.inverse, work[2], work[3])
        for i in range(d):
            estimate.theta[i] += work[3, i]


@kernel
def write_unexplained(own, pooled, ridge, theta, out):
    """Write U - V theta to `out` (d,), what theta (d,) leaves unexplained of the sums.

    Along rows of W, which is symmetric: every sum has the order of one row after another. Where
    nothing is pooled, what is not there is not read: half of what passes through the caches.
    """
    one, other, d, j = own.gram, pooled.gram, theta.size, 0
    for i in range(d):
        out[i] = pooled.moment[i] + own.moment[i] - ridge * theta[i]
    if _is_zero(other):
        while j + 1 < d:
            a0, a1, t0, t1 = one[j], one[j + 1], theta[j], theta[j + 1]
            for i in range(d):
                out[i] = out[i] - a0[i] * t0 - a1[i] * t1
            j += 2
        if j < d:
            for i in range(d):
                out[i] -= one[j, i] * theta[j]
        return
    while j + 1 < d:
        a0, a1, b0, b1 = one[j], one[j + 1], other[j], other[j + 1]
        t0, t1 = theta[j], theta[j + 1]
        for i in range(d):
            out[i] = out[i] - (b0[i] + a0[i]) * t0 - (b1[i] + a1[i]) * t1
        j += 2
    if j < d:
        for i in range(d):
            out[i] -= (other[j, i] + one[j, i]) * theta[j]


@kernel
def _is_zero(gram):
    """Tell whether a sum of x x' is zero: whether its diagonal is."""
    largest = 0.0
    for i in range(gram.shape[0]):
        largest = max(largest, abs(gram[i, i]))
    return largest == 0.0


@kernel
def _add_up(state, pooled, ridge):
    """Write V = ridge I + W_pooled + W_own to the agent's scratch; return its trace."""
    d = state.own.moment.size
    matrix = state.work[4 : 4 + d]
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
    d = state.own.moment.size
    least = least_eigenvalue(state.work[4 : 4 + d], state.work[2], state.work[3])
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
