"""What becomes of a coordinator's damaged SQLite store: it goes on with what is sound, and says so.

Rows that are lost are taken for what never came, as after a restore. Where tasks may have been left
out, or granted something, and that is lost, spaces are paused until a person has looked.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from guardband.live.coordinator.restores import note_restore
from guardband.live.coordinator.sound_rows import added_up, mended, sound_epoch
from guardband.live.protocol.space import SpaceSettings
from guardband.live.salvage import mend
from guardband.live.sqlite import apsw, is_damage
from guardband.live.store import (
    EpochRow,
    HeartbeatRow,
    SpaceRow,
    SqliteStore,
    Store,
    StoreError,
    Transaction,
)
from guardband.live.store.rows import TABLES

__all__ = ["mend_rows", "mend_store", "mend_sums", "open_store", "watch_over"]

log = logging.getLogger("guardband.live")

VITAL = {"space"}  # without it nothing can be served
TRUSTED = {"task", "meta"}  # who is left out, what was granted, which logs were learned
NO_SPACES = (
    "the store is damaged where its spaces are kept, and cannot mend itself: restore a backup "
    "(`guardband restore FILE`), and agents send what is missing."
)
PAUSED = (
    "the store was damaged: which tasks were left out, and what they were granted, may be lost. "
    "Look at the tasks, then end the pause."
)


def watch_over(store: Store) -> None:
    """Have a store mended where it is damaged, and take note of what its log has lost."""
    if not isinstance(store, SqliteStore):
        store.mender = partial(mend_rows, store)
        return
    store.mender = partial(mend_store, store.path)
    if store.cut is not None:
        with store.reading() as t:
            names = [row.name for row in t.spaces()]
        for name in names:
            with store.transaction(name) as t:
                note_restore(t, name, {"damaged": "the log"}, who="store", now=time.time())


def mend_store(path: Path) -> str | None:
    """Write a damaged SQLite store anew from what is sound; return what is lost, None: it is sound.

    StoreError where not even the names of the spaces are left, also not with a bit turned back.
    """
    try:
        said = mend(path, _build, _complete)
    except StoreError:
        said = mend(path, _build, _complete, one_bit=True)
    if said is not None:
        log.error("guardband: %s was damaged and is mended: %s.", path, said)
    return said


def open_store(path: Path) -> SqliteStore:
    """Open a SQLite store, and mend it before where it is too damaged to be opened at all.

    StoreError where that cannot be done, or the file is none of ours.
    """
    try:
        return SqliteStore(path)
    except StoreError as error:
        if error.__cause__ is None or not is_damage(error.__cause__):
            raise
        try:
            mend_store(path)
        except apsw.NotADBError:
            raise error from None
        return SqliteStore(path)


def mend_rows(store: Store) -> str | None:
    """Delete rows of a database that are not what was written; return what is lost, None: nothing.

    StoreError where a space is among them.
    """
    with store.transaction("") as t:
        found = t.damaged_rows()
        lost = {TABLES[kind] for kind, _ in found}
        if VITAL & lost:
            raise StoreError(NO_SPACES)
        for kind, key in found:
            t.delete(kind, key)
    _complete_spaces(store, lost)
    if lost:
        log.error("guardband: the database was damaged: rows of %s are lost.", sorted(lost))
    return f"rows of {', '.join(sorted(lost))} are lost" if lost else None


def mend_sums(store: Store, *, now: float) -> str | None:
    """Take damaged sums out of rows that can be read; return what became of them, None: nothing.

    A coordinator does it when it meets them.
    """
    said = []
    with store.reading() as t:
        spaces = t.spaces()
    for row in spaces:
        space = SpaceSettings.from_json(json.loads(row.config))
        with store.transaction(row.name) as t:
            for each in t.streams(row.name):
                if mended(t, each, space.dim, now=now) is not each:
                    said.append(f"stream {each.stream} is sent again by its agent")
            for closed in t.epochs(row.name, row.epoch):
                if closed.total is not None and sound_epoch(t, closed, space) is not closed:
                    t.put(sound_epoch(t, closed, space))
                    said.append(f"epoch {closed.epoch} of {row.name} is added up again, or unused")
    return "; ".join(said) or None


def _build(path: Path) -> apsw.Connection:
    SqliteStore(path).close()
    return apsw.Connection(str(path))


def _complete(db: apsw.Connection, lost: Mapping[str, bool]) -> str:
    """Make a store whole from which rows are missing; return what that means."""
    if VITAL & set(lost):
        raise StoreError(NO_SPACES)
    store = SqliteStore(Path(db.filename))
    try:
        _complete_spaces(store, set(lost))
    finally:
        store.close()
    return f"rows of {', '.join(sorted(lost))} are lost" if lost else "nothing is lost"


def _complete_spaces(store: Store, lost: set[str]) -> None:
    with store.reading() as t:
        names = [row.name for row in t.spaces()]
    for name in names:
        with store.transaction(name) as t:
            row = t.space(name)
            if row is not None:
                _complete_space(t, row, lost, now=time.time())


def _complete_space(t: Transaction, row: SpaceRow, lost: set[str], *, now: float) -> None:
    space = SpaceSettings.from_json(json.loads(row.config))
    if row.open and t.epoch(row.name, row.open) is None:
        row = row._replace(open=0, floor=max(row.floor, row.open), outstanding=0)
    if TRUSTED & lost:
        row = row._replace(paused=PAUSED)
    t.put(row)
    beats = {each.stream for each in t.heartbeats(row.name)}
    for each in t.streams(row.name):
        if each.stream not in beats:
            heartbeat = HeartbeatRow(each.stream, row.name, each.task, now, 0, 0, "{}", None, None)
            t.put(heartbeat)
    newest = t.epoch(row.name, row.epoch) if row.epoch else None
    if newest is None and row.epoch:
        empty = EpochRow(row.name, row.epoch, "closed", "", now, closed_at=row.closed_at or now)
        newest = added_up(t, empty._replace(pool=row.pool), space)
    if newest is not None and "stream" in lost:
        # Whose data it holds is no longer known of those that are lost: nobody may adopt it now.
        newest = newest._replace(tasks=0)
    if newest is not None and lost & {"stream", "epoch", "entry"}:
        t.put(newest)
    if lost:
        note_restore(t, row.name, {"damaged": sorted(lost)}, who="store", now=now)
