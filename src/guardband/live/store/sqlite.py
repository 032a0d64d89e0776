"""A store in one SQLite file: durable at every commit, shared by the processes of one host."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from guardband.files import write_atomically
from guardband.live.sqlite import apsw, connect
from guardband.live.store.rows import Row, StoreError
from guardband.live.store.schema import SQLITE, migrations
from guardband.live.store.sql import Store, Transaction

__all__ = ["APPLICATION", "FORMAT", "MIGRATIONS", "SqliteStore"]

APPLICATION = 0x67626364  # "gbcd" in the file's header: this is a coordinator's store
MIGRATIONS = migrations(SQLITE)
FORMAT = len(MIGRATIONS)
BUSY_MS = 30_000


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
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        try:
            self._connection = connect(self.path, BUSY_MS, refusal=StoreError)
            self._connection.pragma("synchronous", "full")
            self._connection.pragma("foreign_keys", "on")
            with self.transaction(""):
                self._migrate()
        except apsw.Error as error:
            raise StoreError(f"{self.path} is not a store, or it is damaged ({error}).") from error

    def _migrate(self) -> None:
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
            self._connection.pragma("application_id", APPLICATION)
            self._connection.pragma("user_version", FORMAT)

    @property
    def connection(self) -> apsw.Connection:
        """The connection of this process: a forked child must not use its parent's."""
        if self._process != os.getpid():
            self._open()
        return self._connection

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
        except apsw.Error as error:
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
        self._connection, self._lock = store.connection, store.lock
        self._begin = begin

    def __enter__(self) -> Self:
        self._lock.acquire()
        try:
            if self._connection.in_transaction:
                raise RuntimeError("a transaction is already open: end it before the next.")
            if self._begin is not None:
                self._connection.execute(self._begin)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._begin is not None:
                self._connection.execute("commit")
        finally:
            try:
                if self._connection.in_transaction:  # also where the disk was full at the commit
                    self._connection.execute("rollback")
            finally:
                self._lock.release()

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query."""
        return self._connection.execute(statement, values).fetchall()

    def write(self, kind: type[Row], statement: str, *values: Any) -> None:
        """Execute a statement that changes rows of this kind."""
        self._connection.execute(statement, values)
