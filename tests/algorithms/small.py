"""A small problem for all rivals, with draws that feed the reference and the package alike."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from reference import naive, rivals

import guardband as gb

SIGHTS = ("hidden", "observed", "observed-after")


class Small(NamedTuple):
    phi: np.ndarray
    psi: np.ndarray
    theta: np.ndarray
    tasks: list[list[int]]
    baseline: np.ndarray
    draws: rivals.Draws

    def run(self, algorithm: Any, trace: bool = True) -> gb.Results:
        draws = self.draws
        problem = gb.Tabular(
            self.phi, self.psi, self.theta, tasks=self.tasks, baseline=self.baseline
        )
        replay = gb.Replay(
            draws.contexts,
            draws.noise,
            draws.rho,
            draws.zeta,
            normal=draws.normal,
            order=draws.order,
            coin=draws.coin,
        )
        return gb.simulate(problem, algorithm, replay=replay, trace=trace, alpha=0.5)

    def tables(self, context: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What agents choose by, learn from and earn."""
        choose = self.phi if context == "observed" else self.psi
        return choose, self.psi if context == "hidden" else self.phi, self.phi


def small(
    seed: int = 1,
    *,
    d: int = 2,
    K: int = 6,
    C: int = 4,
    T: int = 250,
    tasks: list[list[int]] | None = None,
    sd: float = 0.05,
    spread: float = 0.03,
    rank: int = 3,
    rho: tuple[float, float] = (0.2, 0.5),
) -> Small:
    """Features of length below 1 with positive rewards; psi is off by `spread`."""
    rng = np.random.default_rng(seed)
    phi = np.abs(rng.normal(size=(C, K, d)))
    phi *= rng.uniform(0.3, 0.9, (C, K, 1)) / np.linalg.norm(phi, axis=2, keepdims=True)
    psi = phi + spread * rng.normal(size=phi.shape)
    theta = rng.uniform(0.4, 0.9, d)
    theta *= 0.95 / np.linalg.norm(theta)
    tasks = [list(range(d)), [0], list(range(1, d))] if tasks is None else tasks
    M = len(tasks)
    zeta = rng.normal(size=(T, d))
    zeta /= np.linalg.norm(zeta, axis=1, keepdims=True)
    draws = rivals.Draws(
        contexts=rng.integers(C, size=T),
        noise=sd * rng.normal(size=(T, M)),
        rho=rng.uniform(*rho, T),
        zeta=zeta,
        normal=rng.normal(size=(T, M, d)),
        order=np.argsort(rng.random((T, M)), axis=1),
        coin=rng.random((T, M)),
    )
    baseline = naive.baseline_by_rank(phi, theta, tasks, rank)
    return Small(phi, psi, theta, tasks, baseline, draws)


def agree(results: gb.Results, ref: rivals.Trace) -> None:
    got = results.trace
    assert_array_equal(got.actions, ref.actions)
    assert_array_equal(got.conservative, ref.conservative)
    assert_allclose(got.rewards, ref.rewards, rtol=1e-12, atol=1e-14)
    assert got.sync_rounds.tolist() == ref.sync_rounds


def sigma_of(context: str, noise: float, context_noise: float) -> float:
    return math.hypot(noise, context_noise) if context == "hidden" else noise
