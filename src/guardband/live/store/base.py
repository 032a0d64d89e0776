"""What a coordinator remembers: rows, and the transactions in which it reads and writes them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from guardband.live.protocol.messages import Checkpoint, Revision
from guardband.live.protocol.sums import Sums

__all__ = [
    "KEYS",
    "EntryRow",
    "EpochRow",
    "EventRow",
    "HeartbeatRow",
    "Row",
    "SampleRow",
    "SpaceRow",
    "Store",
    "StoreError",
    "StreamRow",
    "TaskRow",
    "TokenRow",
    "Transaction",
]


class StoreError(RuntimeError):
    """The store cannot be used: damaged, newer than this program, or not a store at all."""


class SpaceRow(NamedTuple):
    """A space, where its epochs stand, and its switches."""

    name: str
    config: str  # Space.as_json as text
    config_version: int
    agents_version: int  # the config_version that last raised the number of tasks
    epoch: int  # the newest closed epoch; 0: none
    floor: int  # the newest epoch that a client has seen, should that be more
    open: int  # the epoch that collects answers; 0: none
    wanted_by: str | None  # a stream that asked for an epoch too soon after the last
    paused: str | None  # the reason
    created_at: float
    closed_at: float | None  # when the newest epoch was closed


class TaskRow(NamedTuple):
    """A task, in the order of registration."""

    space: str
    task: str
    place: int  # 1, 2, ...
    uses: str  # JSON list of feature numbers
    status: str  # "active", "quarantined" or "retracted"
    reason: str
    since: float


class StreamRow(NamedTuple):
    """A stream: its newest cut, its answer to the open epoch, and its entry in the last one."""

    stream: str
    space: str
    task: str
    state: str  # "open" or "sealed"
    continued_by: str | None
    registered_at: float
    library: str
    n: int
    version: str
    round: int
    total: bytes
    answer_epoch: int  # 0: never answered
    answer_n: int
    answer_version: str
    answer_round: int
    answer_total: bytes
    entry_epoch: int  # the newest epoch that contains it; 0: none does
    entry_n: int
    entry_version: str
    entry_round: int
    entry_total: bytes
    place: int = 1  # k = 1, 2, ...: the order in which the streams of a space registered

    @property
    def revision(self) -> Revision:
        """What is stored."""
        return Revision(self.n, self.version)

    @property
    def stored(self) -> Checkpoint:
        """The newest cut."""
        return Checkpoint(self.version, Sums.from_bytes(self.total), self.round)


class HeartbeatRow(NamedTuple):
    """When a stream was last heard of, and what it said about itself."""

    stream: str
    space: str
    task: str
    last_seen: float
    seen_epoch: int  # the newest epoch it has
    config_version: int  # the newest configuration it has
    report: str  # Report as JSON
    reported_at: float | None
    sampled_at: float | None


class EpochRow(NamedTuple):
    """An epoch. Once closed, it never changes."""

    space: str
    epoch: int
    state: str  # "open" or "closed"
    opened_by: str
    opened_at: float
    closed_at: float | None
    streams: int  # in the manifest
    streams_in: int  # that answered
    streams_late: int  # that should have, and did not
    tasks: int  # with observations in it
    n: int
    round: int
    total: bytes | None
    sha256: str | None
    logdet: float | None  # log det(V / ridge), for people
    excluded: int = 0  # tasks that people had left out when it was closed


class EntryRow(NamedTuple):
    """One line of an epoch's manifest."""

    space: str
    epoch: int
    stream: str
    task: str
    n: int
    version: str


class EventRow(NamedTuple):
    """Something that people may ask about later."""

    seq: int
    at: float
    space: str
    who: str
    what: str
    detail: str  # JSON


class SampleRow(NamedTuple):
    """A report, kept for charts: level 0 every ten seconds, then coarser and longer."""

    space: str
    stream: str
    level: int
    slot: int
    task: str
    at: float
    body: str  # counters, sums and gauges as JSON


class TokenRow(NamedTuple):
    """Who may do what; the secret itself is not stored."""

    token: str
    sha256: str
    role: str  # "admin", "agent" or "viewer"
    space: str | None
    task: str | None
    note: str
    created_at: float
    revoked_at: float | None


Row = SpaceRow | TaskRow | StreamRow | HeartbeatRow | EpochRow | EntryRow | SampleRow | TokenRow

# By which fields a row is found.
KEYS: dict[type[Row], tuple[str, ...]] = {
    SpaceRow: ("name",),
    TaskRow: ("space", "task"),
    StreamRow: ("stream",),
    HeartbeatRow: ("stream",),
    EpochRow: ("space", "epoch"),
    EntryRow: ("space", "epoch", "stream"),
    SampleRow: ("space", "stream", "level", "slot"),
    TokenRow: ("token",),
}


class Transaction(Protocol):
    """What can be read and written; all of it or nothing.

    `put` writes a whole row over the one with the same key. Lists are in the order of their keys,
    except where a line says otherwise.
    """

    def meta(self, key: str) -> str | None:
        """Return a note about the store itself."""

    def put_meta(self, key: str, value: str) -> None:
        """Write a note about the store itself."""

    def space(self, name: str) -> SpaceRow | None:
        """Return one space."""

    def spaces(self) -> list[SpaceRow]:
        """Return all spaces."""

    def task(self, space: str, task: str) -> TaskRow | None:
        """Return one task."""

    def tasks(self, space: str) -> list[TaskRow]:
        """Return a space's tasks, in the order of registration."""

    def stream(self, stream: str) -> StreamRow | None:
        """Return one stream."""

    def streams(self, space: str) -> list[StreamRow]:
        """Return a space's streams, in the order of their names."""

    def count_streams(self, space: str, task: str) -> tuple[int, int]:
        """Return how many streams of a task are open, and how many there are in all."""

    def contributors(self, space: str) -> set[str]:
        """Return the tasks that have stored observations, in open streams or in sealed ones."""

    def heartbeat(self, stream: str) -> HeartbeatRow | None:
        """Return when a stream was last heard of."""

    def heartbeats(self, space: str) -> list[HeartbeatRow]:
        """Return the same of all streams of a space."""

    def unanswered(self, space: str, epoch: int, since: float) -> int:
        """Return how many open streams of active tasks, heard of since, owe an answer."""

    def epoch(self, space: str, epoch: int) -> EpochRow | None:
        """Return one epoch."""

    def epochs(self, space: str, last: int) -> list[EpochRow]:
        """Return the newest epochs, newest first."""

    def entries(self, space: str, epoch: int) -> list[EntryRow]:
        """Return the manifest of an epoch."""

    def events(self, space: str | None, last: int, after: int = 0) -> list[EventRow]:
        """Return the newest events of a space, or of all, with seq > after, newest first."""

    def samples(self, space: str, level: int, since: float) -> list[SampleRow]:
        """Return samples of one level, by time."""

    def token(self, token: str) -> TokenRow | None:
        """Return one token."""

    def tokens(self) -> list[TokenRow]:
        """Return all tokens."""

    def put(self, row: Row) -> None:
        """Write a row."""

    def touch(
        self, stream: str, at: float, seen_epoch: int | None, config_version: int | None
    ) -> None:
        """Note that a stream was heard of, and what it knows; None leaves that as it was."""

    def add_event(self, at: float, space: str, who: str, what: str, detail: str) -> None:
        """Write down an event."""

    def delete_epoch(self, space: str, epoch: int) -> None:
        """Drop an open epoch that will never be closed."""

    def delete_samples(self, space: str, level: int, before: float) -> None:
        """Drop old samples of one level."""


class Store(Protocol):
    """Where rows are kept."""

    workers: int = 1  # how many threads may use it at once with profit

    def transaction(self, space: str) -> AbstractContextManager[Transaction]:
        """Begin work on one space: durable when the block ends, undone if it raises.

        Nobody else writes to the space meanwhile.
        """

    def reading(self) -> AbstractContextManager[Transaction]:
        """Begin reading; everything read belongs to one moment."""

    def listen(self, heard: Callable[[str], object]) -> Callable[[], None]:
        """Call `heard` with the name of every space that others change; return what ends it.

        It is called in another thread, with "" where anything may have changed, tokens included.
        A store that hears nothing of others never calls it: whoever must know has to look.
        """
        return lambda: None

    def check(self) -> list[str]:
        """Return what is wrong with the stored data; usually nothing."""

    def backup(self, path: Path) -> None:
        """Write a complete copy to `path`, which must not exist."""

    def close(self) -> None:
        """Let go of the store."""
