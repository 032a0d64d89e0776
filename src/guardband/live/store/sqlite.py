"""A store in one SQLite file: durable at every commit, shared by the processes of one host."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from guardband.files import plain_errors, write_atomically
from guardband.live.protocol.messages import Refused
from guardband.live.sqlite import FAILURES, apsw, connect, is_damage
from guardband.live.store.rows import Row, StoreError
from guardband.live.store.schema import SQLITE, migrations
from guardband.live.store.sql import Store, Transaction

__all__ = ["APPLICATION", "FORMAT", "MIGRATIONS", "SqliteStore"]

APPLICATION = 0x67626364  # "gbcd" in the file's header: this is a coordinator's store
MIGRATIONS = migrations(SQLITE)
FORMAT = len(MIGRATIONS)
BUSY_MS = 30_000
# What passes when somebody has made room, or by itself; the file is sound meanwhile.
PRESSURE: dict[type[apsw.Error], str] = {
    apsw.FullError: "its disk is full",
    apsw.ReadOnlyError: "its file may not be written",
    apsw.PermissionsError: "its file may not be used",
    apsw.CantOpenError: "its file cannot be opened; too many files may be open",
    apsw.IOError: "its disk does not read or write",
    apsw.BusyError: "another process has held it for too long",
    apsw.LockedError: "another process has held it for too long",
    apsw.NoMemError: "there is not enough memory",
}


class SqliteStore(Store):
    """Tables in a SQLite file: WAL, synchronous=FULL, one connection per process.

    Parameters
    ----------
    path
        The file; it and its folder are made where they do not exist, readable for the owner only.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._open()

    def _open(self) -> None:
        """Open the file in this process."""
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._connect()

    def _connect(self) -> None:
        with plain_errors(self.path.parent, "no store can be kept there; choose another folder"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        try:
            cut: list[str] = []
            self._connection = connect(self.path, BUSY_MS, refusal=StoreError, on_loss=cut.append)
            self.cut = cut[0] if cut else None  # what was lost with the log, when it was opened
            self._connection.pragma("synchronous", "full")
            self._connection.pragma("foreign_keys", "on")
            with self.transaction("") as t:
                self._migrate(t)
        except FAILURES as error:
            raise StoreError(f"{self.path} is not a store, or it is damaged ({error}).") from error

    def _migrate(self, t: Transaction) -> None:
        """Bring the file to this program's format."""
        run = self._connection.execute
        application = self._connection.pragma("application_id")
        found = int(self._connection.pragma("user_version"))
        tables = run("select count(*) from sqlite_schema").get
        if application != APPLICATION and (application or found or tables):
            raise StoreError(f"{self.path} is a SQLite file of another program.")
        if found > FORMAT:
            raise StoreError(
                f"{self.path} has format {found}, newer than the {FORMAT} that this version of "
                "guardband reads: upgrade guardband."
            )
        for step in MIGRATIONS[found:]:
            run(step)
        if found < FORMAT:
            t.seal_all()
            self._connection.pragma("application_id", APPLICATION)
            self._connection.pragma("user_version", FORMAT)

    @property
    def connection(self) -> apsw.Connection:
        """The connection of this process: a forked child must not use its parent's."""
        if self._process != os.getpid():
            self._open()
        return self._connection

    def mend(self) -> None:
        """Go on with what is sound of a damaged file; the lock is held."""
        mender, self.mender = self.mender, None  # once: what cannot be mended is for a person
        assert mender is not None
        self._connection.close()
        try:
            mender()
            self.mender, self.is_damaged = mender, False
        finally:
            self._connect()

    def transaction(self, space: str) -> SqliteTransaction:
        """Begin work on one space, alone in the whole file."""
        return SqliteTransaction(self, "begin immediate")

    def reading(self) -> SqliteTransaction:
        """Begin reading; everything read belongs to one moment."""
        return SqliteTransaction(self, "begin")

    def reading_once(self) -> SqliteTransaction:
        """Begin reading by one query only."""
        return SqliteTransaction(self, None)

    def check(self) -> list[str]:
        """Return what is wrong with the file and the stored data; usually nothing."""
        try:
            with self.lock:
                found = [str(row[0]) for row in self.connection.execute("pragma integrity_check")]
            return super().check() if found == ["ok"] else found
        except FAILURES as error:
            return [str(error)]

    def backup(self, path: Path) -> None:
        """Write a complete copy to `path`, while others go on working."""
        copy = Path(path)
        if copy.exists():
            raise FileExistsError(f"{copy} exists already: name a new file for the copy.")
        with write_atomically(copy, private=True) as file, self.lock:
            self.connection.execute("vacuum into ?", (file.name,))

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self._connection.close()


class SqliteTransaction(Transaction):
    """A transaction in SQLite; the threads of a process take turns.

    Parameters
    ----------
    store
        The store, with its lock and its connection.
    begin
        The statement that begins it; None for one query, which is a transaction by itself.
    """

    def __init__(self, store: SqliteStore, begin: str | None) -> None:
        self._store, self._lock, self._begin = store, store.lock, begin
        self._connection = store.connection

    def __enter__(self) -> Self:
        self._lock.acquire()
        try:
            if self._store.is_damaged and self._store.mender is not None:
                self._store.mend()
                self._connection = self._store.connection
            if self._connection.in_transaction:
                raise RuntimeError("a transaction is already open: end it before the next.")
            if self._begin is not None:
                self._connection.execute(self._begin)
        except BaseException as error:
            self._lock.release()
            raise self._told(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._begin is not None:
                self._connection.execute("commit")
        except FAILURES as problem:
            raise self._told(problem) from problem
        finally:
            try:
                if self._connection.in_transaction:  # also where the disk was full at the commit
                    self._connection.execute("rollback")
            except FAILURES as problem:
                raise self._told(problem) from problem
            finally:
                self._lock.release()

    def among(self, names: Sequence[str]) -> tuple[str, Any]:
        """Return the condition that a name is one of these, and the one value that it takes."""
        return "in (select value from json_each(?))", json.dumps(names)

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except FAILURES as error:
            raise self._told(error) from error

    def write(self, kind: type[Row], statement: str, *values: Any) -> None:
        """Execute a statement that changes rows of this kind."""
        try:
            self._connection.execute(statement, values)
        except FAILURES as error:
            raise self._told(error) from error

    def damaged(self, what: str) -> Exception:
        """Have the file mended before it is used again."""
        return self._told(apsw.CorruptError(what))

    def _told(self, error: BaseException) -> Exception:
        """Return what to raise: a refusal that passes, or that the file is damaged."""
        if is_damage(error):
            self._store.is_damaged = True
            if self._store.mender is None:
                return StoreError(f"{self._store.path} is damaged ({error}): restore a backup.")
            return _unavailable("a part of it is damaged, and is mended from what is sound")
        why = next((why for kind, why in PRESSURE.items() if isinstance(error, kind)), None)
        if why is None:
            raise error
        return _unavailable(why)


def _unavailable(why: str) -> Refused:
    detail = f"the store cannot be used now: {why}. Nothing was changed; send it again."
    return Refused("store_unavailable", 503, detail, retry_after_s=1)
