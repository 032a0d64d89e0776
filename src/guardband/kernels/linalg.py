"""Small symmetric matrices by plain loops: in place, in a fixed order, without BLAS.

Loops beat library calls up to a dimension of about twenty, and give the same bits on every
machine with the same instruction set, whatever BLAS is installed.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel

__all__ = ["cholesky", "copy", "dot", "invert", "least_eigenvalue", "quadratic", "rank_one", "root"]
__all__ += ["to_unit_length"]


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


@kernel
def quadratic(matrix, x, index):
    """Return x'A x over the coordinates in `index`; the matrix A (d, d) is symmetric, x (d,)."""
    total = 0.0
    for p in range(index.size):
        i = index[p]
        row = 0.5 * matrix[i, i] * x[i]
        for q in range(p):
            j = index[q]
            row += matrix[i, j] * x[j]
        total += row * x[i]
    return 2.0 * total


@kernel
def rank_one(inverse, x, weight, scaled):
    """Turn V^-1 (d, d) into (V + w x x')^-1 in place; return 1 + w x'V^-1 x, the growth of det V.

    (V + w x x')^-1 = V^-1 - w V^-1 x x'V^-1 / (1 + w x'V^-1 x), with x (d,). `scaled` (d,) receives
    V^-1 x as it was before.
    """
    d = x.size
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += inverse[i, j] * x[j]
        scaled[i] = total
    gain = 1.0 + weight * dot(x, scaled)
    factor = weight / gain
    for i in range(d):
        for j in range(d):
            # The product of the two entries comes first: the matrix stays symmetric to the bit.
            inverse[i, j] -= factor * (scaled[i] * scaled[j])
    return gain


@kernel
def cholesky(matrix):
    """Turn the lower triangle of a positive definite matrix A (d, d) into L, A = L L'.

    Returns log det A = 2 sum log L_jj.
    """
    d = matrix.shape[0]
    logdet = 0.0
    for j in range(d):
        for k in range(j):
            factor = matrix[j, k]
            for i in range(j, d):
                matrix[i, j] -= factor * matrix[i, k]
        pivot = math.sqrt(matrix[j, j])
        logdet += 2.0 * math.log(pivot)
        for i in range(j, d):
            matrix[i, j] /= pivot
    return logdet


@kernel
def invert(matrix, inverse):
    """Write the inverse of a positive definite `matrix` to `inverse`, both (d, d); return log det.

    A^-1 = L^-T L^-1 for A = L L'. `matrix` is overwritten by L and then by L^-1.
    """
    d = matrix.shape[0]
    logdet = cholesky(matrix)
    for j in range(d):  # the lower triangle becomes its own inverse, column by column
        matrix[j, j] = 1.0 / matrix[j, j]
        for i in range(j + 1, d):
            total = 0.0
            for k in range(j, i):
                total += matrix[i, k] * matrix[k, j]
            matrix[i, j] = -total / matrix[i, i]
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, d):
                total += matrix[k, i] * matrix[k, j]
            inverse[i, j] = total
            inverse[j, i] = total
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
