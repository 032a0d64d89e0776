"""Menus as kernels read them: actions run innermost, and every number was looked at."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel, rare_kernel, views

__all__ = ["FINE", "NOT_FINITE", "TOO_LONG", "load_menu", "load_menus"]

FINE, NOT_FINITE, TOO_LONG = 0, 1, 2
EIGHT = 8  # actions at a time: what they are in one coordinate fills a line of the cache
TILE, NEAR = 4096, 16_384  # numbers that are read ahead; up to which menus need that not
SURE = 1.0 - 1e-15  # of a squared bound: rounding decides nothing below it
LARGEST = 1e300  # no square that overflowed is below it


@rare_kernel  # `load_menus` calls it
def load_menu(features, index, bound, menu):
    """Copy (K, d) or (K, size of the task) features to a (d, K) menu, zeros outside the task.

    Returns a code and, where it is not FINE, the first action that is at fault.
    """
    actions, columns = features.shape
    numbers, whole = features.reshape(features.size), index.size == menu.shape[0]
    tile = max(EIGHT, TILE // columns // EIGHT * EIGHT)
    for first in range(0, actions, tile):
        last = min(first + tile, actions)
        fine = whole
        if numbers.size > NEAR:
            fine = whole and _within(numbers[columns * first : columns * last], bound)
        for start in range(first, last, EIGHT):
            stop = min(start + EIGHT, last)
            eight = fine and stop - start == EIGHT
            if not (eight and _load_eight(features, bound, menu, start)):
                for k in range(start, stop):
                    code = _load_one(features, index, bound, menu, k)
                    if code != FINE:
                        return code, k
    return FINE, 0


@kernel
def _within(numbers, bound):
    """Tell whether no number is larger than the bound; NaN is not.

    It reads them in their order: processors fetch ahead what is read so, but not what eight actions
    at a time ask for.
    """
    beyond = 0
    for j in range(numbers.size):
        beyond += abs(numbers[j]) > bound
    return beyond == 0


@kernel
def _load_eight(features, bound, menu, k):
    """Copy eight actions from the k-th on, all features; tell whether they are surely fine.

    Whatever is not finite makes a length that is within no bound.
    """
    x0, x1, x2, x3 = features[k], features[k + 1], features[k + 2], features[k + 3]
    x4, x5, x6, x7 = features[k + 4], features[k + 5], features[k + 6], features[k + 7]
    n0, n1, n2, n3 = 0.0, 0.0, 0.0, 0.0
    n4, n5, n6, n7 = 0.0, 0.0, 0.0, 0.0
    for i in range(x0.size):
        row = menu[i, k : k + 8]
        u0, u1, u2, u3 = x0[i], x1[i], x2[i], x3[i]
        u4, u5, u6, u7 = x4[i], x5[i], x6[i], x7[i]
        row[0], row[1], row[2], row[3] = u0, u1, u2, u3
        row[4], row[5], row[6], row[7] = u4, u5, u6, u7
        n0 += u0 * u0
        n1 += u1 * u1
        n2 += u2 * u2
        n3 += u3 * u3
        n4 += u4 * u4
        n5 += u5 * u5
        n6 += u6 * u6
        n7 += u7 * u7
    most = min(bound * bound * SURE, LARGEST)
    return (
        n0 <= most
        and n1 <= most
        and n2 <= most
        and n3 <= most
        and n4 <= most
        and n5 <= most
        and n6 <= most
        and n7 <= most
    )


@kernel
def _load_one(features, index, bound, menu, k):
    """Copy action k; return its code."""
    columns, d = features.shape[1], menu.shape[0]
    total, norm = 0.0, 0.0
    for i in range(columns):
        total += features[k, i] * 0.0  # NaN if anything in the row is not finite
    if total != 0.0:
        return NOT_FINITE
    for i in range(d):
        menu[i, k] = 0.0
    for p in range(index.size):
        value = features[k, index[p] if columns == d else p]
        menu[index[p], k] = value
        norm += value * value
    return FINE if math.sqrt(norm) <= bound else TOO_LONG


@rare_kernel
def load_menus(features, ends, index, bound, menus):
    """Copy tables of features, one after another in `features`, to menus that lie as they do.

    `ends` (n,) are where the actions of each end, of all together; `menus` is as long as all (d, K)
    menus. Returns a code and, where it is not FINE, which table is at fault.
    """
    actions, start = ends[-1], 0
    columns, d = features.size // actions, menus.size // actions
    for i in range(ends.size):
        n = ends[i] - start
        table = views(features, columns * start, ((n, columns),))[0]
        code, _ = load_menu(table, index, bound, views(menus, d * start, ((d, n),))[0])
        if code != FINE:
            return code, i
        start = ends[i]
    return FINE, 0
