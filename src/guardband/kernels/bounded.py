"""Lower bounds over all that is known: the confidence set, and that rewards have a range.

The set is {theta: ||theta - theta-hat||_V <= beta, low <= psi_k'theta <= high for every action k}.
A cut is one of these ranges' ends, a'theta >= b with a = psi_k or -psi_k. Any multipliers mu >= 0
of cuts give, for every theta in the set,

    v'theta >= u'theta-hat - beta ||u||_{V^-1} + sum mu b,   u = v - sum mu a,

so a search for good ones may stop at any time. If the set is empty, multipliers prove anything:
`find_point` comes first. docs/guard-ucb-math.md has the proofs.

Scratch. In `work`: row 0 V^-1 times a vector, row 2 u, row 3 a point of the set, row 4 v. In the
scores: `point`, psi'x of that point, `part`, the same of a corner of the ellipsoid, and `cuts`: the
products a'V^-1 a of the cuts in use, then a row for each number that a cut has.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.linalg import root
from guardband.kernels.types import Knowledge

__all__ = [
    "ACTION",
    "COUNT",
    "CUTS",
    "EASE",
    "EMPTY",
    "HOLDS",
    "MULTIPLIER",
    "ROWS",
    "SIGN",
    "UNSURE",
    "find_point",
    "knowledge_of",
    "least",
    "mixture_line",
]

CUTS = 24  # at most so many are in use
ACTION, SIGN, GAP, MULTIPLIER, CROSS = CUTS, CUTS + 1, CUTS + 2, CUTS + 3, CUTS + 4
COUNT = CUTS + 5  # its first number: how many cuts are in use
ROWS = CUTS + 6
STEPS = 32  # a step puts the cut that is broken most to use, and improves all multipliers
SWEEPS = 12  # over the cuts in use, in a step
EASE = 1e-9  # a point may break a cut by so much, and a bound miss zero
ROUNDING = 1e-12  # of the sum of the sizes of all terms
STILL = 1e-16  # of ||u||^2: smaller changes end the sweeps
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

    The point is theta-hat, if it keeps to all cuts. Otherwise Hildreth's method projects it on
    those that are broken: x = theta-hat + V^-1 sum mu a. Whatever mu >= 0, what the cuts leave is
    at least sqrt(2 sum mu (b - a'theta-hat) - ||sum mu a||^2_{V^-1}) away from theta-hat; if that
    exceeds beta, the set is empty.
    """
    coords, cuts, x, square = known.coords, scores.cuts, work[3], 0.0
    for p in range(coords.size):
        x[coords[p]] = known.estimate.theta[coords[p]]
    for k in range(scores.mean.size):
        scores.point[k] = scores.mean[k]
    cuts[COUNT, 0] = 0.0
    for _ in range(STEPS):
        k, sign = _most_broken(known, scores.form, scores.point)
        if k < 0:
            return HOLDS if square <= known.beta * known.beta else UNSURE
        if not _use_cut(known, scores, work[0], k, sign):
            return UNSURE
        if _project(cuts) > known.beta * known.beta:
            return EMPTY
        square = _move(known, scores, work)
    return UNSURE


@kernel
def _most_broken(known, form, values):
    """Return the cut that is broken most, in widths of its action: the action (-1: none), the sign.

    `values` are psi'x of every action; the sign is 1 for the lower end of its range, else -1.
    """
    action, sign, far = -1, 1.0, 0.0
    for k in range(values.size):
        if known.low <= values[k] <= known.high and k != known.baseline:
            continue
        low, high = _range(known, k)
        miss = max(low - values[k], values[k] - high)
        if not miss <= EASE:
            miss /= math.sqrt(form[k])
            if not miss <= far:
                action, sign, far = k, (1.0 if values[k] < low else -1.0), miss
    return action, sign


@kernel
def _range(known, k):
    """Return between what the expected reward of action k lies."""
    if k == known.baseline:
        return known.bottom, known.top
    return known.low, known.high


@kernel
def _use_cut(known, scores, image, k, sign):
    """Put a cut to use, unless it is; tell whether there was room. `image` receives V^-1 a."""
    cuts, coords = scores.cuts, known.coords
    n = int(cuts[COUNT, 0])
    for j in range(n):
        if cuts[ACTION, j] == k and cuts[SIGN, j] == sign:
            return True
    if n == CUTS:
        return False
    for p in range(coords.size):
        i = coords[p]
        total = 0.0
        for q in range(coords.size):
            total += known.estimate.inverse[i, coords[q]] * known.menu[coords[q], k]
        image[i] = sign * total
    low, high = _range(known, k)
    cuts[ACTION, n], cuts[SIGN, n], cuts[MULTIPLIER, n] = k, sign, 0.0
    cuts[GAP, n] = low - scores.mean[k] if sign > 0.0 else scores.mean[k] - high  # b - a'theta-hat
    for j in range(n + 1):
        product = cuts[SIGN, j] * _along(image, known, int(cuts[ACTION, j]))
        cuts[n, j] = cuts[j, n] = product
    cuts[COUNT, 0] = n + 1
    return True


@kernel
def _along(x, known, k):
    """Return x'psi_k."""
    total = 0.0
    for p in range(known.coords.size):
        total += x[known.coords[p]] * known.menu[known.coords[p], k]
    return total


@kernel
def _project(cuts):
    """Improve the projection's multipliers; return the squared distance that they prove.

    mu_j <- max(0, mu_j + (b_j - a_j'x) / a_j'V^-1 a_j), one after the other.
    """
    n = int(cuts[COUNT, 0])
    for _ in range(SWEEPS):
        moved = 0.0
        for j in range(n):
            miss = cuts[GAP, j]
            for i in range(n):
                miss -= cuts[j, i] * cuts[MULTIPLIER, i]
            new = max(0.0, cuts[MULTIPLIER, j] + miss / cuts[j, j])
            moved = max(moved, abs(new - cuts[MULTIPLIER, j]) * cuts[j, j])
            cuts[MULTIPLIER, j] = new
        if moved <= 0.1 * EASE:
            break
    square, size = 0.0, 0.0
    for j in range(n):
        square += 2.0 * cuts[MULTIPLIER, j] * cuts[GAP, j]
        size += 2.0 * cuts[MULTIPLIER, j] * abs(cuts[GAP, j])
        for i in range(n):
            product = cuts[j, i] * cuts[MULTIPLIER, i] * cuts[MULTIPLIER, j]
            square -= product
            size += abs(product)
    return square - ROUNDING * size


@kernel
def _move(known, scores, work):
    """Write x = theta-hat + V^-1 sum mu a, and psi'x; return ||x - theta-hat||_V^2."""
    coords, total, x = known.coords, work[2], work[3]
    for p in range(coords.size):
        total[coords[p]] = 0.0
    _subtract_cuts(known, scores.cuts, -1.0, total)
    square = _write_image(known, total, x)
    for p in range(coords.size):
        x[coords[p]] += known.estimate.theta[coords[p]]
    _write_values(known, x, scores.point)
    return square


@kernel
def _subtract_cuts(known, cuts, share, out):
    """Subtract `share` times sum mu a from `out`."""
    for j in range(int(cuts[COUNT, 0])):
        step, k = share * cuts[MULTIPLIER, j] * cuts[SIGN, j], int(cuts[ACTION, j])
        for p in range(known.coords.size):
            out[known.coords[p]] -= step * known.menu[known.coords[p], k]


@kernel
def _write_image(known, u, image):
    """Write V^-1 u to `image`; return u'V^-1 u."""
    coords, square = known.coords, 0.0
    for p in range(coords.size):
        i = coords[p]
        total = 0.0
        for q in range(coords.size):
            total += known.estimate.inverse[i, coords[q]] * u[coords[q]]
        image[i] = total
        square += u[i] * total
    return 0.0 if square < 0.0 else square


@kernel
def _write_values(known, x, values):
    """Write psi_k'x of every action; actions run innermost, as in `scan`."""
    for k in range(values.size):
        values[k] = 0.0
    for p in range(known.coords.size):
        row, weight = known.menu[known.coords[p]], x[known.coords[p]]
        for k in range(values.size):
            values[k] += weight * row[k]


@kernel
def least(known, scores, work, enough):
    """Return a lower bound of v'theta over the set, for v in row 4 of `work`.

    It starts from the minimum over the ellipsoid, and stops where the bound reaches `enough` or a
    point of the set shows that it cannot; infinity asks for the best. Only for a set that HOLDS,
    by `find_point`, from whose point such a witness is looked for.
    A bound just below zero is zero: where v is a sum of multiples of features, rounding decides.
    """
    cuts, coords, v, corner, start = scores.cuts, known.coords, work[4], work[2], 0.0
    for p in range(coords.size):
        start += v[coords[p]] * work[3][coords[p]]
    cuts[COUNT, 0] = 0.0
    best, square = _bound(known, scores, work)
    for _ in range(STEPS):
        if best + EASE >= enough or start + EASE < enough < math.inf or not square > 0.0:
            break
        shrink, end = known.beta / math.sqrt(square), 0.0
        for p in range(coords.size):  # the ellipsoid's minimum of u'theta
            i = coords[p]
            corner[i] = known.estimate.theta[i] - shrink * work[0][i]
            end += v[i] * corner[i]
        _write_values(known, corner, scores.part)
        k, sign = _most_broken(known, scores.form, scores.part)
        witness = start + _way(known, scores.point, scores.part) * (end - start)
        if k < 0 or witness + EASE < enough < math.inf:  # at zero, rounding must not decide
            break
        if not _use_cut(known, scores, work[0], k, sign):
            break
        _, square = _bound(known, scores, work)
        _ascend(cuts, known.beta, square)
        bound, square = _bound(known, scores, work)
        best = max(best, bound)
    return 0.0 if -EASE <= best < 0.0 else best


@kernel
def _bound(known, scores, work):
    """Return what the multipliers prove about v'theta, less a margin for rounding, and ||u||^2.

    Writes u, V^-1 u, and u'V^-1 a of every cut in use.
    """
    cuts, coords, v, u = scores.cuts, known.coords, work[4], work[2]
    bound, size = 0.0, 0.0
    for p in range(coords.size):
        u[coords[p]] = v[coords[p]]
        bound += v[coords[p]] * known.estimate.theta[coords[p]]
        size += abs(v[coords[p]] * known.estimate.theta[coords[p]])
    _subtract_cuts(known, cuts, 1.0, u)
    square = _write_image(known, u, work[0])
    width = known.beta * math.sqrt(square)
    size += width
    for j in range(int(cuts[COUNT, 0])):
        gain = cuts[MULTIPLIER, j] * cuts[GAP, j]
        bound += gain
        size += abs(gain) + cuts[MULTIPLIER, j] * known.beta * math.sqrt(cuts[j, j])
        cuts[CROSS, j] = cuts[SIGN, j] * _along(work[0], known, int(cuts[ACTION, j]))
    return bound - width - ROUNDING * size, square


@kernel
def _way(known, point, corner):
    """Return how much of the way from a point of the set to a corner keeps to all cuts."""
    share = 1.0
    for k in range(corner.size):
        if known.low <= corner[k] <= known.high and k != known.baseline:
            continue
        low, high = _range(known, k)
        if corner[k] < low:
            share = min(share, (point[k] - low) / (point[k] - corner[k]))
        elif corner[k] > high:
            share = min(share, (high - point[k]) / (corner[k] - point[k]))
    return max(0.0, share)


@kernel
def _ascend(cuts, beta, square):
    """Improve the multipliers one after the other, each by its best step; `square` is ||u||^2.

    With q = ||a||^2, c = u'V^-1 a and k = (b - a'theta-hat) / (beta sqrt(q)) that is
    c / q + k sqrt(||u||^2 / q - c^2 / q^2) / sqrt(1 - k^2) for |k| < 1. For k <= -1 the cut is
    idle on the ellipsoid; k >= 1 would mean that the set is empty.
    """
    n = int(cuts[COUNT, 0])
    for _ in range(SWEEPS):
        moved = 0.0
        for j in range(n):
            q, c, mu = cuts[j, j], cuts[CROSS, j], cuts[MULTIPLIER, j]
            k, step = cuts[GAP, j] / (beta * math.sqrt(q)), -mu
            if k >= 1.0:
                continue
            if k > -1.0:
                rest = root(square / q - (c / q) * (c / q))
                step = max(-mu, c / q + k * rest / math.sqrt(1.0 - k * k))
            square = max(0.0, square - step * (2.0 * c - step * q))
            for i in range(n):
                cuts[CROSS, i] -= step * cuts[i, j]
            cuts[MULTIPLIER, j] = mu + step
            moved = max(moved, step * step * q)
        if moved <= STILL * square:
            break


@kernel
def mixture_line(known, scores, work, keep, partner, target):
    """Return what the multipliers prove about mixtures, as a function of the target's share r.

    (1 - r) psi_p + r psi_x - keep psi_b has the bound start + r slope - beta sqrt(constant +
    r linear + r^2 square): returns these five numbers.
    """
    cuts, coords, menu = scores.cuts, known.coords, known.menu
    at, step, start = work[2], work[4], 0.0
    for p in range(coords.size):
        i = coords[p]
        at[i] = menu[i, partner] - keep * menu[i, known.baseline]
        step[i] = menu[i, target] - menu[i, partner]
        start += at[i] * known.estimate.theta[i]
    for j in range(int(cuts[COUNT, 0])):
        start += cuts[MULTIPLIER, j] * cuts[GAP, j]
    _subtract_cuts(known, cuts, 1.0, at)
    square, linear = _write_image(known, step, work[0]), 0.0
    for p in range(coords.size):
        linear += 2.0 * work[0][coords[p]] * at[coords[p]]
    constant = _write_image(known, at, work[0])
    return start, scores.mean[target] - scores.mean[partner], constant, linear, square
