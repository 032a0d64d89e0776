"""Single values that a journal keeps by name, as JSON in its table `meta`."""

from __future__ import annotations

import json
from typing import Any

from guardband.live.client.journal import Journal

__all__ = ["keep", "kept"]


def keep(journal: Journal, key: str, value: Any) -> None:
    """Keep a value under a name, in place of the one before; within a transaction."""
    journal.query("REPLACE INTO main.meta VALUES (?, ?)", (key, json.dumps(value)))


def kept(journal: Journal, key: str) -> Any:
    """Return what is kept under a name; None: nothing."""
    row = journal.one("SELECT value FROM meta WHERE key = ?", (key,))
    return None if row is None else json.loads(row[0])
