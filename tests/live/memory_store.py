"""A store in memory: the plainest there can be, to compare the others with."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, cast

from guardband.live.protocol.messages import Refused
from guardband.live.store import (
    AlarmRow,
    EntryRow,
    EpochRow,
    EventRow,
    HeartbeatRow,
    MetaRow,
    Row,
    SampleRow,
    SpaceRow,
    Store,
    StreamRecord,
    StreamRow,
    TaskRow,
    TokenRow,
)
from guardband.live.store.rows import KEYS

__all__ = ["MemoryStore"]

Kind = TypeVar("Kind", bound=Row)
Tables = dict[type[Any], dict[tuple[Any, ...], Any]]


class MemoryStore(Store):
    """Rows in dictionaries, one lock for all; a failed transaction is undone."""

    def __init__(self) -> None:
        self.fails = False  # whether commits fail, as where the disk is full
        self._lock = threading.RLock()
        self._tables: Tables = {kind: {} for kind in KEYS}
        self._events: list[EventRow] = []

    @contextmanager
    def transaction(self, space: str) -> Iterator[MemoryTransaction]:
        """Begin work on one space; undone if the block raises."""
        with self._lock:
            work = MemoryTransaction(self._tables, self._events)
            try:
                yield work
                if self.fails:
                    raise Refused("store_unavailable", 503, "the commit failed.")
            except BaseException:
                work.undo()
                raise

    @contextmanager
    def reading(self) -> Iterator[MemoryTransaction]:
        """Begin reading."""
        with self._lock:
            yield MemoryTransaction(self._tables, self._events)

    def snapshot(self) -> Any:
        """Return a copy of everything, for `restore`."""
        with self._lock:
            tables = {kind: dict(rows) for kind, rows in self._tables.items()}
            return tables, list(self._events)

    def restore(self, copy: Any) -> None:
        """Go back to an earlier `snapshot`, as a store does that is restored from a backup."""
        with self._lock:
            tables, events = copy
            self._tables = {kind: dict(rows) for kind, rows in tables.items()}
            self._events = list(events)

    def check(self) -> list[str]:
        """Return nothing: memory holds what was put into it."""
        return []

    def backup(self, path: Path) -> None:
        """Refuse: there is no file."""
        raise NotImplementedError("a store in memory has no backup; use a SQLite store.")

    def close(self) -> None:
        """Do nothing."""


class MemoryTransaction:
    """Reads and writes of one transaction."""

    def __init__(self, tables: Tables, events: list[EventRow]) -> None:
        self._tables, self._events = tables, events
        self._before: list[tuple[dict[Any, Any], Any, Any]] = []  # what was overwritten
        self._length = len(events)

    def undo(self) -> None:
        """Take everything back."""
        for table, key, old in reversed(self._before):
            if old is None:
                table.pop(key, None)
            else:
                table[key] = old
        del self._events[self._length :]

    def meta(self, key: str) -> str | None:
        """Return a fact about the store itself."""
        found = self._get(MetaRow, key)
        return None if found is None else found.value

    def put_meta(self, key: str, value: str) -> None:
        """Write a fact about the store itself."""
        self.put(MetaRow(key, value))

    def space(self, name: str) -> SpaceRow | None:
        """Return one space."""
        return self._get(SpaceRow, name)

    def spaces(self) -> list[SpaceRow]:
        """Return all spaces."""
        return self._all(SpaceRow)

    def task(self, space: str, task: str) -> TaskRow | None:
        """Return one task."""
        return self._get(TaskRow, space, task)

    def tasks(self, space: str) -> list[TaskRow]:
        """Return a space's tasks, in the order of registration."""
        rows = [row for row in self._all(TaskRow) if row.space == space]
        return sorted(rows, key=attrgetter("place"))

    def stream(self, stream: str) -> StreamRow | None:
        """Return one stream."""
        return self._get(StreamRow, stream)

    def record(self, stream: str, after: int | None = None) -> StreamRecord | None:
        """Return a stream with its space, task and heartbeat, and an epoch closed after that."""
        row = self.stream(stream)
        if row is None:
            return None
        space = self.space(row.space)
        later = after is not None and space.epoch > after
        return StreamRecord(
            row,
            space,
            self.task(row.space, row.task),
            self.heartbeat(stream),
            self.epoch(space.name, space.epoch) if later else None,
        )

    def records(self, streams: Sequence[str]) -> dict[str, StreamRecord]:
        """Return the same of several streams; unknown ones lack."""
        found = ((name, self.record(name)) for name in streams)
        return {name: record for name, record in found if record is not None}

    def streams(self, space: str) -> list[StreamRow]:
        """Return a space's streams, in the order of their names."""
        return [row for row in self._all(StreamRow) if row.space == space]

    def count_streams(self, space: str, task: str) -> tuple[int, int]:
        """Return how many streams of a task are open, and how many state folders it had in all."""
        rows = [row for row in self.streams(space) if row.task == task and row.pool >= 0]
        return sum(row.state == "open" for row in rows), len(rows)

    def counted(self, space: str, task: str) -> tuple[int, float]:
        """Return how many observations a task has stored, and when its first stream came."""
        rows = [row for row in self.streams(space) if row.task == task]
        counted = sum(row.n for row in rows if row.pool >= 0)
        return counted, min((row.registered_at for row in rows), default=0.0)

    def contributors(self, space: str) -> set[str]:
        """Return the active tasks that have stored observations for the pool as it is now."""
        active = {row.task for row in self.tasks(space) if row.status == "active"}
        pool = self.space(space)
        rows = self.streams(space)
        return active & {row.task for row in rows if pool and row.pool == pool.pool and row.n > 0}

    def heartbeat(self, stream: str) -> HeartbeatRow | None:
        """Return when a stream was last heard of."""
        return self._get(HeartbeatRow, stream)

    def heartbeats(self, space: str) -> list[HeartbeatRow]:
        """Return the same of all streams of a space."""
        return [row for row in self._all(HeartbeatRow) if row.space == space]

    def unanswered(self, space: str, epoch: int, since: float) -> int:
        """Return how many open streams of active tasks, heard of since, owe an answer."""
        active = {row.task for row in self.tasks(space) if row.status == "active"}
        alive = {row.stream for row in self.heartbeats(space) if row.last_seen >= since}
        return sum(
            row.state == "open"
            and row.answer_epoch < epoch
            and row.task in active
            and row.stream in alive
            for row in self.streams(space)
        )

    def epoch(self, space: str, epoch: int) -> EpochRow | None:
        """Return one epoch."""
        return self._get(EpochRow, space, epoch)

    def epochs(self, space: str, last: int) -> list[EpochRow]:
        """Return the newest epochs, newest first."""
        rows = [row for row in self._all(EpochRow) if row.space == space]
        return rows[::-1][:last]

    def first_epoch(self, space: str) -> EpochRow | None:
        """Return the oldest epoch with data in it."""
        rows = [row for row in self._all(EpochRow) if row.space == space and row.n > 0]
        return rows[0] if rows else None

    def entries(self, space: str, epoch: int) -> list[EntryRow]:
        """Return the manifest of an epoch."""
        rows = self._all(EntryRow)
        return [row for row in rows if row.space == space and row.epoch == epoch]

    def events(self, space: str | None, last: int, after: int = 0) -> list[EventRow]:
        """Return the newest events of a space, or of all, with seq > after, newest first."""
        rows = [e for e in self._events if e.seq > after and space in (None, e.space)]
        return rows[::-1][:last]

    def samples(self, space: str, level: int, since: float) -> list[SampleRow]:
        """Return samples of one level, by time."""
        rows = [r for r in self._all(SampleRow) if (r.space, r.level) == (space, level)]
        return sorted((r for r in rows if r.at >= since), key=attrgetter("at", "stream"))

    def alarm(self, stream: str, kind: str) -> AlarmRow | None:
        """Return what was noticed in a stream."""
        return self._get(AlarmRow, stream, kind)

    def alarms(self, space: str) -> list[AlarmRow]:
        """Return all that was noticed in a space, the oldest first."""
        rows = [row for row in self._all(AlarmRow) if row.space == space]
        return sorted(rows, key=attrgetter("since", "stream", "kind"))

    def token(self, token: str) -> TokenRow | None:
        """Return one token."""
        return self._get(TokenRow, token)

    def tokens(self) -> list[TokenRow]:
        """Return all tokens."""
        return self._all(TokenRow)

    def put(self, row: Row) -> None:
        """Write a row."""
        kind = type(row)
        self._set(self._tables[kind], tuple(getattr(row, field) for field in KEYS[kind]), row)

    def touch(
        self, stream: str, at: float, seen_epoch: int | None, config_version: int | None
    ) -> None:
        """Note that a stream was heard of, and what it knows; None leaves that as it was."""
        row = self.heartbeat(stream)
        if row is not None:
            seen = row.seen_epoch if seen_epoch is None else seen_epoch
            config = row.config_version if config_version is None else config_version
            self.put(row._replace(last_seen=at, seen_epoch=seen, config_version=config))

    def set_outstanding(self, space: str, answers: int) -> None:
        """Note how many answers the open epoch still waits for."""
        row = self.space(space)
        if row is not None:
            self.put(row._replace(outstanding=answers))

    def add_event(self, at: float, space: str, who: str, what: str, detail: str) -> None:
        """Write down an event."""
        self._events.append(EventRow(len(self._events) + 1, at, space, who, what, detail))

    def delete_epoch(self, space: str, epoch: int) -> None:
        """Drop an open epoch that will never be closed."""
        self._set(self._tables[EpochRow], (space, epoch), None)

    def delete_samples(self, space: str, level: int, before: float) -> None:
        """Drop old samples of one level."""
        rows = self._tables[SampleRow]
        for key in [k for k, r in rows.items() if k[0] == space and k[2] == level]:
            if rows[key].at < before:
                self._set(rows, key, None)

    def _set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Write a value, or drop the key where it is None, and remember what was there."""
        self._before.append((table, key, table.get(key)))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value

    def _get(self, kind: type[Kind], *key: Any) -> Kind | None:
        return cast("Kind | None", self._tables[kind].get(key))

    def _all(self, kind: type[Kind]) -> list[Kind]:
        rows = self._tables[kind]
        return [rows[key] for key in sorted(rows)]
