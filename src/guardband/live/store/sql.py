"""What a coordinator's store can do: its queries, in the SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from guardband.live.seals import SEAL
from guardband.live.store.rows import (
    KEYS,
    SEALED,
    TABLES,
    AlarmRow,
    EntryRow,
    EpochRow,
    EventRow,
    HeartbeatRow,
    MetaRow,
    Row,
    SampleRow,
    SpaceRow,
    StoreError,
    StreamRecord,
    StreamRow,
    TaskRow,
    TokenRow,
    columns_of,
    sealed,
    unsound,
)

__all__ = ["Store", "Transaction", "select", "upsert"]

Kind = TypeVar("Kind", bound=Row)


def select(kind: type[Any], where: str) -> str:
    """Return the statement that reads the rows of a kind for which a condition holds."""
    return f"select {', '.join(columns_of(kind))} from {TABLES[kind]} where {where}"


def upsert(kind: type[Any]) -> str:
    """Return the statement that writes a row over the one with its key."""
    fields, key = columns_of(kind), KEYS[kind]
    updates = ", ".join(f"{field} = excluded.{field}" for field in fields if field not in key)
    return (
        f"insert into {TABLES[kind]} ({', '.join(fields)}) "
        f"values ({', '.join('?' * len(fields))}) "
        f"on conflict ({', '.join(key)}) do update set {updates}"
    )


FIND: dict[type[Any], str] = {
    kind: select(kind, " and ".join(f"{k} = ?" for k in key)) for kind, key in KEYS.items()
}
UPSERT: dict[type[Any], str] = {kind: upsert(kind) for kind in KEYS}
JOINED: tuple[type[Any], ...] = (StreamRow, SpaceRow, TaskRow, HeartbeatRow, EpochRow)
WIDTHS = [(kind, len(columns_of(kind))) for kind in JOINED]
RECORD = (
    f"select {', '.join(f'{TABLES[k]}.{name}' for k in JOINED for name in columns_of(k))} "
    "from stream join space on space.name = stream.space "
    "join task on task.space = stream.space and task.task = stream.task "
    "join pulse on pulse.stream = stream.stream "
    "left join epoch on epoch.space = space.name and epoch.epoch = space.epoch "
    "and epoch.epoch > ? where stream.stream "
)


class Transaction:
    """Reads and writes that take effect together when the `with` block ends, or not at all.

    A database implements `ask`, `write`, `damaged` and how a transaction begins and ends. Rows are
    sealed by `put`, and verified by whatever returns them. Values are marked by ?. Lists are in the
    order of their keys, except where a docstring says otherwise.
    """

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query."""
        raise NotImplementedError

    def write(self, kind: type[Row], statement: str, *values: Any) -> None:
        """Execute a statement that changes rows of this kind."""
        raise NotImplementedError

    def damaged(self, what: str) -> Exception:
        """Take note that something is not what was written; return what to raise."""
        raise NotImplementedError

    def among(self, names: Sequence[str]) -> tuple[str, Any]:
        """Return the condition that a name is one of these, and the one value that it takes."""
        raise NotImplementedError

    def meta(self, key: str) -> str | None:
        """Return a fact about the store itself."""
        found = self._find(MetaRow, key)
        return None if found is None else found.value

    def space(self, name: str) -> SpaceRow | None:
        """Return one space."""
        return self._find(SpaceRow, name)

    def spaces(self) -> list[SpaceRow]:
        """Return all spaces."""
        return self._rows(SpaceRow, "true order by name")

    def task(self, space: str, task: str) -> TaskRow | None:
        """Return one task."""
        return self._find(TaskRow, space, task)

    def tasks(self, space: str) -> list[TaskRow]:
        """Return a space's tasks, in the order of registration."""
        return self._rows(TaskRow, "space = ? order by place", space)

    def stream(self, stream: str) -> StreamRow | None:
        """Return one stream."""
        return self._find(StreamRow, stream)

    def record(self, stream: str, after: int | None = None) -> StreamRecord | None:
        """Return a stream with its space, task and heartbeat, and an epoch closed after that."""
        found = self.ask(RECORD + "= ?", after, stream)
        return self._record(found[0]) if found else None

    def records(self, streams: Sequence[str]) -> dict[str, StreamRecord]:
        """Return the same of several streams by one query, without epochs; unknown ones lack."""
        condition, names = self.among(streams)
        found = (self._record(row) for row in self.ask(RECORD + condition, None, names))
        return {record.stream.stream: record for record in found}

    def streams(self, space: str) -> list[StreamRow]:
        """Return a space's streams, in the order of their names."""
        return self._rows(StreamRow, "space = ? order by stream", space)

    def count_streams(self, space: str, task: str) -> tuple[int, int]:
        """Return how many streams of a task are open, and how many state folders it had in all."""
        ((open_, ever),) = self.ask(
            "select count(*) filter (where state = 'open'), count(*) from stream "
            "where space = ? and task = ? and pool >= 0",
            space,
            task,
        )
        return open_, ever

    def counted(self, space: str, task: str) -> tuple[int, float]:
        """Return how many observations a task has stored, and when its first stream came."""
        ((n, first),) = self.ask(
            "select sum(n) filter (where pool >= 0), min(registered_at) from stream "
            "where space = ? and task = ?",
            space,
            task,
        )
        return int(n or 0), first or 0.0

    def contributors(self, space: str) -> set[str]:
        """Return the active tasks that have stored observations for the pool as it is now."""
        query = (
            "select distinct task.task from task join stream "
            "on stream.space = task.space and stream.task = task.task "
            "join space on space.name = task.space and space.pool = stream.pool "
            "where task.space = ? and task.status = 'active' and stream.n > 0"
        )
        return {task for (task,) in self.ask(query, space)}

    def heartbeat(self, stream: str) -> HeartbeatRow | None:
        """Return when a stream was last heard of."""
        return self._find(HeartbeatRow, stream)

    def heartbeats(self, space: str) -> list[HeartbeatRow]:
        """Return the heartbeats of all streams of a space."""
        return self._rows(HeartbeatRow, "space = ? order by stream", space)

    def unanswered(self, space: str, epoch: int, since: float) -> int:
        """Return how many open streams of active tasks, heard of since, owe an answer.

        Those of a former pool are waited for: their agents are about to begin again.
        """
        ((count,),) = self.ask(
            "select count(*) from stream s join pulse p on p.stream = s.stream "
            "join task t on t.space = s.space and t.task = s.task "
            "where s.space = ? and s.state = 'open' and s.answer_epoch < ? "
            "and p.last_seen >= ? and t.status = 'active'",
            space,
            epoch,
            since,
        )
        return int(count)

    def epoch(self, space: str, epoch: int) -> EpochRow | None:
        """Return one epoch."""
        return self._find(EpochRow, space, epoch)

    def epochs(self, space: str, last: int) -> list[EpochRow]:
        """Return the newest epochs, newest first."""
        return self._rows(EpochRow, "space = ? order by epoch desc limit ?", space, last)

    def first_epoch(self, space: str) -> EpochRow | None:
        """Return the oldest epoch with data in it."""
        rows = self._rows(EpochRow, "space = ? and n > 0 order by epoch limit 1", space)
        return rows[0] if rows else None

    def entries(self, space: str, epoch: int) -> list[EntryRow]:
        """Return the manifest of an epoch."""
        return self._rows(EntryRow, "space = ? and epoch = ? order by stream", space, epoch)

    def events(self, space: str | None, last: int, after: int = 0) -> list[EventRow]:
        """Return the newest events of a space, or of all, with seq > after, newest first."""
        if space is None:
            return self._rows(EventRow, "seq > ? order by seq desc limit ?", after, last)
        where = "space = ? and seq > ? order by seq desc limit ?"
        return self._rows(EventRow, where, space, after, last)

    def samples(self, space: str, level: int, since: float) -> list[SampleRow]:
        """Return samples of one level, by time."""
        where = "space = ? and level = ? and at >= ? order by at, stream"
        return self._rows(SampleRow, where, space, level, since)

    def alarm(self, stream: str, kind: str) -> AlarmRow | None:
        """Return what was noticed in a stream."""
        return self._find(AlarmRow, stream, kind)

    def alarms(self, space: str) -> list[AlarmRow]:
        """Return all that was noticed in a space, the oldest first."""
        return self._rows(AlarmRow, "space = ? order by since, stream, kind", space)

    def token(self, token: str) -> TokenRow | None:
        """Return one token."""
        return self._find(TokenRow, token)

    def tokens(self) -> list[TokenRow]:
        """Return all tokens."""
        return self._rows(TokenRow, "true order by token")

    def put(self, row: Row) -> None:
        """Write a whole row, over the one with the same key."""
        kind = type(row)
        self.write(kind, UPSERT[kind], *sealed(row))

    def put_meta(self, key: str, value: str) -> None:
        """Write a fact about the store itself."""
        self.put(MetaRow(key, value))

    def touch(
        self, stream: str, at: float, seen_epoch: int | None, config_version: int | None
    ) -> None:
        """Note that a stream was heard of, and what it knows; None leaves that as it was."""
        self.write(
            HeartbeatRow,
            "update pulse set last_seen = ?, "
            "seen_epoch = coalesce(cast(? as bigint), seen_epoch), "
            "config_version = coalesce(cast(? as bigint), config_version) where stream = ?",
            at,
            seen_epoch,
            config_version,
            stream,
        )

    def set_outstanding(self, space: str, answers: int) -> None:
        """Note how many answers the open epoch still waits for; nobody waits to hear that."""
        self.write(SpaceRow, "update space set outstanding = ? where name = ?", answers, space)

    def add_event(self, at: float, space: str, who: str, what: str, detail: str) -> None:
        """Write down an event, under the next number."""
        statement = "insert into audit (at, space, who, what, detail) values (?, ?, ?, ?, ?)"
        self.write(EventRow, statement, at, space, who, what, detail)

    def delete_epoch(self, space: str, epoch: int) -> None:
        """Delete an open epoch that will never be closed."""
        self.delete(EpochRow, (space, epoch))

    def delete_samples(self, space: str, level: int, before: float) -> None:
        """Delete old samples of one level."""
        statement = "delete from sample where space = ? and level = ? and at < ?"
        self.write(SampleRow, statement, space, level, before)

    def _find(self, kind: type[Kind], *key: Any) -> Kind | None:
        found = self.ask(FIND[kind], *key)
        return self._verified([(kind, found[0])])[0] if found else None

    def _rows(self, kind: type[Kind], where: str, *values: Any) -> list[Kind]:
        found = self.ask(select(kind, where), *values)
        return self._verified([(kind, row) for row in found])

    def _record(self, found: Sequence[Any]) -> StreamRecord:
        """Return one row of the query RECORD."""
        values = iter(found)
        rows: list[Any] = self._verified(
            [(kind, tuple(islice(values, width))) for kind, width in WIDTHS]
        )
        stream, space, task, heartbeat, epoch = rows
        closed = None if epoch.epoch is None else epoch  # where the join found none
        return StreamRecord(stream, space, task, heartbeat, closed)

    def _verified(self, found: Sequence[tuple[type[Kind], Sequence[Any]]]) -> list[Kind]:
        """Return rows from what was read, their seals verified."""
        for kind, _ in unsound(found):
            raise self.damaged(f"a row of {TABLES[kind]} is not what was written")
        return [tuple.__new__(kind, values[: len(kind._fields)]) for kind, values in found]

    def damaged_rows(self) -> list[tuple[type[Any], tuple[Any, ...]]]:
        """Return the kinds and keys of all rows that are not what was written."""
        read = ((kind, row) for kind in SEALED for row in self.ask(select(kind, "true")))
        return [
            (kind, tuple(values[kind._fields.index(name)] for name in KEYS[kind]))
            for kind, values in unsound(read)
        ]

    def delete(self, kind: type[Any], key: Sequence[Any]) -> None:
        """Delete a row."""
        where = " and ".join(f"{name} = ?" for name in KEYS[kind])
        self.write(kind, f"delete from {TABLES[kind]} where {where}", *key)

    def seal_all(self) -> None:
        """Seal all rows that older versions wrote."""
        for kind in SEALED:
            for found in self.ask(select(kind, f"{SEAL} is null")):
                self.put(kind(*found[:-1]))


class Store:
    """The tables of a coordinator, in some database."""

    workers = 1  # how many threads can use it at once
    mender: Callable[[], object] | None = None  # mends it where it is damaged
    is_damaged = False  # until it is mended

    def transaction(self, space: str) -> Transaction:
        """Begin work on one space: durable when the block ends, undone if it raises.

        No other transaction writes to the space meanwhile.
        """
        raise NotImplementedError

    def reading(self) -> Transaction:
        """Begin reading; everything read belongs to one moment."""
        raise NotImplementedError

    def reading_once(self) -> Transaction:
        """Begin reading by one query only, which a database may do without a transaction."""
        return self.reading()

    def listen(self, heard: Callable[[str], object]) -> Callable[[], None]:
        """Call `heard` with the name of every space that others change; return what ends it.

        It is called in another thread, with "" where anything may have changed, tokens included.
        A store without notifications never calls it; callers have to poll.
        """
        return lambda: None

    def check(self) -> list[str]:
        """Return what is wrong with the stored data; usually nothing."""
        with self.reading() as t:
            wrong = sorted({f"rows of {TABLES[k]} are damaged" for k, _ in t.damaged_rows()})
            if wrong:
                return wrong
            for (name,) in t.ask("select stream from stream order by stream"):
                stream = t.stream(name)
                if stream is not None and stream.sound(1) is not stream:
                    wrong.append(f"sums of stream {name} are damaged")
            query = "select space, epoch from epoch where state = 'closed' order by space, epoch"
            for space, number in t.ask(query):
                row = t.epoch(space, number)
                assert row is not None
                try:
                    if row.total and row.sums.sha256 != row.sha256:
                        wrong.append(f"epoch {number} of space {space} was altered")
                except StoreError as error:
                    wrong.append(str(error))
        return wrong

    def backup(self, path: Path) -> None:
        """Write a complete copy to `path`, which must not exist."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what is open."""
        raise NotImplementedError
