"""A database of the first released format: this version opens it and goes on."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from live.postgres.cluster import Cluster

from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.protocol.messages import Checkpoint, Upload
from guardband.live.protocol.sums import Sums, add_sums
from guardband.live.store import Store
from guardband.live.store.postgres import MIGRATIONS, PostgresStore
from guardband.live.store.sqlite import SqliteStore

pytestmark = pytest.mark.slow

FIRST = Path(__file__).parents[1] / "fixtures" / "v1"
# All that makes a table what it is, in an order that does not depend on how it was made.
SHAPES = (
    "select table_name, column_name, data_type, is_nullable, collation_name, is_identity, "
    "column_default from information_schema.columns where table_schema = 'guardband' order by 1, 2",
    "select tablename, indexname, indexdef from pg_indexes where schemaname = 'guardband' "
    "order by 1, 2",
    "select relname, relkind, reloptions from pg_class "
    "where relnamespace = 'guardband'::regnamespace order by 1",
)


def ask(database: str, *statements: str) -> list[Any]:
    with psycopg.connect(database, autocommit=True) as connection:
        answers = [connection.execute(each) for each in statements]
        return [each.fetchall() if each.description else None for each in answers]


@pytest.fixture
def old(database: str) -> str:
    """The address of a database as the first version left it."""
    ask(database, (FIRST / "postgres.sql").read_text())
    assert ask(database, "select value from guardband.meta where key = 'format'") == [[("1",)]]
    return database


def contents(store: Store) -> dict[str, Any]:
    with store.reading() as t:
        epochs = t.epochs("home", 10)
        return {
            "spaces": t.spaces(),
            "tasks": t.tasks("home"),
            "streams": t.streams("home"),
            "heartbeats": t.heartbeats("home"),
            "epochs": epochs,
            "entries": [t.entries("home", row.epoch) for row in epochs],
            "events": t.events(None, 10),
            "samples": [sorted(t.samples("home", level, 0.0)) for level in range(4)],
        }


def test_it_is_brought_to_this_format_and_holds_what_it_held(old, connect, tmp_path) -> None:
    store = connect()
    found = ask(old, "select value from guardband.meta where key = 'format'")
    assert found == [[(str(len(MIGRATIONS)),)]]
    assert store.check() == []
    shutil.copy(FIRST / "gb" / "coordinator.db", tmp_path / "same.db")
    with closing(SqliteStore(tmp_path / "same.db")) as same:
        assert contents(store) == contents(same)
    with store.reading() as t:
        (token,) = t.tokens()
    assert (token.role, token.note, token.revoked_at) == (
        "viewer",
        "of somebody who left",
        1794807101.5,
    )


def test_its_tables_are_those_of_a_new_database(old, cluster: Cluster, connect) -> None:
    connect()
    fresh = cluster.create(old.split("/")[3].split("?")[0] + "_new")
    PostgresStore(fresh).close()
    assert ask(old, *SHAPES) == ask(fresh, *SHAPES)


@pytest.mark.usefixtures("old")
def test_its_streams_go_on(connect) -> None:
    """Both upload more on top of what is stored, and the next epoch is the sum."""
    store = connect()
    coordinator = Coordinator(store)
    with store.reading() as t:
        rows = t.streams("home")
    now = rows[0].registered_at + 60.0
    cuts = []
    for k, row in enumerate(rows):
        total = row.sums
        more = Sums(total.n + 1, total.gram + _one_more(total), total.surprise, total.weight + 1.0)
        cuts.append(Checkpoint(f"{k:032x}", more, row.round + 1))
        request = Upload(
            base=row.revision,
            checkpoint=cuts[-1],
            for_epoch=4,
            trigger=k == 0,
            seen_epoch=row.entry_epoch,
        )
        said = coordinator.upload(row.stream, request, now=now)
        assert said.revision.n == row.n + 1
    coordinator.tick(now=now + 3600.0)
    with store.reading() as t:
        newest, entries = t.epoch("home", 4), t.entries("home", 4)
    assert newest is not None
    assert newest.state == "closed"
    assert newest.total == add_sums(3, [cut.sums for cut in cuts]).as_bytes()
    assert [entry.n for entry in entries] == [37, 37]
    coordinator.pause("home", "a note", who="test", now=now)
    with store.reading() as t:
        assert t.events("home", 1)[0].seq > 3  # the audit log goes on after its last


def _one_more(total: Sums) -> np.ndarray:
    """Return what an observation adds: feature 0, which both tasks use, and a reward."""
    z = np.array([0.25, 0.0, 0.0, 0.5])
    assert len(total.gram) == 10
    return np.outer(z, z)[np.triu_indices(4)]


def test_the_first_format_is_never_changed(old, cluster: Cluster) -> None:
    """What brings an empty database to format 1 makes the tables that the dump has."""
    first = cluster.create(old.split("/")[3].split("?")[0] + "_first")
    ask(first, "create schema guardband", "set search_path = guardband", MIGRATIONS[0])
    assert ask(old, *SHAPES) == ask(first, *SHAPES)
