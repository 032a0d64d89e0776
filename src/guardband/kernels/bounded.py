"""Lower bounds over all that is known: the confidence set, and that rewards have a range.

The set is {theta: ||theta - theta-hat||_V <= beta, low <= psi_k'theta <= high for every action k}.
A cut is one of these ranges' ends, a'theta >= b with a = psi_k or -psi_k. Any multipliers mu >= 0
of cuts give, for every theta in the set,

    v'theta >= u'theta-hat - beta ||u||_{V^-1} + sum mu b,   u = v - sum mu a,

so a search for good ones may stop at any time. If the set is empty, multipliers prove anything:
`find_point` comes first. docs/guard-ucb-math.md has the proofs.

The search is an active-set method: the cut that the minimiser breaks most is put to use, and one
whose multiplier would become negative is dropped.

Scratch. In `work`: row 0 V^-1 times a vector, row 2 u, then the minimiser, row 3 a point of the
set, row 4 v. In the scores: `point`, psi'x of that point, `part`, the same of the minimiser, and
`cuts`, those in use.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.cuts import (
    ACTION,
    BY_GAP,
    COUNT,
    GAP,
    MULTIPLIER,
    range_of,
    solve,
    subtract_cuts,
    use_cut,
)
from guardband.kernels.linalg import times_within
from guardband.kernels.scan import write_products
from guardband.kernels.types import Knowledge

__all__ = ["EASE", "EMPTY", "HOLDS", "UNSURE", "find_point", "knowledge_of", "least"]

STEPS = 40  # a step puts one cut to use
EASE = 1e-9  # a bound may miss what is asked for by so much
FIT = 1e-11  # a point may break a cut by so much
ROUNDING = 1e-12  # of the sum of the sizes of all terms
HOLDS, UNSURE, EMPTY = 1, 0, -1  # what is known about the set


@kernel
def knowledge_of(estimate, beta, terms, given):
    """Return the set: the ellipsoid, and the range of every action's expected reward."""
    low, high = -terms.bias, terms.ceiling + terms.bias
    bottom, top = low, high
    if given.known:
        bottom = max(low, given.baseline_reward - terms.tolerance)
        top = min(high, given.baseline_reward + terms.tolerance)
    return Knowledge(
        estimate, beta, given.menu, given.coords, low, high, given.baseline, bottom, top
    )


@kernel
def find_point(known, scores, work):
    """Look for a point of the set; return HOLDS, UNSURE or EMPTY.

    The point is theta-hat, if it keeps to all cuts, else its projection on them: x = theta-hat +
    V^-1 sum mu a. Whatever mu >= 0, what the cuts leave is at least
    sqrt(2 sum mu (b - a'theta-hat) - ||sum mu a||^2_{V^-1}) away from theta-hat; if that exceeds
    beta, the set is empty.
    """
    coords, cuts, x, square = known.coords, scores.cuts, work[3], 0.0
    for p in range(coords.size):
        x[coords[p]] = known.estimate.theta[coords[p]]
        work[4][coords[p]] = 0.0
    for k in range(scores.mean.size):
        scores.point[k] = scores.mean[k]
    cuts[COUNT, 0] = 0.0
    for _ in range(STEPS):
        k, sign = _most_broken(known, scores.form, scores.point)
        if k < 0:
            return HOLDS if square <= known.beta * known.beta else UNSURE
        if not use_cut(known, scores, work, k, sign) or not solve(cuts, math.inf, 0.0) > 0.0:
            return UNSURE
        square = _write_point(known, cuts, MULTIPLIER, work, x)
        write_products(x, known.menu, coords, scores.point)
        if _distance(cuts, square) > known.beta * known.beta:
            return EMPTY
    return UNSURE


@kernel
def _distance(cuts, square):
    """Return the squared distance that the multipliers prove; `square` is ||sum mu a||^2."""
    total, size = -square, square
    for j in range(int(cuts[COUNT, 0])):
        total += 2.0 * cuts[MULTIPLIER, j] * cuts[GAP, j]
        size += 2.0 * cuts[MULTIPLIER, j] * abs(cuts[GAP, j])
    return total - ROUNDING * size


@kernel
def _most_broken(known, form, values):
    """Return the cut that is broken most, in widths of its action: the action (-1: none), the sign.

    `values` are psi'x of every action; the sign is 1 for the lower end of its range, else -1.
    """
    action, sign, far = -1, 1.0, 0.0
    for k in range(values.size):
        if known.low <= values[k] <= known.high and k != known.baseline:
            continue
        low, high = range_of(known, k)
        miss = max(low - values[k], values[k] - high)
        if not miss <= FIT:
            miss /= math.sqrt(form[k])
            if not miss <= far:
                action, sign, far = k, (1.0 if values[k] < low else -1.0), miss
    return action, sign


@kernel
def least(known, scores, work, enough):
    """Return a lower bound of v'theta over the set, for v in row 4 of `work`.

    It starts from the minimum over the ellipsoid, and stops where the bound reaches `enough` or a
    point of the set shows that it cannot; infinity asks for the minimum, and leaves the minimiser
    in row 2. Only for a set that HOLDS, by `find_point`, from whose point such a witness is looked
    for. A bound that just misses `enough` is enough: where v is a sum of multiples of features, its
    minimum is zero, and rounding must not decide.
    """
    cuts, coords, v, x, start = scores.cuts, known.coords, work[4], work[2], 0.0
    for p in range(coords.size):
        start += v[coords[p]] * work[3][coords[p]]
    cuts[COUNT, 0] = 0.0
    best, square = _bound(known, scores, work)
    s = math.sqrt(square) / known.beta
    for _ in range(STEPS):
        if best + EASE >= enough or start + EASE < enough < math.inf or not square > 0.0:
            break
        if s > 0.0:
            for p in range(coords.size):
                i = coords[p]
                x[i] = known.estimate.theta[i] - work[0][i] / s
        else:
            _write_point(known, cuts, BY_GAP, work, x)
        write_products(x, known.menu, coords, scores.part)
        k, sign = _most_broken(known, scores.form, scores.part)
        if k < 0:
            break
        end = 0.0
        for p in range(coords.size):
            end += v[coords[p]] * x[coords[p]]
        witness = start + _way(known, scores.point, scores.part) * (end - start)
        if witness + EASE < enough < math.inf:  # at zero, rounding must not decide
            break
        if not use_cut(known, scores, work, k, sign):
            break
        s = solve(cuts, known.beta, square)
        if s < 0.0:
            break
        best = max(best, _bound(known, scores, work)[0])
    return enough if enough - EASE <= best < enough else best


@kernel
def _bound(known, scores, work):
    """Return what the multipliers prove about v'theta, less a margin for rounding, and ||u||^2.

    Writes u and V^-1 u.
    """
    cuts, coords, v, u = scores.cuts, known.coords, work[4], work[2]
    bound, size = 0.0, 0.0
    for p in range(coords.size):
        u[coords[p]] = v[coords[p]]
        bound += v[coords[p]] * known.estimate.theta[coords[p]]
        size += abs(v[coords[p]] * known.estimate.theta[coords[p]])
    subtract_cuts(known, cuts, MULTIPLIER, u)
    square = _write_image(known, u, work[0])
    width = known.beta * math.sqrt(square)
    size += width
    for j in range(int(cuts[COUNT, 0])):
        gain = cuts[MULTIPLIER, j] * cuts[GAP, j]
        bound += gain
        wide = math.sqrt(scores.form[int(cuts[ACTION, j])])
        size += abs(gain) + cuts[MULTIPLIER, j] * known.beta * wide
    return bound - width - ROUNDING * size, square


@kernel
def _way(known, point, corner):
    """Return how much of the way from a point of the set to a corner keeps to all cuts."""
    share = 1.0
    for k in range(corner.size):
        if known.low <= corner[k] <= known.high and k != known.baseline:
            continue
        low, high = range_of(known, k)
        if corner[k] < low:
            share = min(share, (point[k] - low) / (point[k] - corner[k]))
        elif corner[k] > high:
            share = min(share, (high - point[k]) / (corner[k] - point[k]))
    return max(0.0, share)


@kernel
def _write_point(known, cuts, row, work, x):
    """Write x = theta-hat + V^-1 sum mu a, with mu in `row` of the cuts; return ||.||_V^2 of it."""
    coords, total = known.coords, work[2]
    for p in range(coords.size):
        total[coords[p]] = 0.0
    subtract_cuts(known, cuts, row, total)
    square = _write_image(known, total, work[0])
    for p in range(coords.size):
        x[coords[p]] = known.estimate.theta[coords[p]] - work[0][coords[p]]
    return square


@kernel
def _write_image(known, u, image):
    """Write V^-1 u to `image`; return u'V^-1 u."""
    coords, square = known.coords, 0.0
    times_within(known.estimate.inverse, u, coords, image)
    for p in range(coords.size):
        square += u[coords[p]] * image[coords[p]]
    return 0.0 if square < 0.0 else square
