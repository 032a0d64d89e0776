"""A problem as a PettingZoo environment for all its agents."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
import pettingzoo

from guardband.envs.episode import Episode, Info, Observation, Rules
from guardband.errors import InvalidValueError
from guardband.problems import Problem

__all__ = ["FleetEnv"]


class FleetEnv(pettingzoo.ParallelEnv):  # type: ignore[misc]  # PettingZoo's types are not followed
    """All agents of a problem at once; an episode is a trial of the simulator.

    Agents are called agent_0, agent_1, ...; all act in the same context. Observations, rewards
    and infos are those of `BanditEnv`, one per agent.

    Parameters
    ----------
    problem
        Any problem, such as `gb.Tabular(...)` or `gb.problems.MovieLens()`.
    rounds
        The length of an episode, after which it is truncated.
    alpha
        By which violations are counted: one number, or one per agent.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "guardband_fleet_v0", "render_modes": []}

    def __init__(self, problem: Problem, *, rounds: int = 1000, alpha: Any = 0.1) -> None:
        self._rules = Rules(problem, rounds, alpha)
        self.possible_agents = [f"agent_{m}" for m in range(self._rules.agents)]
        self.agents: list[str] = []
        # One space per agent, always the same object: its own random numbers, as PettingZoo asks.
        self._observations = {a: self._rules.observation_space() for a in self.possible_agents}
        self._actions = {a: self._rules.action_space() for a in self.possible_agents}
        self._rng = np.random.default_rng()
        self._episode: Episode | None = None

    def observation_space(self, agent: str) -> Any:
        """Return the space of an agent's observations."""
        return self._observations[agent]

    def action_space(self, agent: str) -> Any:
        """Return the space of an agent's actions."""
        return self._actions[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, Info]]:
        """Start an episode; returns first observations and what may be known besides."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._episode = Episode(self._rules, self._rules.seed(seed, self._rng))
        self.agents = list(self.possible_agents)
        return self._each(self._episode.observe), self._each(self._episode.announce)

    def step(
        self, actions: dict[str, int]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, Info],
    ]:
        """Play one action per agent; returns what `step` of PettingZoo's ParallelEnv returns."""
        episode = self._episode
        if episode is None or episode.over:
            raise gymnasium.error.ResetNeeded("the episode has not begun or is over: call reset().")
        if set(actions) != set(self.agents):
            raise InvalidValueError(
                f"actions are given for {', '.join(actions) or 'no agent'}; give one for each of "
                f"{', '.join(self.agents)}."
            )
        outcomes = [episode.play(m, actions[agent]) for m, agent in enumerate(self.agents)]
        over = episode.advance()
        observations, known = self._each(episode.observe), self._each(episode.announce)
        rewards = {agent: outcomes[m][0] for m, agent in enumerate(self.agents)}
        infos = {agent: outcomes[m][1] | known[agent] for m, agent in enumerate(self.agents)}
        terminations = dict.fromkeys(self.agents, False)
        truncations = dict.fromkeys(self.agents, over)
        if over:
            self.agents = []
        return observations, rewards, terminations, truncations, infos

    def _each(self, what: Any) -> dict[str, Any]:
        return {agent: what(m) for m, agent in enumerate(self.agents)}
