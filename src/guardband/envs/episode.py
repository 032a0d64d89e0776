"""One episode: a trial of the simulator in which the caller chooses the actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from guardband.checks import as_alpha, check_whole
from guardband.errors import InvalidValueError
from guardband.kernels.types import Floats
from guardband.kernels.worth import TOLERANCE
from guardband.problems import Forecast, Problem, Round, World, round_of
from guardband.seeds import trial_seed
from guardband.sim import TrialDraws

__all__ = ["Episode", "Rules"]

Observation = dict[str, Any]
Info = dict[str, Any]


class Rules:
    """What is the same in all episodes: the problem, its sizes, the horizon and the promise."""

    def __init__(self, problem: Problem, rounds: int, alpha: Any) -> None:
        self.problem, self.rounds = problem, check_whole("rounds", rounds)
        world = self.world(0)
        self.agents, (_, self.actions, self.dim) = len(world.tasks), world.shape
        self.alpha = as_alpha(alpha, self.agents)

    def world(self, seed: int) -> World:
        """Return the world of an episode."""
        world = self.problem.build(seed)
        if not isinstance(world, World):
            raise InvalidValueError(
                f"{self.problem.name} has actions and features of its own for each agent and "
                "round, but an environment has one table for all: play it by gb.simulate, with an "
                "algorithm of your own if you like (docs/adding.md)."
            )
        return world

    def observation_space(self) -> Any:
        """Return the space of one agent's observations."""
        return spaces.Dict(
            {
                "features": spaces.Box(-np.inf, np.inf, (self.actions, self.dim), np.float64),
                "baseline": spaces.Discrete(self.actions),
                "baseline_reward": spaces.Box(-np.inf, np.inf, (1,), np.float64),
            }
        )

    def action_space(self) -> Any:
        """Return the space of one agent's actions."""
        return spaces.Discrete(self.actions)

    def seed(self, seed: int | None, rng: np.random.Generator) -> int:
        """Return an episode's seed: that of the simulator's first trial, or a new one."""
        return trial_seed(int(rng.integers(1 << 62)) if seed is None else seed, 0)


class Turn(NamedTuple):
    """A round and its reward noise."""

    round: Round
    noise: Floats  # (M,)


class Episode:
    """The rounds of one trial, under the draws of the simulator for this seed."""

    def __init__(self, rules: Rules, seed: int) -> None:
        self.rules, self.world = rules, rules.world(seed)
        # One more round, for the observation that follows the last action.
        draws = TrialDraws(self.world, rules.rounds + 1, seed, directions=False, coins=False)
        self._turns = _turns(self.world, draws)
        self._turn, self.played = next(self._turns), 0
        self._mask = np.zeros((rules.agents, rules.dim))
        for m, task in enumerate(self.world.tasks):
            self._mask[m, list(task)] = 1.0

    @property
    def over(self) -> bool:
        """Whether all rounds were played."""
        return self.played == self.rules.rounds

    def observe(self, m: int) -> Observation:
        """Return what agent m is given in this round."""
        now = self._turn.round
        return {
            "features": now.psi * self._mask[m],
            "baseline": now.baseline[m],
            "baseline_reward": now.baseline_reward[m : m + 1].copy(),
        }

    def announce(self, m: int) -> Info:
        """Return the forecast that agent m is given, and how far rewards may vary around it."""
        if not isinstance(self.world.nature, Forecast):
            return {}
        now = self._turn.round
        half = self.world.half_range(m, now.support)
        return {"contexts": now.support, "weights": now.weights, "half_range": half}

    def play(self, m: int, action: Any) -> tuple[float, Info]:
        """Return agent m's reward for an action in this round, and the truth about it."""
        k = check_whole("action", action, 0)
        if k >= self.rules.actions:
            raise InvalidValueError(
                f"action is {k}, but actions are numbered 0 to {self.rules.actions - 1}."
            )
        now, keep = self._turn.round, 1.0 - self.rules.alpha[m]
        expected, realised, b = now.expected[m], now.realised[m], now.baseline[m]
        best = expected.argmax()
        info = {
            "expected_reward": float(expected[k]),
            "realised_reward": float(realised[k]),
            "violation_expected": bool(expected[k] < keep * expected[b] - TOLERANCE),
            "violation_realised": bool(realised[k] < keep * realised[b] - TOLERANCE),
            "regret": float(realised[best] - realised[k]),
            "regret_expected": float(expected[best] - expected[k]),
            "context": now.context,
        }
        reward, draw = realised[k], self._turn.noise[m]
        return float(draw < reward if self.world.binary else reward + draw), info

    def advance(self) -> bool:
        """Turn to the next round; tell whether that was the last."""
        self._turn = next(self._turns)
        self.played += 1
        return self.over


def _turns(world: World, draws: TrialDraws) -> Iterator[Turn]:
    for chunk in draws.chunks():
        for s in range(chunk.contexts.size):
            yield Turn(round_of(world, chunk, s), chunk.noise[s])
