"""An agent in the user's own process that learns together with agents elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from guardband.agent import Decision, Hooked, Hooks, Learned, as_batch, as_id, as_list, awaitable
from guardband.checks import check_seed, check_whole
from guardband.contexts import Discrete, Gaussian
from guardband.errors import InvalidValueError
from guardband.live.client.agent_state import AgentSetup
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.decisions import Decisions
from guardband.live.client.forking import ForkGuard, close_at_exit
from guardband.live.client.joining import join, undo_of
from guardband.live.client.logged_rows import LogBlock, LoggedRows
from guardband.live.client.outcomes import Outcomes
from guardband.live.client.overrides import override
from guardband.live.client.protocol_client import ProtocolClient
from guardband.live.client.self_report import make_status
from guardband.live.client.sync_worker import SyncTiming, SyncWorker
from guardband.live.client.view import LiveAgentView
from guardband.live.client.watching import note_looked_at
from guardband.live.client.windows import Clock
from guardband.live.link import Link, Unreachable
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.space import SpaceSettings

__all__ = ["LiveAgent"]

log = logging.getLogger("guardband.live")


class LiveAgent(LiveAgentView, Hooked):
    """An agent that learns together with agents in other processes; `gb.connect` makes them.

    `decide` and `observe` work on this process's own state and its journal: they never wait for
    the network. Whatever they have returned survives the end of the process.

    Parameters
    ----------
    link
        The connection to the coordinator; `close` closes it.
    state_dir
        Where the journal is kept.
    create
        Whether to make the space from `settings` where it does not exist.
    clock, timing
        By which windows end, and how often messages are sent; for tests.
    task, space, settings, uses, background, shadow, ephemeral, keep_decisions, seed
        See `gb.connect`.

    Examples
    --------
    >>> import tempfile
    >>> import guardband as gb
    >>> space = gb.SpaceSettings(features=["match", "fresh"], agents=2, contexts="per-request")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):  # it goes on where it ended
    ...         with gb.connect(f"local:{folder}", task="movies", settings=space) as agent:
    ...             agent.observe(agent.decide([[0.6, 0.2], [0.1, 0.9]], baseline=0), reward=0.4)
    ...             print("rounds:", agent.rounds)
    rounds: 1
    rounds: 2
    """

    def __init__(
        self,
        link: Link,
        *,
        state_dir: Path,
        create: bool,
        task: str,
        space: str = "default",
        settings: SpaceSettings | None = None,
        uses: Sequence[int | str] | None = None,
        background: bool = True,
        shadow: bool = False,
        ephemeral: bool = False,
        keep_decisions: int = 100_000,
        seed: int | None = None,
        clock: Clock | None = None,
        timing: SyncTiming | None = None,
    ) -> None:
        keep = check_whole("keep_decisions", keep_decisions)
        if seed is not None:
            check_seed(seed)
        try:
            joined = join(link, space, task, uses, state_dir, settings, create=create)
        except BaseException:
            link.close()
            raise
        setup = AgentSetup(space, task, joined.uses, joined.reward_floor, seed, bool(shadow))
        self._folder, self._ephemeral, self._closed = state_dir, ephemeral, False
        self._hooks, undo = Hooks(), undo_of(state_dir)
        self._store = AgentStore(state_dir / "journal.db", setup, joined.space, clock or Clock())
        client = ProtocolClient(self._store)
        if joined.space is not None and joined.version:
            client.told(joined.space, joined.version)
        self._decisions, self._outcomes = Decisions(self._store, client), Outcomes(self._store)
        self._worker = SyncWorker(
            self._store, self._outcomes, client, link, settings, keep, timing or SyncTiming()
        )
        self._logs = LoggedRows(self._store, self._worker, link)
        self._forks = ForkGuard(self._store, link, self._worker, background=background)
        close_at_exit(self)
        self._first_contact(joined.trouble, undo)
        if background:
            self._worker.start()

    def _first_contact(self, trouble: str | None, undo: Callable[[], None]) -> None:
        """Register and hear what is new; where the coordinator does not answer, go on without."""
        if trouble is None:
            try:
                self._store.undamaged(self._worker.sync)
                return
            except Unreachable as problem:
                trouble = str(problem)
            except BaseException as problem:
                unused = self._store.state.last == 0
                self.close()  # its lock would keep the next agent of this folder from sending
                if isinstance(problem, Refused) and unused:
                    undo()
                raise
        self._worker.trouble = trouble
        log.warning("guardband: %s", trouble)

    def decide(
        self,
        features: Any,
        baseline: Any,
        baseline_reward: float | None = None,
        *,
        support: Any = None,
        weights: Any = None,
        covariance: Any = None,
        labels: Sequence[Any] | None = None,
        value: Any = None,
        cost: Any = None,
        round: int | None = None,
    ) -> Decision:
        """Choose one of this round's actions, and write it down.

        Parameters
        ----------
        features, baseline, baseline_reward, support, weights, covariance, labels, value, cost
            As for `gb.Agent`; the budget is the space's.
        round
            Where tasks share contexts: the number of the round, the same for all of them.
        """
        state = self._opened().state
        request = state.learner.reader.read(
            features, baseline, baseline_reward, support, weights, covariance, labels, value, cost
        )
        return self._hooks.decided(self._decisions.decide([request], round))[0]

    adecide = awaitable(decide)
    """As `decide`, for event loops: `await` it."""

    def decide_from(
        self,
        feature_map: Callable[[Any, Any], Any],
        actions: Sequence[Any],
        distribution: Discrete | Gaussian,
        baseline: int,
        baseline_reward: float | None = None,
        *,
        value: Any = None,
        cost: Any = None,
        round: int | None = None,
    ) -> Decision:
        """Choose one of this round's actions, from a distribution of the hidden context.

        Parameters
        ----------
        feature_map, actions, distribution, baseline, baseline_reward, value, cost, round
            As for `gb.Agent` and `decide`.
        """
        state = self._opened().state
        request = state.learner.reader.read_from(
            feature_map, actions, distribution, baseline, baseline_reward, value, cost
        )
        return self._hooks.decided(self._decisions.decide([request], round))[0]

    def decide_many(
        self,
        features: Sequence[Any],
        baselines: Sequence[Any],
        baseline_rewards: Any = None,
        *,
        supports: Any = None,
        weights: Any = None,
        covariances: Any = None,
        labels: Any = None,
        values: Any = None,
        costs: Any = None,
        round: int | None = None,
    ) -> list[Decision]:
        """Decide for a batch of requests that all rely on what is known now; all or none.

        Parameters
        ----------
        features, baselines, baseline_rewards, supports, weights, covariances, labels, values, costs
            As for `gb.Agent`.
        round
            Where tasks share contexts, every request is a round: the number of the first.
        """
        state = self._opened().state
        given = (supports, weights, covariances, labels, values, costs)
        requests = state.learner.reader.read_many(features, baselines, baseline_rewards, *given)
        return self._hooks.decided(self._decisions.decide(requests, round))

    adecide_many = awaitable(decide_many)
    """As `decide_many`, for event loops: `await` it."""

    def observe(
        self, decision: str | Decision, reward: float, *, cost: float | None = None
    ) -> None:
        """Take in the reward of a decision.

        The same reward again changes nothing; another one is refused. What comes after the
        window does not count.

        Parameters
        ----------
        decision, reward
            `Decision.id`, or the decision itself; and its reward, within the space's bounds.
        cost
            What the play cost, where the budget has a `max_cost`; None: what was charged.
        """
        name, value = as_id(decision), self._opened().state.as_reward(reward)
        self._outcomes.close(name, value, cost)
        self._wake_if_due()
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
        """Take in the rewards of a batch of decisions, in their order; an error changes nothing.

        Parameters
        ----------
        decisions, rewards
            Each `Decision.id`, or the decision itself, each once; and the reward of each.
        costs
            What each cost, as for `observe`.
        """
        state = self._opened().state
        seen = [state.as_reward(reward) for reward in as_list("rewards", rewards)]
        names, values, paid = as_batch(decisions, seen, state.learner.reward_range, costs)
        self._outcomes.close_all(list(zip(names, values, paid, strict=True)))
        self._wake_if_due()
        self._hooks.rewarded(names, values)

    aobserve_many = awaitable(observe_many)
    """As `observe_many`, for event loops: `await` it."""

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
        """Learn from logs: what an earlier rule played and earned, each row once by its id.

        Rows whose ids the journal knows are left out. The coordinator must be in reach: it refuses
        rows that were learned in another state folder.

        Parameters
        ----------
        features, rewards, menus, propensities, reuse
            As for `gb.Agent`; the space keeps which rows were looked at.
        ids
            One per row. None: from what all rows hold and the place of each.
        """
        whole = (features, rewards, propensities, ids)
        return self.learn_blocks(lambda: [whole], menus=menus, reuse=reuse)

    def learn_blocks(
        self,
        blocks: Callable[[], Iterable[LogBlock]],
        *,
        menus: Sequence[Any] | None = None,
        reuse: bool = False,
        rest: bool = False,
    ) -> Learned:
        """Learn from logs that do not fit into memory, as `learn` does.

        `blocks` returns them in blocks of rows: features, rewards, propensities or None, ids or
        None. It is called twice, because everything is checked before anything is learned. With
        `rest`, rows that a study has looked at are left out.
        """
        self._opened()
        learned = self._logs.learn(blocks, menus, reuse=reuse, rest=rest)
        self._wake_if_due()
        return learned

    def override(self, decision: str | Decision, *, action: int) -> None:
        """Say that somebody played another action than the one that was decided.

        As for `gb.Agent`, and written down. What was known at the decision is computed from the
        journal where this process does not remember it.
        """
        self._opened()
        override(self._store, as_id(decision), action)

    def discard(self, decision: str | Decision) -> None:
        """Leave a decision out; only for causes that do not depend on its reward."""
        self._opened()
        self._outcomes.close(as_id(decision), None)

    def resume(self) -> None:
        """Say that a person has looked at the alarms; play more than the baseline again.

        As for `gb.Agent`, and written down; the coordinator is told.
        """
        with self._opened():
            note_looked_at(self._store)
        self._worker.wake()

    def _wake_if_due(self) -> None:
        if self._store.state.due:
            self._worker.wake()

    def sync(self) -> bool:
        """Exchange messages with the coordinator now, in this thread.

        Returns
        -------
        bool
            False where another process with the same state_dir does it.

        Raises
        ------
        Unreachable
            Where the coordinator does not answer; nothing is lost.
        """
        return self._opened().undamaged(self._worker.sync)

    def status(self) -> dict[str, Any]:
        """Return the agent's main numbers; quicker than `report`."""
        return make_status(self._opened(), self._worker.trouble)

    def close(self, *, ephemeral: bool | None = None) -> None:
        """Upload what was counted and close all files; pending decisions stay in the journal.

        Parameters
        ----------
        ephemeral
            True: the state folder will not be used again, so end the stream. None: as in `connect`.
        """
        if self._closed:
            return
        self._closed = True
        self._forks.release()
        if self._forks.forked:  # a child that never used it has nothing of its own
            return
        self._worker.stop(seal=self._ephemeral if ephemeral is None else ephemeral)
        with self._store.lock:
            self._store.journal.close()

    def __enter__(self) -> LiveAgent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _opened(self) -> AgentStore:
        """Return the store; refuse once closed, and open it in a child that has not done so."""
        if self._closed:
            raise InvalidValueError(
                f"this agent was closed: make a new one with state_dir={str(self._folder)!r}, and "
                "it goes on where this one was."
            )
        if self._forks.forked:
            self._forks.open_again()
        return self._store
