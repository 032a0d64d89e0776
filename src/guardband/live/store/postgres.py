"""A store in PostgreSQL, shared by any number of coordinators.

All work on a space is done under a lock of that space (an advisory one that ends with the
transaction), so that replicas take turns as if they were one process: nothing that matters is in
their memory. A change that somebody may be waiting for is announced by NOTIFY inside the very
transaction that makes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from guardband.live.protocol.messages import Refused
from guardband.live.protocol.sums import Sums
from guardband.live.store.base import (
    KEYS,
    EntryRow,
    EpochRow,
    EventRow,
    HeartbeatRow,
    Row,
    SampleRow,
    SpaceRow,
    Store,
    StoreError,
    StreamRow,
    TaskRow,
    TokenRow,
)
from guardband.live.store.postgres_connections import (
    CHANNEL,
    READING,
    WRITING,
    Connections,
    Listener,
    Work,
)
from guardband.live.store.postgres_schema import SCHEMA, migrate
from guardband.live.store.statements import TABLES, select, upsert

__all__ = ["PostgresStore", "PostgresTransaction"]

Kind = TypeVar("Kind", bound=Row | EventRow)

# Of these nobody needs to hear at once, and the last ones may get lost in a crash.
FLEETING: tuple[type[Row], ...] = (HeartbeatRow, SampleRow)
QUIET: tuple[type[Row], ...] = (*FLEETING, StreamRow, EntryRow)


class PostgresStore(Store):
    """Rows in tables of the schema "guardband", which is made or brought up to date.

    Parameters
    ----------
    address
        postgresql://user:password@host:port/database.
    connections
        How many transactions may run at once; one more connection listens.
    """

    def __init__(self, address: str, *, connections: int = 4) -> None:
        self.workers = connections
        self._connections = Connections(address, connections)
        try:
            with self._connections.transaction(WRITING) as work:
                migrate(work)
        except BaseException as error:
            self.close()
            if isinstance(error, Refused):
                raise StoreError(f"PostgreSQL cannot be used: {error.__cause__}") from error
            raise

    @contextmanager
    def transaction(self, space: str) -> Iterator[PostgresTransaction]:
        """Begin work on one space: durable when the block ends, undone if it raises.

        Refused("store_unavailable", 503) where the database is away or reports an error, also
        where it went away during the commit and nobody can say whether that happened.
        """
        begin = f"{WRITING}; select pg_advisory_xact_lock({_lock_of(space)})"
        with self._connections.transaction(begin) as work:
            t = PostgresTransaction(work)
            yield t
            t.announce()

    @contextmanager
    def reading(self) -> Iterator[PostgresTransaction]:
        """Begin reading; everything read belongs to one moment."""
        with self._connections.transaction(READING) as work:
            yield PostgresTransaction(work)

    def listen(self, heard: Callable[[str], object]) -> Callable[[], None]:
        """Call `heard` with the name of every space that others change; return what ends it."""
        return Listener(self._connections.address, heard).close

    def check(self) -> list[str]:
        """Return what is wrong with the stored data; usually nothing."""
        wrong = []
        with self.reading() as t:
            for space in t.spaces():
                for row in t.rows(EpochRow, "space = %s and state = 'closed'", space.name):
                    digest = None if row.total is None else Sums.from_bytes(row.total).sha256
                    if digest != row.sha256:
                        wrong.append(f"epoch {row.epoch} of space {space.name} was altered")
        return wrong

    def backup(self, path: Path) -> None:
        """Refuse: PostgreSQL has better ways."""
        raise StoreError(
            f"back PostgreSQL up with its own tools: pg_dump --schema={SCHEMA} --format=custom "
            f"--file={path} DATABASE."
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._connections.close()


class PostgresTransaction:
    """Reads and writes of one transaction."""

    def __init__(self, work: Work) -> None:
        self._ask, self._write = work.ask, work.write
        self._fleeting = self._durable = False
        self._changed: set[str] = set()

    def meta(self, key: str) -> str | None:
        """Return a note about the store itself."""
        found = self._ask(f"select value from {SCHEMA}.meta where key = %s", key)
        return str(found[0][0]) if found else None

    def put_meta(self, key: str, value: str) -> None:
        """Write a note about the store itself."""
        self._durable = True
        self._write(
            f"insert into {SCHEMA}.meta values (%s, %s) "
            "on conflict (key) do update set value = excluded.value",
            key,
            value,
        )

    def space(self, name: str) -> SpaceRow | None:
        """Return one space."""
        return self._one(SpaceRow, name)

    def spaces(self) -> list[SpaceRow]:
        """Return all spaces."""
        return self.rows(SpaceRow, "true")

    def task(self, space: str, task: str) -> TaskRow | None:
        """Return one task."""
        return self._one(TaskRow, space, task)

    def tasks(self, space: str) -> list[TaskRow]:
        """Return a space's tasks, in the order of registration."""
        return self.rows(TaskRow, "space = %s", space, order="place")

    def stream(self, stream: str) -> StreamRow | None:
        """Return one stream."""
        return self._one(StreamRow, stream)

    def streams(self, space: str) -> list[StreamRow]:
        """Return a space's streams, in the order of their names."""
        return self.rows(StreamRow, "space = %s", space)

    def count_streams(self, space: str, task: str) -> tuple[int, int]:
        """Return how many streams of a task are open, and how many there are in all."""
        ((open_, ever),) = self._ask(
            f"select count(*) filter (where state = 'open'), count(*) from {SCHEMA}.stream "
            "where space = %s and task = %s",
            space,
            task,
        )
        return int(open_), int(ever)

    def contributors(self, space: str) -> set[str]:
        """Return the tasks that have stored observations, in open streams or in sealed ones."""
        sql = f"select distinct task from {SCHEMA}.stream where space = %s and n > 0"
        return {task for (task,) in self._ask(sql, space)}

    def heartbeat(self, stream: str) -> HeartbeatRow | None:
        """Return when a stream was last heard of."""
        return self._one(HeartbeatRow, stream)

    def heartbeats(self, space: str) -> list[HeartbeatRow]:
        """Return the same of all streams of a space."""
        return self.rows(HeartbeatRow, "space = %s", space)

    def unanswered(self, space: str, epoch: int, since: float) -> int:
        """Return how many open streams of active tasks, heard of since, owe an answer."""
        return self._count(
            f"select count(*) from {SCHEMA}.stream s "
            f"join {SCHEMA}.task t on t.space = s.space and t.task = s.task "
            f"join {SCHEMA}.pulse p on p.stream = s.stream "
            "where s.space = %s and s.state = 'open' and s.answer_epoch < %s "
            "and t.status = 'active' and p.last_seen >= %s",
            space,
            epoch,
            since,
        )

    def epoch(self, space: str, epoch: int) -> EpochRow | None:
        """Return one epoch."""
        return self._one(EpochRow, space, epoch)

    def epochs(self, space: str, last: int) -> list[EpochRow]:
        """Return the newest epochs, newest first."""
        return self.rows(EpochRow, "space = %s", space, order="epoch desc", last=last)

    def entries(self, space: str, epoch: int) -> list[EntryRow]:
        """Return the manifest of an epoch."""
        return self.rows(EntryRow, "space = %s and epoch = %s", space, epoch)

    def events(self, space: str | None, last: int, after: int = 0) -> list[EventRow]:
        """Return the newest events of a space, or of all, with seq > after, newest first."""
        if space is None:
            return self.rows(EventRow, "seq > %s", after, order="seq desc", last=last)
        return self.rows(
            EventRow, "space = %s and seq > %s", space, after, order="seq desc", last=last
        )

    def samples(self, space: str, level: int, since: float) -> list[SampleRow]:
        """Return samples of one level, by time."""
        where = "space = %s and level = %s and at >= %s"
        return self.rows(SampleRow, where, space, level, since, order="at, stream")

    def token(self, token: str) -> TokenRow | None:
        """Return one token."""
        return self._one(TokenRow, token)

    def tokens(self) -> list[TokenRow]:
        """Return all tokens."""
        return self.rows(TokenRow, "true")

    def put(self, row: Row) -> None:
        """Write a row."""
        kind = type(row)
        self._fleeting |= kind in FLEETING
        self._durable |= kind not in FLEETING
        if kind not in QUIET:
            self._changed.add("" if isinstance(row, TokenRow) else _space_of(row))
        self._write(UPSERTS[kind], *row)

    def touch(
        self, stream: str, at: float, seen_epoch: int | None, config_version: int | None
    ) -> None:
        """Note that a stream was heard of, and what it knows; None leaves that as it was."""
        self._fleeting = True
        self._write(
            f"update {SCHEMA}.pulse set last_seen = %s, "
            "seen_epoch = coalesce(%s::bigint, seen_epoch), "
            "config_version = coalesce(%s::bigint, config_version) where stream = %s",
            at,
            seen_epoch,
            config_version,
            stream,
        )

    def add_event(self, at: float, space: str, who: str, what: str, detail: str) -> None:
        """Write down an event."""
        self._durable = True
        self._write(
            f"insert into {SCHEMA}.audit (at, space, who, what, detail) "
            "values (%s, %s, %s, %s, %s)",
            at,
            space,
            who,
            what,
            detail,
        )

    def delete_epoch(self, space: str, epoch: int) -> None:
        """Drop an open epoch that will never be closed."""
        self._durable = True
        self._changed.add(space)
        self._write(f"delete from {SCHEMA}.epoch where space = %s and epoch = %s", space, epoch)

    def delete_samples(self, space: str, level: int, before: float) -> None:
        """Drop old samples of one level."""
        self._fleeting = True
        self._write(
            f"delete from {SCHEMA}.sample where space = %s and level = %s and at < %s",
            space,
            level,
            before,
        )

    def rows(
        self, kind: type[Kind], where: str, *values: Any, order: str = "", last: int | None = None
    ) -> list[Kind]:
        """Return rows of a table, in the order of its key unless told otherwise."""
        order = order or ORDERS[kind]
        limit = "" if last is None else f" limit {int(last)}"
        found = self._ask(f"{SELECTS[kind]} where {where} order by {order}{limit}", *values)
        return [kind(*row) for row in found]

    def announce(self) -> None:
        """Let those hear who wait, once this is committed, and say how durable it must be."""
        for space in sorted(self._changed):
            self._write("select pg_notify(%s, %s)", CHANNEL, space)
        if self._fleeting and not self._durable:
            self._write("set local synchronous_commit = off")

    def _one(self, kind: type[Kind], *key: Any) -> Kind | None:
        found = self._ask(FINDS[kind], *key)
        return kind(*found[0]) if found else None

    def _count(self, statement: str, *values: Any) -> int:
        return int(self._ask(statement, *values)[0][0])


def _lock_of(space: str) -> int:
    """Return the number of a space's lock; if two had the same, they would wait for each other."""
    digest = hashlib.sha256(f"guardband space {space}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _space_of(row: Any) -> str:
    return str(row.name if isinstance(row, SpaceRow) else row.space)


# The statements that are known beforehand, by the kind of row.
SELECTS: dict[type[Any], str] = {kind: select(kind, f"{SCHEMA}.") for kind in TABLES}
FINDS: dict[type[Any], str] = {
    kind: f"{SELECTS[kind]} where {' and '.join(f'{field} = %s' for field in key)}"
    for kind, key in KEYS.items()
}
ORDERS: dict[type[Any], str] = {kind: ", ".join(key) for kind, key in KEYS.items()}
UPSERTS: dict[type[Any], str] = {kind: upsert(kind, "%s", f"{SCHEMA}.") for kind in KEYS}
