"""Routing: which language model answers a prompt, at which price."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.problems.base import FigureSettings, NamedProblem, check_rank
from guardband.problems.noise import RewardNoise, UniformNoise
from guardband.problems.world import World, rank_baseline
from guardband.seeds import stream

__all__ = ["Routing"]

EASY = (0.92, 0.91, 0.88, 0.80)  # the quality of each model's answers to the easiest prompts
LOST = (0.05, 0.10, 0.25, 0.45)  # and how much of it is lost with the hardest
PRICES = (1.0, 0.3, 0.1, 0.02)  # per prompt, in units of the best model's


@dataclass(frozen=True, kw_only=True)
class Routing(NamedProblem):
    """Which of four language models answers a prompt: the cheapest that is still good enough.

    A prompt has a difficulty h, uniform on [0, 1] and seen. Model k's answer has the expected
    quality a_k - b_k h, with features of its own: psi_k = (e_k, h e_k) / sqrt(2). The quality is
    the reward, and guarded; the values are the models' prices with a minus sign. The better a
    model, the dearer. Nothing is hidden.

    Parameters
    ----------
    agents
        M; all of them use all features.
    prompts
        C: how many prompts there are; each round is one of them.
    rank
        The baseline is the model of this rank in quality, 1 = best.
    reward_std
        How qualities scatter, by default uniformly within .08; or the standard deviation of
        Gaussian noise, or a noise model.
    seed
        Fixes the world for all trials; None draws new prompts in each trial.
    """

    prompts: int = 10_000
    rank: int = 1
    reward_std: float | RewardNoise = field(
        default_factory=lambda: UniformNoise(0.08 / math.sqrt(3.0))
    )

    name: ClassVar[str] = "routing"
    about: ClassVar[str] = "prompts to language models with prices; the quality is guarded"
    figure = FigureSettings(ridge=1.0, noise=0.0462, alpha=0.05, rounds=20_000)
    theta_length: ClassVar[float] = 2.6

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rank(self.rank, len(PRICES))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""
        return self.prompts, len(PRICES), 2 * len(PRICES)

    @property
    def context_noise(self) -> float | None:
        """No context is hidden."""
        return 0.0

    def _world(self, seed: int) -> World:
        difficulty = stream(seed, "difficulty").random((self.prompts, 1, 1))
        own = np.eye(len(PRICES))
        phi = np.concatenate([np.tile(own, (self.prompts, 1, 1)), difficulty * own], axis=2)
        phi /= math.sqrt(2.0)
        theta = math.sqrt(2.0) * np.array([*EASY, *(-lost for lost in LOST)])
        tasks = (tuple(range(theta.size)),) * self.agents
        chosen = rank_baseline(phi, theta, tasks, self.rank)
        values = np.tile(-np.array(PRICES), (self.prompts, 1))
        return World(
            phi, phi, theta, tasks, chosen, self.reward_noise, values=values, costs=-values
        )
