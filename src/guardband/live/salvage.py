"""Damaged SQLite files written anew, from the rows of them that can be read.

A row is read only if every page that leads to it has the right checksum, and taken over only if its
seal is right: it is what was written. Processes that have the file open go on with it: its content
is replaced in place, by a transaction.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from guardband.live.filelock import FileLock
from guardband.live.one_bit import with_bits_back, with_checksum
from guardband.live.seals import is_sound
from guardband.live.sqlite import (
    FAILURES,
    apsw,
    columns_of,
    has_checksums,
    is_damage,
    is_ours,
    read_only,
    tables_of,
)

__all__ = ["damage_of", "examine", "mend"]

PATIENCE_S = 60.0
PAUSE_S = 0.01
MOST_TRIED = 2**23  # bytes of a file of which several candidates are tried
# What reading of a file may raise that is not what was written.
ANYTHING = (apsw.Error, ArithmeticError, LookupError, TypeError, ValueError)
BESIDE = ("", "-wal", "-shm")
LATER = "they get them when it is next opened by this version, and by nobody else"


def damage_of(db: apsw.Connection) -> list[str]:
    """Return what is wrong with a file, in sentences; nothing: every page is what was written."""
    try:
        lost = [table for table in tables_of(db) if _is_damaged(db, table)]
        if lost:
            return [f"rows of {table} cannot be read" for table in lost]
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found
    except FAILURES as error:
        if not is_damage(error):
            raise
        return [f"it cannot be read: {error}"]


def examine(path: Path) -> list[str]:
    """Return what is wrong with a file and its log, in sentences; neither is changed."""
    lost: list[str] = []
    try:
        with closing(read_only(path, on_loss=lost.append)) as db:
            if not has_checksums(db):
                return [f"its pages have no checksums yet: {LATER}", *damage_of(db)]
            return lost + damage_of(db)
    except FAILURES as error:
        if not is_damage(error):
            raise
        return [f"it cannot be read: {error}"]


def mend(
    path: Path,
    build: Callable[[Path], apsw.Connection],
    complete: Callable[[apsw.Connection, Mapping[str, bool]], str],
    also_wrong: Callable[[apsw.Connection], Sequence[str]] = lambda _: (),
    *,
    one_bit: bool = False,
) -> str | None:
    """Write a damaged file anew; return what became of it, None where it is sound.

    The damaged one is kept beside it, as far as it can be read at all.

    Parameters
    ----------
    path
        The file. No connection of this process may be in a transaction on it.
    build
        Makes an empty file of the same kind at a path.
    complete
        Is given the new file, and the tables of which rows are lost, with whether the last of them
        are; makes it whole and says how.
    also_wrong
        Finds what is wrong in rows that can be read.
    one_bit
        Turn single bits back first, where checksums and rows tell which have flipped: see
        `one_bit`.
    """
    draft = path.with_name(f"{path.name}.mended")
    with _alone(path), closing(apsw.Connection(str(path))) as damaged:
        damaged.set_busy_timeout(int(PATIENCE_S * 1000))
        try:
            damaged.pragma("user_version")
        except apsw.NotADBError:
            if not is_ours(path):
                raise
        except FAILURES as error:
            if not is_damage(error):
                raise
        if not damage_of(damaged) and not also_wrong(damaged):
            return None  # another process has mended it
        _remove(draft)
        try:
            with closing(build(draft)) as fresh:
                # Open for all of it: another process that writes is noticed by what it changes.
                with closing(apsw.Connection(str(path))) as unverified:
                    unverified.set_busy_timeout(int(PATIENCE_S * 1000))
                    while True:
                        version = _version(damaged)
                        fresh.execute("BEGIN")
                        given = (damaged, unverified, fresh, also_wrong, one_bit)
                        with _corrected(*given) as source:
                            lost = _take_over(source, fresh)
                        fresh.execute("COMMIT")
                        said = complete(fresh, lost)
                        _keep(unverified, path.with_name(f"{path.name}.damaged"))
                        if version == _version(damaged):
                            break
                        for table in tables_of(fresh):
                            fresh.execute(f"DELETE FROM {table}")
                _replace(damaged, fresh)
        finally:
            _remove(draft)
    return said


@contextmanager
def _corrected(
    damaged: apsw.Connection,
    unverified: apsw.Connection,
    fresh: apsw.Connection,
    also_wrong: Callable[[apsw.Connection], Sequence[str]],
    one_bit: bool,
) -> Iterator[apsw.Connection]:
    """Yield a copy of a file with single bits turned back; the file itself where none can be."""
    path = Path(damaged.filename)
    copy, size = path.with_name(f"{path.name}.corrected"), int(fresh.pragma("page_size"))
    try:
        log = None
        if not one_bit:
            raw = b""
        elif _first_page_is_sound(damaged):
            _keep(unverified, copy)  # which changes the first page
            raw = copy.read_bytes()
            raw = with_checksum(raw[:size]) + raw[size:]
        else:  # so that nobody can begin to use it, and nobody has locks that this ends
            raw, log = path.read_bytes(), Path(f"{path}-wal")

        def write(whole: bytes) -> None:
            _remove(copy)
            copy.touch(mode=0o600)
            copy.write_bytes(whole)
            if log is not None:
                with suppress(FileNotFoundError):
                    shutil.copyfile(log, f"{copy}-wal")

        found = _the_one(with_bits_back(raw, size), copy, write, also_wrong)
        if found is None:
            yield damaged
            return
        write(found)
        with closing(apsw.Connection(str(copy))) as source:
            yield source
    finally:
        _remove(copy)


def _the_one(
    candidates: Iterator[bytes],
    path: Path,
    write: Callable[[bytes], None],
    also_wrong: Callable[[apsw.Connection], Sequence[str]],
) -> bytes | None:
    """Return what a file was: of several candidates, those that are sound must have the same rows.

    None: there is none, or nobody knows which. `write` writes one to the path. Each is read whole,
    and there may be 170, while decisions wait: of large files none is tried.
    """
    first, second = next(candidates, None), next(candidates, None)
    if first is None or second is None:
        return first
    if len(first) > MOST_TRIED:
        return None
    sound: dict[int, bytes] = {}  # by their rows
    for whole in chain((first, second), candidates):
        write(whole)
        with suppress(*ANYTHING), closing(apsw.Connection(str(path))) as db:
            if not damage_of(db) and not also_wrong(db):
                rows = [list(map(repr, _rows(db, table))) for table in tables_of(db)]
                sound.setdefault(hash(str(rows)), whole)
    return sound.popitem()[1] if len(sound) == 1 else None


def _first_page_is_sound(db: apsw.Connection) -> bool:
    try:
        tables_of(db)
    except FAILURES as error:
        if not is_damage(error):
            raise
        return False
    return True


def _take_over(damaged: apsw.Connection, fresh: apsw.Connection) -> dict[str, bool]:
    """Copy all rows that can be read; return of which tables some cannot, and whether the last."""
    lost = {}
    try:
        there = tables_of(damaged)
    except FAILURES as error:
        if not is_damage(error):
            raise
        return dict.fromkeys(tables_of(fresh), True)  # even the first page cannot be read
    for table in there:
        for way in ("", "DESC"):  # from the start to the damage, and from the end
            copied = [0]
            if _copy(damaged, fresh, table, way, copied):
                break
            lost[table] = not copied[0]
    return lost


def _copy(
    damaged: apsw.Connection, fresh: apsw.Connection, table: str, way: str, copied: list[int]
) -> bool:
    """Copy rows in an order until one cannot be read, or is there; tell whether all can be read."""
    order = ", ".join(f"{name} {way}" for name in _key(damaged, table))
    names = columns_of(damaged, table)
    marks = ", ".join(f":{name}" for name in names)
    insert = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})"
    try:
        for row in _rows(damaged, table, f"ORDER BY {order}"):
            if not is_sound(row):
                return False
            fresh.execute(insert, row)
            if not fresh.changes():
                return False
            copied[0] += 1
    except FAILURES as error:
        if not is_damage(error):
            raise
        return False
    return not way


def _is_damaged(db: apsw.Connection, table: str) -> bool:
    try:
        return not all(map(is_sound, _rows(db, table)))
    except FAILURES as error:
        if not is_damage(error):
            raise
        return True


def _rows(db: apsw.Connection, table: str, order: str = "") -> Iterator[dict[str, Any]]:
    """Yield the rows of a table by their columns, and with their seals where they have them."""
    names = [row[1] for row in db.execute(f"PRAGMA table_xinfo({table})") if row[1] != "sound"]
    for row in db.execute(f"SELECT {', '.join(names)} FROM {table} NOT INDEXED {order}"):
        yield dict(zip(names, row, strict=True))


def _key(db: apsw.Connection, table: str) -> list[str]:
    """Return the columns by which a table's rows are stored."""
    ((without_rowid,),) = db.execute("SELECT wr FROM pragma_table_list WHERE name = ?", (table,))
    if not without_rowid:
        return ["rowid"]
    columns = db.execute("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table,))
    return [name for (name,) in columns]


def _version(db: apsw.Connection) -> int:
    """Return a number that changes when others write; where the file cannot be read none does."""
    with suppress(*FAILURES):
        db.pragma("user_version")  # or the number would change with every page that fails
        return int(db.data_version())
    return 0


def _keep(unverified: apsw.Connection, path: Path) -> None:
    """Copy the damaged file as it is, checksums and all, for people who want to look at it.

    By a connection of its own: the other one must not remember pages that nobody has verified.
    """
    _remove(path)
    try:
        unverified.pragma("checksum_verification", 0)
        with closing(apsw.Connection(str(path), vfs="unix")) as copy:
            path.chmod(0o600)
            with copy.backup("main", unverified, "main") as backup:
                backup.step()
    except FAILURES:  # SQLite cannot read it at all, so that nobody has locks that this ends
        shutil.copyfile(unverified.filename, path)


def _replace(damaged: apsw.Connection, fresh: apsw.Connection) -> None:
    """Put one file's content in the place of the other's, by a transaction."""
    damaged.pragma("checksum_verification", 0)
    damaged.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)  # whatever is in the way
    try:
        with damaged.backup("main", fresh, "main") as backup:
            backup.step()
    finally:
        damaged.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
        damaged.pragma("checksum_verification", 1)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time mend a file."""
    lock, until = FileLock(path.with_name(f"{path.name}.mending")), time.monotonic() + PATIENCE_S
    while not lock.take():
        if time.monotonic() > until:
            raise TimeoutError(f"another process has been mending {path} for {PATIENCE_S:g} s.")
        time.sleep(PAUSE_S)
    try:
        yield
    finally:
        lock.leave()


def _remove(path: Path) -> None:
    for suffix in BESIDE:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
