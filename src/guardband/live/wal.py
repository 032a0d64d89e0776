"""How a SQLite file gets its write-ahead log while others open it, too."""

from __future__ import annotations

import time

import apsw

__all__ = ["use_wal"]

PAUSE_S = 0.005


def use_wal(db: apsw.Connection, patience_ms: int) -> None:
    """Switch a file to its write-ahead log, waiting for others so long.

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
