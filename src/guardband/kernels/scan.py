"""Means and upper bounds of every action on a menu; actions run innermost.

A menu is (d, K): consecutive numbers belong to consecutive actions, so the loops over actions
become vector instructions although no sum is reordered. An action's value does not depend on
which other actions are on the menu. Masks cost nothing: a task's coordinates are all that is read.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel

__all__ = ["argmax", "following", "product", "scan", "scan_forms", "write_image"]

BLOCK = 512  # actions at a time: what they need of menu and scores stays in the nearest cache


@kernel
def scan(estimate, beta, coords, menu, scores):
    """Write psi'theta-hat to `mean` and psi'theta-hat + beta norm(psi)_{V^-1} to `upper`.

    `menu` is (d, K): one column psi for every action.
    """
    mean, upper = scores.mean, scores.upper
    scan_forms(estimate, coords, menu, mean, upper, scores.part)
    for k in range(menu.shape[1]):
        upper[k] = mean[k] + beta * math.sqrt(upper[k])


@kernel
def scan_forms(estimate, coords, menu, mean, form, part):
    """Write psi'theta-hat to `mean` and psi'V^-1 psi to `form` for every action.

    `menu` is (d, K); `mean`, `form` and the scratch `part` are (K,).
    """
    actions = menu.shape[1]
    for start in range(0, actions, BLOCK):
        stop = min(start + BLOCK, actions)
        _scan_block(estimate, coords, menu, mean, form, part, start, stop)


@kernel
def _scan_block(estimate, coords, menu, means, forms, parts, start, stop):
    """Do what `scan_forms` does for the actions from `start` to before `stop`."""
    # Views that start at zero: Numba vectorises their loops, but not range(start, stop).
    mean, form, part = means[start:stop], forms[start:stop], parts[start:stop]
    inverse, theta = estimate.inverse, estimate.theta
    n = stop - start
    for k in range(n):
        mean[k] = 0.0
        form[k] = 0.0
    for p in range(coords.size):
        i = coords[p]
        row = menu[i, start:stop]
        weight = theta[i]
        # psi'V^-1 psi = sum_i psi_i (2 sum_{j < i} V^-1_ij psi_j + V^-1_ii psi_i)
        diagonal = inverse[i, i]
        for k in range(n):
            mean[k] += weight * row[k]
            part[k] = diagonal * row[k]
        q = 0
        while q + 3 < p:  # four rows at a time: a quarter of the traffic of `part`
            j0, j1, j2, j3 = coords[q], coords[q + 1], coords[q + 2], coords[q + 3]
            a0, a1 = 2.0 * inverse[i, j0], 2.0 * inverse[i, j1]
            a2, a3 = 2.0 * inverse[i, j2], 2.0 * inverse[i, j3]
            r0, r1 = menu[j0, start:stop], menu[j1, start:stop]
            r2, r3 = menu[j2, start:stop], menu[j3, start:stop]
            for k in range(n):
                part[k] += (a0 * r0[k] + a1 * r1[k]) + (a2 * r2[k] + a3 * r3[k])
            q += 4
        while q < p:
            a0 = 2.0 * inverse[i, coords[q]]
            r0 = menu[coords[q], start:stop]
            for k in range(n):
                part[k] += a0 * r0[k]
            q += 1
        for k in range(n):
            form[k] += part[k] * row[k]
    for k in range(n):
        # Rounding may leave -1e-20 where the form is zero; a NaN must stay one.
        form[k] = 0.0 if form[k] < 0.0 else form[k]


@kernel
def argmax(values):
    """Return the lowest index of the largest value; values (K,)."""
    best, top = 0, values[0]
    for k in range(1, values.size):
        if values[k] > top:
            best, top = k, values[k]
    return best


@kernel
def following(values, last):
    """Return the index of the largest value after that of `last`, ties by index; -1: none."""
    best = -1
    for k in range(values.size):
        after = values[k] < values[last] or (values[k] == values[last] and k > last)
        if after and (best < 0 or values[k] > values[best]):
            best = k
    return best


@kernel
def write_image(estimate, menu, k, coords, out):
    """Write V^-1 psi_k to `out`, at the task's coordinates."""
    for p in range(coords.size):
        i = coords[p]
        total = 0.0
        for q in range(coords.size):
            total += estimate.inverse[i, coords[q]] * menu[coords[q], k]
        out[i] = total


@kernel
def product(image, menu, k, coords):
    """Return psi_k'image, image (d,), over the task's coordinates."""
    total = 0.0
    for p in range(coords.size):
        total += image[coords[p]] * menu[coords[p], k]
    return total
