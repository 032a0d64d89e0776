"""Cuts of a confidence set, and the best multipliers of those in use.

A cut says that an expected reward is not below, or not above, an end of its range: a'theta >= b
with a = psi_k or -psi_k. Those in use, at most CUTS, are columns of an array; its first rows are
the inverse of their products G = a'V^-1 a. `bounded` puts them to use.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.linalg import times_within
from guardband.kernels.scan import product

__all__ = [
    "ACTION",
    "BY_GAP",
    "COUNT",
    "CUTS",
    "GAP",
    "MULTIPLIER",
    "ROWS",
    "SIGN",
    "range_of",
    "solve",
    "subtract_cuts",
    "use_cut",
]

CUTS = 24
ACTION, SIGN, MULTIPLIER = CUTS, CUTS + 1, CUTS + 2
GAP = CUTS + 3  # b - a'theta-hat
CROSS = CUTS + 4  # a'V^-1 v
BY_GAP, BY_CROSS = CUTS + 5, CUTS + 6  # G^-1 times these two
SHARES = CUTS + 7  # of the cuts in use, in the combination of them that is nearest to a new one
COUNT = CUTS + 8  # its first number: how many cuts are in use
ROWS = CUTS + 9
NOTHING = 1e-11  # of ||a||^2 or ||v||^2: a smaller rest is rounding


@kernel
def use_cut(known, scores, work, k, sign):
    """Put a cut to use; tell whether that was possible.

    If it is a combination of those in use, it takes the place of the one whose multiplier falls to
    zero first while the new one's grows and u stays as it is.
    """
    cuts, image = scores.cuts, work[0]
    times_within(known.estimate.inverse, known.menu[:, k], known.coords, image)
    for p in range(known.coords.size):
        image[known.coords[p]] *= sign
    multiplier = 0.0
    for _ in range(2):
        n = int(cuts[COUNT, 0])
        if n == CUTS:
            return False
        form = sign * product(image, known.menu, k, known.coords)
        rest, least_rest = form + _write_shares(known, cuts, image), NOTHING * form
        first, growth = -1, math.inf
        if rest <= least_rest:
            for j in range(n):
                if cuts[SHARES, j] * growth > cuts[MULTIPLIER, j]:
                    first, growth = j, cuts[MULTIPLIER, j] / cuts[SHARES, j]
        if first < 0:  # if it contradicts those in use, its multiplier will have no end
            _append(known, scores, work, k, sign, max(rest, least_rest))
            cuts[MULTIPLIER, n] = multiplier
            return True
        multiplier += growth
        for j in range(n):
            left = cuts[MULTIPLIER, j] - growth * cuts[SHARES, j]
            cuts[MULTIPLIER, j] = max(0.0, left)
        _drop(cuts, first)
    return False


@kernel
def _write_shares(known, cuts, image):
    """Write the combination of cuts in use that is nearest to a; return minus its ||.||^2.

    `image` is V^-1 a. The shares are G^-1 g, with the products G of the cuts in use and g of these
    with a; the length is g'G^-1 g.
    """
    n, total = int(cuts[COUNT, 0]), 0.0
    for j in range(n):
        cuts[SHARES, j] = 0.0
    for i in range(n):
        along = cuts[SIGN, i] * product(image, known.menu, int(cuts[ACTION, i]), known.coords)
        cuts[BY_GAP, i] = along
        for j in range(n):
            cuts[SHARES, j] += cuts[j, i] * along
    for j in range(n):
        total -= cuts[BY_GAP, j] * cuts[SHARES, j]
    return total


@kernel
def _append(known, scores, work, k, sign, rest):
    """Add a cut to those in use; `rest` is ||a||^2 less that of its nearest combination."""
    cuts, n, cross = scores.cuts, int(scores.cuts[COUNT, 0]), 0.0
    for i in range(n):
        for j in range(n):
            cuts[i, j] += cuts[SHARES, i] * cuts[SHARES, j] / rest
        cuts[i, n] = cuts[n, i] = -cuts[SHARES, i] / rest
    cuts[n, n] = 1.0 / rest
    for p in range(known.coords.size):
        cross += work[0][known.coords[p]] * work[4][known.coords[p]]
    low, high = range_of(known, k)
    cuts[ACTION, n], cuts[SIGN, n], cuts[CROSS, n] = k, sign, cross
    cuts[GAP, n] = low - scores.mean[k] if sign > 0.0 else scores.mean[k] - high
    cuts[COUNT, 0] = n + 1


@kernel
def _drop(cuts, out):
    """Take a cut out of use; the last one moves to its place."""
    last, pivot = int(cuts[COUNT, 0]) - 1, cuts[out, out]
    for i in range(last + 1):
        if i != out:
            share = cuts[i, out] / pivot
            for j in range(last + 1):
                if j != out:
                    cuts[i, j] -= share * cuts[out, j]
    for j in range(last):
        if j != out:
            cuts[out, j] = cuts[j, out] = cuts[last, j]
    cuts[out, out] = cuts[last, last]
    for row in (ACTION, SIGN, MULTIPLIER, GAP, CROSS):
        cuts[row, out] = cuts[row, last]
    cuts[COUNT, 0] = last


@kernel
def solve(cuts, beta, square):
    """Move the multipliers to the best ones of the cuts in use; return s, or -1: there are none.

    With G the products of the cuts in use, g their gaps and c their products with v, the best are
    mu = G^-1 c + s G^-1 g, s^2 = (||v||^2 - c'G^-1 c) / (beta^2 - g'G^-1 g), where they are not
    negative; `square` is ||v||^2. If the denominator is not positive, the bound grows along G^-1 g.
    For v = 0 and beta infinite, mu = G^-1 g is the projection of theta-hat, and s is 1.
    """
    while True:
        n, s = int(cuts[COUNT, 0]), _share(cuts, beta, square)
        step, first = (1.0 if s >= 0.0 else math.inf), -1
        for j in range(n):
            move = _direction(cuts, s, j)
            if -move * step > cuts[MULTIPLIER, j]:
                step, first = cuts[MULTIPLIER, j] / -move, j
        if step == math.inf:
            return -1.0
        for j in range(n):
            cuts[MULTIPLIER, j] = max(0.0, cuts[MULTIPLIER, j] + step * _direction(cuts, s, j))
        if first < 0:
            return s
        _drop(cuts, first)


@kernel
def _share(cuts, beta, square):
    """Return s of `solve`, or -1: no bound; writes G^-1 g and G^-1 c."""
    n, room, left = int(cuts[COUNT, 0]), beta * beta, square
    for j in range(n):
        by_gap, by_cross = 0.0, 0.0
        for i in range(n):
            by_gap += cuts[j, i] * cuts[GAP, i]
            by_cross += cuts[j, i] * cuts[CROSS, i]
        cuts[BY_GAP, j], cuts[BY_CROSS, j] = by_gap, by_cross
        room -= by_gap * cuts[GAP, j]
        left -= by_cross * cuts[CROSS, j]
    if beta == math.inf:
        return 1.0
    if not room > 0.0:
        return -1.0
    return math.sqrt(left / room) if left > NOTHING * square else 0.0


@kernel
def _direction(cuts, s, j):
    """Return where multiplier j moves in `solve`: to its best value, or without end for s < 0."""
    if s < 0.0:
        return cuts[BY_GAP, j]
    return cuts[BY_CROSS, j] + s * cuts[BY_GAP, j] - cuts[MULTIPLIER, j]


@kernel
def subtract_cuts(known, cuts, row, out):
    """Subtract the sum of all a in use from `out`, each as often as `row` of the cuts says."""
    for j in range(int(cuts[COUNT, 0])):
        step, k = cuts[row, j] * cuts[SIGN, j], int(cuts[ACTION, j])
        for p in range(known.coords.size):
            out[known.coords[p]] -= step * known.menu[known.coords[p], k]


@kernel
def range_of(known, k):
    """Return between what the expected reward of action k lies."""
    if k == known.baseline:
        return known.bottom, known.top
    return known.low, known.high
