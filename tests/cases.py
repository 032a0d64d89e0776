"""Small problems on which every branch of the paper's algorithms is taken.

Nothing here comes from the package: the draws feed the reference and the package alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from reference import naive

S3 = (1.0, 0.4, 1.1)
S5 = (1.0, 0.4, 1.1, 0.8, 1.0)


class Case(NamedTuple):
    phi: np.ndarray
    psi: np.ndarray
    theta: np.ndarray
    tasks: list[list[int]]
    baseline: np.ndarray
    draws: dict[str, np.ndarray]
    algorithm: str
    settings: dict[str, Any]

    def reference(self, **changes: Any) -> naive.Trace:
        return naive.simulate(
            self.phi,
            self.psi,
            self.theta,
            self.tasks,
            self.baseline,
            algorithm=self.algorithm,
            **{"alpha": 0.3, **self.settings, **changes},
            **self.draws,
        )


def draw(
    seed: int,
    *,
    scale: tuple[float, ...],
    rank: int,
    algorithm: str,
    settings: dict[str, Any],
    K: int = 5,
    d: int = 2,
    M: int = 2,
    T: int = 300,
    sd: float = 0.05,
    rho: tuple[float, float] = (0.3, 0.5),
    shift: float = 0.0,
) -> Case:
    """Scaled psi in some contexts empties the pruned set there; a shift makes rewards negative."""
    rng, C = np.random.default_rng(seed), len(scale)
    phi = np.abs(rng.normal(size=(C, K, d)))
    phi *= rng.uniform(0.15, 0.8, size=(C, K, 1)) / np.linalg.norm(phi, axis=2, keepdims=True)
    phi[0] -= shift / np.sqrt(d)
    psi = phi * np.array(scale)[:, None, None] * rng.uniform(0.9, 1.1, size=(C, K, 1))
    theta = rng.uniform(0.4, 0.9, size=d)
    theta *= 0.95 / np.linalg.norm(theta)
    contexts = rng.integers(C, size=T)
    reward_noise = sd * rng.normal(size=(T, M))
    rhos = rng.uniform(*rho, size=T)
    zeta = rng.normal(size=(T, d))
    zeta /= np.linalg.norm(zeta, axis=1, keepdims=True)
    draws = {
        "contexts": contexts,
        "reward_noise": reward_noise,
        "rho": rhos,
        "zeta": zeta,
        "coin": rng.random((T, M)),
    }
    tasks = [[k for k in range(d) if k != m - 1] for m in range(M)]
    baseline = naive.baseline_by_rank(phi, theta, tasks, rank)
    if settings.get("gate") == "gap":
        values = np.array([phi[..., task] @ theta[task] for task in tasks])
        reward = np.take_along_axis(values, baseline[..., None], axis=2)[..., 0]
        gap = values.max(axis=2) - reward - 0.1
        gap[:, 3] = -2.0  # a context whose gate can never open
        settings = {**settings, "gap": gap}
    return Case(phi, psi, theta, tasks, baseline, draws, algorithm, settings)


def small(noise: float, context_noise: float, ridge: float, **more: Any) -> dict[str, Any]:
    return {"noise": noise, "context_noise": context_noise, "ridge": ridge, **more}


CASES: dict[str, Case] = {
    "printed gate, alpha per task": draw(
        1,
        scale=S3,
        rank=1,
        algorithm="disc-ucb",
        settings=small(0.02, 0.02, 0.02, alpha=(0.7, 0.5)),
    ),
    "gap gate, coin": draw(
        1,
        scale=S5,
        shift=0.4,
        rank=3,
        algorithm="disc-ucb",
        settings=small(0.03, 0.01, 0.02, gate="gap", mix="action", alpha=0.6, delta=0.05),
    ),
    "no gate, other bounds": draw(
        1,
        scale=S5,
        shift=0.4,
        K=12,
        rho=(0.1, 0.2),
        rank=6,
        algorithm="disc-ucb",
        settings=small(
            0.02, 0.02, 0.3, gate="none", alpha=0.8, theta_bound=0.96, feature_bound=0.97
        ),
    ),
    "unknown baseline": draw(
        0,
        scale=(1.0, 0.25, 1.1),
        rank=2,
        algorithm="disc-ucb-unknown",
        settings=small(0.02, 0.02, 0.05, alpha=0.8, reward_floor=0.6),
    ),
    "unknown baseline, gap gate": draw(
        1,
        scale=S5,
        shift=0.4,
        rank=3,
        algorithm="disc-ucb-unknown",
        settings=small(0.03, 0.01, 0.02, gate="gap", alpha=0.6, reward_floor=0.3, delta=0.05),
    ),
    "unknown baseline, no gate, coin": draw(
        0,
        scale=S5,
        rank=2,
        algorithm="disc-ucb-unknown",
        settings=small(0.06, 0.06, 0.02, gate="none", mix="action", alpha=0.5),
    ),
    "six agents in six dimensions": draw(
        2,
        scale=S3,
        d=6,
        K=8,
        M=6,
        rank=3,
        algorithm="disc-ucb",
        settings=small(0.05, 0.02, 0.01, gate="none", alpha=0.5, delta=0.01),
    ),
    "unconstrained": draw(
        0, scale=S3, d=3, M=3, sd=0.3, rank=1, algorithm="dis-lin-ucb", settings={"ridge": 2.0}
    ),
    "separate learners": draw(
        1,
        scale=S3,
        rank=2,
        algorithm="disc-ucb",
        settings=small(0.02, 0.02, 0.02, share=False, alpha=0.6),
    ),
}
