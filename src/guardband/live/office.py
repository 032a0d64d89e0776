"""Which of several processes with one state folder runs the errands."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

__all__ = ["Office"]


class Office:
    """A lock on a file in the folder; the system takes it back from a process that dies.

    Parameters
    ----------
    folder
        The state folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "courier.lock"
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        """Whether this process has it."""
        return self._handle is not None

    def taken(self) -> bool:
        """Tell whether this process has it, and take it if nobody has."""
        if self._handle is None:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                return False
            self._handle = handle
        return True

    def leave(self) -> None:
        """Let another process have it; in a forked child, only the child's copy is let go."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
