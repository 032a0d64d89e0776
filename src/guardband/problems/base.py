"""What named problems have in common: settings, checks, and the assumptions that suit them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypedDict

import numpy as np
from numpy.random import Generator

from guardband.checks import check_choice, check_not_negative, check_seed, check_whole
from guardband.errors import InvalidValueError
from guardband.kernels.types import Floats
from guardband.problems.noise import RewardNoise, as_noise
from guardband.problems.world import Fresh, World, rank_baseline
from guardband.seeds import stream

__all__ = ["FigureSettings", "NamedProblem", "NoisyFeatures", "ProblemAssumptions", "Sizes"]
__all__ += ["check_rank", "cycled", "tail", "unit_vectors"]


class Sizes(TypedDict):
    """How large a problem is."""

    agents: int
    contexts: int
    actions: int
    features: int


class ProblemAssumptions(TypedDict):
    """Settings of algorithms, and of a comparison, that suit a problem."""

    ridge: float
    noise: float
    context_noise: float
    theta_bound: float
    feature_bound: float
    alpha: float
    rounds: int


class FigureSettings(NamedTuple):
    """What the paper's figure assumes of a problem."""

    ridge: float
    noise: float  # R, the sub-Gaussian constant that is assumed, not the noise itself
    alpha: float
    rounds: int


@dataclass(frozen=True, kw_only=True)
class NamedProblem(ABC):
    """A problem that builds offline from a seed.

    Parameters
    ----------
    agents
        M; tasks cycle over the problem's masks.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or a noise model.
    seed
        Fixes the world for all trials; None draws a new one in each trial.
    """

    agents: int = 1
    reward_std: float | RewardNoise = 1e-3  # as in the paper's simulations
    seed: int | None = None

    name: ClassVar[str]
    about: ClassVar[str]
    figure: ClassVar[FigureSettings]
    theta_length: ClassVar[float] = 1.0
    feature_length: ClassVar[float] = 1.0  # no expected features are longer

    def __post_init__(self) -> None:
        check_whole("agents", self.agents)
        if self.seed is not None:
            check_seed(self.seed)
        as_noise(self.reward_std)
        for what, count in zip(("contexts", "actions", "features"), self.shape, strict=True):
            check_whole(what, count)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""

    @abstractmethod
    def _world(self, seed: int) -> Any:
        """Return the world that belongs to a seed."""

    @property
    def reward_noise(self) -> RewardNoise:
        """The model of the reward noise; Gaussian where `reward_std` is a number."""
        return as_noise(self.reward_std)

    @property
    def sizes(self) -> Sizes:
        """The numbers of agents, contexts, actions and features."""
        contexts, actions, features = self.shape
        return {
            "agents": self.agents,
            "contexts": contexts,
            "actions": actions,
            "features": features,
        }

    def build(self, seed: int) -> Any:
        """Return the world of a trial; the problem's own seed, if it has one, comes first."""
        return self._world(seed if self.seed is None else self.seed)

    def assumptions(self) -> ProblemAssumptions:
        """Return settings that suit this problem: those of the paper's figure, and honest bounds.

        Bounds are declared, not read off the features that were drawn.
        """
        figure = self.figure
        return {
            "ridge": figure.ridge,
            "noise": max(figure.noise, self.reward_noise.std),
            "context_noise": 1.0,
            "theta_bound": max(1.0, self.theta_length),
            "feature_bound": self._feature_bound(),
            "alpha": figure.alpha,
            "rounds": figure.rounds,
        }

    def _feature_bound(self) -> float:
        return self.feature_length

    @property
    def context_noise(self) -> float | None:
        """A bound on what the hidden context adds to a reward; None where none is declared."""
        return None


@dataclass(frozen=True, kw_only=True)
class NoisyFeatures(NamedProblem):
    """A problem whose expected features are true features with noise, or the other way round.

    Parameters
    ----------
    baseline
        The rank of the baseline's action, 1 = best.
    psi_noise
        The standard deviation of every coordinate of psi - phi.
    nature
        "frozen": psi = phi + noise, drawn once per context and action, as the paper's authors do;
        least squares on psi is then biased. "fresh": psi is fixed and phi = psi + noise in each
        round, as the theory assumes.
    order
        "shuffled": the actions of every context in random order, so that an index says nothing
        about a rank. "ranked": the best first.
    """

    baseline: int = 1
    psi_noise: float = 0.0
    nature: str = "frozen"
    order: str = "shuffled"

    theta: ClassVar[tuple[float, ...]]
    masks: ClassVar[tuple[tuple[int, ...], ...]]
    orders: ClassVar[tuple[str, ...]] = ("shuffled", "ranked")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rank(self.baseline, self.shape[1])
        check_not_negative("psi_noise", self.psi_noise)
        check_choice("nature", self.nature, ("frozen", "fresh"))
        check_choice("order", self.order, self.orders)

    @abstractmethod
    def _features(self, seed: int) -> Floats:
        """Return (C, K, d) features without noise, in the order that the problem gives them."""

    def _world(self, seed: int) -> World:
        theta = np.array(self.theta)
        features = self._features(seed)
        if self.order == "shuffled":
            features = _shuffled(features, stream(seed, "order"))
        tasks = cycled(self.masks, self.agents)
        chosen = rank_baseline(features, theta, tasks, self.baseline)
        if self.nature == "fresh":
            around = Fresh(self._psi_std(seed))
            return World(features, features, theta, tasks, chosen, self.reward_noise, around)
        psi = stream(seed, "psi").standard_normal(features.shape)
        psi *= self._psi_std(seed)
        psi += features
        return World(features, psi, theta, tasks, chosen, self.reward_noise)

    def _psi_std(self, seed: int) -> float:
        """Return the standard deviation of every coordinate of psi - phi in a world."""
        return self.psi_noise

    @property
    def _largest_psi_std(self) -> float:
        """The largest of all worlds."""
        return self.psi_noise

    @property
    def context_noise(self) -> float | None:
        """The largest standard deviation of (phi - psi)'theta, a normal number."""
        return self._largest_psi_std * max(1.0, self.theta_length)

    def _feature_bound(self) -> float:
        if self.nature == "fresh":
            return self.feature_length
        return self.feature_length + self._largest_psi_std * tail(self.shape[2])


def check_rank(rank: int, actions: int) -> int:
    """Return the baseline's rank if there is an action of that rank."""
    if check_whole("baseline", rank) > actions:
        raise InvalidValueError(
            f"baseline is rank {rank}, but there are only {actions} actions: give a rank from 1 "
            f"(the best) to {actions}."
        )
    return rank


def cycled(masks: tuple[tuple[int, ...], ...], agents: int) -> tuple[tuple[int, ...], ...]:
    """Return one task per agent."""
    return tuple(masks[m % len(masks)] for m in range(agents))


def tail(dim: int) -> float:
    """Return a length that `dim` standard normal numbers exceed in fewer than 1 of 10^11 cases."""
    return 6.0 + math.sqrt(dim)


def unit_vectors(rng: Generator, count: int, dim: int) -> Floats:
    """Return absolute normal vectors of length one."""
    vectors = np.abs(rng.standard_normal((count, dim)))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _shuffled(features: Floats, rng: Generator) -> Floats:
    """Permute the actions of every context."""
    contexts, actions, _ = features.shape
    order = rng.permuted(np.tile(np.arange(actions), (contexts, 1)), axis=1)
    return np.take_along_axis(features, order[:, :, None], axis=1)
