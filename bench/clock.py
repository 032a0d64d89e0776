"""How things are timed, and what this core could do at best."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

REPEATS = 7


def best_of(work: Callable[[], object], count: int, repeats: int = REPEATS) -> float:
    """Return microseconds of CPU time per unit: the best of several runs of `count` units."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return 1e6 * best / count


def matrix_rate() -> float:
    """Return flops per microsecond of a matrix product on one thread: this core's measured top."""
    n = 256
    a, b = np.random.default_rng(0).normal(size=(2, n, n))
    out = np.empty((n, n))

    def work() -> None:
        for _ in range(20):
            np.matmul(a, b, out=out)

    return 2 * n**3 / best_of(work, 20)


def root_rate() -> float:
    """Return square roots per microsecond in vector code."""
    values = np.random.default_rng(0).random(4096)
    out = np.empty_like(values)

    def work() -> None:
        for _ in range(500):
            np.sqrt(values, out=out)

    return 4096 / best_of(work, 500)


def limit(actions: int, dim: int, flops: float, roots: float) -> float:
    """Return the microseconds of one optimistic round if it ran at the measured top."""
    work = actions * (dim * dim + 4 * dim + 3) + 10 * dim * dim
    return work / flops + actions / roots
