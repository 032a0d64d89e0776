"""Means and upper bounds of every action on a menu; actions run innermost.

A menu is (d, K): consecutive numbers belong to consecutive actions, so the loops over actions
become vector instructions although no sum is reordered. An action's value does not depend on
which other actions are on the menu. Masks cost nothing: a task's coordinates are all that is read.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel, rare_kernel
from guardband.kernels.linalg import times_within

__all__ = ["argmax", "following", "form_of", "product", "scan", "scan_forms", "write_image"]
__all__ += ["write_products"]

BLOCK = 256  # actions at a time: what they need of menu and scores stays in the near caches


@kernel
def scan(estimate, beta, coords, menu, scores):
    """Write psi'theta-hat to `mean` and psi'theta-hat + beta norm(psi)_{V^-1} to `upper`.

    `menu` is (d, K): one column psi for every action.
    """
    mean, upper = scores.mean, scores.upper
    scan_forms(estimate, coords, menu, mean, upper)
    for k in range(menu.shape[1]):
        upper[k] = mean[k] + beta * math.sqrt(upper[k])


@rare_kernel  # as `times_within`
def scan_forms(estimate, coords, menu, mean, form):
    """Write psi'theta-hat to `mean` and psi'V^-1 psi to `form` for every action.

    `menu` is (d, K); `mean` and `form` are (K,). With four coordinates p and four q at a time

        psi'V^-1 psi = 2 sum_p psi_p (sum_{q < p} V^-1_pq psi_q + V^-1_pp psi_p / 2),

    which takes half the products of V^-1 psi, and reads a row of the menu for sixteen of them.
    """
    actions = menu.shape[1]
    for start in range(0, actions, BLOCK):
        stop = min(start + BLOCK, actions)
        part = (mean[start:stop], form[start:stop])
        _scan_block(estimate, coords, menu, start, stop, *part)


@kernel
def _scan_block(estimate, coords, menu, start, stop, mean, form):
    """Do what `scan_forms` does for the actions from `start` to before `stop`."""
    # Views that start at zero: Numba vectorises their loops, but not range(start, stop).
    for k in range(mean.size):
        mean[k] = 0.0
        form[k] = 0.0
    p = 0
    while p + 3 < coords.size:
        _four_alone(estimate, coords, menu, start, stop, mean, form, p)
        for q in range(0, p, 4):
            _four_with_four(estimate.inverse, coords, menu, start, stop, form, p, q)
        p += 4
    while p < coords.size:
        _one(estimate, coords, menu, start, stop, mean, form, p)
        p += 1
    for k in range(form.size):
        # Rounding may leave -1e-20 where the form is zero; a NaN must stay one.
        form[k] = 0.0 if form[k] < 0.0 else 2.0 * form[k]


@kernel
def _four(coords, p):
    """Return four coordinates, from the p-th on."""
    return coords[p], coords[p + 1], coords[p + 2], coords[p + 3]


@kernel
def _rows(menu, start, stop, i0, i1, i2, i3):
    """Return four coordinates of a block of actions."""
    return menu[i0, start:stop], menu[i1, start:stop], menu[i2, start:stop], menu[i3, start:stop]


@kernel
def _four_alone(estimate, coords, menu, start, stop, mean, form, p):
    """Add what four coordinates contribute to means, and to half the forms by themselves."""
    theta, inverse = estimate.theta, estimate.inverse
    i0, i1, i2, i3 = _four(coords, p)
    x0, x1, x2, x3 = _rows(menu, start, stop, i0, i1, i2, i3)
    w0, w1, w2, w3 = theta[i0], theta[i1], theta[i2], theta[i3]
    d0, d1 = 0.5 * inverse[i0, i0], 0.5 * inverse[i1, i1]
    d2, d3 = 0.5 * inverse[i2, i2], 0.5 * inverse[i3, i3]
    a10, a20, a30 = inverse[i1, i0], inverse[i2, i0], inverse[i3, i0]
    a21, a31, a32 = inverse[i2, i1], inverse[i3, i1], inverse[i3, i2]
    for k in range(mean.size):
        u0, u1, u2, u3 = x0[k], x1[k], x2[k], x3[k]
        mean[k] = mean[k] + w0 * u0 + w1 * u1 + w2 * u2 + w3 * u3
        s1 = a10 * u0 + d1 * u1
        s2 = a20 * u0 + a21 * u1 + d2 * u2
        s3 = a30 * u0 + a31 * u1 + a32 * u2 + d3 * u3
        form[k] += (u0 * (d0 * u0) + u1 * s1) + (u2 * s2 + u3 * s3)


@kernel
def _four_with_four(inverse, coords, menu, start, stop, form, p, q):
    """Add what four coordinates from the p-th on contribute to half the forms with four others."""
    i0, i1, i2, i3 = _four(coords, p)
    j0, j1, j2, j3 = _four(coords, q)
    x0, x1, x2, x3 = _rows(menu, start, stop, i0, i1, i2, i3)
    y0, y1, y2, y3 = _rows(menu, start, stop, j0, j1, j2, j3)
    a00, a01, a02, a03 = inverse[i0, j0], inverse[i0, j1], inverse[i0, j2], inverse[i0, j3]
    a10, a11, a12, a13 = inverse[i1, j0], inverse[i1, j1], inverse[i1, j2], inverse[i1, j3]
    a20, a21, a22, a23 = inverse[i2, j0], inverse[i2, j1], inverse[i2, j2], inverse[i2, j3]
    a30, a31, a32, a33 = inverse[i3, j0], inverse[i3, j1], inverse[i3, j2], inverse[i3, j3]
    for k in range(form.size):
        v0, v1, v2, v3 = y0[k], y1[k], y2[k], y3[k]
        s0 = a00 * v0 + a01 * v1 + a02 * v2 + a03 * v3
        s1 = a10 * v0 + a11 * v1 + a12 * v2 + a13 * v3
        s2 = a20 * v0 + a21 * v1 + a22 * v2 + a23 * v3
        s3 = a30 * v0 + a31 * v1 + a32 * v2 + a33 * v3
        form[k] += (x0[k] * s0 + x1[k] * s1) + (x2[k] * s2 + x3[k] * s3)


@kernel
def _one(estimate, coords, menu, start, stop, mean, form, p):
    """Add what coordinate p contributes to means, and to half the forms with those before it."""
    i, inverse = coords[p], estimate.inverse
    row, weight, diagonal = menu[i, start:stop], estimate.theta[i], 0.5 * inverse[i, i]
    for k in range(mean.size):
        mean[k] += weight * row[k]
        form[k] += row[k] * (diagonal * row[k])
    q = 0
    while q + 3 < p:
        j0, j1, j2, j3 = _four(coords, q)
        r0, r1, r2, r3 = _rows(menu, start, stop, j0, j1, j2, j3)
        a0, a1, a2, a3 = inverse[i, j0], inverse[i, j1], inverse[i, j2], inverse[i, j3]
        for k in range(form.size):
            form[k] += row[k] * (a0 * r0[k] + a1 * r1[k] + a2 * r2[k] + a3 * r3[k])
        q += 4
    while q < p:
        a0, r0 = inverse[i, coords[q]], menu[coords[q], start:stop]
        for k in range(form.size):
            form[k] += row[k] * (a0 * r0[k])
        q += 1


@kernel
def form_of(estimate, coords, menu, k, psi):
    """Return psi'V^-1 psi of action k alone, to the bit what `scan_forms` writes.

    `psi` (d,) is scratch: column k of the menu, in the order of the coordinates.
    """
    inverse, form = estimate.inverse, 0.0
    for p in range(coords.size):
        psi[p] = menu[coords[p], k]
    p = 0
    while p + 3 < coords.size:
        i0, i1, i2, i3 = _four(coords, p)
        r0, r1, r2, r3 = inverse[i0], inverse[i1], inverse[i2], inverse[i3]
        u0, u1, u2, u3 = psi[p], psi[p + 1], psi[p + 2], psi[p + 3]
        s0 = 0.5 * r0[i0] * u0
        s1 = r1[i0] * u0 + 0.5 * r1[i1] * u1
        s2 = r2[i0] * u0 + r2[i1] * u1 + 0.5 * r2[i2] * u2
        s3 = r3[i0] * u0 + r3[i1] * u1 + r3[i2] * u2 + 0.5 * r3[i3] * u3
        form += (u0 * s0 + u1 * s1) + (u2 * s2 + u3 * s3)
        for q in range(0, p, 4):
            s0, s1 = _row_with_four(r0, coords, psi, q), _row_with_four(r1, coords, psi, q)
            s2, s3 = _row_with_four(r2, coords, psi, q), _row_with_four(r3, coords, psi, q)
            form += (u0 * s0 + u1 * s1) + (u2 * s2 + u3 * s3)
        p += 4
    while p < coords.size:
        row, u0 = inverse[coords[p]], psi[p]
        form += u0 * (0.5 * row[coords[p]] * u0)
        q = 0
        while q + 3 < p:
            form += u0 * _row_with_four(row, coords, psi, q)
            q += 4
        while q < p:
            form += u0 * (row[coords[q]] * psi[q])
            q += 1
        p += 1
    return 0.0 if form < 0.0 else 2.0 * form


@kernel
def _row_with_four(row, coords, psi, q):
    """Return what four coordinates from the q-th on add to a row of V^-1 psi."""
    j0, j1, j2, j3 = _four(coords, q)
    return row[j0] * psi[q] + row[j1] * psi[q + 1] + row[j2] * psi[q + 2] + row[j3] * psi[q + 3]


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
    times_within(estimate.inverse, menu[:, k], coords, out)


@rare_kernel
def write_products(x, menu, coords, out):
    """Write psi_k'x of every action to `out` (K,), with x (d,), over the task's coordinates."""
    for k in range(out.size):
        out[k] = 0.0
    p = 0
    while p + 3 < coords.size:  # in the order in which one at a time would come
        i0, i1, i2, i3 = _four(coords, p)
        w0, w1, w2, w3 = x[i0], x[i1], x[i2], x[i3]
        r0, r1, r2, r3 = menu[i0], menu[i1], menu[i2], menu[i3]
        for k in range(out.size):
            out[k] = out[k] + w0 * r0[k] + w1 * r1[k] + w2 * r2[k] + w3 * r3[k]
        p += 4
    while p < coords.size:
        w0, r0 = x[coords[p]], menu[coords[p]]
        for k in range(out.size):
            out[k] += w0 * r0[k]
        p += 1


@kernel
def product(image, menu, k, coords):
    """Return psi_k'image, image (d,), over the task's coordinates."""
    total = 0.0
    for p in range(coords.size):
        total += image[coords[p]] * menu[coords[p], k]
    return total
