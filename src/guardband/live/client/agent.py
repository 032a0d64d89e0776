"""An agent in the user's own process that learns together with agents elsewhere."""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from guardband.agent.agent import Agent
from guardband.agent.decision import Decision
from guardband.agent.inputs import as_id, as_number, as_reward, reward_range
from guardband.agent.requests import RequestReader
from guardband.checks import check_whole
from guardband.kernels.types import Floats
from guardband.live.client.forking import survive_forks
from guardband.live.client.windows import Clock
from guardband.live.link import Unreachable, link_to
from guardband.live.protocol.messages import Refused, Report

__all__ = ["LiveAgent"]

log = logging.getLogger("guardband.live")
LAST_ROUND = 2**52  # a coordinator takes no number beyond 2^53
OPEN: weakref.WeakSet[LiveAgent] = weakref.WeakSet()


class LiveAgent(Agent):
    """An agent that learns together with agents in other processes.

    `decide` and `observe` work on this process's own state and its journal: they never wait for
    the network. Whatever they have returned survives the end of the process.

    Parameters
    ----------
    dim
        The number of features, d; may be left out where the space exists.
    coordinator
        "local:FOLDER": a file that the processes of one host share, no server; or the address of
        a coordinator, "https://...".
    space
        The name of the space.
    task
        The name of this agent's task in it.
    uses
        The features that the task uses, by number or by name; None: all.
    token
        What the coordinator's operator gave out for this task; for HTTP. None: from the variable
        GUARDBAND_AGENT_TOKEN.
    state_dir
        Where the journal is kept. Processes on one host that share it are one agent. By default
        FOLDER/agents/SPACE/TASK, or with HTTP a folder of the user's.
    background
        True: messages are carried by threads in the background; False: when `sync` is called.
    shadow
        True: decide and write everything down, but always play the baseline.
    ephemeral
        True: this state folder will not come back, as in a container: `close` ends its stream.
    keep_decisions
        How many decisions that have ended the journal keeps, for later questions.
    alpha, algorithm, reward_floor, seed
        As for `gb.Agent`; coins come from the system's randomness where no seed is given.
    clock
        For tests.
    **given
        What the space is, by the names of its settings: agents (how many tasks may join), contexts
        ("shared" or "per-request"), features, noise, theta_bound, feature_bound, delta, mode,
        rewards={"window_s": ...}, sync={"trigger": ...} and so on. With "local:" the first agent
        makes the space from it; where it exists, what is given must be what it has.
    """

    def __init__(
        self,
        dim: int | None = None,
        *,
        coordinator: str,
        task: str,
        space: str = "default",
        uses: Sequence[Any] | None = None,
        token: str | None = None,
        state_dir: str | Path | None = None,
        background: bool = True,
        shadow: bool = False,
        ephemeral: bool = False,
        keep_decisions: int = 100_000,
        alpha: float | None = None,
        algorithm: Any = None,
        reward_floor: float | None = None,
        seed: int | None = None,
        clock: Clock | None = None,
        **given: Any,
    ) -> None:
        # SQLite and all that needs it, only where there are live agents.
        from guardband.live.client.agent_state import AgentSetup  # noqa: PLC0415
        from guardband.live.client.decisions import Decisions  # noqa: PLC0415
        from guardband.live.client.joining import as_given, join  # noqa: PLC0415
        from guardband.live.client.sync_worker import SyncWorker  # noqa: PLC0415

        keep = check_whole("keep_decisions", keep_decisions)
        if seed is not None:
            check_whole("seed", seed, 0)
        said = as_given(alpha, algorithm, {"dim": dim, **given})
        link = link_to(coordinator, token)
        try:
            joined = join(link, coordinator, space, task, uses, state_dir, said)
        except BaseException:
            link.close()
            raise
        setup = AgentSetup(space, task, joined.uses, reward_floor, seed, bool(shadow))
        self._folder, self._background, self._ephemeral = joined.folder, background, ephemeral
        self._store = Decisions(joined.folder / "journal.db", setup, joined.space, clock or Clock())
        self._worker = SyncWorker(self._store, link, said, keep)
        self._know_rules()
        self._forked = self._closed = False
        OPEN.add(self)
        self._first_contact(joined.trouble)
        if background:
            self._worker.start()

    def _know_rules(self) -> None:
        """Check requests against the rules in use; until they are told, those are a guess."""
        self._group = self._store.learner.group
        self._number, self._reader = 0, RequestReader(self._group)

    def _first_contact(self, trouble: str | None) -> None:
        """Register and hear what is new; where nobody answers, go on without."""
        if trouble is None:
            try:
                self._worker.sync()
                return
            except Refused:
                self.close()
                raise
            except Unreachable as problem:
                trouble = str(problem)
        self._worker.trouble = trouble
        log.warning("guardband: %s", trouble)

    @property
    def name(self) -> str:
        """The task's name."""
        return self._store.setup.task

    @property
    def state_dir(self) -> Path:
        """Where the journal is."""
        return self._folder

    @property
    def pending(self) -> int:
        """How many decisions have not ended: their reward, or their turn, is still to come."""
        self._come_to()
        with self._store:
            return self._store.last - self._store.settled

    @property
    def rounds(self) -> int:
        """How many decisions are in this agent's journal, or have been."""
        self._come_to()
        with self._store:
            return self._store.last

    @property
    def counted(self) -> int:
        """How many observations of this agent's stream count."""
        self._come_to()
        with self._store:
            return self._store.n

    @property
    def epoch(self) -> int:
        """The epoch whose sum is in use; 0: none."""
        self._come_to()
        with self._store:
            return self._store.chain.epoch

    @property
    def theta(self) -> Floats:
        """(d,): the estimate of the parameter, from the agent's own and the pooled data."""
        self._come_to()
        with self._store:
            theta: Floats = self._store.learner.state.estimate.theta.copy()
            return theta

    def decide(
        self,
        features: Any,
        baseline: int,
        baseline_reward: float | None = None,
        *,
        support: Any = None,
        weights: Any = None,
        covariance: Any = None,
        round: int | None = None,
    ) -> Decision:
        """Choose one of this round's actions, and write it down.

        Parameters
        ----------
        features, baseline, baseline_reward, support, weights, covariance
            As for `gb.Agent`.
        round
            Where tasks share contexts: the number of the round, the same for all of them.

        Returns
        -------
        Decision
            The action to play, what is promised about it, and the id for `observe`.
        """
        self._come_to()
        if self._group is not self._store.learner.group:
            self._know_rules()
        request = self._reader.read(
            features, baseline, baseline_reward, support, weights, covariance
        )
        return self._store.decide([request], self._round(round))[0]

    def decide_many(
        self,
        features: Sequence[Any],
        baselines: Sequence[int],
        baseline_rewards: Any = None,
        *,
        supports: Any = None,
        weights: Any = None,
        covariances: Any = None,
        round: int | None = None,
    ) -> list[Decision]:
        """Decide for a batch of requests that all rely on what is known now; all or none.

        Parameters
        ----------
        features, baselines, baseline_rewards, supports, weights, covariances
            As for `gb.Agent`.
        round
            Where tasks share contexts, every request is a round: the number of the first.
        """
        self._come_to()
        if self._group is not self._store.learner.group:
            self._know_rules()
        requests = self._reader.read_many(
            features, baselines, baseline_rewards, supports, weights, covariances
        )
        return self._store.decide(requests, self._round(round))

    def _round(self, given: int | None) -> int | None:
        """Return the number of a round; where others share its context, it must be given.

        A count of one's own decisions says nothing about others: who joined late, or skipped a
        day, would be taken for somebody who decided long ago. Until the rules are told, nothing is
        learned, and no number matters.
        """
        if given is None:
            store, space = self._store, self._store.space
            if store.version > 0 and store.shared and space.agents > 1:
                raise ValueError(
                    f"the tasks of space {space.name!r} share contexts: give round=..., the number "
                    "of the round, the same for all tasks (the day's number, say). Where every "
                    "request has a context of its own, declare contexts='per-request'."
                )
            return None
        number = check_whole("round", given)
        if number > LAST_ROUND:
            raise ValueError(f"round {number} is beyond 2^52: number rounds from 1 on.")
        return number

    def observe(self, decision_id: str | Decision, reward: float) -> None:
        """Take in the reward of a decision.

        The same reward again changes nothing; another one is refused. What comes after the
        window does not count.

        Parameters
        ----------
        decision_id
            `Decision.id`, or the decision itself.
        reward
            The reward that was seen, within the space's bounds.
        """
        self._come_to()
        value = as_number("reward", reward)
        rules = self._store.rules
        if not rules.low <= value <= rules.high:
            raise ValueError(
                f"reward {value:g} is not between {rules.low:g} and {rules.high:g}, as the space "
                "declares: scale rewards, or use a space with other bounds."
            )
        as_reward(value, reward_range(self._group.algorithm))
        self._store.close(as_id(decision_id), value)
        if self._store.due:
            self._worker.wake()

    def discard(self, decision_id: str | Decision) -> None:
        """Exclude a decision; only for causes that do not depend on its reward."""
        self._come_to()
        self._store.close(as_id(decision_id), None)

    def sync(self) -> bool:
        """Carry messages to and from the coordinator, now, in this thread.

        Returns
        -------
        bool
            False where another process with the same state_dir does it.

        Raises
        ------
        Unreachable
            Where the coordinator does not answer; nothing is lost.
        """
        self._come_to()
        return self._worker.sync()

    def report(self) -> Report:
        """Return how the agent fares: what the dashboard is told."""
        from guardband.live.client.self_report import make_report  # noqa: PLC0415

        self._come_to()
        return make_report(self._store)

    def health(self) -> dict[str, Any]:
        """Return in a few words how the agent fares; quicker than `report`."""
        self._come_to()
        with self._store as store:
            return {
                "space": store.setup.space,
                "task": store.setup.task,
                "mode": store.held_back() or "running",
                "decisions": store.last,
                "pending": store.last - store.settled,
                "counted": store.n,
                "epoch": store.chain.epoch,
                "trouble": self._worker.trouble,  # why the coordinator is not reached
            }

    def close(self, *, ephemeral: bool | None = None) -> None:
        """Hand in what was counted and let go of everything; decisions can wait for another day.

        Parameters
        ----------
        ephemeral
            True: the state folder will not come back, so end the stream. None: as at the start.
        """
        if self._closed:
            return
        self._closed = True
        OPEN.discard(self)
        if self._forked:  # a child that never used it has nothing of its own
            return
        self._worker.stop(seal=self._ephemeral if ephemeral is None else ephemeral)
        with self._store.lock:
            self._store.journal.close()

    def __enter__(self) -> LiveAgent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def save(self, path: str | Path) -> NoReturn:
        """Refuse: a live agent's journal is always saved."""
        raise TypeError(f"a live agent needs no saving: its journal is in {self._folder}.")

    @classmethod
    def load(cls, path: str | Path) -> NoReturn:
        """Refuse: a live agent goes on from its state_dir."""
        raise TypeError("a live agent goes on from its state_dir: give that to gb.Agent.")

    def hold(self) -> None:
        """Let nothing change until `let_go`; the process forks."""
        self._store.lock.acquire()
        self._worker.link.hold()
        self._store.journal.rest()

    def let_go(self) -> None:
        """Go on, in the parent."""
        self._worker.link.let_go()
        self._store.lock.release()

    def left_behind(self) -> None:
        """Note that this is a forked child's copy; it opens everything anew when it is used."""
        self._forked = True
        self._worker.lock.leave()
        self._worker.link.after_fork()
        self._store.lock = threading.RLock()  # whoever had it is not here

    def _come_to(self) -> None:
        """Refuse once closed; open everything anew in a forked process that has not done so."""
        if self._closed:
            raise ValueError(
                f"this agent was closed: make a new one with state_dir={str(self._folder)!r}, and "
                "it goes on where this one was."
            )
        if not self._forked:
            return
        self._forked = False
        self._store.reopen()
        self._worker.after_fork()
        if self._background:
            self._worker.start()


def _at_exit() -> None:
    for agent in list(OPEN):
        agent.close()


survive_forks(OPEN)
atexit.register(_at_exit)
