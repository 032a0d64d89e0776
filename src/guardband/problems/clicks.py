"""Clicks: rewards 0 or 1 at small rates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.checks import check_fraction
from guardband.problems.base import FigureSettings, NamedProblem, check_rank
from guardband.problems.noise import BernoulliRewards, RewardNoise
from guardband.problems.world import World, rank_baseline
from guardband.seeds import stream

__all__ = ["Clicks"]


@dataclass(frozen=True, kw_only=True)
class Clicks(NamedProblem):
    """Which advert to show to which segment of visitors; the reward is a click, 0 or 1.

    Features are sqrt(|N| of the segment times |N| of the advert)/2 plus U[0, 1]/2 in every
    coordinate, over the length of the longest; theta is |N|^1.5, scaled to the rate. The segment
    is seen, and nothing else is hidden: psi = phi.

    Parameters
    ----------
    agents
        M; all of them use all features.
    segments, ads, dim
        C, K and d.
    rate
        The median over segments of the best advert's click rate; less where theta would be longer
        than 1.
    rank
        The baseline is the advert of this rank, 1 = best, in each segment.
    reward_std
        Clicks; or the standard deviation of Gaussian rewards in their place, or a noise model.
    seed
        Fixes the world for all trials; None draws a new one in each trial.
    """

    segments: int = 20
    ads: int = 10
    dim: int = 8
    rate: float = 0.045
    rank: int = 5
    reward_std: float | RewardNoise = field(default_factory=BernoulliRewards)

    name: ClassVar[str] = "clicks"
    about: ClassVar[str] = "adverts for segments of visitors; a click or none, at small rates"
    figure = FigureSettings(ridge=1.0, noise=0.5, alpha=0.2, rounds=1_000_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("rate", self.rate)
        check_rank(self.rank, self.ads)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""
        return self.segments, self.ads, self.dim

    @property
    def context_noise(self) -> float | None:
        """No context is hidden."""
        return 0.0

    def _world(self, seed: int) -> World:
        rng = stream(seed, "features")
        segments = np.abs(rng.standard_normal((self.segments, 1, self.dim)))
        ads = np.abs(rng.standard_normal((1, self.ads, self.dim)))
        phi = 0.5 * np.sqrt(segments * ads) + 0.5 * rng.random(self.shape)
        phi /= np.linalg.norm(phi, axis=2).max()
        theta = np.abs(stream(seed, "theta").standard_normal(self.dim)) ** 1.5
        scale = self.rate / np.median((phi @ theta).max(axis=1))
        theta *= min(scale, 1.0 / np.linalg.norm(theta))
        tasks = (tuple(range(self.dim)),) * self.agents
        chosen = rank_baseline(phi, theta, tasks, self.rank)
        return World(phi, phi, theta, tasks, chosen, self.reward_noise)
