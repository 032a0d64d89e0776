"""The paper's synthetic problems."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from guardband.checks import check_not_negative, check_whole
from guardband.core.types import Floats
from guardband.problems.noise import GaussianNoise, RewardNoise
from guardband.problems.world import World, rank_baseline
from guardband.seeds import stream

__all__ = ["SyntheticA"]


@dataclass(frozen=True, kw_only=True)
class SyntheticA:
    """Unit vectors in the plane, one action per reward band of width .025 (Figs. 1a, 1b, 2a).

    Parameters
    ----------
    agents
        M; masks cycle over both features, the first, the second.
    baseline
        The rank of the baseline's action, 1 = best.
    psi_noise
        The standard deviation of psi - phi, drawn once per context and action.
    noise
        The reward noise.
    contexts
        C.
    seed
        Fixes the world for all trials; None draws a new one in each trial.
    """

    agents: int = 1
    baseline: int = 10
    psi_noise: float = 2.5e-3
    noise: RewardNoise = field(default=GaussianNoise(1e-3))
    contexts: int = 100
    seed: int | None = None

    name: ClassVar[str] = "synthetic-a"
    theta: ClassVar[tuple[float, ...]] = (0.9, 0.4)
    masks: ClassVar[tuple[tuple[int, ...], ...]] = ((0, 1), (0,), (1,))
    actions: ClassVar[int] = 40

    def __post_init__(self) -> None:
        check_whole("agents", self.agents)
        check_whole("contexts", self.contexts)
        check_not_negative("psi_noise", self.psi_noise)
        if not 1 <= check_whole("baseline", self.baseline) <= self.actions:
            raise ValueError(
                f"baseline is rank {self.baseline}, but there are {self.actions} actions."
            )
        if isinstance(self.noise, int | float):
            object.__setattr__(self, "noise", GaussianNoise(self.noise))

    def build(self, seed: int) -> World:
        """Return the world of a trial."""
        seed = seed if self.seed is None else self.seed
        theta = np.array(self.theta)
        phi = _shuffled(self._features(stream(seed, "features")), stream(seed, "order"))
        psi = phi + self.psi_noise * stream(seed, "psi").standard_normal(phi.shape)
        tasks = tuple(self.masks[m % len(self.masks)] for m in range(self.agents))
        return World(
            phi, psi, theta, tasks, rank_baseline(phi, theta, tasks, self.baseline), self.noise
        )

    def _features(self, rng: Generator) -> Floats:
        """Draw a uniform direction among those whose reward lies in the action's band."""
        length = math.hypot(*self.theta)
        top = 1.0 - 0.025 * np.arange(self.actions)
        near = np.arccos(np.minimum(top / length, 1.0))
        far = np.arccos((top - 0.025) / length)
        shape = (self.contexts, self.actions)
        turn = (near + (far - near) * rng.random(shape)) * rng.choice([-1.0, 1.0], shape)
        angle = math.atan2(self.theta[1], self.theta[0]) + turn
        return np.stack([np.cos(angle), np.sin(angle)], axis=2)


def _shuffled(features: Floats, rng: Generator) -> Floats:
    """Permute the actions of every context, so that no index betrays a rank."""
    order = rng.permuted(np.tile(np.arange(features.shape[1]), (features.shape[0], 1)), axis=1)
    return np.take_along_axis(features, order[:, :, None], axis=1)
