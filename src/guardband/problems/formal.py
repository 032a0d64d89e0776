"""The paper's formal model as a problem of one's own: functions in place of tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from guardband.checks import as_array, check_choice, check_positive, check_whole
from guardband.contexts import Discrete, Gaussian
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.kernels.types import Floats
from guardband.problems.base import ProblemAssumptions, Sizes
from guardband.problems.formal_world import FormalModel, FormalWorld
from guardband.problems.noise import RewardNoise, as_noise
from guardband.problems.world import TOLD, as_tasks, check_costs

__all__ = ["Formal"]


class Formal:
    """In each round a distribution of the context is announced; the context drawn stays hidden.

    Agents are given psi(x) = E phi(x, c) of each of their actions, the distribution, and the
    baseline. All agents of a round share its context. The functions must return the same for the
    same arguments: each is called anew in every trial, and once more for each round beforehand.

    Parameters
    ----------
    feature_map
        (agent, action, context) -> the d features phi; agents are counted from 0. Only those of
        the agent's task count.
    distributions
        What is announced: a function of the round, counted from 1; a list with one for each round;
        or one for all rounds. Each a `gb.Discrete`, `gb.Samples` or `gb.Gaussian`, or an object
        with sample(rng, n) that returns n contexts. Of `Samples` the hidden context is one. A
        `Gaussian` needs a map that is affine in the context, or `samples`.
    theta
        (d,): the hidden parameter.
    tasks
        One list of feature indices per agent; None: one agent that uses all features.
    actions
        The labels of the actions: a list for all agents, a list of lists with one per agent, or a
        function (agent, round) -> list. A label that is itself a sequence must be a tuple.
    baseline
        The rank of the baseline's action by psi'theta, 1 = best; or a policy
        (agent, round, psi) -> row, where psi has zeros outside the agent's task.
    told
        Which reward of the baseline agents are told: the "expected" psi_b'theta, which the theory
        assumes, or the "realised" phi_b'theta of the hidden context.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or another noise model.
    samples
        How many draws stand for a `Gaussian`, or an object with `sample`, in each round: they are
        announced in its place, psi is their mean, and the hidden context is one of them. Psi
        strays from the expectation under the distribution itself, see `sampling_error`.
    feature_bound
        A bound on the length of psi, for algorithms that are given by name; exceeding it is
        a `gb.BoundWarning`.
    baseline_range
        (r_l, r_h) as algorithms are told, r_l > 0. None: the smallest positive and the largest
        reward of the baseline, for which all rounds are looked at before a trial.
    values
        (K,): what each action is worth to the user, in all rounds and for all agents, who then have
        K actions each; rewards are what is guarded. None: the reward is what counts.
    costs
        (K,): the same of what actions cost, for a budget; None: nothing.
    name
        The name in tables.

    Examples
    --------
    >>> import guardband as gb
    >>> problem = gb.problems.Formal(
    ...     lambda agent, price, sun: [0.5 * price, sun * price],
    ...     lambda t: gb.Discrete([0.2, 0.9], [1 / t, 1 - 1 / t]),
    ...     theta=[0.3, 0.6],
    ...     actions=[0.4, 0.8],
    ...     baseline=2,
    ... )
    >>> gb.simulate(problem, gb.DisLinUCB(), rounds=50, progress=False).problem
    'formal'
    """

    about: ClassVar[str] = "the formal model, from functions"

    def __init__(
        self,
        feature_map: Callable[[int, Any, Any], Any],
        distributions: Any,
        theta: Any,
        *,
        tasks: Sequence[Sequence[int]] | None = None,
        actions: Any,
        baseline: int | Callable[[int, int, Floats], int] = 1,
        told: str = "expected",
        reward_std: float | RewardNoise = 0.0,
        samples: int | None = None,
        feature_bound: float = 1.0,
        baseline_range: tuple[float, float] | None = None,
        values: Any = None,
        costs: Any = None,
        name: str = "formal",
    ) -> None:
        if not callable(feature_map):
            raise InvalidTypeError(
                f"feature_map is {feature_map!r}: give a function (agent, action, context) -> the "
                "d features; for tables there is gb.Tabular."
            )
        self.name = name
        self._theta = as_array("theta", theta, (None,))
        self._tasks = as_tasks(tasks, self._theta.size)
        self._noise = as_noise(reward_std)
        self._feature_bound = check_positive("feature_bound", feature_bound)
        self._model = FormalModel(
            feature_map=feature_map,
            distribution=_by_round(distributions),
            actions=_by_agent_and_round(actions, len(self._tasks)),
            baseline=baseline if callable(baseline) else check_whole("baseline", baseline),
            told=check_choice("told", told, TOLD),
            samples=None if samples is None else check_whole("samples", samples),
            baseline_range=None if baseline_range is None else _as_range(baseline_range),
            same_actions=not callable(actions),
        )
        self._values = None if values is None else as_array("values", values, (None,))
        self._costs = None if costs is None else check_costs(as_array("costs", costs, (None,)))
        self._shape = self.build(0).shape  # makes the first round, and so finds most mistakes

    def build(self, seed: int) -> FormalWorld:
        """Return the world of a trial; the seed matters for contexts that are drawn only."""
        worth = (self._values, self._costs)
        return FormalWorld(self._theta, self._tasks, self._noise, self._model, seed, *worth)

    @property
    def sizes(self) -> Sizes:
        """The numbers of agents and features; of contexts and actions, those of the first round."""
        contexts, actions, features = self._shape
        return {
            "agents": len(self._tasks),
            "contexts": contexts,
            "actions": actions,
            "features": features,
        }

    @property
    def context_noise(self) -> float | None:
        """A bound on what the hidden context adds to a reward; None: functions declare none."""
        return None

    def assumptions(self) -> ProblemAssumptions:
        """Return settings to start from: plain ones, and the stated bounds."""
        return {
            "ridge": 1.0,
            "noise": max(self._noise.std, 1e-3),  # no algorithm can be sure of none at all
            "context_noise": 1.0,
            "theta_bound": max(1.0, float(np.linalg.norm(self._theta))),
            "feature_bound": self._feature_bound,
            "alpha": 0.1,
            "rounds": 10_000,
        }

    def sampling_error(self, round: int = 1, seed: int = 0) -> float:
        """Return the largest standard error of psi'theta in a round, over agents and actions.

        It is the deviation of phi'theta over the round's draws, divided by the root of their
        number: so far psi strays from the expectation under the distribution that they stand for,
        typically. 0 where psi is exact. Four times as many samples halve it.
        """
        now = self.build(seed).round(check_whole("round", round))
        if self._model.samples is None or isinstance(now.law, Gaussian):
            return 0.0
        deviations = [(own.phi @ self._theta).std(axis=0) for own in now.features]
        return float(np.max(np.concatenate(deviations))) / math.sqrt(self._model.samples)


def _by_round(distributions: Any) -> Callable[[int], Any]:
    """Return the distributions as a function of the round."""
    draws = hasattr(distributions, "sample") and not isinstance(distributions, type)
    if draws or isinstance(distributions, Discrete):  # a class is a function of the round
        return lambda t: distributions
    if callable(distributions):
        of_any_round: Callable[[int], Any] = distributions
        return of_any_round
    if not isinstance(distributions, Sequence) or isinstance(distributions, str):
        raise InvalidTypeError(
            f"distributions is {distributions!r}: give a function of the round, a list with one "
            "for each round, or one distribution for all."
        )
    listed = list(distributions)

    def of_round(t: int) -> Any:
        if t > len(listed):
            raise InvalidValueError(
                f"distributions ends with round {len(listed)}, but round {t} is to be played: list "
                "one for each round, or give a function, such as lambda t: days[(t - 1) % 7]."
            )
        return listed[t - 1]

    return of_round


def _by_agent_and_round(actions: Any, agents: int) -> Callable[[int, int], Any]:
    """Return the labels of the actions as a function of agent and round."""
    if callable(actions):
        of_both: Callable[[int, int], Any] = actions
        return of_both
    if isinstance(actions, str | bytes) or not isinstance(actions, Sequence | np.ndarray):
        raise InvalidTypeError(
            f"actions is {actions!r}: give a list of labels, a list of lists with one per agent, "
            "or a function (agent, round) -> list."
        )
    if not len(actions):
        raise InvalidValueError("actions is empty: give at least one label.")
    if not all(isinstance(each, list) for each in actions):
        return lambda m, t: actions
    if len(actions) != agents:
        raise InvalidValueError(
            f"actions has {len(actions)} lists for {agents} agents: give one per agent; or, where "
            "labels are sequences, tuples in place of lists."
        )
    return lambda m, t: actions[m]


def _as_range(given: Any) -> tuple[float, float]:
    low, high = as_array("baseline_range", given, (2,)).tolist()
    if not 0.0 < low <= high:
        raise InvalidValueError(
            f"baseline_range is ({low:g}, {high:g}): give (r_l, r_h) with 0 < r_l <= r_h, between "
            "which the baseline's reward lies in all rounds."
        )
    return low, high
