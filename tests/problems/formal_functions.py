"""A small formal problem in functions: features, action sets and distributions that change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import guardband as gb

ROUNDS, ALPHA = 200, 0.6
THETA = np.array([0.5, 0.3, 0.4, 0.2, 0.45])
TASKS = [[0, 1, 2, 3, 4], [0, 2, 3], [1, 4], [3]]
HEADS = np.random.default_rng(3).uniform(0.1, 0.6, (4, 9, 5))
BOUNDS = {"noise": 0.01, "context_noise": 0.01, "ridge": 0.01, "theta_bound": 0.9}
NEED_CONTEXTS = ("fed-pe", "dis-lsb")  # and their variants


def phi(agent: int, action: str, context: np.ndarray) -> list[float]:
    """Differs from agent to agent, and bends in the context."""
    return (HEADS[agent, int(action[1:])] * np.tanh(0.4 + context)).tolist()


def affine(agent: int, action: str, context: np.ndarray) -> np.ndarray:
    return HEADS[agent, int(action[1:])] * (0.7 + 0.2 * context)


def actions(agent: int, round: int) -> list[str]:
    """Return sets that differ in agents, in rounds, and in size."""
    return [f"a{(k + round) % 9}" for k in range(2 + agent + round % 3)]


def baseline(agent: int, round: int, psi: np.ndarray) -> int:
    return (agent + round) % len(psi)


def drifting(t: int) -> gb.Discrete:
    """Contexts and probabilities drift; one of them may be impossible."""
    n = 2 + t % 4
    contexts = np.array([[np.sin(0.1 * t + j + i) for i in range(5)] for j in range(n)])
    weights = np.arange(n, dtype=float) + (t % 2)
    return gb.Discrete(0.4 * contexts, weights / weights.sum())


def normal(t: int) -> gb.Gaussian:
    return gb.Gaussian(0.3 * np.sin(0.05 * t + np.arange(5)), 0.02 * (np.eye(5) + 0.5))


@dataclass
class Lamps:
    """A distribution that can be drawn from, and no more."""

    level: float

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.exponential(self.level, (n, 5))
