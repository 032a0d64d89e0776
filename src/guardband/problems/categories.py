"""Categories: one-hot actions, of which only those that were played are known."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.checks import check_fraction
from guardband.problems.base import FigureSettings, NamedProblem, check_rank
from guardband.problems.noise import BernoulliRewards, RewardNoise
from guardband.problems.world import World, rank_baseline
from guardband.seeds import stream

__all__ = ["Categories"]


@dataclass(frozen=True, kw_only=True)
class Categories(NamedProblem):
    """Which of some categories to show; the reward is a click, 0 or 1.

    Action k has an indicator of its own and an intercept that all share, psi_k = (e_0 + e_k) /
    sqrt(2): what is learned about one action says little about another. Rates are evenly spaced,
    in random order; theta is the shortest that has them. Nothing is hidden.

    Parameters
    ----------
    agents
        M; all of them use all features.
    actions
        K; there is one more feature than actions.
    low, high
        The smallest and the largest rate.
    rank
        The baseline is the action of this rank, 1 = best.
    reward_std
        Clicks; or the standard deviation of Gaussian rewards in their place, or a noise model.
    seed
        Fixes the world for all trials; None draws a new one in each trial.
    """

    actions: int = 9
    low: float = 0.02
    high: float = 0.08
    rank: int = 5
    reward_std: float | RewardNoise = field(default_factory=BernoulliRewards)

    name: ClassVar[str] = "categories"
    about: ClassVar[str] = "one-hot categories and an intercept; a click or none, at small rates"
    figure = FigureSettings(ridge=1.0, noise=0.5, alpha=0.1, rounds=200_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("low", self.low)
        check_fraction("high", self.high)
        check_rank(self.rank, self.actions)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""
        return 1, self.actions, self.actions + 1

    @property
    def context_noise(self) -> float | None:
        """No context is hidden."""
        return 0.0

    @property
    def theta_length(self) -> float:  # type: ignore[override]
        """A bound on the length of the shortest theta, from the largest rate."""
        return max(self.low, self.high) * math.sqrt(2.0 * self.actions)

    def _world(self, seed: int) -> World:
        phi = np.eye(self.actions, self.actions + 1, 1)
        phi[:, 0] = 1.0
        phi /= math.sqrt(2.0)
        rates = stream(seed, "rates").permutation(np.linspace(self.low, self.high, self.actions))
        theta = np.linalg.pinv(phi) @ rates
        tasks = (tuple(range(self.actions + 1)),) * self.agents
        chosen = rank_baseline(phi[None], theta, tasks, self.rank)
        return World(phi[None], phi[None], theta, tasks, chosen, self.reward_noise)
