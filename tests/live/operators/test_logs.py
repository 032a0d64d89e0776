"""Journals with rows of logs: audits, exports, backups, and journals that were changed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.logs import logged, some_log
from live.client.world import agent, journal_of, live_on
from live.operators.journals import change, found, sync
from live.operators.world import a_space, free_port, pool, run, serving, work

import guardband as gb
from guardband.live.client import logged_rows
from guardband.live.client.replay import counted_sums
from guardband.live.protocol.sums import Sums, sums_of

X, Y = some_log(300)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any]]:
    """An agent with decisions before, between and after two logs, and epochs among them."""
    monkeypatch.setattr(logged_rows, "BATCH", 64)
    one, other = agent(tmp_path), agent(tmp_path, task="tv", uses=[0, 2])
    live_on(other, 10, seed=9)
    made = live_on(one, 12)
    one.learn(X[:100], Y[:100])
    made += live_on(one, 12, seed=1)
    sync(one, other, one)
    made += live_on(one, 3, seed=2)
    one.learn(X[100:], Y[100:])
    made += live_on(one, 12, seed=3)
    assert one.epoch >= 1
    return one, made


def test_decisions_beside_logs_come_out_again(made: Any, tmp_path: Path) -> None:
    _, decisions = made
    for decision in decisions:
        finding = found(tmp_path, decision.id)
        assert (finding.result, finding.differences) == ("same", ())


def test_sums_are_rebuilt_from_the_rows(made: Any) -> None:
    one, _ = made
    one.sync()
    journal = journal_of(one)
    ((n, total),) = journal.query("SELECT n, total FROM cut ORDER BY n DESC LIMIT 1")
    again, told = sums_of(counted_sums(journal, 1, 0, n, 3)), Sums.from_bytes(total)
    journal.close()
    assert (again.n, n) == (told.n, 339)
    np.testing.assert_allclose(again.gram, told.gram, rtol=1e-13)
    assert again.surprise == pytest.approx(told.surprise, rel=1e-12)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM logged WHERE k = 20", "300 rows of logs were learned, but 299 are written"),
        ("DELETE FROM logged WHERE k = 112", "does not count after the one before"),
        ("UPDATE logged SET reward = reward + 0.01 WHERE k = 40", "do not add up"),
        ("UPDATE logged SET weight = 2 * weight WHERE k = 40", "do not add up"),
        ("UPDATE logged SET k = 1000 WHERE k = 327", "observations count, but the last is number"),
        ("UPDATE tally SET count = 301 WHERE key = 'logged'", "301 rows of logs were learned"),
    ],
)
def test_changed_rows_are_found(made: Any, tmp_path: Path, sql: str, said: str) -> None:
    one, decisions = made
    assert len(logged(one)) == 300
    change(one, sql)
    finding = found(tmp_path, decisions[-1].id)
    assert finding.result == "differs"
    assert any(said in words for words in finding.differences), finding.differences


def test_an_export_has_decisions_and_says_how_many_rows_of_logs_there_are(
    made: Any, tmp_path: Path
) -> None:
    one, decisions = made
    one.close()
    out = tmp_path / "all.csv"
    said = run("export", "--state", one.state_dir, "--out", out, "--csv")
    assert "300 rows learned from logs are not in it" in said
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [decision.id for decision in decisions]
    assert int(rows[-1]["counted_as"]) == 339


def test_a_restored_server_has_the_log_once(tmp_path: Path) -> None:
    data, port, copy = tmp_path / "gb", free_port(), tmp_path / "copy.db"
    with serving(data, port) as server:
        server.post("/v1/spaces", a_space().as_json())
        one, other = server.agent("movies"), server.agent("tv")
        work(one, 20)
        work(other, 20, seed=1)
        one.learn(X[:200], Y[:200])
        pool(one, other)
        assert "240 observations" in run("backup", "--data", data, "--out", copy)
        one.learn(X, Y)
        pool(one, other)
        summary = server.summary()
        assert {each["task"]: each["n"] for each in summary["agents"]} == {"movies": 320, "tv": 20}
        one.close()
        other.close()
    run("restore", copy, "--data", data, "--force")
    with serving(data, port) as server:
        one, other = server.agent("movies"), server.agent("tv")
        pool(one, other)
        summary = server.summary()
        told = {each["task"]: each for each in summary["agents"]}
        assert {task: each["n"] for task, each in told.items()} == {"movies": 320, "tv": 20}
        assert told["movies"]["sums"]["logged"] == 300
        assert told["movies"]["counters"]["decisions"] == 20
        with pytest.raises(gb.Refused, match="has learned a log with these rewards"):
            other.learn(X[:200], Y[:200])
        assert one.learn(X, Y).rows == 0
        one.close()
        other.close()


def test_a_journal_without_decisions_is_exported(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        one.learn(X[:20], Y[:20])
        said = run("export", "--state", one.state_dir, "--out", tmp_path / "x.csv", "--csv")
    assert "0 decisions of 1 agent(s)" in said
    assert "20 rows learned from logs are not in it" in said
