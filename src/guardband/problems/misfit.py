"""Features that are wrong: what agents are given is off by an error that stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from guardband.checks import check_not_negative
from guardband.problems.base import FigureSettings, NamedProblem, check_rank, tail, unit_vectors
from guardband.problems.changing import drawn_features
from guardband.problems.noise import RewardNoise
from guardband.problems.world import World, rank_baseline
from guardband.seeds import stream

__all__ = ["Misfit"]


@dataclass(frozen=True, kw_only=True)
class Misfit(NamedProblem):
    """Expected features carry an error that is drawn once per context and action, and stays.

    psi = phi + error times a normal vector. Directions of phi are absolute normal vectors, lengths
    uniform between 0.3 and 1. The context is seen; what is worth phi'theta is given as psi.

    Parameters
    ----------
    agents
        M; all of them use all features.
    error
        The standard deviation of every coordinate of psi - phi.
    baseline
        The rank of the baseline's action by phi'theta, 1 = best, in each context.
    contexts, actions, features
        C, K and d.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or a noise model.
    seed
        Fixes the world for all trials; None draws a new one in each trial.
    """

    error: float = 0.1
    baseline: int = 2
    contexts: int = 30
    actions: int = 12
    features: int = 4
    reward_std: float | RewardNoise = 0.1

    name: ClassVar[str] = "misfit"
    about: ClassVar[str] = "features with an error that stays: the model does not fit"
    figure = FigureSettings(ridge=1.0, noise=0.1, alpha=0.2, rounds=4_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("error", self.error)
        check_rank(self.baseline, self.actions)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""
        return self.contexts, self.actions, self.features

    @property
    def context_noise(self) -> float | None:
        """No context is hidden."""
        return 0.0

    def _world(self, seed: int) -> World:
        rng = stream(seed, "features")
        phi = drawn_features(rng, rng, self.shape)
        psi = phi + self.error * stream(seed, "psi").standard_normal(phi.shape)
        theta = unit_vectors(stream(seed, "theta"), 1, self.features)[0]
        tasks = (tuple(range(self.features)),) * self.agents
        chosen = rank_baseline(phi, theta, tasks, self.baseline)
        return World(phi, psi, theta, tasks, chosen, self.reward_noise)

    def _feature_bound(self) -> float:
        return self.feature_length + self.error * tail(self.features)
