"""The formal model: each round a distribution over contexts is announced, and its draw hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from guardband.checks import check_whole
from guardband.errors import InvalidValueError
from guardband.kernels.types import Floats
from guardband.problems.base import FigureSettings, NamedProblem, check_rank, unit_vectors
from guardband.problems.noise import RewardNoise
from guardband.problems.world import Forecast, World, rank_baseline
from guardband.seeds import stream

__all__ = ["ForecastFormal", "ForecastFormal2", "ForecastLarge"]


@dataclass(frozen=True, kw_only=True)
class ForecastFormal(NamedProblem):
    """A distribution over contexts is announced in each round; which one is drawn stays hidden.

    phi(k, c) = h_k * (.4 + .6 v_c) with v_c uniform in the unit cube: a context scales the features
    of all actions alike. psi is the exact expectation, and so is the baseline's reward that agents
    are told.

    Parameters
    ----------
    agents
        M; the first uses all features, each other one loses up to half of them at random.
    baseline
        The rank of the baseline's action by psi'theta, 1 = best; in each round anew.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or a noise model.
    contexts, actions, features
        C, K and d.
    support
        How many contexts are possible in a round.
    sharpness
        The parameter of the Dirichlet distribution of their probabilities: 1 draws uniformly from
        all distributions; the smaller, the more one context stands out.
    seed
        Fixes the world for all trials; None draws a new one in each trial.
    """

    agents: int = 5
    baseline: int = 10
    reward_std: float | RewardNoise = 0.1
    contexts: int = 100
    actions: int = 20
    features: int = 5
    support: int = 20
    sharpness: float = 1.0

    name: ClassVar[str] = "forecast"
    about: ClassVar[str] = "the formal model: a distribution is announced, the context hidden"
    figure = FigureSettings(ridge=1.0, noise=0.1, alpha=0.2, rounds=20_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rank(self.baseline, self.actions)
        if check_whole("support", self.support) > self.contexts:
            raise InvalidValueError(
                f"support is {self.support}, but there are only {self.contexts} contexts: give at "
                "most that many, or more contexts."
            )
        self._nature()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""
        return self.contexts, self.actions, self.features

    def _nature(self) -> Forecast:
        return Forecast(support=self.support, sharpness=self.sharpness, rank=self.baseline)

    def _world(self, seed: int) -> World:
        theta = unit_vectors(stream(seed, "theta"), 1, self.features)[0]
        phi = self._features(stream(seed, "features"))
        tasks = self._tasks(stream(seed, "tasks"))
        chosen = rank_baseline(phi, theta, tasks, self.baseline)
        return World(phi, phi, theta, tasks, chosen, self.reward_noise, self._nature())

    def _features(self, rng: Generator) -> Floats:
        heads = unit_vectors(rng, self.actions, self.features)
        heads *= rng.uniform(0.3, 1.0, (self.actions, 1))
        light = rng.random((self.contexts, 1, self.features))
        return heads * (0.4 + 0.6 * light)

    def _tasks(self, rng: Generator) -> tuple[tuple[int, ...], ...]:
        tasks = [tuple(range(self.features))]
        half = self.features // 2
        for _ in range(1, self.agents):
            lost = rng.integers(1, half + 1) if half else 0
            kept = rng.permutation(self.features)[lost:]
            tasks.append(tuple(sorted(kept.tolist())))
        return tuple(tasks)


@dataclass(frozen=True, kw_only=True)
class ForecastFormal2(ForecastFormal):
    """The formal model where a context acts on each action differently.

    phi(k, c) = h_k * (.3 + .7 v_ck): which action is best depends on the hidden context, so even
    an oracle that knows theta breaks the realised constraint now and then.

    Parameters
    ----------
    agents, baseline, reward_std, contexts, actions, features, support, sharpness, seed
        As for `ForecastFormal`.
    """

    name: ClassVar[str] = "forecast-formal2"
    about: ClassVar[str] = "the formal model, contexts that act differently on each action"
    figure = FigureSettings(ridge=1.0, noise=0.1, alpha=0.1, rounds=20_000)

    def _features(self, rng: Generator) -> Floats:
        heads = unit_vectors(rng, self.actions, self.features)
        heads *= rng.uniform(0.5, 0.9, (self.actions, 1))
        return heads * (0.3 + 0.7 * rng.random(self.shape))


@dataclass(frozen=True, kw_only=True)
class ForecastLarge(ForecastFormal):
    """The formal model with 10 agents, 100 actions and 20 features.

    Parameters
    ----------
    agents, baseline, reward_std, contexts, actions, features, support, sharpness, seed
        As for `ForecastFormal`.
    """

    agents: int = 10
    baseline: int = 50
    actions: int = 100
    features: int = 20

    name: ClassVar[str] = "forecast-large"
    about: ClassVar[str] = "the formal model with more agents, actions and features"
    figure = FigureSettings(ridge=1.0, noise=0.1, alpha=0.2, rounds=10_000)
