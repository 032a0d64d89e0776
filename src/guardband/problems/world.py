"""The world of one trial: features, parameter, tasks and baseline, and what follows from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from guardband.checks import as_array, as_index_set, check_not_negative, check_ordered, check_whole
from guardband.contexts import half_range
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.types import Floats, Ints
from guardband.problems.noise import BernoulliRewards, RewardNoise

__all__ = ["AnyWorld", "Forecast", "Fresh", "Problem", "Reached", "World", "rank_baseline"]
__all__ += ["TOLD", "as_tasks", "check_costs"]

TOLD = ("expected", "realised")  # the baseline's reward, as agents are told

# Dirichlet probabilities are gamma draws over their sum; below this all of them may round to zero.
SHARPEST = 0.05


@dataclass(frozen=True)
class Fresh:
    """True features are drawn in each round: phi = psi + noise, as the theory assumes.

    Parameters
    ----------
    std
        The standard deviation of every coordinate of phi - psi.
    """

    std: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", check_not_negative("psi_noise", self.std))


@dataclass(frozen=True)
class Forecast:
    """A distribution over some contexts is announced in each round; the one drawn stays hidden.

    Parameters
    ----------
    support
        How many contexts are possible in a round, drawn without replacement.
    sharpness
        The parameter of the Dirichlet distribution of their probabilities: the smaller, the more
        one of them stands out; at least 0.05, where one of them is nearly certain.
    rank
        The baseline is the action of this rank by psi'theta.
    """

    support: int
    sharpness: float
    rank: int

    def __post_init__(self) -> None:
        check_whole("support", self.support)
        check_whole("rank", self.rank)
        object.__setattr__(self, "sharpness", check_not_negative("sharpness", self.sharpness))
        if self.sharpness < SHARPEST:
            raise InvalidValueError(
                f"sharpness must be at least {SHARPEST}, not {self.sharpness:g}: one context is "
                "nearly certain there, and below it probabilities vanish in rounding."
            )


class Reached(NamedTuple):
    """How far a world goes in some rounds, for comparison with stated bounds."""

    features: float  # the length of the longest expected features of a task
    low: float  # the smallest and the largest reward without noise
    high: float


class AnyWorld(ABC):
    """What every world has: a parameter, tasks, reward noise, and what follows from them."""

    theta: Floats
    tasks: tuple[tuple[int, ...], ...]
    reward_noise: RewardNoise

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return self.theta.size

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1."""
        return isinstance(self.reward_noise, BernoulliRewards)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""

    @abstractmethod
    def facts(self, horizon: int) -> Facts:
        """Return what algorithms may be told; the gap is for those named oracle."""

    @abstractmethod
    def reached(self, rounds: int) -> Reached:
        """Return how far features and rewards go in so many rounds."""

    @property
    @abstractmethod
    def announces_contexts(self) -> bool:
        """Whether agents are told in each round which contexts are possible."""


@dataclass(frozen=True, eq=False)
class World(AnyWorld):
    """A finite world: true and expected features per context and action, and the parameter.

    Parameters
    ----------
    phi, psi
        (C, K, d): true features, and the expected features that agents are given. With a
        forecast psi changes from round to round, and psi is ignored (give phi).
    theta
        (d,): the hidden parameter.
    tasks
        One tuple of feature indices per agent.
    baseline
        (M, C): the baseline's action; ignored with a forecast.
    reward_noise
        The model of the reward noise.
    nature
        None: the tables as they are; or `Fresh`, or `Forecast`.
    told
        Which reward of the baseline agents are told where the tables are as they are: the
        "realised" phi_b'theta of the round's context, or the "expected" psi_b'theta. Where phi
        changes from round to round it is the expected one.
    values
        (C, K): what each action is worth to the user, known beforehand, such as its price with a
        minus sign; or (1, K) in all contexts alike, as with a forecast. Rewards are then what is
        guarded. None: the reward is what counts.
    costs
        The same of what actions cost, for budgets; None: they cost nothing.
    """

    phi: Floats
    psi: Floats
    theta: Floats
    tasks: tuple[tuple[int, ...], ...]
    baseline: Ints
    reward_noise: RewardNoise
    nature: Fresh | Forecast | None = None
    told: str = "realised"
    values: Floats | None = None
    costs: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("values", "costs"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, self._checked(name, getattr(self, name)))
        if self.costs is not None:
            check_costs(self.costs)

    def _checked(self, name: str, values: Floats) -> Floats:
        contexts, actions, _ = self.shape
        array = as_array(name, np.atleast_2d(values), (None, actions))
        if len(array) not in ((1,) if isinstance(self.nature, Forecast) else (1, contexts)):
            raise InvalidValueError(
                f"{name} has {len(array)} rows for {contexts} contexts: give (K,) for all of them, "
                "or one row each where contexts are known to agents."
            )
        return array

    def dearest_baseline(self, rounds: int) -> float:
        """Return the most that the baseline costs in one of so many rounds; 0 without costs."""
        if self.costs is None:
            return 0.0
        contexts = np.arange(len(self.phi)) % len(self.costs)
        return float(self.costs[contexts, self.baseline].max())

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""
        contexts, actions, dim = self.phi.shape
        return contexts, actions, dim

    @property
    def announces_contexts(self) -> bool:
        """Whether agents are told in each round which contexts are possible."""
        return isinstance(self.nature, Forecast)

    @cached_property
    def menu(self) -> Floats:
        """(C, d, K): the expected features as kernels read them; one table for all algorithms."""
        return np.ascontiguousarray(self.psi.transpose(0, 2, 1))

    @cached_property
    def truth(self) -> Floats:
        """(C, d, K): the true features as kernels read them."""
        return np.ascontiguousarray(self.phi.transpose(0, 2, 1))

    @cached_property
    def groups(self) -> tuple[tuple[tuple[int, ...], ...], Ints]:
        """The distinct tasks, and which of them each agent has."""
        distinct = tuple(dict.fromkeys(self.tasks))
        return distinct, np.array([distinct.index(task) for task in self.tasks])

    @cached_property
    def masked_theta(self) -> Floats:
        """(G, d): theta with zeros outside each distinct task."""
        masked = np.zeros((len(self.groups[0]), self.dim))
        for g, task in enumerate(self.groups[0]):
            masked[g, list(task)] = self.theta[list(task)]
        return masked

    @cached_property
    def expected(self) -> Floats:
        """(C, G, K): psi'theta of every distinct task."""
        return np.ascontiguousarray((self.psi @ self.masked_theta.T).transpose(0, 2, 1))

    @cached_property
    def realised(self) -> Floats:
        """(C, G, K): phi'theta of every distinct task."""
        return np.ascontiguousarray((self.phi @ self.masked_theta.T).transpose(0, 2, 1))

    @cached_property
    def best(self) -> Ints:
        """(C, G): the action with the largest psi'theta; the lowest index on ties."""
        best: Ints = self.expected.argmax(axis=2)
        return best

    @property
    def told_rewards(self) -> Floats:
        """(C, G, K): the rewards of which agents are told the baseline's."""
        return self.realised if self.nature is None and self.told == "realised" else self.expected

    @cached_property
    def baseline_rewards(self) -> Floats:
        """(C, M): the baseline's reward as agents are told, see `told`."""
        mine = self.told_rewards[:, self.groups[1], :]
        return np.take_along_axis(mine, self.baseline.T[:, :, None], axis=2)[:, :, 0]

    def facts(self, horizon: int) -> Facts:
        """Return what algorithms may be told; the gap is for those named oracle.

        r_l is the smallest positive baseline reward. A baseline that is worth nothing in some
        context has no share to give away there, and agents who know that stay with it; as the
        least of all, its 0 would forbid exploration in every other context too.
        """
        if isinstance(self.nature, Forecast):
            low, high = self._forecast_range(self.nature.rank)
            gap = np.zeros((len(self.tasks), len(self.phi)))  # written anew in each round
        else:
            told = self.baseline_rewards
            low, high = float(np.min(told, where=told > 0, initial=told.max())), float(told.max())
            top = np.take_along_axis(self.told_rewards, self.best[:, :, None], axis=2)[:, :, 0]
            gap = top[:, self.groups[1]].T - high
        return Facts(
            self.tasks,
            self.dim,
            horizon,
            reward_low=low,
            reward_high=high,
            gap=gap,
            actions=self.phi.shape[1],
            contexts=None if isinstance(self.nature, Forecast) else len(self.phi),
            frozen=self.nature is None,
            context_noise=self.context_noise,
            bounded=self.binary,
        )

    def reached(self, rounds: int) -> Reached:
        """Return how far features and rewards go; where phi is drawn, the expected rewards."""
        longest = max(
            float(np.linalg.norm(self.psi[:, :, list(task)], axis=2).max())
            for task in self.groups[0]
        )
        rewards = self.expected if isinstance(self.nature, Fresh) else self.realised
        return Reached(longest, float(rewards.min()), float(rewards.max()))

    @property
    def context_noise(self) -> float:
        """How much the hidden context adds to the reward, (phi - psi)'theta.

        Its standard deviation, over the table where that is all there is; with a forecast half its
        range, which bounds every distribution over the contexts.
        """
        if isinstance(self.nature, Fresh):
            return self.nature.std * float(np.linalg.norm(self.theta))
        if isinstance(self.nature, Forecast):
            return 0.5 * float((self.realised.max(axis=0) - self.realised.min(axis=0)).max())
        return float(np.sqrt(np.mean((self.realised - self.expected) ** 2)))

    def half_range(self, agent: int, contexts: Ints, bound: float = 1.0) -> Floats:
        """Return (K,): what an agent may know of the hidden context if it is one of these.

        Half the range of phi'theta over the contexts, at most, for every ||theta|| <= `bound`.
        """
        return half_range(self.phi[contexts][:, :, list(self.tasks[agent])], bound)

    def _forecast_range(self, rank: int) -> tuple[float, float]:
        """Bound the rank-th best psi'theta: every action's lies in its range of phi'theta."""
        lowest = np.sort(self.realised.min(axis=0), axis=1)[:, -rank]
        highest = np.sort(self.realised.max(axis=0), axis=1)[:, -rank]
        return float(lowest.min()), float(highest.max())


class Problem(Protocol):
    """What every problem has: a name, and worlds that it builds from seeds."""

    @property
    def name(self) -> str:
        """The name in tables and on the command line."""

    def build(self, seed: int) -> AnyWorld:
        """Return the world of a trial; the same seed gives the same world."""


def check_costs(costs: Floats) -> Floats:
    """Return what actions cost, if none costs less than nothing."""
    if costs.min() < 0.0:
        raise InvalidValueError(f"costs has {costs.min():g}: no cost may be negative.")
    return costs


def as_tasks(tasks: Sequence[Sequence[int]] | None, dim: int) -> tuple[tuple[int, ...], ...]:
    """Return one set of feature indices per agent; None: one agent that uses all features."""
    check_ordered("tasks", tasks)
    sets = [range(dim)] if tasks is None else list(tasks)
    if not sets:
        raise InvalidValueError("tasks is empty: give one list of feature indices per agent.")
    return tuple(as_index_set(f"tasks[{m}]", s, dim) for m, s in enumerate(sets))


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
