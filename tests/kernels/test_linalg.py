"""Small matrices by loops, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from guardband.kernels.linalg import dot, invert, least_eigenvalue, rank_one, times


def positive_definite(seed: int, d: int, spread: float) -> np.ndarray:
    """Return a matrix whose eigenvalues span `spread` powers of ten."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    values = 10.0 ** rng.uniform(-spread / 2, spread / 2, d)
    matrix = basis * values @ basis.T
    return (matrix + matrix.T) / 2


matrices = st.builds(
    positive_definite, st.integers(0, 10**6), st.integers(1, 12), st.floats(0.0, 8.0)
)


@given(matrices)
def test_invert(matrix: np.ndarray) -> None:
    inverse = np.empty_like(matrix)
    logdet = invert(matrix.copy(), inverse)
    condition = np.linalg.cond(matrix)
    assert_allclose(inverse @ matrix, np.eye(len(matrix)), atol=1e-14 * condition * len(matrix))
    assert_array_equal(inverse, inverse.T)
    assert_allclose(logdet, np.linalg.slogdet(matrix)[1], atol=1e-13 * condition + 1e-12)


def inverted_one_by_one(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the inverse and log det by the sums that define them, one term after the other."""
    d = len(matrix)
    upper, lower, logdet = np.zeros((d, d)), np.zeros((d, d)), 0.0
    for i in range(d):
        for j in range(i, d):
            left = matrix[i, j]
            for q in range(i):
                left -= upper[q, i] * upper[q, j]
            upper[i, j] = left
        pivot = np.sqrt(upper[i, i])
        logdet += 2.0 * np.log(pivot)
        upper[i, i:] /= pivot
    for i in range(d):
        for j in range(i + 1):
            left = 1.0 if i == j else 0.0
            for q in range(j, i):
                left -= upper[q, i] * lower[q, j]
            lower[i, j] = left / upper[i, i]
    inverse = np.zeros((d, d))
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for q in range(i, d):
                total += lower[q, i] * lower[q, j]
            inverse[i, j] = inverse[j, i] = total
    return inverse, float(logdet)


@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 16, 17, 31, 50])
def test_rows_taken_together_give_the_bits_of_one_by_one(d: int) -> None:
    matrix = positive_definite(d, d, 6.0)
    expected, logdet = inverted_one_by_one(matrix)
    inverse, x, image = np.empty((d, d)), np.random.default_rng(d).normal(size=d), np.empty(d)
    upper = np.triu(matrix) + np.tril(np.full((d, d), np.nan), -1)  # the lower one is not read
    assert_allclose(invert(upper, inverse), logdet, rtol=1e-15, atol=1e-13)  # two logarithms
    assert_array_equal(inverse, expected)
    times(inverse, x, image)
    assert_array_equal(image, [sum(inverse[i, j] * x[j] for j in range(d)) for i in range(d)])


@pytest.mark.parametrize("d", [128, 200])
def test_invert_a_large_matrix(d: int) -> None:
    matrix, inverse = positive_definite(d, d, 2.0), np.empty((d, d))
    logdet = invert(matrix.copy(), inverse)
    assert_allclose(inverse, np.linalg.inv(matrix), atol=1e-12)
    assert_allclose(logdet, np.linalg.slogdet(matrix)[1], rtol=1e-12)


@given(matrices)
def test_least_eigenvalue(matrix: np.ndarray) -> None:
    d = len(matrix)
    got = least_eigenvalue(matrix.copy(), np.empty(d), np.empty(d))
    values = np.linalg.eigvalsh(matrix)
    assert abs(got - values[0]) <= 1e-14 * d * values[-1]


@pytest.mark.parametrize("d", [3, 5, 9])
def test_least_eigenvalue_of_matrices_with_zeros(d: int) -> None:
    for matrix in (np.eye(d), np.diag(np.arange(1.0, d + 1)), np.eye(d) + np.ones((d, d))):
        got = least_eigenvalue(matrix.copy(), np.empty(d), np.empty(d))
        assert_allclose(got, 1.0, rtol=1e-14)


@given(matrices, st.floats(0.01, 100.0))
def test_rank_one(matrix: np.ndarray, weight: float) -> None:
    d = len(matrix)
    x = np.random.default_rng(d).normal(size=d)
    inverse = np.linalg.inv(matrix)
    inverse = (inverse + inverse.T) / 2
    before, scaled = inverse.copy(), np.empty(d)
    gain = rank_one(inverse, x, weight, scaled)
    assert_allclose(gain, 1.0 + weight * x @ before @ x, rtol=1e-10)
    assert_allclose(scaled, before @ x, rtol=1e-8, atol=1e-12 * abs(before).max())
    after = matrix + weight * np.outer(x, x)
    assert_allclose(inverse @ after, np.eye(d), atol=1e-12 * np.linalg.cond(matrix) * (1 + gain))
    assert_array_equal(inverse, inverse.T)


def test_dot() -> None:
    assert dot(np.array([1.0, 2.0, 3.0]), np.array([4.0, -5.0, 6.0])) == 12.0
