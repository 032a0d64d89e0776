"""A live agent's state and its journal, kept consistent: every change is made to both."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from guardband.live import system
from guardband.live.client.account import (
    claim,
    kept_numbers,
    note_boot,
    open_account,
    put_account,
    put_spending,
)
from guardband.live.client.agent_state import COST_AT, AgentSetup, AgentState, empty_tally
from guardband.live.client.before import end_stream, measure_anew, read_before
from guardband.live.client.journal import DamagedJournalError, Head, Journal, JournalError
from guardband.live.client.learner import Learner, new_watch, unpack
from guardband.live.client.mending import mend_journal, undamaged
from guardband.live.client.notes import keep, kept
from guardband.live.client.stream_rows import (
    add_stream,
    excluded_from,
    load_stream,
    rest_of,
    save_stream,
    waiting_epochs,
)
from guardband.live.client.stream_state import StreamState
from guardband.live.client.watching import first_stream, put_memory, read_alarms, rewatch
from guardband.live.client.windows import Clock, End
from guardband.live.protocol.space import SpaceSettings

__all__ = ["AgentStore"]

Result = TypeVar("Result")


class AgentStore:
    """The state of one agent under one lock.

    `with store as state:` holds the lock and is one transaction of the journal. Another process
    may have written to the journal since, or a transaction may have failed: then the state is read
    again first. What this process has written itself is never read again.

    Parameters
    ----------
    path
        The journal.
    setup
        What the agent is.
    guess
        The space as far as it is known without a coordinator; for a new journal.
    clock
        By which windows end.
    """

    def __init__(
        self, path: Path, setup: AgentSetup, guess: SpaceSettings | None, clock: Clock
    ) -> None:
        self.path, self.setup, self.clock, self._guess = path, setup, clock, guess
        self.reopen()
        self.watch = new_watch(self.state.learner)

    def reopen(self) -> None:
        """Open the journal: at the start, or in a forked process."""
        self.lock = system.RLock()
        self.journal = undamaged(self.path, lambda: Journal(self.path))
        self.state = AgentState(shadow=self.setup.shadow)
        self._stale, self._claimed = True, False
        self.undamaged(self._set_clock)

    def undamaged(self, work: Callable[[], Result]) -> Result:
        """Do something; where that finds the journal damaged, do it again: that mends it first."""
        try:
            return work()
        except DamagedJournalError:
            return work()

    def _mend(self) -> None:
        """Go on with what is sound of a damaged journal."""
        self.journal.rest()
        self._guess = self.state.space if self.state.version > 0 else self._guess
        mend_journal(self.path)
        self._stale = True

    def __enter__(self) -> AgentState:
        self.lock.acquire()
        try:
            if self.journal.damaged:
                self._mend()
            if self.journal.begin() or self._stale:
                self._load(self._stale)
        except BaseException as error:
            self._stale = True
            try:
                self.journal.undo(error)
            finally:
                self.lock.release()
            raise
        return self.state

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stale = True  # until it is known that the transaction was kept
        try:
            if error is None:
                self.journal.commit()
                self._stale = False
                if self._claimed:
                    self._claimed = False
                    self.journal.flush()
            else:
                self.journal.undo(error)
        finally:
            self.lock.release()

    @property
    def pending(self) -> int:
        """How many decisions wait for a reward, or for their turn; within a transaction."""
        state = self.state
        return self.journal.open(state.settled) if state.pending else 0

    # What changes, within a transaction.

    def save(self) -> None:
        """Write the head to the journal: what changes with every reward."""
        self.journal.save_head(self.state.head())

    def save_all(self) -> None:
        """Write the head, and make other processes read everything again."""
        self.state.revision += 1
        self.save()

    def put_stream(self, before: StreamState, after: StreamState) -> None:
        """Go on with the next state of the same stream; the head is the caller's to save."""
        save_stream(self.journal, self.state.stream_id, before, after)
        self.state.stream = after

    def start_stream(self, stream: StreamState, *, lost: bool = False, why: str = "") -> None:
        """Go on with another stream; what is pending may be lost with the old one.

        With a reason `why` it is a new start in the old one's place, under its part of delta:
        rewards of decisions before it do not count.
        """
        end_stream(self, stream, lost)
        state, now = self.state, self.clock.now()
        before, state.stream_id = state.stream_id, state.stream_id + 1
        add_stream(self.journal, state.stream_id, stream, before, now, why)
        cost = 0.0
        if lost:
            cost = self.journal.cost_after(state.settled)
            self.journal.count(state.stream_id, "lost", self.journal.open(state.settled))
            self.journal.lose(state.settled, int(End.LOST), now)
            state.settled, state.heard = state.last, 0
        state.stream, state.n, state.due = stream, stream.open.n, False
        share, state.share, state.waiting = state.share, None, []
        state.tally, state.watched = empty_tally(), stream.open.n
        state.tally[COST_AT] = cost
        if why:
            state.first_stream = state.stream_id
            self._keep_share(before, share)
        elif lost:  # what the old stream has counted may count elsewhere
            state.learner.monitors.restart()
        self.load_learner(stream.open.as_bytes())
        put_memory(self, why)
        self.save_all()

    def _keep_share(self, before: int, share: float | None) -> None:
        """Go on with the part of delta of the stream whose place this one takes."""
        ((index,),) = self.journal.query("SELECT task_index FROM stream WHERE id = ?", (before,))
        if share is not None:
            self.put_share(index, share)

    def put_config(self, space: SpaceSettings, version: int) -> None:
        """Use a configuration from now on, if it is newer than the one in use."""
        if version <= self.state.version:
            return
        self.journal.query(
            "INSERT OR IGNORE INTO main.config VALUES (?, ?, ?)",
            (version, json.dumps(space.as_json()), self.clock.now()),
        )
        self.journal.query("UPDATE main.control SET config = ?", (version,))
        own = self.state.learner.own()
        if space.holdback != self.state.space.holdback:  # one interval is for one chance
            measure_anew(self)
        remembered = self.state.learner.monitors.as_bytes()
        self._use(space, version)
        self.state.learner.monitors.remember(remembered)
        self._load_spending()
        self.load_learner(own)

    def put_share(self, task_index: int, share: float) -> None:
        """Use another part of delta; what was decided before was decided with the one of then."""
        state = self.state
        if share != state.share:
            self.journal.query(
                "INSERT OR REPLACE INTO main.level(stream, from_seq, share) VALUES (?, ?, ?)",
                (state.stream_id, state.last + 1, share),
            )
        self.journal.query(
            "UPDATE main.stream SET task_index = ?, delta_share = ? WHERE id = ?",
            (task_index, share, state.stream_id),
        )
        state.share = share
        state.update_level()

    def put_spending(self) -> None:
        """Write down what was spent of the budget for costs, where there is one.

        Where that exceeds what was claimed, more is claimed, and put on disk with the transaction:
        seldom, so that decisions need not wait.
        """
        state = self.state
        if state.spending is None:
            return
        put_spending(self.journal, state.spending)
        if state.spending.spent > state.account.claimed:
            state.account = claim(self.journal, state.account, state.spending)
            self._claimed = True

    def put_granted(self, trials: float, costs: float) -> None:
        """Spend up to what the journal was granted."""
        before = self.state.account
        after = before._replace(trials=before.trials.plus(trials), costs=before.costs.plus(costs))
        if after != before:
            put_account(self.journal, after)
        self.state.account = after
        self.state.update_allowance()

    def put_control(self, paused: str | None, leased_at: float, leased_for: float | None) -> None:
        """Follow the coordinator's switches: a pause, and the exploration lease."""
        state = self.state
        if paused == state.paused and leased_for is None and state.leased_for is None:
            return
        self.journal.query(
            "UPDATE main.control SET paused = ?, leased_at = ?, leased_for = ?",
            (paused, leased_at, leased_for),
        )
        state.paused, state.leased_at, state.leased_for = paused, leased_at, leased_for
        state.update_free()

    def enter_round(self, number: int) -> None:
        """Decide in a round; what is too old by then does not count any more."""
        learner = self.state.learner
        own = learner.own() if self.state.space.half_at(number) > learner.half else b""
        if learner.enter(number):
            self.load_learner(own)

    def put_apart(self, apart: bool) -> None:
        """Note whether the task has left the pool, as the coordinator says."""
        state = self.state
        if apart != state.apart:
            self.journal.query("UPDATE main.control SET apart = ?", (int(apart),))
            state.apart = apart
        if not apart and state.stream.left:
            self.put_stream(state.stream, replace(state.stream, left=""))

    def load_learner(self, own: bytes) -> None:
        """Let the learner compute with the stream's sums and what was counted since."""
        state = self.state
        stream = state.stream
        state.learner.load(stream.pooled, stream.handed_in, own, stream.without)
        state.update_level()
        state.update_allowance()

    def prune(self, keep: int, most: int) -> int:
        """Forget up to `most` of the oldest decisions that ended and were reported, beyond `keep`.

        What monitors remember is written down first: it follows from rewards that may be gone.
        """
        with self as state:
            counted = self.journal.counts(state.stream_id).get("upto", 0)
            if state.last > keep and state.learner.monitors.kinds:
                put_memory(self)
            return self.journal.prune(keep, min(state.settled, counted), most)

    # What is read: at the start, and where another process has written.

    def _load(self, whole: bool) -> None:
        head, state = self.journal.head(), self.state
        if head is None:
            head = self._begin()
        state.fresh = {}
        state.last, state.last_round, _, state.spent = self.journal.last()
        whole = whole or head.revision != state.revision or head.rest != rest_of(state.stream)
        moved = whole or head.n != state.n
        state.take(head)
        if whole:
            self._load_rest(head)
        self._load_spending()
        if whole:
            paid = 0.0 if state.spending is None else state.spending.spent
            state.account = open_account(self.journal, state.spent, paid, state.last)
            boot = self.clock.boot
            if state.spending is not None and boot is not None and boot != state.account.boot:
                given = (state.account, state.spending, boot, state.last)
                state.account = note_boot(self.journal, *given)
        if state.learner.enter(state.last_round) or moved:
            self.load_learner(head.own)
            rewatch(self, whole)
        state.update_allowance()
        self._stale = False

    def _load_rest(self, head: Head) -> None:
        state, query = self.state, self.journal.query
        base = self._shared_base()
        if base is not None:
            self.clock.follow(base)
        ((version, state.paused, state.leased_at, state.leased_for, apart),) = query(
            "SELECT config, paused, leased_at, leased_for, apart FROM control"
        )
        state.apart = bool(apart)
        if version != state.version:
            self._use(self._known_space(version), version)
        open_ = unpack(head.own, state.space.dim)
        state.stream = load_stream(self.journal, head.stream, open_)
        ((state.share,),) = query("SELECT delta_share FROM stream WHERE id = ?", (head.stream,))
        state.waiting = waiting_epochs(self.journal, head.stream)
        state.excluded = excluded_from(self.journal, head.stream, state.stream.epoch)
        state.before = read_before(self.journal)
        state.alarms = read_alarms(self.journal, state.before.followed)
        state.first_stream = first_stream(self.journal, head.stream)

    def _load_spending(self) -> None:
        """Go on from what was spent of the budget for costs."""
        if self.state.spending is not None:
            self.state.spending.fill(kept_numbers(self.journal))

    def _known_space(self, version: int) -> SpaceSettings:
        """Return a version of the space's settings that was told, or what is assumed till then."""
        row = self.journal.one("SELECT space FROM config WHERE version = ?", (version,))
        if row is not None:
            return SpaceSettings.from_json(json.loads(row[0]))
        space = self._guess
        if space is None and (guess := kept(self.journal, "guess")) is not None:
            space = SpaceSettings.from_json(guess)  # no answer yet since the journal was made
        if space is None:
            raise JournalError(
                f"{self.path} was damaged, and nothing is known without the coordinator: start "
                "the agent again when it answers, or with settings=gb.SpaceSettings(...)."
            )
        return space

    def _use(self, space: SpaceSettings, version: int) -> None:
        """Decide by these settings; a new learner has no sums yet."""
        state, setup = self.state, self.setup
        if state.version < 0 or space != state.space:
            seed = secrets.randbits(63) if setup.seed is None else setup.seed + state.last
            state.learner = Learner(
                space, setup.task, setup.uses, reward_floor=setup.reward_floor, seed=seed
            )
            state.learner.start_at_once()
            state.learner.enter(state.last_round)
        state.version, state.space, state.timed = version, space, space.timed
        state.shared = space.contexts == "shared"

    def _begin(self) -> Head:
        """Write the first rows of a new journal, or of one that was damaged."""
        space = self._known_space(0)
        stream = StreamState.start(str(system.new_uuid()), space.dim)
        guess = space.as_json()
        about = self.setup._asdict() | {"features": guess["features"], "guess": guess}
        for key in ("space", "task", "uses", "reward_floor", "features", "guess"):
            keep(self.journal, key, about[key])
        self.journal.query("INSERT INTO main.control VALUES (1, 0, NULL, NULL, NULL, 0)")
        add_stream(self.journal, 1, stream, None, self.clock.now())
        head = Head(1, 0, 0, stream.open.as_bytes(), 0, 0, 0, empty_tally().tobytes(), 1, "")
        self.journal.add_head(head)
        return head

    def _set_clock(self) -> None:
        """Agree on the time with the processes that have this journal, and with its past."""
        with self as state:
            clock, newest = self.clock, self.journal.last()[2]
            if clock.boot is None:
                clock.not_before(newest)
                return
            shared = self._shared_base()
            base = clock.share(shared, newest, idle=state.pending == 0)
            if base != shared:
                keep(self.journal, "clock", {"boot": clock.boot, "base": base})
                self.save_all()  # the other processes follow

    def _shared_base(self) -> float | None:
        """Return the clock's base that is shared; None: there is none since the last boot."""
        clock = kept(self.journal, "clock") or {}
        found: float | None = clock.get("base") if clock.get("boot") == self.clock.boot else None
        return found
