"""Backup and restore: a copy while the server works, and a server that heals from its agents."""

from __future__ import annotations

import stat
import threading
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from live.client.world import AT_ONCE
from live.operators.world import (
    a_space,
    free_port,
    journal_total,
    pool,
    refusal,
    run,
    serving,
    sync,
    work,
)

import guardband as gb
from guardband.live.client.journal import Journal
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.coordinator.delta_shares import next_position
from guardband.live.link.http import HttpLink
from guardband.live.operators.audit import audit, find_decision
from guardband.live.operators.backup import examine
from guardband.live.protocol.sums import Sums
from guardband.live.store import StoreError
from guardband.live.store.sqlite import SqliteStore

TASKS = ("movies", "tv", "books")


def stored(data: Path) -> dict[str, Any]:
    """The streams that a store holds, by name."""
    store = SqliteStore(data / "coordinator.db")
    try:
        with store.reading() as t:
            return {row.stream: row for row in t.streams("home")}
    finally:
        store.close()


def test_after_a_restore_nothing_is_lost_and_nothing_counts_twice(tmp_path: Path) -> None:
    data, port, copy = tmp_path / "gb", free_port(), tmp_path / "copy.db"
    with serving(data, port) as server:
        server.post("/v1/spaces", a_space().as_json())
        agents = [server.agent(task) for task in TASKS]
        for i, one in enumerate(agents):
            work(one, 30, seed=i)
        pool(*agents)
        said = run("backup", "--data", data, "--out", copy)
        assert "home (epoch 1)" in said
        assert "90 observations" in said
        for step in (10, 15):
            for i, one in enumerate(agents):
                work(one, 15, seed=step + i)
            pool(*agents)
        before = server.summary()["epoch"]
        assert before == 3
        assert "in use" in refusal("restore", copy, "--data", data, "--force")
    late = agents[2]  # it goes on while nobody answers
    work(late, 5, seed=20)

    assert "--force" in refusal("restore", copy, "--data", data)
    said = run("restore", copy, "--data", data, "--force")
    assert "home (epoch 1)" in said
    kept = list(data.glob("coordinator.db.before-*"))
    assert len(kept) == 1
    assert examine(kept[0]).spaces == {"home": 3}
    assert {row.n for row in stored(data).values()} == {30}

    with serving(data, port) as server:
        sync(*agents)
        for i, one in enumerate(agents):
            work(one, 5, seed=30 + i)
        pool(*agents)
        summary = server.summary()
        assert summary["epoch"] > before, "an epoch's number never comes again"
        assert summary["config_version"] > 1000, "nor does the number of the rules"
        assert "server-restore" in {alert["id"] for alert in summary["alerts"]}
        assert "conflict" not in {alert["id"] for alert in summary["alerts"]}
        record = server.get(f"/v1/spaces/home/epochs/{summary['epoch']}")
        assert {(line["task"], line["n"]) for line in record["manifest"]} == {
            ("movies", 65),
            ("tv", 65),
            ("books", 70),
        }
        counted = [one.counted for one in agents]
        assert counted == [65, 65, 70]
        assert {one.epoch for one in agents} == {summary["epoch"]}
    rows = stored(data)
    assert len(rows) == 3, "nobody had to begin a new stream"
    for one in agents:
        row = rows[one.status()["stream"]]
        held, mine = Sums.from_bytes(row.total), journal_total(one)
        assert row.n == one.counted == mine.n
        np.testing.assert_allclose(held.gram, mine.gram, rtol=0, atol=1e-9)
        assert held.surprise == pytest.approx(mine.surprise, abs=1e-9)
        one.close()


def share(one: Any) -> float:
    """The part of delta that an agent's stream has."""
    journal = Journal(one.state_dir / "journal.db")
    try:
        return float(journal.query("SELECT delta_share FROM stream ORDER BY id")[-1][0])
    finally:
        journal.close()


def test_decisions_from_before_a_restore_come_out_again(tmp_path: Path) -> None:
    """Streams that the copy does not know get shares of delta in another order."""
    data, port, copy = tmp_path / "gb", free_port(), tmp_path / "copy.db"
    with serving(data, port) as server:
        server.post("/v1/spaces", a_space().as_json())
        tokens = {
            task: server.post("/v1/tokens", {"role": "agent", "space": "home", "task": task})
            for task in TASKS
        }
        run("backup", "--data", data, "--out", copy)
        agents = [
            gb.LiveAgent(
                HttpLink(server.url, tokens[task]["token"]),
                create=False,
                space="home",
                task=task,
                state_dir=data / "states" / task,
                background=False,
                timing=AT_ONCE,
            )
            for task in TASKS
        ]
        made = {one: work(one, 15, seed=i) for i, one in enumerate(agents)}
        sync(*agents)
        shares = [share(one) for one in agents]
    run("restore", copy, "--data", data, "--force")
    with serving(data, port):
        for i, one in reversed(list(enumerate(agents))):
            sync(one)
            made[one] += work(one, 5, seed=10 + i)
        assert [share(one) for one in agents] != shares
        for one, decisions in made.items():
            for decision in decisions:
                finding = audit(decision.id, find_decision(decision.id, [one.state_dir]))
                assert finding.result == "same", finding.differences
            one.close()


def test_agents_that_never_stop(tmp_path: Path) -> None:
    """The same with agents whose threads carry their messages."""
    data, port, copy = tmp_path / "gb", free_port(), tmp_path / "copy.db"
    with serving(data, port) as server:
        server.post("/v1/spaces", a_space(sync={"trigger": "ratio", "growth": 0.2}).as_json())
        agents = [server.agent(task, background=True) for task in TASKS[:2]]
        for i, one in enumerate(agents):
            work(one, 40, seed=i)
        run("backup", "--data", data, "--out", copy)
        for i, one in enumerate(agents):
            work(one, 40, seed=10 + i)
    run("restore", copy, "--data", data, "--force")
    with serving(data, port):
        for i, one in enumerate(agents):
            work(one, 10, seed=20 + i)
        sync(*agents)
        assert [one.counted for one in agents] == [90, 90]
        pool(*agents)
    rows = stored(data)
    for one in agents:
        row = rows[one.status()["stream"]]
        assert row.n == 90
        mine = journal_total(one)
        np.testing.assert_allclose(Sums.from_bytes(row.total).gram, mine.gram, atol=1e-9)
        one.close()


def test_a_copy_is_whole_whatever_is_written_meanwhile(tmp_path: Path) -> None:
    data = tmp_path / "gb"
    with serving(data, free_port()) as server:
        server.post("/v1/spaces", a_space().as_json())
        one = server.agent("movies")
        stop = threading.Event()

        def busy() -> None:
            seed = 0
            while not stop.is_set():
                seed += 1
                work(one, 5, seed=seed)
                sync(one)

        thread = threading.Thread(target=busy)
        thread.start()
        try:
            for i in range(5):
                run("backup", "--data", data, "--out", tmp_path / f"{i}.db")
        finally:
            stop.set()
            thread.join(timeout=60)
        seen = [examine(tmp_path / f"{i}.db").observations for i in range(5)]
        assert seen == sorted(seen)
        assert stat.S_IMODE((tmp_path / "0.db").stat().st_mode) == 0o600
        assert "exists" in refusal("backup", "--data", data, "--out", tmp_path / "0.db")
        one.close()


def rows_of(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything that is in a store."""
    connection = apsw.Connection(str(file))
    try:
        names = [n for (n,) in connection.execute("select name from sqlite_schema where sql > ''")]
        tables = [name for name in names if not name.endswith(("_space", "_time"))]
        return {name: list(connection.execute(f"select * from {name}")) for name in tables}
    finally:
        connection.close()


def test_a_restore_is_written_down_and_leaves_parts_of_delta_out(tmp_path: Path) -> None:
    """Also where no epoch was closed since the backup, so that no agent could tell."""
    data, copy = tmp_path / "gb", tmp_path / "copy.db"
    store = SqliteStore(data / "coordinator.db")
    Coordinator(store).create_space(a_space(), who="me", now=1.0)
    store.close()
    run("backup", "--data", data, "--out", copy)
    run("restore", copy, "--data", data, "--force")
    store = SqliteStore(data / "coordinator.db")
    with store.transaction("home") as t:
        assert [event.what for event in t.events("home", 1)] == ["server restore"]
        assert next_position(t, "home") > 64
    store.close()


def test_what_is_not_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, copy = tmp_path / "gb", tmp_path / "copy.db"
    SqliteStore(data / "coordinator.db").close()
    run("backup", "--data", data, "--out", copy)
    whole = copy.read_bytes()
    before = (data / "coordinator.db").read_bytes()

    def fails(body: bytes, words: str) -> None:
        copy.write_bytes(body)
        assert words in refusal("restore", copy, "--data", data, "--force")
        assert (data / "coordinator.db").read_bytes() == before

    fails(b"this is no database, but it is long enough " * 9, "damaged")
    fails(whole[: len(whole) // 2], "damaged")
    middle = len(whole) // 2
    fails(whole[:middle] + b"\xff" * 4096 + whole[middle + 4096 :], "damaged")
    other = tmp_path / "other.db"
    with apsw.Connection(str(other)) as connection:
        connection.execute("create table t(x)")
    connection.close()
    assert "not a copy" in refusal("restore", other, "--data", data, "--force")
    copy.write_bytes(whole)
    with apsw.Connection(str(copy)) as connection:
        connection.execute("pragma user_version = 999")
    connection.close()
    assert "upgrade" in refusal("restore", copy, "--data", data, "--force")
    assert "no file" in refusal("restore", tmp_path / "none", "--data", data)
    assert "there is no" in refusal("backup", "--data", tmp_path / "x", "--out", tmp_path / "y")
    told = refusal("backup", "--data", data, "--out", other / "copy.db")
    assert f"'{other / 'copy.db'}': no copy can be written there; choose another file (" in told
    copy.write_bytes(whole)
    run("restore", copy, "--data", tmp_path / "elsewhere")
    assert rows_of(tmp_path / "elsewhere" / "coordinator.db") == rows_of(copy)
    monkeypatch.setenv("GUARDBAND_STORE", "postgresql://db/gb")
    assert "pg_dump" in refusal("backup", "--data", data, "--out", tmp_path / "z")


def test_a_damaged_store_can_be_replaced(tmp_path: Path) -> None:
    data, copy = tmp_path / "gb", tmp_path / "copy.db"
    SqliteStore(data / "coordinator.db").close()
    run("backup", "--data", data, "--out", copy)
    (data / "coordinator.db").write_bytes(b"what a disk may return after years " * 200)
    with pytest.raises(StoreError):
        SqliteStore(data / "coordinator.db")
    run("restore", copy, "--data", data, "--force")
    SqliteStore(data / "coordinator.db").close()
    assert list(data.glob("coordinator.db.before-*"))
