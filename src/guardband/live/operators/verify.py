"""Whether journals and stores are what was written, and how they are mended."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from guardband.live.client.journal import Journal, JournalError
from guardband.live.client.mending import find_damage, mend_journal
from guardband.live.coordinator.mending import mend_rows, mend_store, mend_sums
from guardband.live.salvage import examine
from guardband.live.sqlite import apsw
from guardband.live.store import SqliteStore, Store, StoreError

__all__ = ["Verified", "verify_database", "verify_journal", "verify_store"]

NO_CHECKSUMS = (
    "the database's pages have no checksums (data_checksums is off): only rows and sums are "
    "verified. Stop PostgreSQL and run pg_checksums --enable."
)


EMPTY = (
    "it is empty, and nothing is left to mend: restore a backup (`guardband restore FILE`), or "
    "take it away if it was never used, and a new one is made"
)


class Verified(NamedTuple):
    """What was found in a journal or a store."""

    path: str
    kind: str  # "journal" or "store"
    wrong: tuple[str, ...]  # in sentences; nothing: all of it is what was written
    mended: str | None = None  # what became of it

    @property
    def sound(self) -> bool:
        """Whether it can be used as it is now."""
        return not self.wrong or self.mended is not None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**self._asdict(), "wrong": list(self.wrong), "sound": self.sound}


def verify_journal(path: Path, *, repair: bool = False) -> Verified:
    """Check every page of a journal, and every sum in it; mend it where asked to."""
    return _verified(path, "journal", find_damage, _mend_journal if repair else None)


def verify_store(path: Path, *, repair: bool = False) -> Verified:
    """Check every page of a coordinator's SQLite file, and every sum in it."""
    return _verified(path, "store", _wrong_in_store, _mend_store if repair else None)


def verify_database(store: Store, name: str, *, repair: bool = False) -> Verified:
    """Check every sum in a database, and whether it checks its pages itself."""
    wrong = store.check()
    mended = None
    if wrong and repair:
        said = (mend_rows(store), mend_sums(store, now=time.time()))
        mended = "; ".join(filter(None, said)) or None
    with store.reading() as t:
        checked = t.ask("show data_checksums") == [("on",)]
    return Verified(name, "store", (*wrong, *(() if checked else (NO_CHECKSUMS,))), mended)


def _verified(
    path: Path,
    kind: str,
    find: Callable[[Path], list[str]],
    mend: Callable[[Path], str | None] | None,
) -> Verified:
    found = Verified(str(path), kind, tuple(find(path)))
    if not found.wrong or mend is None or found.wrong == (EMPTY,):
        return found
    try:
        said = mend(path)
    except (StoreError, JournalError) as error:
        return found._replace(wrong=(*found.wrong, str(error).removesuffix(".")))
    left = find(path)
    return found._replace(mended=said or "what can be read is in use") if not left else found


def _mend_journal(path: Path) -> str | None:
    said = mend_journal(path)
    Journal(path).close()  # which notes what a damaged log has lost
    return said


def _wrong_in_store(path: Path) -> list[str]:
    if not any(file.is_file() and file.stat().st_size for file in (path, Path(f"{path}-wal"))):
        return [EMPTY]
    wrong = examine(path)
    if wrong:
        return wrong
    store = SqliteStore(path)
    try:
        return store.check()
    finally:
        store.close()


def _mend_store(path: Path) -> str | None:
    try:
        said = mend_store(path)
    except apsw.NotADBError as error:
        raise StoreError(f"{path} is no store ({error}): put it aside") from error
    store = SqliteStore(path)
    try:
        return mend_sums(store, now=time.time()) or said
    finally:
        store.close()
