"""Connections to PostgreSQL: a pool of them to work with, and one that listens."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any

from guardband.extras import how_to_install
from guardband.live.protocol.messages import Refused
from guardband.live.store.rows import StoreError

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg_pool import ConnectionPool
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"a store in PostgreSQL needs psycopg: {how_to_install('postgres')}.", name="psycopg"
    ) from error

__all__ = [
    "CHANNEL",
    "SCHEMA",
    "Connection",
    "Listener",
    "connect",
    "open_pool",
    "psycopg",
    "unavailable",
]

Connection = Any  # psycopg's
SCHEMA = "guardband"  # all tables are in a schema of our own; whatever else is there, stays
CHANNEL = "guardband"  # on which changes are announced
LOST = (psycopg.OperationalError, psycopg.InterfaceError)  # it is away, or busy: that passes

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
# No request waits for ever, and a replica that was frozen in the middle of a transaction loses it,
# and with it the lock on its space.
SESSION = f"""
set search_path = {SCHEMA};
set statement_timeout = '10s';
set lock_timeout = '5s';
set idle_in_transaction_session_timeout = '15s';
"""
# A commit that was acknowledged must have reached the disk, whatever the database's default is.
DURABLE = "select set_config('synchronous_commit', 'on', false) where %s = 'off'"

WAIT_S = 5.0  # how long a transaction waits for a connection, while the database is away or busy
FIRST_PAUSE = 0.1  # seconds until a lost listener connects again; then twice as long, and so on

LOGGER = logging.getLogger("guardband.server")
# The pool's warnings name hosts and users, and every request that fails is logged here.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


def connect(address: str) -> Connection:
    """Return a new connection that begins and ends its transactions only when told to."""
    connection = psycopg.connect(_complete(address), autocommit=True)
    try:
        _configure(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def open_pool(address: str, most: int) -> ConnectionPool:
    """Return a pool of connections, opened when needed and kept for the next transaction."""
    return ConnectionPool(
        _complete(address),
        kwargs={"autocommit": True},
        configure=_configure,
        min_size=0,
        max_size=most,
        timeout=WAIT_S,
        reconnect_timeout=WAIT_S,
        open=True,
    )


def _complete(address: str) -> str:
    """Return an address with what it does not say."""
    try:
        return str(make_conninfo(**{**CONNECTION, **conninfo_to_dict(address)}))
    except psycopg.ProgrammingError as error:
        raise StoreError(f"not an address of a PostgreSQL database: {error}") from None


def _configure(connection: Connection) -> None:
    connection.execute(SESSION)
    connection.execute(DURABLE, connection.execute("show synchronous_commit").fetchone())


def unavailable(error: psycopg.Error) -> Refused:
    """Return the answer to those whose request could not be carried out, or not for certain."""
    # What the database said is the exception's cause, for logs: it names hosts and users.
    if not isinstance(error, LOST):  # it will not pass by itself: an operator must look at it
        why = error.diag.message_primary or str(error)
        LOGGER.error("store", extra={"fields": {"why": f"{type(error).__name__}: {why}"}})
    detail = "the database does not answer now; send the same request again."
    return Refused("store_unavailable", 503, detail, retry_after_s=1)


def damaged(what: str) -> Refused:
    """Return the answer to those whose request met a row that is not what was written."""
    LOGGER.error("store", extra={"fields": {"why": what}})
    detail = "a part of the store is damaged, and is mended from what is sound; send it again."
    return Refused("store_unavailable", 503, detail, retry_after_s=1)


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
