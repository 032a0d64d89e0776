"""An agent in the user's own process: decide, play, and tell it the reward later."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from guardband.algorithms import Algorithm
from guardband.checks import check_whole
from guardband.core.serve import NOT_FINITE, REPORT_SIZE, TOO_LONG, learn, load_menu, serve
from guardband.core.types import Floats
from guardband.fleet.decision import REASONS, Decision, UnknownDecisionError
from guardband.fleet.settings import settle_algorithm
from guardband.fleet.storage import load_team, save_team
from guardband.fleet.team import Team

__all__ = ["Agent"]

SLACK = 1.0 + 1e-9  # bounds are met up to rounding
SURE = 40.0  # a sub-Gaussian reward is never this many deviations from its mean
KINDS = ("learned", "baseline", "explored")
SENTENCES = [REASONS[reason] for reason in sorted(REASONS)]


class Agent:
    """One task, learning alone; `gb.Fleet` has several that learn together.

    An agent is safe to use from several threads. Rewards may come late, in any order, or never;
    but whether one is lost must not depend on what it was, or the confidence set fails.

    Parameters
    ----------
    dim
        The number of features, d.
    alpha
        The share of the baseline's reward that may be lost, in (0, 1].
    algorithm
        The algorithm; None: `gb.DiscUcb`. Conservative rounds play real actions (mix="action").
    horizon
        The number of rounds, if it is known; it sets when agents pool what they learned.
    reward_floor
        A positive number that the baseline's reward never falls below, for rounds in which its
        reward is not given.
    seed
        For the coins of conservative rounds.
    ridge, noise, context_noise, delta, theta_bound, feature_bound
        The confidence set, see `gb.DiscUcb`; they override the algorithm's own.

    Examples
    --------
    >>> import guardband as gb
    >>> agent = gb.Agent(dim=2, alpha=0.3)
    >>> decision = agent.decide([[1.0, 0.0], [0.0, 1.0]], baseline=0, baseline_reward=0.5)
    >>> decision.action, decision.kind
    (0, 'baseline')
    >>> agent.observe(decision.id, reward=0.52)
    """

    def __init__(
        self,
        dim: int,
        *,
        alpha: float | None = None,
        algorithm: Algorithm | None = None,
        horizon: int | None = None,
        reward_floor: float | None = None,
        seed: int = 0,
        **bounds: Any,
    ) -> None:
        settled = settle_algorithm(algorithm, alpha, bounds)
        team = Team(
            {"agent": range(check_whole("dim", dim))},
            dim=dim,
            algorithm=settled,
            horizon=horizon,
            reward_floor=reward_floor,
            seed=seed,
        )
        self._join(team, 0)

    @classmethod
    def _of(cls, team: Team, number: int) -> Agent:
        agent = cls.__new__(cls)
        agent._join(team, number)
        return agent

    def _join(self, team: Team, number: int) -> None:
        self._team, self._number = team, number
        self._theta, self._pending = team.states[number].estimate.theta, team.pending[number]
        self._index = np.array(team.tasks[number], np.int64)
        self._known, self._unknown = team.known_settings[number], team.unknown_settings[number]
        own, estimate, work = team.states[number]
        self._arrays = (*own, *estimate, work)  # the kernels take them one by one
        self._desk = (*self._arrays, *team.pooled)
        self._prefix = f"{team.names[number]}-"
        self._feature_limit = team.known.feature_bound * SLACK
        reach = team.known.feature_bound * team.known.theta_bound
        self._reward_limit = (reach + SURE * team.noise) * SLACK

    @property
    def name(self) -> str:
        """The task's name."""
        return self._team.names[self._number]

    @property
    def pending(self) -> int:
        """How many decisions still wait for their reward."""
        return len(self._pending)

    @property
    def rounds(self) -> int:
        """How many decisions this agent has made."""
        return self._team.rounds[self._number]

    @property
    def theta(self) -> Floats:
        """(d,): the estimate of the parameter, from the agent's own and the pooled data."""
        with self._team.lock:
            return self._theta.copy()

    def decide(
        self, features: Any, baseline: int, baseline_reward: float | None = None
    ) -> Decision:
        """Choose one of this round's actions.

        Parameters
        ----------
        features
            (K, dim), or (K, size of the task): the expected features of the actions on offer.
        baseline
            The row of the baseline's action.
        baseline_reward
            Its expected reward; None if it is not known.

        Returns
        -------
        Decision
            The action to play, what is promised about it, and the id for `observe`.
        """
        table, row, reward = self._request(features, baseline, baseline_reward)
        with self._team.lock:
            menu = self._menu(table)
            return self._decide(menu, row, reward)

    def decide_many(
        self, features: Sequence[Any], baselines: Sequence[int], baseline_rewards: Any = None
    ) -> list[Decision]:
        """Decide for a batch of requests that all rely on what is known now.

        Every request is checked before the first is decided: an error changes nothing.

        Parameters
        ----------
        features
            One table of features per request, each as for `decide`; they may differ in length.
        baselines
            The row of the baseline's action in each.
        baseline_rewards
            Its expected reward in each, or None where it is not known; None: nowhere.
        """
        rewards = [None] * len(features) if baseline_rewards is None else list(baseline_rewards)
        if not len(features) == len(baselines) == len(rewards):
            raise ValueError(
                f"{len(features)} tables of features, {len(baselines)} baselines and "
                f"{len(rewards)} baseline rewards do not go together."
            )
        requests = [self._request(*r) for r in zip(features, baselines, rewards, strict=True)]
        with self._team.lock:
            menus = [self._menu(table) for table, _, _ in requests]
            return [
                self._decide(menu, row, reward)
                for menu, (_, row, reward) in zip(menus, requests, strict=True)
            ]

    def observe(self, decision_id: str, reward: float) -> None:
        """Learn the reward of a decision; once for each, in any order.

        Parameters
        ----------
        decision_id
            `Decision.id`.
        reward
            The reward that was seen.
        """
        team = self._team
        value = _as_reward(reward, self._reward_limit)
        with team.lock:
            x, guess = self._awaited(decision_id)
            del self._pending[decision_id]
            number = self._number
            since = team.rounds[number] - team.rounds_pooled[number]
            logdet = team.logdet_pooled
            if learn(*self._arrays, self._known, x, value, guess, logdet, since):
                team.call_for_pooling(number)

    def void(self, decision_id: str) -> None:
        """Give up waiting for a reward; only for causes that do not depend on it."""
        with self._team.lock:
            self._awaited(decision_id)
            del self._pending[decision_id]

    def save(self, path: str | Path) -> Path:
        """Write everything the agent knows, pending decisions included, to one file."""
        return save_team(self._team, path)

    @classmethod
    def load(cls, path: str | Path) -> Agent:
        """Return the agent that was saved; its decisions go on as if nothing had happened."""
        team = load_team(path)
        if team.names != ("agent",):
            raise ValueError(f"{path} holds the tasks {list(team.names)}: use gb.Fleet.load.")
        return cls._of(team, 0)

    def _request(
        self, features: Any, baseline: int, baseline_reward: float | None
    ) -> tuple[Floats, int, float | None]:
        """Check a request as far as it does not need the numbers themselves."""
        try:
            table = np.ascontiguousarray(features, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("features must be a table of numbers, one row per action.") from None
        size = self._index.size
        if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] not in (self._team.dim, size):
            wanted = f"(K, {self._team.dim})" + (
                f" or (K, {size})" if size < self._team.dim else ""
            )
            raise ValueError(f"features must have shape {wanted} with K > 0, not {table.shape}.")
        if not table.flags.writeable:
            table = table.copy()
        try:
            row = operator.index(baseline)
        except TypeError:
            raise TypeError(f"baseline must be the row of an action, not {baseline!r}.") from None
        if not 0 <= row < table.shape[0]:
            raise ValueError(f"baseline {row} is not one of the {table.shape[0]} actions.")
        if baseline_reward is not None:
            baseline_reward = _as_baseline_reward(baseline_reward, self._team)
        return table, row, baseline_reward

    def _menu(self, table: Floats) -> Floats:
        menu = np.empty((self._team.dim, table.shape[0]))
        code, k = load_menu(table, self._index, self._feature_limit, menu)
        if code == NOT_FINITE:
            raise ValueError(f"features of action {k} are not finite: {table[k].tolist()}.")
        if code == TOO_LONG:
            index = list(self._index) if table.shape[1] == self._team.dim else slice(None)
            raise ValueError(
                f"features of action {k} have length {np.linalg.norm(table[k, index]):.6g}, more "
                f"than feature_bound={self._team.known.feature_bound:g}: scale the features, or "
                "state a larger bound."
            )
        return menu

    def _decide(self, menu: Floats, baseline: int, reward: float | None) -> Decision:
        team, number = self._team, self._number
        team.settle(number)
        settings = self._unknown if reward is None else self._known
        actions = menu.shape[1]
        desk, kept = np.empty((3, actions)), np.empty(actions, np.bool_)
        x, report = np.empty(team.dim), np.empty(REPORT_SIZE)
        serve(
            *self._desk,
            settings,
            self._index,
            menu,
            baseline,
            0.0 if reward is None else reward,
            team.next_coin[number],
            desk,
            kept,
            x,
            report,
        )
        action, kind, reason, mean, upper, floor, propensity = report.tolist()
        team.next_coin[number] = team.coins[number].random()
        team.rounds[number] += 1
        name = f"{self._prefix}{team.rounds[number]}"
        self._pending[name] = (x, mean)
        return Decision(
            name,
            int(action),
            KINDS[int(kind)],
            SENTENCES[int(reason)],
            mean,
            2.0 * mean - upper,
            upper,
            floor,
            propensity,
            kept,
        )

    def _awaited(self, decision_id: str) -> tuple[Floats, float]:
        found = self._pending.get(decision_id)
        if found is not None:
            return found
        prefix, _, count = str(decision_id).rpartition("-")
        if f"{prefix}-" == self._prefix and count.isdecimal() and 0 < int(count) <= self.rounds:
            raise UnknownDecisionError(f"decision {decision_id!r} was observed or given up before.")
        raise UnknownDecisionError(
            f"{decision_id!r} is no decision of task {self.name!r}; give the id of one of its own."
        )


def _as_reward(value: float, limit: float) -> float:
    try:
        reward = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"reward must be a number, not {value!r}.") from None
    if not math.isfinite(reward):
        raise ValueError(f"reward must be finite, not {reward}.")
    if abs(reward) > limit:
        raise ValueError(
            f"reward {reward:g} contradicts the stated bounds: with feature_bound, theta_bound and "
            f"noise as they are, none exceeds {limit:.6g}. Rescale rewards, or state larger bounds."
        )
    return reward


def _as_baseline_reward(value: float, team: Team) -> float:
    try:
        reward = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"baseline_reward must be a number, not {value!r}.") from None
    limit = team.known.theta_bound * team.known.feature_bound * SLACK
    if not math.isfinite(reward) or abs(reward) > limit:
        raise ValueError(
            f"baseline_reward must be finite and at most theta_bound * feature_bound = {limit:.6g} "
            f"in size, not {reward:g}: it is an expected reward."
        )
    return reward
