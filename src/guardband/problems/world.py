"""The truth of one trial, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from guardband.core.types import Floats, Ints
from guardband.facts import Facts
from guardband.problems.noise import RewardNoise

__all__ = ["Problem", "World", "rank_baseline"]


@dataclass(frozen=True, eq=False)
class World:
    """A finite world: true and expected features per context and action, and the parameter.

    Parameters
    ----------
    phi, psi
        (C, K, d): true features, and the expected features that agents are given.
    theta
        (d,): the parameter that nobody knows.
    tasks
        One tuple of feature indices per agent.
    baseline
        (M, C): the baseline's action.
    noise
        The reward noise.
    """

    phi: Floats
    psi: Floats
    theta: Floats
    tasks: tuple[tuple[int, ...], ...]
    baseline: Ints
    noise: RewardNoise

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return self.theta.size

    @cached_property
    def menu(self) -> Floats:
        """(C, d, K): the expected features as the kernels read them, actions innermost."""
        return np.ascontiguousarray(self.psi.transpose(0, 2, 1))

    @cached_property
    def groups(self) -> tuple[tuple[tuple[int, ...], ...], Ints]:
        """The distinct tasks, and which of them each agent has."""
        distinct = tuple(dict.fromkeys(self.tasks))
        return distinct, np.array([distinct.index(task) for task in self.tasks])

    @cached_property
    def expected(self) -> Floats:
        """(G, C, K): psi'theta of every distinct task."""
        return self._rewards(self.psi)

    @cached_property
    def realised(self) -> Floats:
        """(G, C, K): phi'theta of every distinct task."""
        return self._rewards(self.phi)

    @cached_property
    def best(self) -> Ints:
        """(G, C): the action with the largest psi'theta; the lowest index on ties."""
        return self.expected.argmax(axis=2)

    @cached_property
    def baseline_rewards(self) -> Floats:
        """(M, C): the realised reward of the baseline, phi_b'theta."""
        rewards = self.realised[self.groups[1]]
        return np.take_along_axis(rewards, self.baseline[:, :, None], axis=2)[:, :, 0]

    def facts(self, horizon: int) -> Facts:
        """Return what algorithms may be told; the gap is for those named oracle."""
        group = self.groups[1]
        top = np.take_along_axis(self.realised, self.best[:, :, None], axis=2)[:, :, 0]
        high = float(self.baseline_rewards.max())
        return Facts(
            tasks=self.tasks,
            dim=self.dim,
            horizon=horizon,
            reward_low=float(self.baseline_rewards.min()),
            reward_high=high,
            gap=top[group] - high,
        )

    def _rewards(self, features: Floats) -> Floats:
        rewards = []
        for task in self.groups[0]:
            masked = np.zeros_like(self.theta)
            masked[list(task)] = self.theta[list(task)]
            rewards.append(features @ masked)
        return np.array(rewards)


class Problem(Protocol):
    """What the simulator asks of a problem."""

    @property
    def name(self) -> str:
        """The name in tables and on the command line."""

    def build(self, seed: int) -> World:
        """Return the world of a trial; the same seed gives the same world."""


def rank_baseline(
    phi: Floats, theta: Floats, tasks: tuple[tuple[int, ...], ...], rank: int
) -> Ints:
    """Return (M, C): the rank-th best action by masked phi'theta (1 = best, ties to the lowest)."""
    chosen = {}
    for task in dict.fromkeys(tasks):
        masked = np.zeros_like(theta)
        masked[list(task)] = theta[list(task)]
        order = np.argsort(-(phi @ masked), axis=1, kind="stable")
        chosen[task] = order[:, rank - 1]
    return np.array([chosen[task] for task in tasks], dtype=np.int64)
