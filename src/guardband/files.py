"""Writing a file so that readers see the old one or the complete new one, never a part of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["DRAFT", "write_atomically"]

DRAFT = r"\..+\.[0-9a-f]{8}\.part"  # the names of unfinished files, as a regular expression


@contextmanager
def write_atomically(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[BinaryIO]:
    """Write a file that appears under its name only when it is complete and on the disk.

    Parameters
    ----------
    path
        The file to make or replace; its folder is made if needed.
    private
        Whether only its owner may read it; otherwise the user's umask decides.

    Yields
    ------
    A binary file to write to; `file.name` is its path until then. If the block fails, it
    is removed, and a file that was under `path` before stays as it was.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    mode = 0o600 if private else 0o666
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        _sync_folder(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure, where folders can be synced."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
