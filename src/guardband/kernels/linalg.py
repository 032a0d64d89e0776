"""Symmetric matrices by plain loops: in place, in a fixed order, without BLAS.

Loops beat library calls up to a dimension of about fifty, keep up with LAPACK to several hundred,
and give the same bits on every machine, whatever BLAS is installed: they run along rows, so that
they become vector instructions although every sum keeps its order.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel, rare_kernel

__all__ = ["cholesky", "copy", "dot", "invert", "least_eigenvalue", "quadratic", "rank_one", "root"]
__all__ += ["times", "times_within", "to_unit_length"]

PANEL = 8  # rows at a time: an eighth of the traffic of what they are subtracted from


@kernel
def dot(a, b):
    """Return a'b; a and b (d,)."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def root(value):
    """Return the square root; rounding may leave -1e-20 for zero, but NaN must stay NaN."""
    return 0.0 if value < 0.0 else math.sqrt(value)


@kernel
def copy(source, target):
    """Copy a matrix to another of the same shape."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@rare_kernel
def quadratic(matrix, x, index):
    """Return x'A x over the coordinates in `index`; the matrix A (d, d) is symmetric, x (d,)."""
    total, p = 0.0, 0
    while p + 3 < index.size:
        total += _four_rows(matrix, x, index, p)
        p += 4
    while p < index.size:
        i = index[p]
        row = 0.5 * matrix[i, i] * x[i]
        for q in range(p):
            row += matrix[i, index[q]] * x[index[q]]
        total += row * x[i]
        p += 1
    return 2.0 * total


@kernel
def _four_rows(matrix, x, index, p):
    """Return what four rows add to half of `quadratic`; their sums do not wait for each other."""
    i0, i1, i2, i3 = index[p], index[p + 1], index[p + 2], index[p + 3]
    x0, x1, x2, x3 = x[i0], x[i1], x[i2], x[i3]
    r0, r1 = 0.5 * matrix[i0, i0] * x0, 0.5 * matrix[i1, i1] * x1
    r2, r3 = 0.5 * matrix[i2, i2] * x2, 0.5 * matrix[i3, i3] * x3
    for q in range(p):
        j = index[q]
        value = x[j]
        r0 += matrix[i0, j] * value
        r1 += matrix[i1, j] * value
        r2 += matrix[i2, j] * value
        r3 += matrix[i3, j] * value
    r1 += matrix[i1, i0] * x0
    r2 += matrix[i2, i0] * x0 + matrix[i2, i1] * x1
    r3 += matrix[i3, i0] * x0 + matrix[i3, i1] * x1 + matrix[i3, i2] * x2
    return (r0 * x0 + r1 * x1) + (r2 * x2 + r3 * x3)


@kernel
def times(matrix, x, image):
    """Write A x to `image` (d,), with x (d,) and a matrix A (d, d) that is symmetric to the bit."""
    d, q = x.size, 0
    for i in range(d):
        image[i] = 0.0
    while q + 3 < d:  # four rows at a time, in the order in which one at a time would come
        x0, x1, x2, x3 = x[q], x[q + 1], x[q + 2], x[q + 3]
        r0, r1, r2, r3 = matrix[q], matrix[q + 1], matrix[q + 2], matrix[q + 3]
        for i in range(d):
            image[i] = image[i] + r0[i] * x0 + r1[i] * x1 + r2[i] * x2 + r3[i] * x3
        q += 4
    while q < d:
        x0, r0 = x[q], matrix[q]
        for i in range(d):
            image[i] += r0[i] * x0
        q += 1


@rare_kernel  # it has many callers: inlined, it would be compiled for each of them
def times_within(matrix, x, index, image):
    """Do what `times` does over the coordinates in `index` alone."""
    if index.size == image.size:
        times(matrix, x, image)
        return
    for p in range(index.size):
        total = 0.0
        for q in range(index.size):
            total += matrix[index[p], index[q]] * x[index[q]]
        image[index[p]] = total


@kernel
def rank_one(inverse, x, weight, scaled):
    """Turn V^-1 (d, d) into (V + w x x')^-1 in place; return 1 + w x'V^-1 x, the growth of det V.

    (V + w x x')^-1 = V^-1 - w V^-1 x x'V^-1 / (1 + w x'V^-1 x), with x (d,). `scaled` (d,) receives
    V^-1 x as it was before.
    """
    times(inverse, x, scaled)
    gain = 1.0 + weight * dot(x, scaled)
    factor = weight / gain
    for i in range(x.size):
        row, own = inverse[i], scaled[i]
        for j in range(x.size):
            # The product of the two entries comes first: the matrix stays symmetric to the bit.
            row[j] -= factor * (own * scaled[j])
    return gain


@kernel
def _subtract(target, i, start, stop, source, weights, first, last):
    """Subtract weights[q, i] source[q] from target[i] for q from `first` to before `last`.

    Of all rows, the columns from `start` to before `stop` are meant; the matrices are (d, d).
    """
    row, q = target[i, start:stop], first
    while q + 7 < last:  # eight rows at a time, in the order in which one at a time would come
        a0, a1, a2, a3 = weights[q, i], weights[q + 1, i], weights[q + 2, i], weights[q + 3, i]
        a4, a5, a6, a7 = weights[q + 4, i], weights[q + 5, i], weights[q + 6, i], weights[q + 7, i]
        r0, r1 = source[q, start:stop], source[q + 1, start:stop]
        r2, r3 = source[q + 2, start:stop], source[q + 3, start:stop]
        r4, r5 = source[q + 4, start:stop], source[q + 5, start:stop]
        r6, r7 = source[q + 6, start:stop], source[q + 7, start:stop]
        for j in range(row.size):
            left = row[j] - a0 * r0[j] - a1 * r1[j] - a2 * r2[j] - a3 * r3[j]
            row[j] = left - a4 * r4[j] - a5 * r5[j] - a6 * r6[j] - a7 * r7[j]
        q += 8
    while q < last:
        a0, r0 = weights[q, i], source[q, start:stop]
        for j in range(row.size):
            row[j] -= a0 * r0[j]
        q += 1


@kernel
def _divide(row, start, stop, by):
    """Divide the entries from `start` to before `stop` of a row."""
    part = row[start:stop]
    for j in range(part.size):
        part[j] /= by


@rare_kernel
def cholesky(matrix):
    """Turn the upper triangle of a positive definite matrix A (d, d) into U, A = U'U.

    Returns log det A = 2 sum log U_jj.
    """
    d, logdet = matrix.shape[0], 0.0
    for start in range(0, d, PANEL):
        stop = min(start + PANEL, d)
        for i in range(start, d):
            _subtract(matrix, i, i, d, matrix, matrix, start, min(i, stop))
            if i < stop:
                pivot = math.sqrt(matrix[i, i])
                logdet += 2.0 * math.log(pivot)
                _divide(matrix[i], i, d, pivot)
    return logdet


@rare_kernel
def invert(matrix, inverse):
    """Write the inverse of a positive definite `matrix` to `inverse`, both (d, d); return log det.

    A^-1 = Z'Z with Z = U^-T, A = U'U. `matrix` is overwritten; of what it holds, the upper triangle
    is read.
    """
    d = matrix.shape[0]
    logdet = cholesky(matrix)
    for i in range(d):  # Z, the lower triangle of `inverse`, from U'Z = I
        for j in range(d):
            inverse[i, j] = 1.0 if i == j else 0.0
    for start in range(0, d, PANEL):
        stop = min(start + PANEL, d)
        for i in range(start, d):
            _subtract(inverse, i, 0, min(i, stop), inverse, matrix, start, min(i, stop))
            if i < stop:
                _divide(inverse[i], 0, i + 1, matrix[i, i])
    for i in range(d):  # -Z'Z, in the lower triangle of `matrix`
        for j in range(i + 1):
            matrix[i, j] = 0.0
    for start in range(0, d, PANEL):
        stop = min(start + PANEL, d)
        for i in range(stop):
            _subtract(matrix, i, 0, i + 1, inverse, inverse, max(start, i), stop)
    for i in range(d):
        for j in range(i + 1):
            inverse[i, j] = -matrix[i, j]
            inverse[j, i] = -matrix[i, j]
    return logdet


@kernel
def least_eigenvalue(matrix, squared, image):
    """Return the smallest eigenvalue of a positive definite `matrix` (d, d).

    Householder reduction to tridiagonal form, then bisection with Sturm counts down to the last
    bit: the error is a few units in the last place of the largest eigenvalue. The matrix is
    overwritten; `squared` and `image` (d,) are scratch.
    """
    d = matrix.shape[0]
    if d == 1:
        return matrix[0, 0]
    if d == 2:
        half = 0.5 * (matrix[0, 0] - matrix[1, 1])
        off = matrix[1, 0]
        largest = 0.5 * (matrix[0, 0] + matrix[1, 1]) + math.sqrt(half * half + off * off)
        return (matrix[0, 0] * matrix[1, 1] - off * off) / largest
    _tridiagonalise(matrix, squared, image)
    low, high = 0.0, matrix[0, 0]
    for i in range(1, d):
        high = min(high, matrix[i, i])
    while True:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            return middle
        if _any_eigenvalue_below(matrix, squared, middle):
            high = middle
        else:
            low = middle


@kernel
def _tridiagonalise(matrix, squared, image):
    """Reduce the lower triangle of a symmetric matrix (d, d) to tridiagonal form, by reflections.

    Step k turns A into H A H, H = I - 2 v v' / v'v, so that column k has one entry below the
    diagonal. The diagonal stays in `matrix`; squared[i] is the square of the entry below diagonal
    entry i, and `image` (d,) is scratch.
    """
    d = matrix.shape[0]
    for k in range(d - 1):
        norm = 0.0
        for i in range(k + 1, d):
            norm += matrix[i, k] * matrix[i, k]
        squared[k] = norm
        rest = norm - matrix[k + 1, k] * matrix[k + 1, k]
        if k == d - 2 or rest <= 0.0:
            squared[k] = matrix[k + 1, k] * matrix[k + 1, k]
            continue
        head = matrix[k + 1, k]
        sign = 1.0 if head >= 0.0 else -1.0
        matrix[k + 1, k] = head + sign * math.sqrt(norm)  # column k now holds the reflector
        scale = 2.0 / (rest + matrix[k + 1, k] * matrix[k + 1, k])
        for i in range(k + 1, d):
            total = 0.0
            for j in range(k + 1, i + 1):
                total += matrix[i, j] * matrix[j, k]
            for j in range(i + 1, d):
                total += matrix[j, i] * matrix[j, k]
            image[i] = scale * total
        share = 0.0
        for i in range(k + 1, d):
            share += image[i] * matrix[i, k]
        share *= 0.5 * scale
        for i in range(k + 1, d):
            image[i] -= share * matrix[i, k]
        for i in range(k + 1, d):
            for j in range(k + 1, i + 1):
                matrix[i, j] -= image[i] * matrix[j, k] + matrix[i, k] * image[j]


@kernel
def _any_eigenvalue_below(matrix, squared, x):
    """Tell whether the tridiagonal matrix has an eigenvalue below x.

    It has one where a pivot q_i = a_i - x - b_{i-1}^2 / q_{i-1} is negative, with the diagonal a of
    `matrix` (d, d) and the squares b^2 (d,) of what lies below it.
    """
    pivot = matrix[0, 0] - x
    for i in range(1, matrix.shape[0]):
        if pivot < 0.0:
            return True
        # A zero pivot is the limit from above: the next one is then minus infinity, or free.
        pivot = matrix[i, i] - x - (squared[i - 1] / pivot if pivot > 0.0 else math.inf)
        if squared[i - 1] == 0.0:
            pivot = matrix[i, i] - x
    return pivot < 0.0


@kernel
def to_unit_length(vectors):
    """Scale every row of a (n, m, d) array to length one, in place."""
    for i in range(vectors.shape[0]):
        for j in range(vectors.shape[1]):
            norm = math.sqrt(dot(vectors[i, j], vectors[i, j]))
            for k in range(vectors.shape[2]):
                vectors[i, j, k] /= norm
