"""SQLite files that several processes of a host write to; for agents' journals and the store.

Every page carries a checksum that is verified whenever it is read from the file (SQLite's checksum
VFS): what was changed there is never used. The log has checksums of its own, which are verified
when the first connection opens it, and not while somebody has it open: rows have seals, which are
verified whenever they are read. SQLite comes with apsw, not
from the system: versions before 3.51.3 can damage a file with a write-ahead log that several
connections write to.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from guardband.extras import how_to_install

try:
    import apsw
    import apsw.sqlite_extra
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"the live system needs SQLite through apsw: {how_to_install('live')}.", name="apsw"
    ) from error

from guardband.live.seals import SEAL, covered, seal_of

__all__ = [
    "FAILURES",
    "RESERVED",
    "apsw",
    "columns_of",
    "connect",
    "guard_rows",
    "has_checksums",
    "is_damage",
    "is_ours",
    "read_only",
    "seal_rows",
    "tables_of",
]

log = logging.getLogger("guardband.live")

SOUND = 3_051_003  # the first version without the damage
# Of a query. The second: bits of a text have flipped, and it is not even read as one.
FAILURES: tuple[type[Exception], ...] = (apsw.Error, UnicodeDecodeError)
PAUSE_S = 0.005
VFS = "cksmvfs"
PAGE_SIZES = (2048, 4096)  # of journals and of stores
RESERVED = 8  # bytes at the end of a page, for its checksum

# The log: a header, and frames of a header and a page, which have the salts of that header.
LOG_HEADER = struct.Struct(">IIIIII")  # magic, version, page size, number, and two salts
FRAME_HEADER = struct.Struct(">IIII")  # page, pages after a commit (else 0), and two salts
LOG_HEADER_SIZE, FRAME_HEADER_SIZE = 32, 24
OLDER = 2**20  # times that a log began anew, each with the next first salt
COLUMNS_BEGIN = rf"\((?:{SEAL} INTEGER AS .*? VIRTUAL, )?"  # of a table, sealed before or not
UNFINISHED = "a process was killed while it wrote, or the end is damaged; the change is left out"
LOST = (
    "the log of {path} was damaged, or cut off by a power failure: the last changes that it held "
    "are lost"
)


def connect(
    path: Path,
    patience_ms: int,
    *,
    refusal: type[Exception],
    page_size: int | None = None,
    on_loss: Callable[[str], object] | None = None,
) -> apsw.Connection:
    """Open a file with a write-ahead log, whose pages have checksums.

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
    on_loss
        Called with a sentence where the log was damaged, and what it held is lost from there on;
        None: not looked at.
    """
    if apsw.SQLITE_VERSION_NUMBER < SOUND:
        raise refusal(
            f"apsw {apsw.apsw_version()} brings SQLite {apsw.sqlite_lib_version()}, which can "
            f"damage {path} when several processes use it: pip install --upgrade apsw."
        )
    _use_checksums(refusal)
    before = None if on_loss is None else _log_of(path)
    db = apsw.Connection(str(path))
    db.set_busy_timeout(patience_ms)
    # Else SQLite plans many a statement anew with every use, by the values that are bound to it.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    if page_size is not None:
        db.pragma("page_size", page_size)
    _reserve(db)
    _use_log(db, patience_ms)
    if on_loss is not None and before is not None and _is_cut(db, path, before):
        on_loss(LOST.format(path=path))
    return db


def read_only(path: Path, *, on_loss: Callable[[str], object]) -> apsw.Connection:
    """Open a file to look at it: neither it nor its log is changed."""
    _use_checksums(OSError)
    before = _log_of(path)
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    if before is not None and not (before.sound and before.commits <= _frames(db)):
        on_loss(LOST.format(path=path))
    return db


def _use_checksums(refusal: type[Exception]) -> None:
    """Have every file that is opened from now on checked page by page, where it has checksums."""
    if VFS in apsw.vfs_names():
        return
    if apsw.sqlite_extra.has("cksumvfs") is None:
        raise refusal(
            f"apsw {apsw.apsw_version()} comes without SQLite's checksums of pages: install the "
            "one from PyPI, pip install --force-reinstall apsw."
        )
    db = apsw.Connection(":memory:")
    apsw.sqlite_extra.load(db, "cksumvfs")
    db.close()


def seal_rows(db: apsw.Connection) -> None:
    """Give every row of a file a seal, which SQLite computes anew whenever it writes the row.

    `sound` is computed when it is read: whether the row still is what was sealed.
    """
    for table in tables_of(db):
        sql = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
        columns = columns_of(db, table)
        names, seal = ", ".join(columns), f"seal_of({', '.join(covered(columns))})"
        sealed = f"{SEAL} INTEGER AS ({seal}) STORED, sound INTEGER AS ({SEAL} = {seal}) VIRTUAL"
        db.execute(f"ALTER TABLE {table} RENAME TO unsealed")
        db.execute(re.sub(COLUMNS_BEGIN, f"({sealed}, ", sql, count=1))
        db.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM unsealed")
        db.execute("DROP TABLE unsealed")


def guard_rows(db: apsw.Connection, replaced: tuple[str, ...] = ()) -> None:
    """Let a connection see only rows whose seals are right, and raise where one is not.

    A table's name means those rows from now on; what writes names `main.table`. An update reads
    what it leaves as it was: only tables whose rows are always `replaced` as a whole need no look.
    """
    for table in tables_of(db):
        # With a subquery it is asked last, and only of rows that are wanted.
        db.execute(
            f"CREATE TEMP VIEW {table} AS SELECT {', '.join(columns_of(db, table))} "
            f"FROM main.{table} WHERE sound OR (SELECT damaged('{table}', sound))"
        )
        if table not in replaced:
            db.execute(
                f"CREATE TEMP TRIGGER {table}_was_sound AFTER UPDATE ON main.{table} "
                f"WHEN NOT OLD.sound BEGIN SELECT damaged('{table}', 0); END"
            )


def tables_of(db: apsw.Connection) -> list[str]:
    """Return the names of a file's tables."""
    query = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    return [name for (name,) in db.execute(query)]


def columns_of(db: apsw.Connection, table: str) -> list[str]:
    """Return the columns that are written, and not computed."""
    return [row[1] for row in db.execute(f"PRAGMA main.table_info({table})")]


def _damaged(*about: Any) -> None:
    raise apsw.CorruptError(f"a row of {about[0]} is not what was written")


def _know_seals(db: apsw.Connection) -> None:
    """Let SQLite compute seals, and verify them."""
    innocuous = apsw.SQLITE_INNOCUOUS  # so that tables and triggers may use it
    db.create_scalar_function("seal_of", seal_of, deterministic=True, flags=innocuous)
    db.create_scalar_function("damaged", _damaged, 2, flags=innocuous)


apsw.connection_hooks.append(_know_seals)  # whoever opens such a file can write to it


def is_damage(error: BaseException) -> bool:
    """Tell whether SQLite found that a file is not what was written."""
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_DATA
    return isinstance(error, apsw.CorruptError | apsw.NotADBError | UnicodeDecodeError)


def is_ours(path: Path) -> bool:
    """Tell whether a file that SQLite cannot read at all has pages of a journal or a store."""
    raw = path.read_bytes()  # nobody has locks on such a file that this could end
    db = apsw.Connection(":memory:")
    try:
        return any(
            db.execute("SELECT verify_checksum(?)", (raw[at : at + size],)).get
            for size in PAGE_SIZES
            for at in range(0, len(raw) - size + 1, size)
        )
    finally:
        db.close()


def has_checksums(db: apsw.Connection) -> bool:
    """Tell whether the pages of a file carry checksums, or are on a disk that has its own ways."""
    db.pragma("page_count")  # reads the first one, which says so
    return str(db.pragma("checksum_verification")) != "0"


def _reserve(db: apsw.Connection) -> None:
    """Give the pages of a file checksums: at once if it is new, else once nobody else uses it."""
    if has_checksums(db):
        return
    size = ctypes.c_int(RESERVED)
    db.file_control("main", apsw.SQLITE_FCNTL_RESERVE_BYTES, ctypes.addressof(size))
    if not db.pragma("page_count"):
        return
    db.set_busy_timeout(0)
    try:
        db.pragma("journal_mode", "delete")
        db.execute("VACUUM")
    except apsw.BusyError:
        pass  # one who opens it later does it


def _use_log(db: apsw.Connection, patience_ms: int) -> None:
    """Switch a file to its write-ahead log.

    Two that open a new file at once are in each other's way here, and SQLite's own timeout does
    not hold for this step: one of them would be told at once that the file is locked.
    """
    until = time.monotonic() + patience_ms / 1000.0
    db.set_busy_timeout(patience_ms)
    while True:
        try:
            db.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(PAUSE_S)


class _Log(NamedTuple):
    """What a log holds by its own account."""

    sound: bool  # whether its header is
    salts: tuple[int, int]
    commits: int  # up to which frame; also one that no log can have written counts as the last
    frames: int  # those of a change that was not finished among them


def _log_of(path: Path) -> _Log | None:
    """Return what the log of a file holds; None: it has none, or an empty one.

    The log is read as a file: nobody locks it, so that closing it takes no lock away.
    """
    try:
        handle = os.open(f"{path}-wal", os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        size, head = os.fstat(handle).st_size, os.pread(handle, LOG_HEADER_SIZE, 0)
        if size <= LOG_HEADER_SIZE:
            return None
        magic, _, page, _, *salts = LOG_HEADER.unpack_from(head)
        if _checksum(head[:24], big=bool(magic & 1)) != struct.unpack(">II", head[24:]):
            return _Log(False, (salts[0], salts[1]), 0, 0)
        step, commits, frames = FRAME_HEADER_SIZE + page, 0, 0
        for number in range((size - LOG_HEADER_SIZE) // step):
            frame = os.pread(handle, FRAME_HEADER.size, LOG_HEADER_SIZE + number * step)
            _, commit, one, two = FRAME_HEADER.unpack(frame)
            ours = one == salts[0] or two == salts[1]
            left_over = (salts[0] - one) % 2**32 < OLDER  # from before the log began anew
            if (ours and commit) or not (ours or left_over):
                commits = number + 1
            if ours:
                frames = number + 1
        return _Log(True, (salts[0], salts[1]), commits, frames)
    finally:
        os.close(handle)


def _is_cut(db: apsw.Connection, path: Path, before: _Log) -> bool:
    """Tell whether SQLite has taken less from a log than was committed to it.

    It reads up to the first frame whose checksum is wrong, and says nothing about what comes after.
    """
    if before.sound and before.commits <= (used := _frames(db)):
        if before.frames > used:
            log.warning("guardband: the log of %s ends within a change: %s.", path, UNFINISHED)
        return False
    db.execute("BEGIN IMMEDIATE; ROLLBACK")  # another may just have been committing
    now = _log_of(path)
    if now is None or now.salts != before.salts:
        return False
    return not now.sound or before.commits > _frames(db)


def _frames(db: apsw.Connection) -> int:
    """Return how many frames of the log are in use."""
    db.pragma("user_version")  # reads the log
    return int(db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])


def _checksum(raw: bytes, *, big: bool) -> tuple[int, int]:
    """Return the checksum of a log's header, as SQLite computes it."""
    one = two = 0
    words = struct.unpack(f"{'>' if big else '<'}{len(raw) // 4}I", raw)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
