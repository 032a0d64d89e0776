"""A store in one SQLite file: durable at every commit, shared by the processes of one host."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from guardband.files import write_atomically
from guardband.live.sqlite import apsw, connect
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
from guardband.live.store.sqlite_schema import APPLICATION, FORMAT, MIGRATIONS
from guardband.live.store.statements import select, upsert

__all__ = ["SqliteStore"]

Kind = TypeVar("Kind", bound=Row | EventRow)
BUSY_MS = 30_000
WRITES = {kind: upsert(kind, "?") for kind in KEYS}


class SqliteStore(Store):
    """Rows in a SQLite file: WAL, synchronous=FULL, one connection per process.

    Parameters
    ----------
    path
        The file; it and its folder are made where they do not exist, readable for the owner only.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._deep = False
        self._connect()

    def _connect(self) -> None:
        """Open the file in this process."""
        self._process = os.getpid()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        try:
            self._connection = connect(self.path, BUSY_MS, refusal=StoreError)
            self._connection.pragma("synchronous", "full")
            self._connection.pragma("foreign_keys", "on")
            with self._writing():
                self._migrate()
        except apsw.Error as error:
            raise StoreError(f"{self.path} is not a store, or it is damaged ({error}).") from error

    def _migrate(self) -> None:
        """Bring the file to this program's format."""
        run = self._connection.execute
        kind = self._connection.pragma("application_id")
        found = int(self._connection.pragma("user_version"))
        tables = run("select count(*) from sqlite_schema").get
        if kind != APPLICATION and (kind or found or tables):
            raise StoreError(f"{self.path} is a SQLite file of another program.")
        if found > FORMAT:
            raise StoreError(
                f"{self.path} has format {found}, newer than the {FORMAT} that this version of "
                "guardband reads: upgrade guardband."
            )
        for step in MIGRATIONS[found:]:
            run(step)
        if found < FORMAT:
            self._connection.pragma("application_id", APPLICATION)
            self._connection.pragma("user_version", FORMAT)

    @contextmanager
    def transaction(self, space: str) -> Iterator[SqliteTransaction]:
        """Begin work on one space, alone in the whole file."""
        with self._lock:
            self._renew()
            with self._writing():
                yield SqliteTransaction(self._connection)

    @contextmanager
    def reading(self) -> Iterator[SqliteTransaction]:
        """Begin reading."""
        with self._lock:
            self._renew()
            with self._bracket("begin"):
                yield SqliteTransaction(self._connection)

    def _writing(self) -> Any:
        return self._bracket("begin immediate")

    @contextmanager
    def _bracket(self, begin: str) -> Iterator[None]:
        """Run a block as one transaction."""
        if self._deep:
            raise RuntimeError("a transaction is already open: end it before the next.")
        self._deep = True
        try:
            self._connection.execute(begin)
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
                raise
            try:
                self._connection.execute("commit")
            except BaseException:
                if self._connection.in_transaction:  # the disk is full, say: nothing was stored
                    self._connection.execute("rollback")
                raise
        finally:
            self._deep = False

    def _renew(self) -> None:
        """Open the file anew in a forked child: connections must not be shared."""
        if self._process != os.getpid():
            self._lock, self._deep = threading.RLock(), False
            self._connect()

    def check(self) -> list[str]:
        """Return what SQLite finds wrong with the file; usually nothing."""
        with self._lock:
            try:
                found = [str(row[0]) for row in self._connection.execute("pragma integrity_check")]
            except apsw.Error as error:
                return [str(error)]
        return [] if found == ["ok"] else found

    def backup(self, path: Path) -> None:
        """Write a complete copy to `path`, while others go on working."""
        place = Path(path)
        if place.exists():
            raise FileExistsError(f"{place} exists already: name a new file for the copy.")
        with write_atomically(place, private=True) as file, self._lock:
            self._renew()
            self._connection.execute("vacuum into ?", (file.name,))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


class SqliteTransaction:
    """Reads and writes of one transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._run = connection.execute

    def meta(self, key: str) -> str | None:
        """Return a note about the store itself."""
        value: str | None = self._run("select value from meta where key = ?", (key,)).get
        return value

    def put_meta(self, key: str, value: str) -> None:
        """Write a note about the store itself."""
        self._run("insert or replace into meta (key, value) values (?, ?)", (key, value))

    def space(self, name: str) -> SpaceRow | None:
        """Return one space."""
        return self._one(SpaceRow, "name = ?", name)

    def spaces(self) -> list[SpaceRow]:
        """Return all spaces."""
        return self._all(SpaceRow, "true order by name")

    def task(self, space: str, task: str) -> TaskRow | None:
        """Return one task."""
        return self._one(TaskRow, "space = ? and task = ?", space, task)

    def tasks(self, space: str) -> list[TaskRow]:
        """Return a space's tasks, in the order of registration."""
        return self._all(TaskRow, "space = ? order by place", space)

    def stream(self, stream: str) -> StreamRow | None:
        """Return one stream."""
        return self._one(StreamRow, "stream = ?", stream)

    def streams(self, space: str) -> list[StreamRow]:
        """Return a space's streams, in the order of their names."""
        return self._all(StreamRow, "space = ? order by stream", space)

    def count_streams(self, space: str, task: str) -> tuple[int, int]:
        """Return how many streams of a task are open, and how many there are in all."""
        sql = "select total(state = 'open'), count(*) from stream where space = ? and task = ?"
        open_, ever = self._run(sql, (space, task)).get
        return int(open_), int(ever)

    def contributors(self, space: str) -> set[str]:
        """Return the tasks that have stored observations, in open streams or in sealed ones."""
        sql = "select distinct task from stream where space = ? and n > 0"
        return {task for (task,) in self._run(sql, (space,))}

    def heartbeat(self, stream: str) -> HeartbeatRow | None:
        """Return when a stream was last heard of."""
        return self._one(HeartbeatRow, "stream = ?", stream)

    def heartbeats(self, space: str) -> list[HeartbeatRow]:
        """Return the same of all streams of a space."""
        return self._all(HeartbeatRow, "space = ? order by stream", space)

    def unanswered(self, space: str, epoch: int, since: float) -> int:
        """Return how many open streams of active tasks, heard of since, owe an answer."""
        sql = (
            "select count(*) from stream s join pulse p using (stream) "
            "join task t on t.space = s.space and t.task = s.task where s.space = ? "
            "and s.state = 'open' and s.answer_epoch < ? and p.last_seen >= ? "
            "and t.status = 'active'"
        )
        return int(self._run(sql, (space, epoch, since)).get)

    def epoch(self, space: str, epoch: int) -> EpochRow | None:
        """Return one epoch."""
        return self._one(EpochRow, "space = ? and epoch = ?", space, epoch)

    def epochs(self, space: str, last: int) -> list[EpochRow]:
        """Return the newest epochs, newest first."""
        return self._all(EpochRow, "space = ? order by epoch desc limit ?", space, last)

    def entries(self, space: str, epoch: int) -> list[EntryRow]:
        """Return the manifest of an epoch."""
        return self._all(EntryRow, "space = ? and epoch = ? order by stream", space, epoch)

    def events(self, space: str | None, last: int, after: int = 0) -> list[EventRow]:
        """Return the newest events of a space, or of all, with seq > after, newest first."""
        if space is None:
            return self._all(EventRow, "seq > ? order by seq desc limit ?", after, last)
        where = "space = ? and seq > ? order by seq desc limit ?"
        return self._all(EventRow, where, space, after, last)

    def samples(self, space: str, level: int, since: float) -> list[SampleRow]:
        """Return samples of one level, by time."""
        where = "space = ? and level = ? and at >= ? order by at, stream"
        return self._all(SampleRow, where, space, level, since)

    def token(self, token: str) -> TokenRow | None:
        """Return one token."""
        return self._one(TokenRow, "token = ?", token)

    def tokens(self) -> list[TokenRow]:
        """Return all tokens."""
        return self._all(TokenRow, "true order by token")

    def put(self, row: Row) -> None:
        """Write a row."""
        self._run(WRITES[type(row)], row)

    def touch(
        self, stream: str, at: float, seen_epoch: int | None, config_version: int | None
    ) -> None:
        """Note that a stream was heard of, and what it knows; None leaves that as it was."""
        sql = (
            "update pulse set last_seen = ?, seen_epoch = coalesce(?, seen_epoch), "
            "config_version = coalesce(?, config_version) where stream = ?"
        )
        self._run(sql, (at, seen_epoch, config_version, stream))

    def add_event(self, at: float, space: str, who: str, what: str, detail: str) -> None:
        """Write down an event."""
        sql = "insert into audit (at, space, who, what, detail) values (?, ?, ?, ?, ?)"
        self._run(sql, (at, space, who, what, detail))

    def delete_epoch(self, space: str, epoch: int) -> None:
        """Drop an open epoch that will never be closed."""
        self._run("delete from epoch where space = ? and epoch = ?", (space, epoch))

    def delete_samples(self, space: str, level: int, before: float) -> None:
        """Drop old samples of one level."""
        sql = "delete from sample where space = ? and level = ? and at < ?"
        self._run(sql, (space, level, before))

    def _one(self, kind: type[Kind], where: str, *values: Any) -> Kind | None:
        found = self._all(kind, where, *values)
        return found[0] if found else None

    def _all(self, kind: type[Kind], where: str, *values: Any) -> list[Kind]:
        return [kind(*row) for row in self._run(f"{select(kind)} where {where}", values)]
