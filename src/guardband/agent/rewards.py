"""What agents in a user's process do with rewards: of their own decisions, and of logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardband.agent.awaiting import awaitable
from guardband.agent.batches import learn_batch
from guardband.agent.decision import Decision
from guardband.agent.hooks import Hooked
from guardband.agent.inputs import as_batch, as_id, as_reward
from guardband.agent.learned import Learned
from guardband.agent.logs import learn_logs, read_logs
from guardband.agent.requests import RequestReader
from guardband.agent.view import AgentView

__all__ = ["RewardTaker"]


class RewardTaker(AgentView, Hooked):
    """The half of an agent that learns; `Agent` has the half that decides."""

    _reader: RequestReader
    _rewards: tuple[float, float]  # the least and the largest that are taken

    def observe(
        self, decision: str | Decision, reward: float, *, cost: float | None = None
    ) -> None:
        """Learn the reward of a decision; once for each, in any order.

        Parameters
        ----------
        decision
            `Decision.id`, or the decision itself.
        reward
            The reward that was seen; True and False count as 1 and 0. One that is farther outside
            [0, 1] than 6 times the stated noise is refused.
        cost
            What the play cost, where the `budget` has a `max_cost`; None: what was charged.
        """
        value = as_reward(reward, self._rewards)
        name, group = as_id(decision), self._group
        with group.lock:
            awaited = group.awaited(self._number, name)
            group.forget(self._number, name, group.refund(self._number, name, cost))
            group.learn(self._number, awaited, value)
        if self._hooks.on_reward:
            self._hooks.rewarded([name], [value])

    aobserve = awaitable(observe)
    """As `observe`, for event loops: `await` it."""

    def observe_many(
        self,
        decisions: Sequence[str | Decision],
        rewards: Sequence[float],
        *,
        costs: Sequence[float | None] | None = None,
    ) -> None:
        """Learn the rewards of a batch of decisions; an error changes nothing.

        Parameters
        ----------
        decisions
            Each `Decision.id`, or the decision itself; each once.
        rewards, costs
            The reward of each, and what it cost, as for `observe`.
        """
        names, values, paid = as_batch(decisions, rewards, self._rewards, costs)
        m, group = self._number, self._group
        with group.lock:
            awaited = [group.awaited(m, name) for name in names]
            less = [group.refund(m, name, each) for name, each in zip(names, paid, strict=True)]
            for name, back in zip(names, less, strict=True):
                group.forget(m, name, back)
            learn_batch(group, m, awaited, values)
        self._hooks.rewarded(names, values)

    aobserve_many = awaitable(observe_many)
    """As `observe_many`, for event loops: `await` it."""

    def override(self, decision: str | Decision, *, action: int) -> None:
        """Say that somebody played another action than the one that was decided.

        Before `observe`: the reward is then learned as that of `action`, with its features, its
        weight and its prediction as they stood at the decision. Only if whoever chose saw nothing
        that predicts the reward beyond the features; otherwise `discard` the decision. What is
        needed is kept of the newest decisions only.

        Parameters
        ----------
        decision
            `Decision.id`, or the decision itself.
        action
            The row of what was played.
        """
        with self._group.lock:
            self._group.override(self._number, as_id(decision), action)

    def learn(
        self,
        features: Any,
        rewards: Any,
        *,
        menus: Sequence[Any] | None = None,
        propensities: Any = None,
        ids: Sequence[str | int] | None = None,
        reuse: bool = False,
    ) -> Learned:
        """Learn from logs: what an earlier rule played and earned; an error changes nothing.

        Rows count as if this agent had played them. When its promises still hold: docs/logs.md.

        Parameters
        ----------
        features
            (n, dim), or (n, size of the task): the expected features of what was played, in the
            order in which it was played.
        rewards
            (n,): the reward of each, as for `observe`.
        menus
            Menus about which to report what was learned: tables of features as for `decide`, or
            pairs of a table and the row of its baseline.
        propensities
            (n,): the probability with which each was played. Learning needs none; the report says
            how many rows had no alternative.
        ids
            One per row. A row whose id was learned before, by any agent of the fleet, is refused.
        reuse
            Whether to learn rows that a study has looked at, too, which are refused otherwise. From
            then on decisions promise "reused" in place of "play", "policy" and "trial".
        """
        logs = read_logs(self._reader, self._rewards, features, rewards, menus, propensities, ids)
        with self._group.lock:
            return learn_logs(self._group, self._number, logs, reuse=reuse)

    def discard(self, decision: str | Decision) -> None:
        """Give up waiting for a reward; only for causes that do not depend on it."""
        name = as_id(decision)
        with self._group.lock:
            self._group.awaited(self._number, name)
            self._group.forget(self._number, name)
