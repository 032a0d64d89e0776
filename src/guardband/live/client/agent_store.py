"""A live agent's state and its journal, kept consistent: every change is made to both."""

from __future__ import annotations

import json
import secrets
import threading
import uuid
from pathlib import Path
from types import TracebackType

from guardband.live.client.account import (
    claim,
    kept_numbers,
    note_boot,
    open_account,
    put_account,
    put_spending,
)
from guardband.live.client.agent_state import COST_AT, AgentSetup, AgentState, empty_tally
from guardband.live.client.journal import Head, Journal
from guardband.live.client.learner import Learner, new_watch, unpack
from guardband.live.client.stream_rows import (
    add_stream,
    excluded_from,
    handed_in,
    load_stream,
    rest_of,
    save_stream,
    waiting_epochs,
)
from guardband.live.client.stream_state import StreamState
from guardband.live.client.windows import Clock, End
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import sums_of
from guardband.uplift import GainSums

__all__ = ["AgentStore"]


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
        self.lock = threading.RLock()
        self.journal = Journal(self.path)
        self.state = AgentState(shadow=self.setup.shadow)
        self._stale, self._claimed = True, False
        with self:
            self._set_clock()

    def __enter__(self) -> AgentState:
        self.lock.acquire()
        try:
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

    def start_stream(self, stream: StreamState, *, lost: bool) -> None:
        """Go on with another stream; what is pending may be lost with the old one."""
        state, now = self.state, self.clock.now()
        before, state.stream_id = state.stream_id, state.stream_id + 1
        add_stream(self.journal, state.stream_id, stream, before, now)
        self.journal.count(state.stream_id, "upto", state.settled)
        cost = 0.0
        if lost:
            cost = self.journal.cost_after(state.settled)
            self.journal.lose(state.settled, int(End.LOST), now)
            self.journal.count(state.stream_id, "lost", state.pending)
            state.settled, state.heard = state.last, 0
        state.stream, state.n, state.due = stream, stream.open.n, False
        state.share, state.waiting, state.tally = None, [], empty_tally()
        state.tally[COST_AT] = cost
        self.load_learner(stream.open.as_bytes())
        self.save_all()

    def put_config(self, space: SpaceSettings, version: int) -> None:
        """Use a configuration from now on, if it is newer than the one in use."""
        if version <= self.state.version:
            return
        self.journal.query(
            "INSERT OR IGNORE INTO config VALUES (?, ?, ?)",
            (version, json.dumps(space.as_json()), self.clock.now()),
        )
        self.journal.query("UPDATE control SET config = ?", (version,))
        own = self.state.learner.own()
        if space.holdback != self.state.space.holdback:  # one interval is for one chance
            self.state.gains = GainSums()
        self._use(space, version)
        self._load_spending()
        self.load_learner(own)

    def put_share(self, task_index: int, share: float) -> None:
        """Use another part of delta; what was decided before was decided with the one of then."""
        state = self.state
        if share != state.share:
            self.journal.query(
                "INSERT OR REPLACE INTO level(stream, from_seq, share) VALUES (?, ?, ?)",
                (state.stream_id, state.last + 1, share),
            )
        self.journal.query(
            "UPDATE stream SET task_index = ?, delta_share = ? WHERE id = ?",
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
            "UPDATE control SET paused = ?, leased_at = ?, leased_for = ?",
            (paused, leased_at, leased_for),
        )
        state.paused, state.leased_at, state.leased_for = paused, leased_at, leased_for
        state.update_free()

    def load_learner(self, own: bytes) -> None:
        """Let the learner compute with the stream's sums and what was counted since."""
        state = self.state
        stream = state.stream
        state.learner.load(stream.pooled, handed_in(stream), own, stream.without)
        state.update_level()
        state.update_allowance()

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
        if moved:
            self.load_learner(head.own)
        state.update_allowance()
        self._stale = False

    def _load_rest(self, head: Head) -> None:
        state, query = self.state, self.journal.query
        base = self._shared_base()
        if base is not None:
            self.clock.follow(base)
        ((version, state.paused, state.leased_at, state.leased_for),) = query(
            "SELECT config, paused, leased_at, leased_for FROM control"
        )
        if version != state.version:
            self._use(self._known_space(version), version)
        open_ = sums_of(unpack(head.own, state.space.dim))
        state.stream = load_stream(self.journal, head.stream, open_)
        ((state.share,),) = query("SELECT delta_share FROM stream WHERE id = ?", (head.stream,))
        state.waiting = waiting_epochs(self.journal, head.stream)
        state.excluded = excluded_from(self.journal, head.stream, state.stream.epoch)

    def _load_spending(self) -> None:
        """Go on from what was spent of the budget for costs."""
        if self.state.spending is not None:
            self.state.spending.fill(kept_numbers(self.journal))

    def _known_space(self, version: int) -> SpaceSettings:
        """Return a version of the space's settings that was told, or what is assumed till then."""
        row = self.journal.one("SELECT space FROM config WHERE version = ?", (version,))
        if row is None and self._guess is None:  # no answer yet since the journal was made
            row = self.journal.one("SELECT value FROM meta WHERE key = 'guess'")
        space = self._guess if row is None else SpaceSettings.from_json(json.loads(row[0]))
        assert space is not None
        return space

    def _use(self, space: SpaceSettings, version: int) -> None:
        """Decide by these settings; a new learner has no sums yet."""
        state, setup = self.state, self.setup
        if state.version < 0 or space != state.space:
            seed = secrets.randbits(63) if setup.seed is None else setup.seed + state.last
            state.learner = Learner(
                space, setup.task, setup.uses, reward_floor=setup.reward_floor, seed=seed
            )
        state.version, state.space, state.shared = version, space, space.contexts == "shared"

    def _begin(self) -> Head:
        """Write the first rows of a new journal."""
        assert self._guess is not None
        stream = StreamState.start(str(uuid.uuid4()), self._guess.dim)
        guess = self._guess.as_json()
        about = self.setup._asdict() | {"features": guess["features"], "guess": guess}
        for key in ("space", "task", "uses", "reward_floor", "features", "guess"):
            self.journal.query("INSERT INTO meta VALUES (?, ?)", (key, json.dumps(about[key])))
        self.journal.query("INSERT INTO control VALUES (1, 0, NULL, NULL, NULL)")
        add_stream(self.journal, 1, stream, None, self.clock.now())
        head = Head(1, 0, 0, stream.open.as_bytes(), 0, 0, 0, empty_tally().tobytes(), 1, "")
        self.journal.add_head(head)
        return head

    def _set_clock(self) -> None:
        """Agree on the time with the processes that have this journal, and with its past."""
        clock, newest = self.clock, self.journal.last()[2]
        if clock.boot is None:
            clock.not_before(newest)
            return
        shared = self._shared_base()
        base = clock.share(shared, newest, idle=self.state.pending == 0)
        if base != shared:
            kept = json.dumps({"boot": clock.boot, "base": base})
            self.journal.query("INSERT OR REPLACE INTO meta VALUES ('clock', ?)", (kept,))
            self.save_all()  # the other processes follow

    def _shared_base(self) -> float | None:
        """Return the clock's base that is shared; None: there is none since the last boot."""
        row = self.journal.one("SELECT value FROM meta WHERE key = 'clock'")
        kept = {} if row is None else json.loads(row[0])
        found: float | None = kept.get("base") if kept.get("boot") == self.clock.boot else None
        return found
