"""A problem as a Gymnasium environment for one agent."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium

from guardband.checks import check_whole
from guardband.envs.episode import Episode, Info, Observation, Rules
from guardband.errors import InvalidValueError
from guardband.problems import Problem

__all__ = ["BanditEnv"]


class BanditEnv(gymnasium.Env):  # type: ignore[misc]  # Gymnasium's types are not followed
    """One agent of a problem; an episode is a trial of the simulator.

    `reset(seed=s)` starts the trial that `gb.simulate(..., seed=s)` runs first: the same world,
    contexts and noise. Without a seed it draws another one.

    An observation holds `features`, (K, d) expected features psi with zeros outside the agent's
    task, the `baseline`'s action and, as an array of one number, the `baseline_reward` that the
    agent is told. The reward is noisy. `info` tells the truth about the action that was played:
    `expected_reward` psi'theta, `realised_reward` phi'theta, `violation_expected` and
    `violation_realised`, `regret`, `regret_expected`, and the hidden `context`. Where a
    distribution over contexts was announced, `info` also has that of the new observation:
    `contexts`, `weights`, and `half_range`, (K,) bounds on how far phi'theta may vary, per unit of
    ||theta||.

    Parameters
    ----------
    problem
        Any problem, such as `gb.Tabular(...)` or `gb.problems.MovieLens()`.
    agent
        Which of its agents to play, counted from 0.
    rounds
        The length of an episode, after which it is truncated.
    alpha
        By which violations are counted.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self, problem: Problem, agent: int = 0, *, rounds: int = 1000, alpha: float = 0.1
    ) -> None:
        self._rules = Rules(problem, rounds, alpha)
        self.agent = check_whole("agent", agent, 0)
        if self.agent >= self._rules.agents:
            raise InvalidValueError(
                f"agent is {agent}, but the problem's agents are numbered 0 to "
                f"{self._rules.agents - 1}."
            )
        self.observation_space = self._rules.observation_space()
        self.action_space = self._rules.action_space()
        self._episode: Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start an episode; returns the first observation and what may be known besides."""
        super().reset(seed=seed)
        self._episode = Episode(self._rules, self._rules.seed(seed, self.np_random))
        return self._episode.observe(self.agent), self._episode.announce(self.agent)

    def step(self, action: int) -> tuple[Observation, float, bool, bool, Info]:
        """Play an action; returns observation, reward, terminated, truncated, info."""
        episode = self._episode
        if episode is None or episode.over:
            raise gymnasium.error.ResetNeeded("the episode has not begun or is over: call reset().")
        reward, info = episode.play(self.agent, action)
        over = episode.advance()
        info |= episode.announce(self.agent)
        return episode.observe(self.agent), reward, False, over, info
