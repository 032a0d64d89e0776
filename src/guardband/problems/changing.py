"""Worlds that are not as assumed: a parameter that moves, that differs by task, or is lied about.

Menus are drawn anew for every agent and round: directions are absolute normal vectors, lengths
uniform. What is offered is what is played, psi = phi: nothing is hidden but the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from guardband.checks import check_not_negative, check_whole
from guardband.facts import Facts
from guardband.kernels.environment import Fabricated, RoundTables
from guardband.kernels.types import Floats
from guardband.problems.base import FigureSettings, NamedProblem, check_rank, unit_vectors
from guardband.problems.noise import RewardNoise
from guardband.problems.world import AnyWorld, Reached
from guardband.seeds import stream

__all__ = ["ChangingWorld", "DriftAbrupt", "DriftSeason", "DriftSlow", "Liar", "OddTask"]
__all__ += ["drawn_features"]

SHORTEST, LONGEST = 0.3, 1.0  # features
GLANCE = 200  # rounds from which the range of the baseline's reward is told
MADE_UP = 1_000  # rows of which all made-up observations are copies


@dataclass(frozen=True, eq=False)
class ChangingWorld(AnyWorld):
    """A world whose menus are drawn anew, and whose parameter depends on the time and the task.

    Parameters
    ----------
    theta
        (d,): the parameter of the first task in the first round.
    tasks, reward_noise
        As for `World`.
    path
        (n,) shares of the run that have passed, in (0, 1] -> (n, M, d): the parameters of all
        tasks then.
    actions, rank
        How many actions a menu has, and the baseline's rank by psi'theta, 1 = best.
    seed
        Of the menus.
    false
        (d,): what the last task reports rewards of, from round `since` on; None: nobody lies.
    since, fakes
        From which round on it does, and how many observations it makes up in that round.
    """

    theta: Floats
    tasks: tuple[tuple[int, ...], ...]
    reward_noise: RewardNoise
    path: Callable[[Floats], Floats]
    actions: int
    rank: int
    seed: int
    false: Floats | None = None
    since: int = 1
    fakes: float = 0.0

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: 1, K, d."""
        return 1, self.actions, self.dim

    @property
    def announces_contexts(self) -> bool:
        """Whether agents are told in each round which contexts are possible: there are none."""
        return False

    def chunks(self, rounds: int, numbers: int) -> Iterator[RoundTables]:
        """Yield the tables of rounds 1 to `rounds`, none much larger than so many numbers."""
        rngs = stream(self.seed, "menus"), stream(self.seed, "lengths")
        length = max(1, numbers // (2 * len(self.tasks) * self.actions * self.dim))
        for start in range(0, rounds, length):
            yield self._tables(rngs, start, min(length, rounds - start), rounds)

    def _tables(
        self, rngs: tuple[Generator, Generator], start: int, n: int, rounds: int
    ) -> RoundTables:
        """Return the tables of the n rounds that follow the first `start` ones."""
        agents = len(self.tasks)
        features = drawn_features(*rngs, (n, agents, self.actions, self.dim))
        numbers = np.arange(start + 1, start + n + 1)
        thetas = self.path(numbers / rounds)
        rewards = np.einsum("nmkd,nmd->nmk", features, thetas)
        ranked = np.argsort(-rewards, axis=2, kind="stable")
        baseline = np.ascontiguousarray(ranked[:, :, self.rank - 1])
        told = np.take_along_axis(rewards, baseline[:, :, None], axis=2)[:, :, 0]
        best = rewards.argmax(axis=2)
        lies = np.zeros((0, 0, 0))
        if self.false is not None:
            lies = np.zeros_like(rewards)
            late = numbers >= self.since
            lies[late, -1] = features[late, -1] @ self.false - rewards[late, -1]
        menu = np.ascontiguousarray(features.transpose(1, 0, 3, 2))
        return RoundTables(
            menu=menu,
            truth=menu,
            contexts=np.zeros((agents, 0, self.dim, self.actions)),
            expected=rewards,
            realised=rewards,
            best=best,
            baseline=baseline,
            baseline_reward=told,
            gap=rewards.max(axis=2) - self._told[1],
            offered=np.full((n, agents), self.actions),
            thetas=thetas,
            lies=lies,
        )

    @cached_property
    def fabricated(self) -> Fabricated:
        """What the last task makes up in round `since`: means over rows, and how many there are."""
        if self.false is None or self.fakes == 0.0:
            return Fabricated(np.zeros((self.dim, self.dim)), np.zeros(self.dim), 0.0, 0.0, 0.0)
        rng = stream(self.seed, "made up")
        rows = drawn_features(rng, rng, (MADE_UP, self.dim))
        rewards = rows @ self.false
        square = float(rewards @ rewards / MADE_UP)
        gram, moment = rows.T @ rows / MADE_UP, rows.T @ rewards / MADE_UP
        return Fabricated(gram, moment, square, float(self.since), self.fakes)

    @cached_property
    def _told(self) -> tuple[float, float]:
        """The smallest and the largest reward of the baseline, of rounds like the first ones."""
        rng = stream(self.seed, "glance")
        features = drawn_features(rng, rng, (GLANCE, self.actions, self.dim))
        ranked = np.sort(features @ self.theta, axis=1)[:, -self.rank]
        return float(ranked.min()), float(ranked.max())

    def facts(self, horizon: int) -> Facts:
        """Return what algorithms may be told; the gap is for those named oracle."""
        low, high = self._told
        return Facts(
            self.tasks,
            self.dim,
            horizon,
            reward_low=low,
            reward_high=high,
            gap=np.full((len(self.tasks), 1), np.nan),  # each round has its own
            actions=self.actions,
            context_noise=0.0,
            bounded=self.binary,
        )

    def reached(self, rounds: int) -> Reached:
        """Return how far features and rewards go: to their bounds."""
        return Reached(LONGEST, 0.0, LONGEST)


def drawn_features(normal: Generator, uniform: Generator, shape: tuple[int, ...]) -> Floats:
    """Return absolute normal vectors, the last axis, scaled to lengths between the bounds."""
    vectors = np.abs(normal.standard_normal(shape))
    vectors *= uniform.uniform(SHORTEST, LONGEST, (*shape[:-1], 1)) / np.linalg.norm(
        vectors, axis=-1, keepdims=True
    )
    return vectors


@dataclass(frozen=True, kw_only=True)
class Changing(NamedProblem):
    """A problem whose menus are drawn anew in every round; see its kinds.

    Parameters
    ----------
    agents
        M; all of them use all features.
    baseline
        The rank of the baseline's action, 1 = best, in each round anew.
    actions, features
        K and d.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or a noise model.
    seed
        Fixes the world for all trials; None draws a new one in each trial.
    """

    baseline: int = 10
    actions: int = 20
    features: int = 5
    reward_std: float | RewardNoise = 0.1

    figure = FigureSettings(ridge=1.0, noise=0.1, alpha=0.2, rounds=4_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rank(self.baseline, self.actions)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: 1, K, d."""
        return 1, self.actions, self.features

    @property
    def context_noise(self) -> float | None:
        """No context is hidden."""
        return 0.0

    def _world(self, seed: int) -> ChangingWorld:
        first, second = unit_vectors(stream(seed, "theta"), 2, self.features)
        return ChangingWorld(
            first,
            (tuple(range(self.features)),) * self.agents,
            self.reward_noise,
            lambda passed: self._path(passed, first, second),
            self.actions,
            self.baseline,
            seed,
            *self._lies(second),
        )

    def _path(self, passed: Floats, first: Floats, second: Floats) -> Floats:
        """Return (n, M, d): where the parameters are when shares (n,) of the run have passed."""
        share = self._share(passed)[:, None]
        way = (1.0 - share) * first + share * second
        return np.repeat(way[:, None, :], self.agents, axis=1)

    def _share(self, passed: Floats) -> Floats:
        """Return (n,): how far the parameter has moved from the first to the second."""
        return np.zeros(passed.size)

    def _lies(self, second: Floats) -> tuple[Floats, int, float] | tuple[()]:
        """Return what the last task reports rewards of, since when, and how many it makes up."""
        return ()


@dataclass(frozen=True, kw_only=True)
class DriftAbrupt(Changing):
    """The parameter becomes another one at half time.

    Parameters
    ----------
    agents, baseline, actions, features, reward_std, seed
        As for every problem with menus that are drawn anew: M, the baseline's rank, K, d, the
        deviation of the rewards' noise, and the seed that fixes the world.
    """

    name: ClassVar[str] = "drift-abrupt"
    about: ClassVar[str] = "menus drawn anew; the parameter becomes another one at half time"

    def _share(self, passed: Floats) -> Floats:
        return (passed > 0.5).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class DriftSlow(Changing):
    """The parameter moves to another one in a straight line, over the whole run.

    Parameters
    ----------
    agents, baseline, actions, features, reward_std, seed
        As for `DriftAbrupt`.
    """

    name: ClassVar[str] = "drift-slow"
    about: ClassVar[str] = "menus drawn anew; the parameter moves in a line, over the whole run"

    def _share(self, passed: Floats) -> Floats:
        return passed


@dataclass(frozen=True, kw_only=True)
class DriftSeason(Changing):
    """The parameter goes to another one and back three times, as a cosine.

    Parameters
    ----------
    agents, baseline, actions, features, reward_std, seed
        As for `DriftAbrupt`.
    """

    name: ClassVar[str] = "drift-season"
    about: ClassVar[str] = "menus drawn anew; the parameter goes and comes back in three cosines"

    def _share(self, passed: Floats) -> Floats:
        share: Floats = 0.5 - 0.5 * np.cos(2.0 * np.pi * 3.0 * passed)
        return share


@dataclass(frozen=True, kw_only=True)
class OddTask(Changing):
    """The last task has a parameter of its own, and features cannot tell.

    Parameters
    ----------
    agents, baseline, actions, features, reward_std, seed
        As for `DriftAbrupt`.
    """

    agents: int = 3

    name: ClassVar[str] = "odd-task"
    about: ClassVar[str] = "menus drawn anew; the last task has a parameter of its own"

    def _path(self, passed: Floats, first: Floats, second: Floats) -> Floats:
        every = np.repeat(first[None], self.agents, axis=0)
        every[-1] = second
        return np.repeat(every[None], passed.size, axis=0)


@dataclass(frozen=True, kw_only=True)
class Liar(Changing):
    """The last task reports rewards of another parameter, from some round on.

    All tasks have one parameter, the last one too: what is counted of it is what it earns.

    Parameters
    ----------
    since
        The round from which on every reward that it reports is of the other parameter.
    fakes
        How many observations it makes up in that round, beside; any number, such as 1e9. They are
        among what it hands in where agents pool.
    agents, baseline, actions, features, reward_std, seed
        As for `DriftAbrupt`.
    """

    agents: int = 4
    since: int = 1
    fakes: float = 0.0

    name: ClassVar[str] = "liar"
    about: ClassVar[str] = "menus drawn anew; the last task reports another parameter's rewards"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("since", self.since)
        check_not_negative("fakes", self.fakes)

    def _lies(self, second: Floats) -> tuple[Floats, int, float]:
        return second, self.since, float(self.fakes)
