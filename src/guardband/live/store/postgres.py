"""A store in PostgreSQL, shared by any number of coordinators.

All work on a space is done under a lock of that space (an advisory one that ends with the
transaction), so that replicas take turns as if they were one process: nothing that matters is in
their memory. A change that others may be waiting for is announced by NOTIFY inside the very
transaction that makes it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from guardband.live.store.postgres_connections import (
    CHANNEL,
    SCHEMA,
    Connection,
    Listener,
    connect,
    damaged,
    open_pool,
    psycopg,
    unavailable,
)
from guardband.live.store.rows import (
    EntryRow,
    EventRow,
    HeartbeatRow,
    MetaRow,
    Row,
    SampleRow,
    SpaceRow,
    StoreError,
    StreamRow,
    TokenRow,
)
from guardband.live.store.schema import POSTGRES, migrations
from guardband.live.store.sql import Store, Transaction

__all__ = ["MIGRATIONS", "PostgresStore"]

MIGRATIONS = migrations(POSTGRES)
MIGRATING = 0x67626D  # the number of the lock under which the tables change

# How transactions begin, whatever the database's default is. A writer waits for a lock, and must
# then see what was committed while it waited: each statement looks anew. A reader sees one moment.
WRITING = "begin isolation level read committed read write"
READING = "begin isolation level repeatable read read only"

# Changes of these may get lost in a crash of the database; ...
FLEETING: tuple[type[Row], ...] = (HeartbeatRow, SampleRow)
# ... and of these no other coordinator needs to hear at once.
QUIET: tuple[type[Row], ...] = (*FLEETING, StreamRow, EntryRow, EventRow, MetaRow)


class PostgresStore(Store):
    """Tables in the schema "guardband", which is made or brought up to date.

    Parameters
    ----------
    address
        postgresql://user:password@host:port/database, or libpq's key=value form.
    connections
        How many transactions may run at once; one more connection listens.
    """

    def __init__(self, address: str, *, connections: int = 4) -> None:
        self.workers = connections
        self._address = address
        try:
            with contextlib.closing(connect(address)) as connection:
                connection.execute(WRITING)
                migrate(connection)
                connection.execute("commit")
        except psycopg.Error as error:
            raise StoreError(f"PostgreSQL cannot be used: {error}") from error
        self._pool = open_pool(address, connections)

    def transaction(self, space: str) -> PostgresTransaction:
        """Begin work on one space: durable when the block ends, undone if it raises.

        Refused("store_unavailable", 503) where the database is away or reports an error, also
        where it went away during the commit and it is unknown whether that happened.
        """
        self._mend()
        begin = f"{WRITING}; select pg_advisory_xact_lock({_lock_of(space)})"
        return PostgresTransaction(self, self._pool, begin)

    def _mend(self) -> None:
        """Go on with what is sound of a damaged database; where that fails, the next one tries."""
        if not self.is_damaged or self.mender is None:
            return
        self.is_damaged = False
        try:
            self.mender()
        except BaseException:
            self.is_damaged = True
            raise

    def reading(self) -> PostgresTransaction:
        """Begin reading; everything read belongs to one moment."""
        self._mend()
        return PostgresTransaction(self, self._pool, READING)

    def listen(self, heard: Callable[[str], object]) -> Callable[[], None]:
        """Call `heard` with the name of every space that others change; return what ends it."""
        return Listener(self._address, heard).close

    def backup(self, path: Path) -> None:
        """Refuse: PostgreSQL has better ways."""
        raise StoreError(
            f"back PostgreSQL up with its own tools: pg_dump --schema={SCHEMA} --format=custom "
            f"--file={path} DATABASE."
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


class PostgresTransaction(Transaction):
    """A transaction in PostgreSQL; what it writes travels with its next query, or with the commit.

    The space's lock is held meanwhile, and every message to the database and back makes others
    wait longer.

    Parameters
    ----------
    store
        Is told of damage.
    pool
        Where a connection comes from.
    begin
        The statements that begin it.
    """

    def __init__(self, store: Store, pool: Any, begin: str) -> None:
        self._store, self._pool, self._begin = store, pool, begin
        self._unsent: list[tuple[type[Row] | None, str, tuple[Any, ...]]] = []
        self._sound = True  # until something that was sent fails
        self._wrote = self._durable = False
        self._changed: set[str] = set()

    def __enter__(self) -> Self:
        """Begin on a connection that works.

        The first statement is sent again where an idle connection turns out to be dead: nothing
        has happened yet. From then on nothing is sent twice.
        """
        try:
            for _ in range(self._pool.max_size + 1):
                self._connection = self._pool.getconn()
                try:
                    self._connection.execute(self._begin)
                    return self
                except BaseException as error:
                    broken = self._connection.broken
                    self._give_back(sound=False)
                    if not broken or not isinstance(error, psycopg.OperationalError):
                        raise  # the space's lock, say, was not free
            raise psycopg.OperationalError("every connection is lost")
        except psycopg.Error as error:
            raise unavailable(error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Commit, or undo what was done.

        Whatever the database reports, up to a connection that breaks during the commit, becomes
        Refused("store_unavailable"): the caller is told to send the same request again, and the
        stored (n, version) then decides whether the first one counted. A connection that reported
        an error is closed: its state is unknown.
        """
        try:
            if error is None:
                self._commit()
            elif isinstance(error, psycopg.Error):
                raise unavailable(error) from error
            elif self._sound:
                self._connection.execute("rollback")
        except psycopg.Error as problem:
            if error is None:
                raise unavailable(problem) from problem
        finally:
            self._give_back(sound=self._sound)

    def among(self, names: Sequence[str]) -> tuple[str, Any]:
        """Return the condition that a name is one of these, and the one value that it takes."""
        return "= any(?)", list(names)

    def damaged(self, what: str) -> Exception:
        """Have what is damaged mended before the next transaction."""
        self._store.is_damaged = True
        if self._store.mender is None:
            return StoreError(f"the database is damaged: {what}.")
        return damaged(what)

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query, after all that was written."""
        rows: list[tuple[Any, ...]] = self._send(_with_psycopg_marks(statement), values).fetchall()
        return rows

    def write(self, kind: type[Row], statement: str, *values: Any) -> None:
        """Have a statement executed, at the latest with the commit; that may raise, then."""
        self._wrote = True
        self._durable |= kind not in FLEETING
        self._unsent.append((kind, _with_psycopg_marks(statement), values))

    def put(self, row: Row) -> None:
        """Write a whole row, over the one with the same key."""
        super().put(row)
        if not isinstance(row, QUIET):
            self._changed.add(_announced(row))

    def delete_epoch(self, space: str, epoch: int) -> None:
        """Delete an open epoch that will never be closed."""
        super().delete_epoch(space, epoch)
        self._changed.add(space)

    def _commit(self) -> None:
        """Announce what others wait for, and make it as durable as it must be."""
        for space in sorted(self._changed):
            self._unsent.append((None, "select pg_notify(%s, %s)", (CHANNEL, space)))
        if self._wrote and not self._durable:
            self._unsent.append((None, "set local synchronous_commit = off", ()))
        # PostgreSQL answers ROLLBACK, and no error, if a statement had failed.
        said = self._send("commit", ()).statusmessage
        if said != "COMMIT":
            self._sound = False
            raise psycopg.OperationalError(f"a commit was answered with {said}")

    def _send(self, statement: str, values: tuple[Any, ...]) -> Any:
        """Execute what was written so far and this statement; return its cursor."""
        execute, waiting, self._unsent = self._connection.execute, self._unsent, []
        try:
            if not waiting:
                return execute(statement, values)
            with self._connection.pipeline():
                for each, rows in _merged(waiting):
                    cursor = self._connection.cursor()
                    # psycopg takes a statement for prepared also where the pipeline failed before
                    # the server had seen it: `executemany` always prepares, and the connection
                    # is closed if that fails; a single statement is not worth it.
                    if len(rows) > 1:
                        cursor.executemany(each, rows)
                    else:
                        cursor.execute(each, rows[0], prepare=False)
                return execute(statement, values, prepare=False)
        except BaseException:
            self._sound = False  # and stays so, whatever the caller makes of it
            raise

    def _give_back(self, *, sound: bool) -> None:
        """Return the connection to the pool, which replaces one that is closed."""
        if not sound:
            self._connection.close()
        self._pool.putconn(self._connection)


def migrate(connection: Connection) -> None:
    """Bring the tables to this program's format, once, however many replicas start together.

    To be called in a transaction: either all steps are taken, or none.
    """
    run = connection.execute
    run("set local lock_timeout = 0")
    run("set local statement_timeout = 0")
    run("select pg_advisory_xact_lock(%s, 0)", (MIGRATING,))
    # Not `create schema if not exists`: that needs a right which the owner of an existing schema
    # need not have.
    if run("select to_regnamespace(%s)", (SCHEMA,)).fetchone() == (None,):
        run(f"create schema {SCHEMA}")
    found, ours = _format_of(connection), len(MIGRATIONS)
    if found > ours:
        raise StoreError(
            f"the database has format {found}, and this version of guardband reads up to "
            f"{ours}: upgrade guardband."
        )
    for step in filter(None, MIGRATIONS[found:]):
        run(step)
    if found < ours:
        run(
            "insert into meta (key, value) values ('format', %s) "
            "on conflict (key) do update set value = excluded.value",
            (str(ours),),
        )


def _format_of(connection: Connection) -> int:
    """Return how many steps the database has taken."""
    run = connection.execute
    if run("select to_regclass(%s)", (f"{SCHEMA}.meta",)).fetchone() == (None,):
        return 0
    row = run("select value from meta where key = 'format'").fetchone()
    if row is None:
        raise StoreError(
            f"the schema {SCHEMA!r} of this database is not guardband's: its table meta names no "
            "format. Give guardband a database of its own."
        )
    return int(row[0])


def _merged(
    writes: list[tuple[type[Row] | None, str, tuple[Any, ...]]],
) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Yield statements with all rows for which they are executed one after the other.

    Tables are written one by one, because no table's rows depend on another's; those of one table
    in the order in which they were written.
    """
    kinds = list(dict.fromkeys(kind for kind, _, _ in writes))
    ordered = sorted(writes, key=lambda each: kinds.index(each[0]))
    for statement, several in groupby(ordered, key=itemgetter(1)):
        yield statement, [values for _, _, values in several]


@cache
def _with_psycopg_marks(statement: str) -> str:
    """Return a statement with values marked as psycopg marks them."""
    return statement.replace("?", "%s")


def _lock_of(space: str) -> int:
    """Return the number of a space's lock; if two had the same, they would wait for each other."""
    digest = hashlib.sha256(f"guardband space {space}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _announced(row: Row) -> str:
    """Return the space in which a change is announced; "" for tokens: anything may have changed."""
    if isinstance(row, TokenRow):
        return ""
    return row.name if isinstance(row, SpaceRow) else row.space  # type: ignore[union-attr]
