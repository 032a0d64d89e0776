"""Files of the first released format: opened by this version, they go on as if nothing were."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from live.client.world import AT_ONCE, Hands
from live.operators.world import MADE, journal_total, pool, run, work

import guardband as gb
from guardband.live.client import journal_schema
from guardband.live.client.decision_id import make_id, mark_of
from guardband.live.client.journal import Journal
from guardband.live.link.local import LocalLink
from guardband.live.operators.audit import audit, find_decision
from guardband.live.protocol.sums import Sums, add_sums
from guardband.live.store import sqlite
from guardband.live.store.sqlite import SqliteStore

FIRST = Path(__file__).parents[1] / "fixtures" / "v1"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FIRST / "expected.json").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FIRST / "gb", tmp_path / "gb")
    return tmp_path / "gb"


def opened(folder: Path, task: str) -> Any:
    """An agent that wakes up where the old version's stopped."""
    journal = Journal(folder / "agents" / "home" / task / "journal.db")
    at = journal.last()[2]
    journal.close()
    one = gb.LiveAgent(
        LocalLink(folder),
        create=False,
        space="home",
        task=task,
        state_dir=folder / "agents" / "home" / task,
        background=False,
        clock=Hands(wall=at + 1.0).clock(),
        timing=AT_ONCE,
    )
    MADE.append(one)
    return one


def test_the_store_opens_and_its_sums_are_the_journals(folder: Path) -> None:
    store = SqliteStore(folder / "coordinator.db")
    assert store.check() == []
    with store.reading() as t:
        rows = {row.stream: row for row in t.streams("home")}
        newest = t.epoch("home", 3)
        entries = t.entries("home", 3)
    store.close()
    assert newest is not None
    assert newest.total is not None
    total = Sums.from_bytes(newest.total)
    assert total.sha256 == newest.sha256
    assert total.n == sum(entry.n for entry in entries) == 72
    parts = {}
    for task, told in EXPECTED.items():
        one = opened(folder, task)
        row = rows[told["stream"]]
        mine = journal_total(one, row.n)
        np.testing.assert_allclose(Sums.from_bytes(row.total).gram, mine.gram, atol=1e-12)
        entry = next(entry for entry in entries if entry.stream == told["stream"])
        parts[told["stream"]] = journal_total(one, entry.n)
    pooled = add_sums(3, [parts[stream] for stream in sorted(parts)])
    np.testing.assert_allclose(total.gram, pooled.gram, atol=1e-12)


@pytest.mark.parametrize("task", sorted(EXPECTED))
def test_an_agent_goes_on(folder: Path, task: str) -> None:
    one, told = opened(folder, task), EXPECTED[task]
    assert one.counted == told["counted"]
    assert one.rounds == told["rounds"]
    assert one.pending == told["pending"]
    assert one.epoch == told["epoch"] == 3
    np.testing.assert_allclose(one.theta, told["theta"], rtol=0, atol=1e-12)
    journal = Journal(one.state_dir / "journal.db")
    rows = journal.query("SELECT seq, at FROM decision ORDER BY seq")
    journal.close()
    for seq, at in rows:
        ident = make_id(task, told["stream"], mark_of(None, at), seq)
        assert audit(ident, find_decision(ident, [folder])).result == "same"
    if told["pending"]:
        one.observe(ident, 0.4)  # the reward of a decision that the old version made
        assert one.counted == told["counted"] + 1
    before = one.counted
    work(one, 10, seed=5)
    assert one.counted == before + 10


@pytest.mark.parametrize("task", sorted(EXPECTED))
def test_shares_of_the_first_format_stay_what_they_were(folder: Path, task: str) -> None:
    """Decisions of format 1 keep their share and how it was spent; later ones go by the new."""
    journal = Journal(folder / "agents" / "home" / task / "journal.db")
    ((share,),) = journal.query("SELECT delta_share FROM stream")
    last = journal.last()[0]
    levels = journal.query("SELECT * FROM level ORDER BY from_seq")
    assert levels == [(1, 0, share, 1), (1, last + 1, share, 2)]
    assert journal.query("PRAGMA user_version") == [(journal_schema.FORMAT,)] == [(15,)]
    journal.close()
    one = opened(folder, task)
    for decision in work(one, 10, seed=5):
        assert audit(decision.id, find_decision(decision.id, [folder])).result == "same"


def test_they_pool_with_each_other(folder: Path, tmp_path: Path) -> None:
    agents = [opened(folder, task) for task in sorted(EXPECTED)]
    streams = [one.status()["stream"] for one in agents]
    for one in agents:
        work(one, 5, seed=6)
    pool(*agents)
    assert {one.epoch for one in agents} == {4}
    assert [one.status()["stream"] for one in agents] == streams, "no conflict, no new stream"
    for one in agents:
        gauges = one.report().gauges
        assert gauges["foreign_n"] == sum(each.counted for each in agents) - one.counted
    run("export", "--state", folder, "--out", tmp_path / "all.csv", "--csv")
    run("backup", "--data", folder, "--out", tmp_path / "copy.db")


@pytest.mark.parametrize(
    ("pattern", "step"),
    [("coordinator.db", sqlite.MIGRATIONS[0]), ("journal.db", journal_schema.MIGRATIONS[0])],
)
def test_the_first_format_is_never_changed(pattern: str, step: str) -> None:
    """What brings a new file to format 1 makes the tables that the fixtures have."""
    fresh = apsw.Connection(":memory:")
    fresh.execute(step)
    paths = list(FIRST.rglob(pattern))
    assert paths
    for path in paths:
        reading = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        kept = apsw.Connection(f"file:{path}?immutable=1", flags=reading)
        assert kept.pragma("user_version") == 1
        assert tables(kept) == tables(fresh)
        kept.close()
    fresh.close()


def tables(connection: apsw.Connection) -> set[str]:
    rows = connection.execute("select sql from sqlite_schema where sql is not null")
    return {" ".join(str(sql).split()) for (sql,) in rows}
