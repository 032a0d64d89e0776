"""Journals of which nothing is left: they look new, and are not."""

from __future__ import annotations

from pathlib import Path

__all__ = ["SYNC_LOCK", "emptied"]

SYNC_LOCK = "sync.lock"  # beside a journal, for the one process that exchanges messages


def emptied(path: Path) -> list[str]:
    """Return what is lost with a journal that an agent has used and that is empty, in sentences.

    A new one is empty, too, until its tables are made; its `sync.lock` comes after that.
    """
    log = Path(f"{path}-wal")
    if not path.exists() or any(each.exists() and each.stat().st_size for each in (path, log)):
        return []
    if not path.with_name(SYNC_LOCK).exists():
        return []
    return [f"{path} is empty, and was not: what it held and was not uploaded is lost"]
