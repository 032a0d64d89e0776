"""The rows of a coordinator's store: one class per table, one field per column, in this order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, get_type_hints

from guardband.errors import GuardbandError
from guardband.live.protocol.messages import Revision
from guardband.live.protocol.sums import DamagedSumsError, Sums, empty_sums
from guardband.live.seals import SEAL, covered, seal_of

__all__ = [
    "KEYS",
    "SEALED",
    "TABLES",
    "AlarmRow",
    "EntryRow",
    "EpochRow",
    "EventRow",
    "HeartbeatRow",
    "MetaRow",
    "Row",
    "SampleRow",
    "SpaceRow",
    "StoreError",
    "StreamRecord",
    "StreamRow",
    "TaskRow",
    "TokenRow",
    "columns_of",
    "sealed",
    "unsound",
]


class StoreError(GuardbandError, RuntimeError):
    """The store cannot be used: damaged, newer than this program, or not a store at all."""


def _read(raw: bytes, owner: str) -> Sums:
    try:
        return Sums.from_bytes(raw)
    except ValueError as error:
        raise StoreError(f"the store is damaged at {owner}: {error}") from error


PARTS = ("", "answer_", "entry_")  # of a stream: each has n, version, round and total


class MetaRow(NamedTuple):
    """A fact about the store itself."""

    key: str
    value: str


class SpaceRow(NamedTuple):
    """A space: its settings, its epochs, and whether it is paused."""

    name: str
    config: str  # SpaceSettings as JSON
    config_version: int = 1
    agents_version: int = 1  # the config_version that last raised the number of tasks
    epoch: int = 0  # the newest closed epoch; 0: none
    floor: int = 0  # the newest epoch that an agent has seen, where that is later
    open: int = 0  # the epoch that collects answers; 0: none
    wanted_by: str | None = None  # a stream that asked for an epoch too soon after the last
    paused: str | None = None  # the reason
    created_at: float = 0.0
    closed_at: float | None = None  # when the newest epoch was closed
    pool: int = 0  # grows when a task leaves: only streams that began for it are in its epochs
    fresh: int = 0  # the newest pool for which all streams began with nothing
    # Answers that the open epoch waits for, as counted when it was opened and with every answer
    # since. Where that says none, `Transaction.unanswered` is asked, which is right.
    outstanding: int = 0


class TaskRow(NamedTuple):
    """A task, in the order of registration."""

    space: str
    task: str
    place: int  # 1, 2, ...
    uses: str  # JSON list of feature numbers
    status: (
        str  # "active", "quarantined", "retracted", "apart" (does not fit) or "anew" (restarted)
    )
    reason: str
    since: float


class StreamRow(NamedTuple):
    """A stream: its newest checkpoint, its answer to an open epoch, its entry in the last one."""

    stream: str
    space: str
    task: str
    state: str  # "open" or "sealed"
    continued_by: str | None
    registered_at: float
    library: str
    n: int = 0
    version: str = ""
    round: int = 0
    total: bytes = b""
    answer_epoch: int = 0  # 0: never answered
    answer_n: int = 0
    answer_version: str = ""
    answer_round: int = 0
    answer_total: bytes = b""
    entry_epoch: int = 0  # the newest epoch that contains it; 0: none does
    entry_n: int = 0
    entry_version: str = ""
    entry_round: int = 0
    entry_total: bytes = b""
    place: int = 1  # k = 1, 2, ...: the order in which the streams of a space registered
    pool: int = 0  # for which it began, or may stay; -1: another has taken its place

    @property
    def revision(self) -> Revision:
        """What is stored."""
        return Revision(self.n, self.version)

    @property
    def sums(self) -> Sums:
        """What its newest checkpoint counts."""
        return _read(self.total, f"stream {self.stream}")

    @property
    def entry_sums(self) -> Sums:
        """What its entry in the newest epoch counts."""
        return _read(self.entry_total, f"stream {self.stream}")

    def sound(self, dim: int) -> StreamRow:
        """Return it without what is damaged: the newest checkpoint that is left, or nothing."""
        good = [part for part in PARTS if self._is_sound(part)]
        if len(good) == len(PARTS):
            return self
        nothing = {"n": 0, "version": "", "round": 0, "total": empty_sums(dim).as_bytes()}
        changes: dict[str, Any] = {}
        for part in PARTS:
            if part not in good:
                changes |= {f"{part}{name}": value for name, value in nothing.items()}
                changes |= {f"{part}epoch": 0} if part else {}
        if "" not in good and good:
            newest = max(good, key=lambda part: int(getattr(self, f"{part}n")))
            if getattr(self, f"{newest}n"):
                changes |= {name: getattr(self, f"{newest}{name}") for name in nothing}
        return self._replace(**changes)

    def _is_sound(self, part: str) -> bool:
        raw, n = getattr(self, f"{part}total"), getattr(self, f"{part}n")
        try:
            return bool((not raw and n == 0) or Sums.from_bytes(raw).n == n)
        except DamagedSumsError:
            return False


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
    closed_at: float | None = None
    streams: int = 0  # in the manifest
    streams_in: int = 0  # that answered
    streams_late: int = 0  # that should have, and did not
    tasks: int = 0  # with observations in it
    n: int = 0
    round: int = 0
    total: bytes | None = None
    sha256: str | None = None
    logdet: float | None = None  # log det(V / ridge), for the dashboard
    excluded: int = 0  # tasks that were left out when it was closed
    pool: int = 0  # of which it is the sum

    @property
    def sums(self) -> Sums:
        """What a closed epoch counts."""
        return _read(self.total or b"", f"epoch {self.epoch} of space {self.space}")


class EntryRow(NamedTuple):
    """One line of an epoch's manifest."""

    space: str
    epoch: int
    stream: str
    task: str
    n: int
    version: str


class EventRow(NamedTuple):
    """Something that happened, for the audit log."""

    seq: int
    at: float
    space: str
    who: str
    what: str
    detail: str  # JSON


class SampleRow(NamedTuple):
    """A sample of the reports, for charts: higher levels are coarser and are kept longer."""

    space: str
    stream: str
    level: int
    slot: int
    task: str
    at: float
    body: str  # counters, sums and gauges as JSON


class TokenRow(NamedTuple):
    """An access token; of its secret, only the digest is stored."""

    token: str
    sha256: str
    role: str  # "admin", "agent" or "viewer"
    space: str | None
    task: str | None
    note: str
    created_at: float
    revoked_at: float | None


class AlarmRow(NamedTuple):
    """What an agent's monitors noticed, and whether a person has looked at it."""

    stream: str  # in which it was raised; of each kind the last
    kind: str  # "assumptions", "certificates" or "fit"
    space: str
    task: str
    round: int  # after how many of the agent's decisions
    evidence: float  # log of the e-value
    since: float
    looked_at: float | None = None
    looked_by: str | None = None


class StreamRecord(NamedTuple):
    """A stream with all that a request of its agent needs, read by one query."""

    stream: StreamRow
    space: SpaceRow
    task: TaskRow
    heartbeat: HeartbeatRow
    closed: EpochRow | None  # the newest closed epoch, where it is later than the one given


Row = (
    MetaRow | SpaceRow | TaskRow | StreamRow | HeartbeatRow | EpochRow | EntryRow | SampleRow
    | TokenRow | EventRow | AlarmRow
)  # fmt: skip

TABLES: dict[type[Any], str] = {
    MetaRow: "meta",
    SpaceRow: "space",
    TaskRow: "task",
    StreamRow: "stream",
    HeartbeatRow: "pulse",
    EpochRow: "epoch",
    EntryRow: "entry",
    SampleRow: "sample",
    TokenRow: "token",
    EventRow: "audit",
    AlarmRow: "alarm",
}

# Rows that carry a seal; heartbeats, samples and events say nothing that anybody computes with.
SEALED: tuple[type[Any], ...] = (
    MetaRow, SpaceRow, TaskRow, StreamRow, EpochRow, EntryRow, TokenRow, AlarmRow
)  # fmt: skip

# The primary keys; the database numbers events itself.
KEYS: dict[type[Any], tuple[str, ...]] = {
    MetaRow: ("key",),
    SpaceRow: ("name",),
    TaskRow: ("space", "task"),
    StreamRow: ("stream",),
    HeartbeatRow: ("stream",),
    EpochRow: ("space", "epoch"),
    EntryRow: ("space", "epoch", "stream"),
    SampleRow: ("space", "stream", "level", "slot"),
    TokenRow: ("token",),
    AlarmRow: ("stream", "kind"),
}

# Of each kind that is sealed: what its seal covers; and which fields are numbers of which type,
# because the seal is over what a database returns.
COVERED = {
    kind: itemgetter(*(kind._fields.index(name) for name in covered(kind._fields)))
    for kind in SEALED
}
TYPES: dict[Any, type[Any]] = {int: int, float: float, int | None: int, float | None: float}
NUMBERS = {
    kind: [
        (place, TYPES[said])
        for place, said in enumerate(get_type_hints(kind).values())
        if said in TYPES
    ]
    for kind in SEALED
}


def columns_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the columns of a kind, its seal last where it has one."""
    return (*kind._fields, SEAL) if kind in SEALED else kind._fields


def sealed(row: Row) -> list[Any]:
    """Return what is written of a row, with its seal."""
    kind, values = type(row), list[Any](row)
    if kind not in SEALED:
        return values
    for place, number in NUMBERS[kind]:
        if values[place] is not None:
            values[place] = number(values[place]) + 0  # SQLite keeps no sign of zero
    return [*values, seal_of(*COVERED[kind](values))]


def unsound(
    found: Iterable[tuple[type[Any], Sequence[Any]]],
) -> list[tuple[type[Any], Sequence[Any]]]:
    """Return the rows that are not what was written; one that older versions wrote says nothing.

    It takes them all at once: every upload waits for this.
    """
    wrong = []
    for kind, values in found:
        if kind not in COVERED or values[-1] is None:
            continue
        if values[-1] != seal_of(*COVERED[kind](values)):
            wrong.append((kind, values))
    return wrong
