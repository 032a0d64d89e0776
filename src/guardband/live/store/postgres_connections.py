"""Connections to PostgreSQL: some to work with, and one that listens."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from guardband.live.protocol.messages import Refused
from guardband.live.store.base import StoreError

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "a store in PostgreSQL needs psycopg: pip install 'guardband[postgres]'.", name="psycopg"
    ) from error

__all__ = ["CHANNEL", "READING", "WRITING", "Connections", "Listener", "Work"]

CHANNEL = "guardband"  # on which changes are announced
LOST = (psycopg.OperationalError, psycopg.InterfaceError)  # it is away, or busy: that passes

# How transactions begin, whatever the database's default is. A writer waits for a lock, and must
# then see what was committed while it waited: each statement looks anew. A reader sees one moment.
WRITING = "begin isolation level read committed read write"
READING = "begin isolation level repeatable read read only"

# What the address does not say. A dead peer is noticed within half a minute, and after a failover
# only a server that can be written to will do.
CONNECTION = {
    "application_name": "guardband",
    "client_encoding": "utf8",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "target_session_attrs": "read-write",
    "tcp_user_timeout": 15_000,
}
# Nobody waits for ever, and a replica that was frozen in the middle of a transaction loses it,
# and with it the lock on its space.
SESSION = """
set statement_timeout = '10s';
set lock_timeout = '5s';
set idle_in_transaction_session_timeout = '15s';
"""
# A commit that was acknowledged must have reached the disk, whatever the database's default is.
DURABLE = "select set_config('synchronous_commit', 'on', false) where %s = 'off'"

FIRST_PAUSE = 0.1  # seconds until a lost connection is tried again; then twice as long, and so on

LOGGER = logging.getLogger("guardband.server")


def connect(address: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Return a new connection that begins and ends its transactions only when told to."""
    given = conninfo_to_dict(address)
    connection = psycopg.connect(make_conninfo(**{**CONNECTION, **given}), autocommit=True)
    try:
        connection.execute(SESSION)
        commit = connection.execute("show synchronous_commit").fetchone()
        connection.execute(DURABLE, commit)
    except BaseException:
        connection.close()
        raise
    return connection


def unavailable(error: psycopg.Error) -> Refused:
    """Return the answer to those whose request could not be carried out, or not for certain."""
    # What the database said is the exception's cause, for logs: it names hosts and users.
    if not isinstance(error, LOST):  # it will not pass by itself; somebody must look at it
        why = error.diag.message_primary or str(error)
        LOGGER.error("store", extra={"fields": {"why": f"{type(error).__name__}: {why}"}})
    detail = "the database does not answer now; send the same request again."
    return Refused("store_unavailable", 503, detail, retry_after_s=1)


class Work:
    """One transaction; what it writes travels with its next question, or with the commit.

    The space's lock is held meanwhile, and every message to the database and back makes others
    wait longer.
    """

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        self._unsent: list[tuple[str, tuple[Any, ...]]] = []
        self.sound = True  # until something that was sent fails

    def write(self, statement: str, *values: Any) -> None:
        """Have a statement executed, at the latest with the commit; that may raise, then."""
        self._unsent.append((statement, values))

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that answer a question, after all that was written."""
        rows: list[tuple[Any, ...]] = self._send(statement, values).fetchall()
        return rows

    def commit(self) -> None:
        """Make it durable."""
        # PostgreSQL answers ROLLBACK, and no error, if a statement had failed.
        said = self._send("commit", ()).statusmessage
        if said != "COMMIT":
            raise psycopg.OperationalError(f"a commit was answered with {said}")

    def _send(self, statement: str, values: tuple[Any, ...]) -> psycopg.Cursor[tuple[Any, ...]]:
        execute, waiting, self._unsent = self._connection.execute, self._unsent, []
        try:
            if not waiting:
                return execute(statement, values)
            # Not prepared: psycopg takes a statement for prepared also where the pipeline failed
            # before the server had seen it, and every later use of it would fail.
            with self._connection.pipeline():
                for each in waiting:
                    execute(*each, prepare=False)
                return execute(statement, values, prepare=False)
        except BaseException:
            self.sound = False  # and stays so, whatever the caller makes of it
            raise


class Connections:
    """A few connections, opened when needed and kept for the next.

    Parameters
    ----------
    address
        postgresql://user:password@host:port/database, or libpq's key=value form.
    most
        How many at once; who needs one more waits.
    """

    def __init__(self, address: str, most: int) -> None:
        try:
            conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            raise StoreError(f"not an address of a PostgreSQL database: {error}") from None
        self.address = address
        self._places = threading.BoundedSemaphore(most)
        self._idle: list[psycopg.Connection[tuple[Any, ...]]] = []
        self._closed = False

    @contextmanager
    def transaction(self, begin: str) -> Iterator[Work]:
        """Begin with `begin` on some connection; commit when the block ends.

        `begin` is tried again on a fresh connection where an idle one turns out to be dead:
        nothing has happened yet. From then on nothing is tried twice. Whatever the database
        reports, up to a connection that breaks during the commit, becomes
        Refused("store_unavailable"): the caller is told to send the same request again, and the
        stored (n, version) then decides whether the first one counted. A connection that reported
        an error is closed: what it still holds of that is nobody's to guess.
        """
        with self._places:
            connection = self._begun(begin)
            work = Work(connection)
            try:
                yield work
                work.commit()
            except BaseException as error:
                self._undo(connection, work)
                if isinstance(error, psycopg.Error):
                    raise unavailable(error) from error
                raise
            self._keep(connection)

    def _begun(self, begin: str) -> psycopg.Connection[tuple[Any, ...]]:
        """Return a connection that has begun a transaction."""
        with contextlib.suppress(IndexError):
            while True:
                connection = self._idle.pop()
                try:
                    connection.execute(begin)
                    return connection
                except psycopg.Error as error:
                    alive = not connection.broken
                    connection.close()
                    if alive:  # it is not the connection: the space's lock, say, was not free
                        raise unavailable(error) from error
        try:
            connection = connect(self.address)
        except psycopg.Error as error:
            raise unavailable(error) from error
        try:
            connection.execute(begin)
        except psycopg.Error as error:
            connection.close()
            raise unavailable(error) from error
        return connection

    def _undo(self, connection: psycopg.Connection[tuple[Any, ...]], work: Work) -> None:
        """Roll back and keep the connection where nothing is wrong with it; else close it."""
        if work.sound:
            with contextlib.suppress(psycopg.Error):
                connection.execute("rollback")
                self._keep(connection)
                return
        connection.close()

    def _keep(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle now, and the rest when it is given back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class Listener:
    """Hears which spaces other processes have changed; connects again until it is closed.

    Parameters
    ----------
    address
        Of the database.
    heard
        Called, in the listener's thread, with the name of the space that changed, or with "" where
        anything may have: after every new connection, since nothing was heard before it.
    """

    def __init__(self, address: str, heard: Callable[[str], object]) -> None:
        self.address, self.heard = address, heard
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="guardband-listen", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._stop.is_set():
            try:
                with contextlib.closing(connect(self.address)) as connection:
                    connection.execute(f"listen {CHANNEL}")
                    self.heard("")
                    pause = FIRST_PAUSE
                    while not self._stop.is_set():
                        for each in connection.notifies(timeout=0.5):
                            self.heard(each.payload)
            except psycopg.Error as error:
                if pause == FIRST_PAUSE:  # once for every time that it goes away
                    LOGGER.warning("not listening", extra={"fields": {"why": str(error).strip()}})
                self._stop.wait(pause)
                pause = min(2.0, 2 * pause)

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._thread.join(timeout=10)
