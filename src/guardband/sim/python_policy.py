"""Algorithms written in plain Python: the methods they need, and the runner that plays them."""

from __future__ import annotations

import copy
import operator
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from guardband.algorithms import Algorithm, Baseline
from guardband.errors import GuardbandError
from guardband.kernels.draw import draw_round
from guardband.kernels.environment import Draws, Played
from guardband.kernels.rounds import count_round, observed_reward, save_checkpoint
from guardband.kernels.types import Floats, Ints
from guardband.problems import AnyWorld
from guardband.sim.runners import CommonRunner

__all__ = ["Competitor", "PolicyError", "PythonPolicy", "PythonRunner", "is_python_policy"]


class PythonPolicy(Protocol):
    """Any object with a name that chooses actions and learns from rewards.

    It may keep state: every trial plays a deep copy of it, made before its first round.
    """

    name: str

    def choose(
        self,
        agent: int,
        round: int,
        features: Floats,
        baseline: int,
        baseline_reward: float | None,
    ) -> int:
        """Return the row of `features` to play.

        Parameters
        ----------
        agent
            Counted from 0; in a round they choose, and learn, one after another.
        round
            Counted from 1.
        features
            (K, d): the expected features of each action, 0 outside the agent's task.
        baseline
            The row of the baseline.
        baseline_reward
            Its expected reward, or None where the problem does not tell it.
        """

    def update(self, agent: int, features: Floats, action: int, reward: float) -> None:
        """Learn from the noisy reward of a row of the same features."""


Competitor: TypeAlias = Algorithm | PythonPolicy


def is_python_policy(algorithm: Any) -> TypeGuard[PythonPolicy]:
    """Return whether an algorithm is one in plain Python."""
    named = isinstance(getattr(algorithm, "name", None), str)
    return named and all(hasattr(algorithm, part) for part in ("choose", "update"))


class PolicyError(GuardbandError, RuntimeError):
    """A policy in plain Python failed; the message says which, for which agent and round."""


class PythonRunner(CommonRunner):
    """Plays a policy in plain Python: world, noise and metrics are those of the compiled loops."""

    def __init__(
        self, world: AnyWorld, policy: PythonPolicy, judged: Floats, checkpoints: Ints, traced: int
    ) -> None:
        # The baseline's plan serves as one without settings that needs no further draws.
        super().__init__(world, Baseline().plan(world.facts(1)), judged, checkpoints, traced)
        self.policy = copy.deepcopy(policy)
        self.mask = np.zeros((len(world.tasks), world.dim))
        for m, task in enumerate(world.tasks):
            self.mask[m, list(task)] = 1.0

    def _play(self, draws: Draws) -> None:
        env, (clock, metrics, trace) = self.env, self.outputs
        for s in range(draws.contexts.size):
            slot = draw_round(env, draws, s)
            clock.ints[0] += 1
            t = int(clock.ints[0])
            for m, mask in enumerate(self.mask):
                menu = env.menu[min(m, len(env.menu) - 1), slot]
                features = np.multiply(menu.T[: env.offered[slot, m]], mask, order="C")
                told = float(env.baseline_reward[slot, m])
                row = self._ask(
                    m,
                    t,
                    "choose",
                    t,
                    features,
                    int(env.baseline[slot, m]),
                    None if np.isnan(told) else told,
                )
                row, group = self._row(row, len(features), m, t), env.group[m]
                reward = env.realised[slot, group, row]
                played = Played(row, False, env.expected[slot, group, row], reward)
                count_round(env, self.tasks, metrics, trace, slot, t, m, played)
                seen = float(observed_reward(env, draws, s, m, played))
                self._ask(m, t, "update", features, row, seen)
            save_checkpoint(clock, metrics)

    def _ask(self, agent: int, round: int, method: str, *given: Any) -> Any:
        try:
            return getattr(self.policy, method)(agent, *given)
        except Exception as error:
            raise PolicyError(
                f"{self.policy.name}: {method} raised {type(error).__name__} for agent {agent} in "
                f"round {round}: {error}"
            ) from error

    def _row(self, row: Any, actions: int, agent: int, round: int) -> int:
        try:
            chosen = operator.index(row)
        except TypeError:
            chosen = -1
        if not 0 <= chosen < actions:
            raise PolicyError(
                f"{self.policy.name}: choose returned {row!r} for agent {agent} in round {round}; "
                f"it must be the number of a row, 0 to {actions - 1}."
            )
        return chosen
