"""A live agent's state in memory, kept in step with its journal."""

from __future__ import annotations

import json
import secrets
import threading
import uuid
from array import array
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from guardband.agent.engine import Awaited
from guardband.live.client.journal import Head, Journal, StoredDecision
from guardband.live.client.learner import Learner, pack, unpack
from guardband.live.client.stream_rows import handed_in, load_stream, save_stream
from guardband.live.client.stream_state import StreamState
from guardband.live.client.windows import Clock, End
from guardband.live.protocol.messages import KINDS
from guardband.live.protocol.space import RewardSettings, SpaceSettings
from guardband.live.protocol.sums import sums_of

__all__ = ["ENDS", "SUMS", "AgentSetup", "AgentStore", "WaitingEpoch"]

ENDS = (End.OBSERVED, End.DEFAULTED, End.DISCARDED)
SUMS = ("reward", "floor", "lead", "lead_squares", "margin")
TALLY = bytes(8 * (len(KINDS) * len(ENDS) + len(SUMS)))


class AgentSetup(NamedTuple):
    """What an agent is, whatever its coordinator says."""

    space: str
    task: str
    uses: tuple[int, ...]
    reward_floor: float | None
    seed: int | None
    shadow: bool


class WaitingEpoch(NamedTuple):
    """An epoch that was heard of and not adopted yet."""

    epoch: int
    round: int  # the latest that it contains


class AgentStore:
    """State under one lock; `with store:` holds it and is one transaction of the journal.

    Another process may have moved the journal, or a transaction may have failed: then the state
    is read again before anything else happens.

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

    # What is read from the journal: the head, ...
    stream: int
    settled: int
    n: int
    round: int
    due: bool
    heard: int
    tally: array[float]
    revision: int
    # ... the newest decision, ...
    last: int
    last_round: int
    # ... and what changes rarely.
    version: int  # of the configuration in use; 0: a guess
    space: SpaceSettings
    rules: RewardSettings
    shared: bool  # whether tasks share contexts
    learner: Learner
    chain: StreamState
    share: float | None  # the part of delta; None: the stream is not registered yet
    held: list[WaitingEpoch]
    paused: str | None
    leased_at: float | None
    leased_for: float | None
    fresh: dict[int, tuple[StoredDecision, Awaited]]  # own decisions that nobody has touched since
    free: bool  # whether nothing can hold this agent back

    def __init__(
        self, path: Path, setup: AgentSetup, guess: SpaceSettings | None, clock: Clock
    ) -> None:
        self.path, self.setup, self.clock, self._guess = path, setup, clock, guess
        self.reopen()

    def reopen(self) -> None:
        """Open the journal: at the start, or in a forked process."""
        self.lock = threading.RLock()
        self.journal = Journal(self.path)
        self.version = -1
        self.revision = self.n = -1
        self._stale = True
        with self:
            self._set_clock()

    def __enter__(self) -> AgentStore:
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
        return self

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
            else:
                self.journal.undo(error)
        finally:
            self.lock.release()

    @property
    def heard_of(self) -> int:
        """The newest epoch that was heard of, adopted or not."""
        return max([self.chain.seen, *(held.epoch for held in self.held)])

    def whole_chain(self) -> StreamState:
        """Return the chain with what was counted since its last cut."""
        return replace(self.chain, open=sums_of(self.learner.state.own))

    def lease_left(self) -> float:
        """Return for how many seconds exploration is granted; infinite where it always is."""
        if self.leased_for is None:
            return float("inf") if self.space.lease_s is None else 0.0
        age = self.clock.now() - (self.leased_at or 0.0)
        return float(self.leased_for - age) if age >= 0.0 else 0.0

    def held_back(self) -> str | None:
        """Return the key of why only the baseline may be played, if so."""
        if self.version == 0 or self.share is None:
            return "no-config"
        if self.paused is not None:
            return "paused"
        if self.lease_left() <= 0.0:
            return "lease"
        return "shadow" if self.setup.shadow else None

    def save(self) -> None:
        """Write down what moves with every reward."""
        self.journal.save_head(
            (
                self.stream,
                self.settled,
                self.n,
                self.learner.own(),
                self.round,
                self.due,
                self.heard,
                self.tally.tobytes(),
                self.revision,
            )
        )

    def keep_chain(self, before: StreamState, after: StreamState) -> None:
        """Write down the next chain of the same stream."""
        save_stream(self.journal, self.stream, before, after)
        self.chain = after
        self.revision += 1
        self.save()

    def keep_config(self, space: SpaceSettings, version: int) -> None:
        """Write down a configuration, to be used from now on."""
        if version > self.version:
            self.journal.query(
                "INSERT OR IGNORE INTO config VALUES (?, ?, ?)",
                (version, json.dumps(space.as_json()), self.clock.now()),
            )
            self.journal.query("UPDATE control SET config = ?", (version,))

    def start_stream(self, chain: StreamState, *, lost: bool) -> None:
        """Go on with another stream; what is pending may be lost with the old one."""
        number, now = self.stream + 1, self.clock.now()
        moved = (None, None) if chain.moved is None else (self.stream, chain.moved[1].n)
        query = self.journal.query
        query(
            "INSERT INTO stream VALUES (?, ?, ?, NULL, NULL, ?, ?, '')",
            (number, chain.stream, now, *moved),
        )
        if chain.epoch:
            total = None if chain.pooled is None else chain.pooled.as_bytes()
            query(
                "INSERT INTO epoch SELECT epoch, ?, ?, 0, '', round, excluded, heard_at, ? "
                "FROM epoch WHERE epoch = ? AND stream = ?",
                (number, total, now, chain.epoch, self.stream),
            )
        save_stream(self.journal, number, None, chain)
        self.journal.count(number, "upto", self.settled)
        if lost:
            query(
                "INSERT INTO outcome SELECT seq, ?, NULL, ?, NULL, NULL, NULL FROM decision "
                "WHERE seq > ? ON CONFLICT DO UPDATE SET ended = excluded.ended",
                (int(End.LOST), now, self.settled),
            )
            self.journal.count(number, "lost", self.last - self.settled)
            self.settled, self.heard = self.last, 0
        self.stream, self.n, self.due = number, chain.open.n, False
        self.tally = array("d", TALLY)
        self.revision += 1
        self.save()
        query("UPDATE head SET own = ?", (pack(chain.open),))

    def reload(self) -> None:
        """Read everything again, after a change beyond what `save` writes."""
        self.revision += 1
        self.journal.query("UPDATE head SET revision = ?", (self.revision,))
        self._load(whole=True)

    def _load(self, whole: bool) -> None:
        head = self.journal.head()
        if head is None:
            head = self._begin()
        self.fresh = {}
        self.last, self.last_round, _ = self.journal.last()
        whole = whole or head.revision != self.revision
        moved = whole or head.n != self.n
        self.stream, self.settled, self.n = head.stream, head.settled, head.n
        self.round, self.due, self.heard = head.round, bool(head.due), head.heard
        self.tally, self.revision = array("d", head.tally), head.revision
        if whole:
            self._load_rest(head)
        if moved:
            self.learner.load(self.chain.pooled, handed_in(self.chain), head.own)
        self._stale = False

    def _set_clock(self) -> None:
        """Agree on the time with the processes that have this journal, and with its past."""
        clock, newest = self.clock, self.journal.last()[2]
        if clock.boot is None:
            clock.not_before(newest)
            return
        shared = self._shared_base()
        base = clock.share(shared, newest, idle=self.settled == self.last)
        if base != shared:
            kept = json.dumps({"boot": clock.boot, "base": base})
            self.journal.query("INSERT OR REPLACE INTO meta VALUES ('clock', ?)", (kept,))
            self.reload()  # and so do the others

    def _shared_base(self) -> float | None:
        """Return the clock's base that is shared; None: there is none since the last boot."""
        row = self.journal.one("SELECT value FROM meta WHERE key = 'clock'")
        kept = {} if row is None else json.loads(row[0])
        found: float | None = kept.get("base") if kept.get("boot") == self.clock.boot else None
        return found

    def _load_rest(self, head: Head) -> None:
        query = self.journal.query
        base = self._shared_base()
        if base is not None:
            self.clock.follow(base)
        ((version, self.paused, self.leased_at, self.leased_for),) = query(
            "SELECT config, paused, leased_at, leased_for FROM control"
        )
        if version != self.version:
            self._configure(version)
        self.chain = load_stream(
            self.journal, head.stream, sums_of(unpack(head.own, self.space.dim))
        )
        ((self.share,),) = query("SELECT delta_share FROM stream WHERE id = ?", (head.stream,))
        self.held = [
            WaitingEpoch(*row)
            for row in query(
                "SELECT epoch, round FROM epoch WHERE stream = ? AND adopted_at IS NULL",
                (head.stream,),
            )
        ]
        leased = self.leased_for is not None or self.space.lease_s is not None
        self.free = not leased and self.held_back() is None
        if self.share is not None:
            excluded = self.journal.one(
                "SELECT excluded FROM epoch WHERE epoch = ? AND stream = ?",
                (self.chain.epoch, head.stream),
            )
            # A conflict changes the data that are used, as an epoch does.
            sets = self.chain.epoch + self.chain.conflicts
            self.learner.set_level(self.share, sets, 0 if excluded is None else excluded[0])

    def _configure(self, version: int) -> None:
        """Use another configuration."""
        row = self.journal.one("SELECT space FROM config WHERE version = ?", (version,))
        if row is None and self._guess is None:  # nobody has answered since the journal was made
            row = self.journal.one("SELECT value FROM meta WHERE key = 'guess'")
        space = self._guess if row is None else SpaceSettings.from_json(json.loads(row[0]))
        assert space is not None
        if self.version < 0 or space != self.space:
            seed = secrets.randbits(63) if self.setup.seed is None else self.setup.seed + self.last
            self.learner = Learner(
                space,
                self.setup.task,
                self.setup.uses,
                reward_floor=self.setup.reward_floor,
                seed=seed,
            )
        self.version, self.space, self.rules = version, space, space.rewards
        self.shared = space.contexts == "shared"

    def _begin(self) -> Head:
        """Write the first rows of a new journal."""
        assert self._guess is not None
        chain = StreamState.start(str(uuid.uuid4()), self._guess.dim)
        query = self.journal.query
        guess = self._guess.as_json()
        about = self.setup._asdict() | {"features": guess["features"], "guess": guess}
        for key in ("space", "task", "uses", "reward_floor", "features", "guess"):
            query("INSERT INTO meta VALUES (?, ?)", (key, json.dumps(about[key])))
        query("INSERT INTO control VALUES (1, 0, NULL, NULL, NULL)")
        query(
            "INSERT INTO stream VALUES (1, ?, ?, NULL, NULL, NULL, NULL, '')",
            (chain.stream, self.clock.now()),
        )
        save_stream(self.journal, 1, None, chain)
        head = Head(1, 0, 0, pack(chain.open), 0, 0, 0, TALLY, 1)
        self.journal.add_head(head)
        return head
