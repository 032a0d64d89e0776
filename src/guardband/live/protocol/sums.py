"""What a stream has counted: one weighted Gram matrix of [psi; y], and three numbers beside it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from guardband.kernels.types import Floats, Ints, Statistic

__all__ = [
    "Sums",
    "add_sums",
    "difference",
    "empty_sums",
    "is_sound",
    "matrix_of",
    "packed_size",
    "statistic_of",
    "sums_of",
    "upper_places",
]


class Sums(NamedTuple):
    """The sums over the first n observations of a stream, or over a manifest of streams.

    W, U and the sum of w y^2 travel in one matrix: they cannot come apart, and one test of
    positive semi-definiteness checks them together.
    """

    n: int
    gram: Floats  # ((d + 1)(d + 2) / 2,) upper triangle, by rows, of sum w z z', z = [psi; y]
    surprise: float  # H = sum w (yhat^2 - 2 y yhat), yhat = psi'theta-hat before the reward
    weight: float  # sum w

    def as_json(self) -> dict[str, Any]:
        """Return what goes over the wire; float64 survives JSON exactly."""
        return {
            "n": self.n,
            "gram": self.gram.tolist(),
            "surprise": self.surprise,
            "weight": self.weight,
        }

    def as_bytes(self) -> bytes:
        """Return n, H, the sum of weights and the matrix as little-endian float64."""
        head = np.array([self.n, self.surprise, self.weight], "<f8")
        return head.tobytes() + self.gram.astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, raw: bytes) -> Sums:
        """Return what `as_bytes` wrote."""
        numbers = np.frombuffer(raw, "<f8").astype(np.float64)
        if numbers.size < 6 or _dim_of(numbers.size - 3) is None:
            raise ValueError(f"{len(raw)} bytes are not a total.")
        return cls(int(numbers[0]), numbers[3:].copy(), float(numbers[1]), float(numbers[2]))

    @property
    def sha256(self) -> str:
        """The digest of `as_bytes`, by which two copies can be compared."""
        return hashlib.sha256(self.as_bytes()).hexdigest()

    @property
    def dim(self) -> int:
        """The number of features, d."""
        dim = _dim_of(self.gram.size)
        assert dim is not None
        return dim


def is_sound(total: Sums, ridge: float) -> bool:
    """Tell whether one can compute with a sum: finite, and V = ridge I + W well above 0."""
    numbers = np.array([total.surprise, total.weight])
    if not (np.isfinite(total.gram).all() and np.isfinite(numbers).all()):
        return False
    least = np.linalg.eigvalsh(matrix_of(total)[:-1, :-1])[0]
    return bool(least >= -0.5 * ridge)


def packed_size(dim: int) -> int:
    """Return how many numbers the upper triangle of a (d + 1, d + 1) matrix has."""
    return (dim + 1) * (dim + 2) // 2


def empty_sums(dim: int) -> Sums:
    """Return the total of no observations."""
    return Sums(0, np.zeros(packed_size(dim)), 0.0, 0.0)


def matrix_of(total: Sums) -> Floats:
    """Return the whole (d + 1, d + 1) matrix."""
    size = total.dim + 1
    matrix = np.zeros((size, size))
    upper = upper_places(total.dim)
    matrix[upper] = total.gram
    matrix.T[upper] = total.gram
    return matrix


@lru_cache(maxsize=16)
def upper_places(dim: int) -> tuple[Ints, Ints]:
    """Return the rows and columns of the upper triangle of a (d + 1, d + 1) matrix."""
    rows, columns = np.triu_indices(dim + 1)
    return rows, columns


def sums_of(statistic: Statistic) -> Sums:
    """Return the total that holds the sums of a core statistic."""
    d = statistic.moment.size
    matrix = np.empty((d + 1, d + 1))
    matrix[:d, :d], matrix[:d, d], matrix[d, d] = (
        statistic.gram,
        statistic.moment,
        statistic.scalars[1],
    )
    n, _, surprise, weight = statistic.scalars.tolist()
    return Sums(int(n), matrix[upper_places(d)], surprise, weight)


def statistic_of(total: Sums) -> Statistic:
    """Return the core's statistic with the same sums."""
    matrix, d = matrix_of(total), total.dim
    scalars = np.array([float(total.n), matrix[d, d], total.surprise, total.weight])
    return Statistic(matrix[:d, :d].copy(), matrix[:d, d].copy(), scalars)


def add_sums(dim: int, totals: Iterable[Sums]) -> Sums:
    """Return the sum, added up in the order given: the same order gives the same bytes."""
    n, gram, surprise, weight = 0, np.zeros(packed_size(dim)), 0.0, 0.0
    for each in totals:
        n, gram = n + each.n, gram + each.gram
        surprise, weight = surprise + each.surprise, weight + each.weight
    return Sums(n, gram, surprise, weight)


def difference(later: Sums, earlier: Sums) -> Sums:
    """Return what was counted between two totals of one stream."""
    return Sums(
        later.n - earlier.n,
        later.gram - earlier.gram,
        later.surprise - earlier.surprise,
        later.weight - earlier.weight,
    )


def _dim_of(size: int) -> int | None:
    """Return d, if (d + 1)(d + 2) / 2 numbers are `size`."""
    dim = (math.isqrt(8 * size + 1) - 3) // 2
    return dim if dim >= 1 and packed_size(dim) == size else None
