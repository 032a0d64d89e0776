"""An agent in the user's own process: decide, play, and tell it the reward later."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from guardband.agent.decision import Decision, UnknownDecisionError
from guardband.agent.engine import NO_COVARIANCE, NO_PAGES, NO_WEIGHTS, Awaited, Request
from guardband.agent.inputs import as_id, as_number, as_plain_array, as_reward
from guardband.agent.settings import settle_algorithm
from guardband.agent.storage import load_team, save_team
from guardband.agent.team import Team
from guardband.algorithms import Algorithm
from guardband.checks import as_array, check_whole
from guardband.kernels.serve import NOT_FINITE, TOO_LONG, load_menu
from guardband.kernels.types import Floats

__all__ = ["Agent"]

SLACK = 1.0 + 1e-9  # bounds are met up to rounding


class Agent:
    """One task, learning alone; `gb.Fleet` has several that learn together.

    With coordinator="local:FOLDER" or "https://..." it learns together with agents in other
    processes, keeps a journal, and takes more settings: see `guardband.live.LiveAgent`.

    An agent is safe to use from several threads. Rewards may come late, in any order, or never;
    but whether one is lost must not depend on what it was, or the confidence set fails.

    Parameters
    ----------
    dim
        The number of features, d.
    alpha
        The share of the baseline's reward that may be lost, in (0, 1].
    algorithm
        The algorithm; None: `gb.GuardUCB`. DiSC-UCB's conservative rounds play real actions
        (mix="action").
    horizon
        The number of rounds, if it is known; it sets when agents pool what they learned.
    reward_floor
        A positive number that the baseline's reward never falls below, for rounds in which its
        reward is not given.
    seed
        For the coins of conservative rounds.
    ridge, noise, context_noise, delta, theta_bound, feature_bound
        Bounds, see `gb.DiscUCB`; they override the algorithm's own. For Guard-UCB context_noise
        is its spread.

    Examples
    --------
    >>> import guardband as gb
    >>> agent = gb.Agent(dim=2, alpha=0.3)
    >>> decision = agent.decide([[1.0, 0.0], [0.0, 1.0]], baseline=0, baseline_reward=0.5)
    >>> decision.action, decision.kind
    (0, 'baseline')
    >>> agent.observe(decision.id, reward=0.52)
    """

    connected: ClassVar[type[Agent] | None] = None  # agents with a coordinator; a room above

    def __new__(cls, *args: Any, **settings: Any) -> Agent:
        """Return an agent of the kind that the settings ask for."""
        asked = cls is Agent and settings.get("coordinator") is not None
        return object.__new__(Agent.connected if asked and Agent.connected else cls)

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
        if bounds.get("coordinator", "") is None:
            del bounds["coordinator"]
        settled, feature_bound = settle_algorithm(algorithm, alpha, bounds)
        team = Team(
            {"agent": range(check_whole("dim", dim))},
            dim=dim,
            algorithm=settled,
            feature_bound=feature_bound,
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
        self._index = team.coords[number]
        self._prefix = f"{team.names[number]}-"
        self._feature_limit = team.feature_bound * SLACK
        self._reward_limit = team.engine.reward_limit * SLACK

    def __repr__(self) -> str:
        team = self._team
        try:
            fares = f"{self.rounds:,} decisions, {self.pending:,} without a reward"
        except ValueError:  # a live agent that was closed
            fares = "closed"
        kind, used = type(self).__name__, f"{self._index.size} of {team.dim} features"
        return f"<{kind} {self.name!r}: {team.algorithm.name}, {used}, {fares}>"

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
        self,
        features: Any,
        baseline: int,
        baseline_reward: float | None = None,
        *,
        support: Any = None,
        weights: Any = None,
        covariance: Any = None,
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
        support, weights
            (n, K, dim) features in each possible context, and their probabilities, of which
            `features` is the mean; `gb.feature_support` makes them. Guard-UCB learns faster, and
            can promise more, where they are known.
        covariance
            (K, dim, dim), or (1, dim, dim) for all actions alike: the covariance of
            phi(action) - (1 - alpha) phi(baseline) over the hidden context, for realised=("chance",
            eps) where the support is not finite; `gb.difference_covariance` makes it.

        Returns
        -------
        Decision
            The action to play, what is promised about it, and the id for `observe`.
        """
        request = self._request(features, baseline, baseline_reward, support, weights, covariance)
        with self._team.lock:
            return self._decide(request)

    def decide_many(
        self,
        features: Sequence[Any],
        baselines: Sequence[int],
        baseline_rewards: Any = None,
        *,
        supports: Any = None,
        weights: Any = None,
        covariances: Any = None,
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
        supports, weights, covariances
            What `decide` takes beside them, one for each request; None: for none.
        """
        requests = self._requests(
            features, baselines, baseline_rewards, supports, weights, covariances
        )
        with self._team.lock:
            return [self._decide(request) for request in requests]

    def _requests(
        self,
        features: Sequence[Any],
        baselines: Sequence[int],
        *columns_given: Any,
    ) -> list[Request]:
        """Check a batch; nothing is changed before all of it is found good."""
        count = len(features)
        columns = [[None] * count if column is None else list(column) for column in columns_given]
        lengths = [count, len(baselines), *(len(column) for column in columns)]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"{count} tables of features, {len(baselines)} baselines and {lengths[2:]} of what "
                "goes with them do not fit together."
            )
        rows = zip(features, baselines, *columns, strict=True)
        return [self._request(*row) for row in rows]

    def observe(self, decision_id: str | Decision, reward: float) -> None:
        """Learn the reward of a decision; once for each, in any order.

        Parameters
        ----------
        decision_id
            `Decision.id`, or the decision itself.
        reward
            The reward that was seen; True and False count as 1 and 0.
        """
        value = as_reward(reward, self._reward_limit)
        name = as_id(decision_id)
        with self._team.lock:
            awaited = self._awaited(name)
            del self._pending[name]
            self._team.learn(self._number, awaited, value)

    def void(self, decision_id: str | Decision) -> None:
        """Give up waiting for a reward; only for causes that do not depend on it."""
        name = as_id(decision_id)
        with self._team.lock:
            self._awaited(name)
            del self._pending[name]

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
        self,
        features: Any,
        baseline: int,
        baseline_reward: float | None,
        support: Any = None,
        weights: Any = None,
        covariance: Any = None,
    ) -> Request:
        """Check a request; nothing is changed before all of it is found good."""
        table = self._table(features)
        try:
            row = operator.index(baseline)
        except TypeError:
            raise TypeError(f"baseline must be the row of an action, not {baseline!r}.") from None
        if isinstance(baseline, bool):
            raise TypeError(f"baseline must be the row of an action, not {baseline!r}.")
        if not 0 <= row < table.shape[0]:
            raise ValueError(f"baseline {row} is not one of the {table.shape[0]} actions.")
        if baseline_reward is not None:
            baseline_reward = self._as_baseline_reward(baseline_reward)
        menu = self._menu(table)
        pages, chances, spread = NO_PAGES, NO_WEIGHTS, NO_COVARIANCE
        if support is not None or weights is not None:
            pages, chances = self._support(support, weights, menu)
        if covariance is not None:
            spread = self._covariance(covariance, menu.shape[1])
        request = Request(menu, row, baseline_reward, pages, chances, spread)
        self._team.engine.check(request)
        return request

    def _table(self, features: Any) -> Floats:
        table = features if type(features) is np.ndarray else as_plain_array(features)
        if table.dtype != np.float64 or not table.flags.c_contiguous:
            if table.dtype.kind not in "fiu":
                raise ValueError(
                    f"features must be a table of numbers, one row per action, not {table.dtype}."
                )
            table = np.ascontiguousarray(table, dtype=np.float64)
        dim, size = self._team.dim, self._index.size
        if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] not in (dim, size):
            wanted = f"(K, {dim})" + (f" or (K, {size})" if size < dim else "")
            one = "; for one action: features[None, :]" if table.shape in ((dim,), (size,)) else ""
            raise ValueError(
                f"features must have shape {wanted} with K > 0, not {table.shape}: one row per "
                f"action{one}."
            )
        return table if table.flags.writeable else table.copy()

    def _menu(self, table: Floats) -> Floats:
        menu = np.empty((self._team.dim, table.shape[0]))
        code, k = load_menu(table, self._index, self._feature_limit, menu)
        if code == NOT_FINITE:
            raise ValueError(f"features of action {k} are not finite: {table[k].tolist()}.")
        if code == TOO_LONG:
            index = list(self._index) if table.shape[1] == self._team.dim else slice(None)
            raise ValueError(
                f"features of action {k} have length {np.linalg.norm(table[k, index]):.6g}, more "
                f"than feature_bound={self._team.feature_bound:g}: scale the features, or state a "
                "larger bound."
            )
        return menu

    def _support(self, support: Any, weights: Any, menu: Floats) -> tuple[Floats, Floats]:
        if support is None or weights is None:
            raise ValueError("support and weights go together: give both, or neither.")
        chances = as_array("weights", weights, (None,))
        if (chances < 0).any() or abs(chances.sum() - 1.0) > 1e-9:
            raise ValueError(
                f"weights must be probabilities that sum to 1, not to {chances.sum():.12g}."
            )
        pages = np.array([self._menu(self._table(page)) for page in support])
        if pages.shape != (chances.size, *menu.shape):
            raise ValueError(
                f"support has shape {np.shape(support)}, but there are {chances.size} weights and "
                f"{menu.shape[1]} actions."
            )
        worst = float(np.abs(np.einsum("n,ndk->dk", chances, pages) - menu).max())
        if worst > 1e-6:
            raise ValueError(
                f"features are not the mean of support under weights (off by {worst:.3g}): "
                "compute both from one distribution."
            )
        return pages, chances

    def _covariance(self, covariance: Any, actions: int) -> Floats:
        dim = self._team.dim
        array = as_array("covariance", covariance, (None, dim, dim))
        if len(array) not in (1, actions):
            raise ValueError(f"covariance has {len(array)} matrices for {actions} actions.")
        scale = max(float(np.abs(array).max()), 1e-300)
        if np.abs(array - array.transpose(0, 2, 1)).max() > 1e-9 * scale:
            raise ValueError("covariance is not symmetric.")
        least = float(np.linalg.eigvalsh(array).min())
        if least < -1e-9 * scale:
            raise ValueError(f"covariance has a negative eigenvalue, {least:.3g}.")
        return array

    def _as_baseline_reward(self, value: float) -> float:
        reward = as_number("baseline_reward", value)
        bound = getattr(self._team.algorithm, "theta_bound", math.inf)
        limit = bound * self._team.feature_bound * SLACK
        if not math.isfinite(reward) or abs(reward) > limit:
            raise ValueError(
                f"baseline_reward must be finite and at most theta_bound * feature_bound = "
                f"{limit:.6g} in size, not {reward:g}: it is an expected reward."
            )
        return reward

    def _decide(self, request: Request) -> Decision:
        team, m = self._team, self._number
        team.settle(m)
        turn = team.rounds[m] + 1
        v = team.engine.decide(m, request, team.poolings + 1, turn, team.next_coin[m])
        team.next_coin[m] = team.coins[m].random()
        team.rounds[m] = turn
        name = f"{self._prefix}{turn}"
        self._pending[name] = v.awaited
        return v.named(name)

    def _awaited(self, decision_id: str) -> Awaited:
        found = self._pending.get(decision_id)
        if found is not None:
            return found
        prefix, _, count = str(decision_id).rpartition("-")
        if f"{prefix}-" == self._prefix and count.isdecimal() and 0 < int(count) <= self.rounds:
            raise UnknownDecisionError(f"decision {decision_id!r} was observed or given up before.")
        raise UnknownDecisionError(
            f"{decision_id!r} is no decision of task {self.name!r}; give the id of one of its own."
        )
