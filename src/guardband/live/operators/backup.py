"""Backups of a coordinator's store in SQLite: made, examined and restored."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, NamedTuple

import apsw

from guardband.files import plain_errors, write_atomically
from guardband.live.coordinator.restores import note_restore
from guardband.live.store import StoreError
from guardband.live.store.sqlite import APPLICATION, FORMAT, SqliteStore

__all__ = ["Backup", "back_up", "examine", "restore"]

RULES_APART = 1000  # more changes of settings than are made between two backups
BESIDE = ("-wal", "-shm", "-journal")  # what SQLite may leave beside a file


class Backup(NamedTuple):
    """What a copy of a store holds."""

    spaces: dict[str, int]  # and the newest epoch of each
    streams: int
    observations: int
    bytes: int


def back_up(store: Path, out: Path) -> Backup:
    """Copy a store while a server works on it; the copy is checked before it gets its name.

    Parameters
    ----------
    store
        The file of the store.
    out
        The new file.
    """
    if not store.is_file():
        raise FileNotFoundError(f"there is no {store}: name the server's data folder.")
    source = SqliteStore(store)
    try:
        with plain_errors(out, "no copy can be written there; choose another file"):
            source.backup(out)
    finally:
        source.close()
    return examine(out)


def examine(file: Path) -> Backup:
    """Return what a copy holds; StoreError where it is damaged, or not a store at all."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}.")
    try:
        # Not as an immutable file: a copy made by other means may have a log beside it.
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return _examine(connection, file)
        finally:
            connection.close()
    except apsw.Error as error:
        raise StoreError(f"{file} is not a store, or it is damaged ({error}).") from error


def _examine(connection: apsw.Connection, file: Path) -> Backup:
    if connection.pragma("application_id") != APPLICATION:
        raise StoreError(f"{file} is not a copy of a coordinator's store.")
    found = int(connection.pragma("user_version"))
    if found > FORMAT:
        raise StoreError(
            f"{file} has format {found}, newer than the {FORMAT} that this version of guardband "
            "reads: upgrade guardband."
        )
    wrong = [str(row[0]) for row in connection.execute("pragma integrity_check")]
    if wrong != ["ok"]:
        raise StoreError(f"{file} is damaged: {wrong[0]}.")
    spaces = dict(connection.execute("select name, epoch from space order by name"))
    streams, observations = connection.execute(
        "select count(*), coalesce(sum(n), 0) from stream"
    ).get
    return Backup(spaces, streams, observations, file.stat().st_size)


def restore(file: Path, store: Path, *, force: bool = False) -> tuple[Backup, Path | None]:
    """Replace a store by a copy; return what that holds, and the path of the old file.

    Parameters
    ----------
    file
        The copy.
    store
        The file of the store; its folder is made where it does not exist.
    force
        Replace a store that exists; it is kept beside, under another name.
    """
    holds = examine(file)
    store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if store.exists() and not force:
        raise FileExistsError(
            f"{store} exists: restoring replaces it. Say --force if that is meant; it is kept "
            "under another name."
        )
    alone = _alone(store) if store.exists() else nullcontext()
    with alone, write_atomically(store, private=True) as draft:
        _copy(file, draft)
        _mark_restored(Path(draft.name))
        old = _set_aside(store) if store.exists() else None
    return holds, old


def _mark_restored(file: Path) -> None:
    """Write down that this is a backup, and make sure that no number is used twice.

    The settings of every space get a config_version that no agent knows for other settings: an
    agent that was away would otherwise take a pause, or a changed alpha, under a number that it
    knows for what it knows already. Parts of delta that were given to streams since are skipped.
    """
    now = time.time()
    store = SqliteStore(file)
    try:
        with store.reading() as t:
            spaces = t.spaces()
        for row in spaces:
            with store.transaction(row.name) as t:
                t.put(row._replace(config_version=row.config_version + RULES_APART))
                note_restore(t, row.name, {"from": "a backup"}, who="command line", now=now)
    finally:
        store.close()


@contextmanager
def _alone(store: Path) -> Iterator[None]:
    """Lock a store that no other process has open; refuse where one has.

    Leaving WAL mode needs exclusive access, and puts all of the log into the file. A file that is
    too damaged to be opened is in use by no process.
    """
    connection = apsw.Connection(str(store))
    try:
        connection.execute("pragma journal_mode = delete")
        connection.execute("begin exclusive")
    except apsw.BusyError:
        connection.close()
        raise StoreError(
            f"{store} is in use: stop the server, and agents that use it with local:, first."
        ) from None
    except apsw.Error:
        pass
    try:
        yield
    finally:
        connection.close()


def _set_aside(store: Path) -> Path:
    old = store.with_name(f"{store.name}.before-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    number = 1
    while old.exists():
        number += 1
        old = old.with_name(f"{old.name.rpartition('Z')[0]}Z-{number}")
    os.link(store, old)
    for suffix in BESIDE:  # of a damaged file: they may hold what it lacks
        beside = Path(f"{store}{suffix}")
        if beside.exists():
            beside.replace(f"{old}{suffix}")
    return old


def _copy(file: Path, target: BinaryIO) -> None:
    """Copy a file that is a backup, and no store in use."""
    log = Path(f"{file}-wal")
    if log.exists():
        raise StoreError(
            f"{file} has a log beside it, {log.name}: it is a store in use and no copy; make one "
            "with `guardband backup`."
        )
    with file.open("rb") as source:
        shutil.copyfileobj(source, target)
    target.flush()
