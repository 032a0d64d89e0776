"""Finished results on disk, each under a key that says everything it depends on."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from guardband.files import DRAFT, write_atomically

__all__ = ["FORMAT", "CacheEntry", "ResultCache"]

FORMAT = 1
OWN = re.compile(rf"[0-9a-f]{{38}}\.npz|{DRAFT}")  # entries, and drafts of killed processes
ABOUT = "about"  # the name under which an entry describes itself

# What reading a damaged file may raise, from the zip archive to the JSON text inside.
READ_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    OSError,
    RuntimeError,  # of an archive whose flags say that it is encrypted
    MemoryError,  # of an array whose header says that it is huge
)


class CacheEntry(NamedTuple):
    """What is kept of a result: arrays, and notes that JSON can hold."""

    arrays: Mapping[str, Any]
    notes: Mapping[str, Any]


class ResultCache:
    """Results by content key, in a folder; several processes may use it at once.

    An entry appears under its name only when complete. It holds its full key and a checksum, so
    that what is damaged, or was put under another key, or has another format, is never returned.

    Parameters
    ----------
    folder
        Where entries lie; it is made when the first is put.

    Attributes
    ----------
    damaged
        How many entries were found damaged or foreign, and were treated as missing.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder, self.damaged = Path(folder), 0
        self._counting = threading.Lock()

    def get(self, key: str) -> CacheEntry | None:
        """Return the result under a key, or None."""
        path = self._path(key)
        if not path.is_file():
            return None
        try:
            entry = _read(path, key)
        except FileNotFoundError:  # another process has just forgotten it
            return None
        except READ_ERRORS:
            with self._counting:
                self.damaged += 1
            return None
        with suppress(OSError):  # the folder may belong to another user
            os.utime(path)  # for `prune`
        return entry

    def put(self, key: str, entry: CacheEntry) -> None:
        """Keep a result; what was there before is replaced."""
        arrays: dict[str, Any] = {name: np.asarray(a) for name, a in entry.arrays.items()}
        about = {"format": FORMAT, "key": key, "notes": dict(entry.notes)}
        about["checksum"] = _checksum(about, arrays)
        held: dict[str, Any] = {ABOUT: np.frombuffer(json.dumps(about).encode(), np.uint8)}
        if any(array.dtype.hasobject for array in arrays.values()):  # NumPy would pickle them
            raise ValueError("arrays of objects are not kept: to read them again would run code.")
        with write_atomically(self._path(key)) as file:
            np.savez_compressed(file, **held, **arrays)

    def prune(self, days: float) -> int:
        """Remove what was neither put nor asked for in so many days; return how much it was."""
        last, count = time.time() - days * 86_400, 0
        for path in self.folder.glob("[0-9a-f][0-9a-f]/*"):
            if not OWN.fullmatch(path.name):  # another program's, in a folder with such a name
                continue
            with suppress(OSError):  # another process may have removed it, or own it
                if path.stat().st_mtime < last:
                    path.unlink()
                    count += 1
        return count

    def __contains__(self, key: str) -> bool:
        """Tell whether there is an entry; it may still turn out to be damaged."""
        return self._path(key).is_file()

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / name[:2] / f"{name[2:40]}.npz"


def _read(path: Path, key: str) -> CacheEntry:
    """Return an entry, or raise one of `READ_ERRORS`."""
    with path.open("rb") as source, np.load(source, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    about = json.loads(arrays.pop(ABOUT).tobytes())
    if about["format"] != FORMAT or about["key"] != key:
        raise ValueError("an entry of another format, or of another key")
    checksum = about.pop("checksum")
    if checksum != _checksum(about, arrays):
        raise ValueError("the content does not match its checksum")
    return CacheEntry(arrays, about["notes"])


def _checksum(about: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()
