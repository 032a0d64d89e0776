"""A store that does not say otherwise serves one thread, and hears nothing of others."""

from __future__ import annotations

from contextlib import closing

import pytest
from live.memory_store import MemoryStore

from guardband.live.store import SpaceRow, Store
from guardband.live.store.rows import KEYS, SEALED, TABLES
from guardband.live.store.sql import select, upsert
from guardband.live.store.sqlite import SqliteStore

HOME = SpaceRow("home", "{}", 1, 1, 0, 0, 0, None, None, 1.0, None)


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path) -> Store:
    with closing(MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s")) as s:
        yield s


def test_a_plain_store_has_one_worker_and_tells_nothing(store: Store) -> None:
    heard: list[str] = []
    end = store.listen(heard.append)
    with store.transaction("home") as t:
        t.put(HOME)
    end()
    assert (store.workers, heard) == (1, [])


def test_statements_name_every_field_once() -> None:
    assert set(KEYS) < set(TABLES)
    assert select(SpaceRow, "true").endswith(" fresh, outstanding, seal from space where true")
    for kind in KEYS:
        written = upsert(kind)
        columns = len(kind._fields) + (kind in SEALED)
        assert written.count("?") == columns
        assert written.count("= excluded.") == columns - len(KEYS[kind])
