"""What live agents take from the computer: time, threads, chance, and what is safe on its disk.

They ask for it here and nowhere else, so that the simulation (`tests/live/simulation`) can put its
own in the place of these names. Files are SQLite's, which has a place of its own for that (VFS).
"""

from __future__ import annotations

import os
from pathlib import Path
from random import uniform
from threading import Event, Lock, RLock, Thread
from time import monotonic
from uuid import UUID

__all__ = [
    "Event",
    "Lock",
    "RLock",
    "Thread",
    "monotonic",
    "new_uuid",
    "put_on_disk",
    "uniform",
    "urandom",
]

urandom = os.urandom


def new_uuid() -> UUID:
    """Return a random name that nobody else has."""
    return UUID(bytes=urandom(16), version=4)


def put_on_disk(path: str | Path, way: int = os.O_RDWR) -> None:
    """Return when what was written to a file is on the disk; the names in a folder: O_RDONLY."""
    handle = os.open(path, way)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
