"""A lock that one process of a host holds: on a file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

__all__ = ["FileLock"]


class FileLock:
    """A lock on a file; the system takes it back from a process that dies.

    Parameters
    ----------
    path
        The file; it is made where it does not exist, and stays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        """Whether this process has it."""
        return self._handle is not None

    def take(self) -> bool:
        """Take it if no other process has it; tell whether this process has it now."""
        if self._handle is None:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                return False
            self._handle = handle
        return True

    def leave(self) -> None:
        """Release it; in a forked child, only the child's copy is released."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
