"""Simulated disks under SQLite: what was not synchronised can be lost, torn or come in any order.

Files are real ones in a folder for the run; they stand for what the operating system shows its
processes, and survive these. Beside each is kept what the disk itself has, and what was written
since it was last synchronised: a power failure leaves any part of that, by sectors.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
from live.simulation.scheduler import KilledError

__all__ = ["Disk", "DiskFile", "simulated_files"]

SECTOR = 512
NAME = "simulated"
CHECKSUMS = "cksmvfs"
Writes = list[tuple[int, bytes | None]]  # offset and data; None: cut off there


@dataclass
class DiskFile:
    """What the disk has of a file, and what was written to it since."""

    durable: bytearray = field(default_factory=bytearray)
    pending: Writes = field(default_factory=list)
    named: bool = False  # whether its name is on the disk

    def synchronise(self) -> None:
        """Put everything on the disk."""
        for offset, data in self.pending:
            _apply(self.durable, offset, data)
        self.pending.clear()


def _apply(image: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del image[offset:]
        return
    if len(image) < offset:
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


class Disk:
    """One machine's disk.

    Parameters
    ----------
    folder
        Where its files are.
    rng
        Draws what a power failure leaves.
    busy
        Called with the seconds that an operation took.
    """

    def __init__(self, folder: Path, rng: random.Random, busy: Callable[[float], None]) -> None:
        self.folder, self._rng, self._busy = folder, rng, busy
        self.files: dict[str, DiskFile] = {}
        self.full = False
        self.slow_s = 0.0
        self.failing = 0  # so many of the next operations fail
        self.fatal = 0  # so many operations until the power fails, or the process dies; 0: never
        self.on_fatal: Callable[[], None] = lambda: None
        self.operations = 0

    def before(self, *, grows: bool) -> None:
        """Let an operation that writes go wrong, if it is its turn."""
        self.operations += 1
        if self.fatal:
            self.fatal -= 1
            if not self.fatal:
                self.on_fatal()
                raise KilledError
        if self.full and grows:
            raise apsw.FullError("the simulated disk is full")
        if self.failing:
            self.failing -= 1
            raise apsw.IOError("the simulated disk failed")
        if self.slow_s:
            self._busy(self.slow_s)

    def synchronise(self, path: str) -> None:
        """Put a file on the disk; of a folder, the names in it."""
        if path in self.files:
            self.files[path].synchronise()
        if path.endswith("-wal") or path not in self.files:
            for file in self.files.values():
                file.named = True

    def lose_power(self) -> None:
        """Leave of each file what the disk has, and some of what was written since."""
        for path, file in list(self.files.items()):
            if not Path(path).exists():  # deleted
                del self.files[path]
                continue
            if not file.named and self._rng.random() < 0.5:
                file.durable.clear()
                file.pending.clear()
                Path(path).unlink(missing_ok=True)
                continue
            for offset, data in self._survivors(file.pending):
                _apply(file.durable, offset, data)
            file.pending.clear()
            Path(path).write_bytes(file.durable)
        for shared in self.folder.rglob("*-shm"):
            shared.unlink()

    def _survivors(self, pending: Writes) -> Iterator[tuple[int, bytes | None]]:
        kind = self._rng.choice(("none", "all", "first", "some", "torn"))
        upto = self._rng.randrange(len(pending) + 1) if kind == "first" else len(pending)
        for offset, data in pending[:upto]:
            if kind == "none" or (kind in ("some", "torn") and self._rng.random() < 0.5):
                continue
            if kind != "torn" or data is None:
                yield offset, data
                continue
            for start in range(0, len(data), SECTOR):
                if self._rng.random() < 0.7:
                    yield offset + start, data[start : start + SECTOR]

    def sizes(self) -> dict[str, int]:
        """Return the sizes of databases and their logs."""
        found = [Path(path) for path in self.files if path.endswith((".db", "-wal"))]
        return {str(path): path.stat().st_size for path in found if path.exists()}

    def flip(self, path: str, place: int) -> None:
        """Change one bit of a file, also of what is on the disk."""
        byte, bit = divmod(place, 8)
        image = bytearray(Path(path).read_bytes())
        image[byte] ^= 1 << bit
        self._put(path, image)

    def flip_in_log(self) -> bool:
        """Change one bit of a page that is read from SQLite's log; False: there is none."""
        for path, size in sorted(self.sizes().items()):
            pages = pages_in_log(Path(path).read_bytes()) if path.endswith("-wal") and size else []
            if pages:
                page, image = self._rng.choice(pages), Path(path).read_bytes()
                place = self._rng.choice([k for k in page if image[k]])  # most is not used
                self.flip(path, 8 * place + self._rng.randrange(8))
                return True
        return False

    def tear(self, path: str, place: int) -> None:
        """Put anything in the place of a sector."""
        image = bytearray(Path(path).read_bytes())
        start = place // SECTOR * SECTOR
        part = len(image[start : start + SECTOR])
        image[start : start + part] = self._rng.randbytes(part)
        self._put(path, image)

    def _put(self, path: str, image: bytearray) -> None:
        with open(path, "r+b") as file:
            file.write(image)
        self.files[path].synchronise()
        self.files[path].durable[:] = image

    def keep(self) -> dict[str, bytes]:
        """Return a copy of all files, as processes see them."""
        return {path: Path(path).read_bytes() for path in self.files if Path(path).exists()}

    def put_back(self, copy: dict[str, bytes]) -> None:
        """Let the files be what a copy has."""
        for path in list(self.files):
            Path(path).unlink(missing_ok=True)
        for shared in self.folder.rglob("*-shm"):
            shared.unlink()
        self.files = {}
        for path, data in copy.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data)
            self.files[path] = DiskFile(bytearray(data), [], True)


class SimulatedFile(apsw.VFSFile):
    """A file that SQLite has open."""

    def __init__(self, files: SimulatedFiles, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._path, self._owner = str(path), files.owner()
        self._disk = files.disk_of(self._path)
        self._file = None if self._disk is None else self._disk.files.setdefault(path, DiskFile())

    def xWrite(self, data: Any, offset: int) -> None:
        """Write, where the disk allows it."""
        self._check(grows=True)
        super().xWrite(data, offset)
        if self._file is not None:
            self._file.pending.append((offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        """Cut the end off."""
        self._check(grows=False)
        super().xTruncate(size)
        if self._file is not None:
            self._file.pending.append((size, None))

    def xSync(self, flags: int) -> None:
        """Put the file on the simulated disk; the real one has nothing to do."""
        self._check(grows=False)
        if self._disk is not None:
            self._disk.synchronise(self._path)

    def _check(self, *, grows: bool) -> None:
        if self._owner is not None and self._owner.dead:
            raise KilledError
        if self._disk is not None:
            self._disk.before(grows=grows)


class SimulatedConnection(apsw.Connection):
    """A connection that closes as SQLite's own do: without a word about files it could not tidy.

    Only files that are written in Python can tell `close` of an error.
    """

    def close(self, force: bool = False) -> None:
        """Close it."""
        with suppress(apsw.Error, KilledError):
            super().close(force)


class SimulatedFiles(apsw.VFS):
    """All files of a run, by the machine whose folder they are in."""

    def __init__(self, disks: list[Disk], owner: Callable[[], Any], rng: random.Random) -> None:
        self._disks, self.owner, self._rng = disks, owner, rng
        super().__init__(NAME, "unix", makedefault=True)

    def disk_of(self, path: str) -> Disk | None:
        """Return the disk that a file is on."""
        return next((d for d in self._disks if path.startswith(f"{d.folder}/")), None)

    def xOpen(self, name: Any, flags: list[int]) -> SimulatedFile:
        """Open a file."""
        return SimulatedFile(self, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        """Delete a file, on the disk as well."""
        super().xDelete(name, syncdir)
        disk = self.disk_of(name)
        if disk is not None:
            disk.files.pop(name, None)

    def xSleep(self, microseconds: int) -> int:
        """Nobody waits for real: who holds a lock here does not run."""
        return microseconds

    def xRandomness(self, count: int) -> bytes:
        """Return what SQLite begins its own random numbers with."""
        return self._rng.randbytes(count)


@contextmanager
def simulated_files(
    disks: list[Disk], owner: Callable[[], Any], rng: random.Random
) -> Iterator[None]:
    """Let all files that SQLite opens be simulated ones.

    SQLite's checksums of pages lie over what is there when they are loaded, which the first
    connection does: they are taken away, to be loaded again.
    """
    _unload_checksums()
    files = SimulatedFiles(disks, owner, rng)
    apsw.randomness(0)  # SQLite begins them anew
    connection, apsw.Connection = apsw.Connection, SimulatedConnection
    try:
        yield
    finally:
        apsw.Connection = connection
        _unload_checksums()
        files.unregister()
        apsw.randomness(0)


def _unload_checksums() -> None:
    if CHECKSUMS in apsw.vfs_names():
        apsw.unregister_vfs(CHECKSUMS)


def pages_in_log(image: bytes) -> list[range]:
    """Return where SQLite's log has the pages that are read: of each its newest."""
    salt, size = image[16:24], int.from_bytes(image[8:12], "big")
    newest = {}
    for frame in range(32, len(image) - size - 23, size + 24):
        if image[frame + 8 : frame + 16] != salt:
            break  # from here on it is what an earlier log has left
        newest[image[frame : frame + 4]] = range(frame + 24, frame + 24 + size)
    return list(newest.values())
