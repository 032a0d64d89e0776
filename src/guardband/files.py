"""Files: written so that readers see the old one or the complete new one; errors in a sentence."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["DRAFT", "in_words", "plain_errors", "write_atomically"]

DRAFT = r"\..+\.[0-9a-f]{8}\.part"  # the names of unfinished files, as a regular expression
NUMBER = re.compile(r"\[(Errno|WinError) -?\d+\] ")  # how Python begins errors of the system


def in_words(error: BaseException) -> str:
    """Return what an error says, without the system's number, which tells readers nothing."""
    return NUMBER.sub("", str(error))


@contextmanager
def plain_errors(place: str | os.PathLike[str], told: str) -> Iterator[None]:
    """Let an error of the system say which place it is about, and what could not be done there."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:
            raise  # it is a sentence already
        plain = type(error)(f"'{place}': {told} ({error.strerror}).")
        plain.errno = error.errno
        raise plain from error


@contextmanager
def write_atomically(
    path: str | os.PathLike[str], *, private: bool = False, once: bool = False
) -> Iterator[BinaryIO]:
    """Write a file that appears under its name only when it is complete and on the disk.

    Parameters
    ----------
    path
        The file to make or replace; its folder is made if needed.
    private
        Whether only its owner may read it; otherwise the user's umask decides.
    once
        Whether a file that is there by then stays, and `FileExistsError` is raised.

    Yields
    ------
    A binary file to write to; `file.name` is its path until then. If the block fails, it
    is removed, and a file that was under `path` before stays as it was.
    """
    target = Path(path)
    if not target.name:
        raise IsADirectoryError(f"{str(path)!r} names no file: give one, such as 'agent.npz'.")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    mode = 0o600 if private else 0o666
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if once:
            os.link(draft, target)
        else:
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
