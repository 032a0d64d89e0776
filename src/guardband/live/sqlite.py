"""SQLite files that several processes of a host write to; for agents' journals and the store.

SQLite comes with apsw, not from the system: versions before 3.51.3 can damage a file with a
write-ahead log that several connections write to.
"""

from __future__ import annotations

import time
from pathlib import Path

try:
    import apsw
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "the live system needs SQLite through apsw: pip install 'guardband[live]'.", name="apsw"
    ) from error

__all__ = ["apsw", "connect"]

SOUND = 3_051_003  # the first version without the damage
PAUSE_S = 0.005


def connect(
    path: Path, patience_ms: int, *, refusal: type[Exception], page_size: int | None = None
) -> apsw.Connection:
    """Open a file with a write-ahead log.

    Parameters
    ----------
    path
        The file.
    patience_ms
        So long it waits for others, now and later.
    refusal
        What to raise where this SQLite could damage the file.
    page_size
        Of a new file.
    """
    if apsw.SQLITE_VERSION_NUMBER < SOUND:
        raise refusal(
            f"apsw {apsw.apsw_version()} brings SQLite {apsw.sqlite_lib_version()}, which can "
            f"damage {path} when several processes use it: pip install --upgrade apsw."
        )
    db = apsw.Connection(str(path))
    db.set_busy_timeout(patience_ms)
    # Else SQLite plans many a statement anew with every use, by the values that are bound to it.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    if page_size is not None:
        db.pragma("page_size", page_size)
    _use_log(db, patience_ms)
    return db


def _use_log(db: apsw.Connection, patience_ms: int) -> None:
    """Switch a file to its write-ahead log.

    Two that open a new file at once are in each other's way here, and SQLite's own timeout does
    not hold for this step: one of them would be told at once that the file is locked.
    """
    until = time.monotonic() + patience_ms / 1000.0
    while True:
        try:
            db.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(PAUSE_S)
