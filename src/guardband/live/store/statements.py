"""SQL that follows from the rows' fields; both databases are spoken to with it."""

from __future__ import annotations

from typing import Any

from guardband.live.store.base import (
    KEYS,
    EntryRow,
    EpochRow,
    EventRow,
    HeartbeatRow,
    SampleRow,
    SpaceRow,
    StreamRow,
    TaskRow,
    TokenRow,
)

__all__ = ["TABLES", "select", "upsert"]

TABLES: dict[type[Any], str] = {
    SpaceRow: "space",
    TaskRow: "task",
    StreamRow: "stream",
    HeartbeatRow: "pulse",
    EpochRow: "epoch",
    EntryRow: "entry",
    SampleRow: "sample",
    TokenRow: "token",
    EventRow: "audit",
}


def select(kind: type[Any], schema: str = "") -> str:
    """Return the statement that reads all rows of a kind, to which a condition may be added."""
    return f"select {', '.join(kind._fields)} from {schema}{TABLES[kind]}"


def upsert(kind: type[Any], mark: str, schema: str = "") -> str:
    """Return the statement that writes a row over the one with its key; `mark` is for a value."""
    fields, key = kind._fields, KEYS[kind]
    marks = ", ".join([mark] * len(fields))
    news = ", ".join(f"{field} = excluded.{field}" for field in fields if field not in key)
    return (
        f"insert into {schema}{TABLES[kind]} ({', '.join(fields)}) values ({marks}) "
        f"on conflict ({', '.join(key)}) do update set {news}"
    )
