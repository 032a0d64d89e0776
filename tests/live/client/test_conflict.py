"""Copied and rolled-back state folders, sealed streams, restored coordinators; real directories."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import agent, check_journal, journal_of, live_on, menus

import guardband as gb
from guardband.live.client.windows import End
from guardband.live.store.sqlite import SqliteStore

MENU = menus(1)[0]


def upload(one: Any) -> None:
    """Hand in everything now, whatever the clock says."""
    one.sync()


def stored(folder: Path) -> dict[str, int]:
    """n by stream, as the coordinator has it."""
    store = SqliteStore(folder / "gb" / "coordinator.db")
    try:
        with store.reading() as t:
            return {row.stream: row.n for row in t.streams("default")}
    finally:
        store.close()


def state(folder: Path) -> Path:
    return folder / "gb" / "agents" / "default" / "movies"


def test_a_rolled_back_folder_starts_a_new_stream(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 20)
    upload(one)
    live_on(one, 5, seed=2)
    pending = one.decide(MENU, 0)
    shutil.copytree(state(tmp_path), tmp_path / "old")
    one.observe(pending.id, 0.4)
    live_on(one, 24, seed=1)
    upload(one)
    one.close()
    assert list(stored(tmp_path).values()) == [50]

    shutil.rmtree(state(tmp_path))
    shutil.copytree(tmp_path / "old", state(tmp_path))
    back = agent(tmp_path)
    upload(back)
    # The five are forgotten, never sent under another name; the stream of 50 is as it was.
    counts = stored(tmp_path)
    assert sorted(counts.values()) == [0, 50]
    report = back.report()
    assert (report.counters["conflicts"], report.counters["lost"]) == (1, 1)
    assert report.counters["decisions"] == 1
    assert back.pending == 0
    with pytest.raises(gb.UnknownDecisionError, match="lost with a stream in conflict"):
        back.observe(pending.id, 0.5)
    check_journal(journal_of(back))
    live_on(back, 7, seed=3)
    upload(back)
    assert sorted(stored(tmp_path).values()) == [7, 50]
    check_journal(journal_of(back))
    journal = journal_of(back)
    assert journal.query("SELECT count(*) FROM outcome WHERE ended = ?", (int(End.LOST),)) == [(1,)]


def test_a_copied_folder_is_another_stream_from_the_first_upload_on(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 20)
    upload(one)
    one.close()
    shutil.copytree(state(tmp_path), tmp_path / "clone")
    one, clone = agent(tmp_path), agent(tmp_path, state_dir=tmp_path / "clone")
    live_on(one, 10, seed=1)
    live_on(clone, 15, seed=2)
    upload(one)
    upload(clone)
    assert sorted(stored(tmp_path).values()) == [0, 30]
    live_on(clone, 4, seed=3)
    live_on(one, 1, seed=4)
    upload(clone)
    upload(one)
    assert sorted(stored(tmp_path).values()) == [4, 31]
    for each in (one, clone):
        check_journal(journal_of(each))


def test_two_folders_of_one_task_are_two_streams(tmp_path: Path) -> None:
    one, other = agent(tmp_path), agent(tmp_path, state_dir=tmp_path / "other")
    live_on(one, 10)
    live_on(other, 20, seed=1)
    upload(one)
    upload(other)
    assert sorted(stored(tmp_path).values()) == [10, 20]
    assert other.report().counters["conflicts"] == 0


def test_a_coordinator_from_a_backup_is_healed(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 20)
    upload(one)
    one.close()
    store = SqliteStore(tmp_path / "gb" / "coordinator.db")
    store.backup(tmp_path / "backup.db")
    store.close()
    one = agent(tmp_path)
    live_on(one, 30, seed=1)
    upload(one)
    epoch = one.epoch
    one.close()
    for end in ("", "-wal", "-shm"):
        (tmp_path / "gb" / f"coordinator.db{end}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", tmp_path / "gb" / "coordinator.db")
    assert list(stored(tmp_path).values()) == [20]
    one = agent(tmp_path)
    live_on(one, 5, seed=2)
    upload(one)
    upload(one)
    assert list(stored(tmp_path).values()) == [55]
    assert one.report().counters["conflicts"] == 0
    assert one.epoch >= epoch


def test_an_ephemeral_agent_seals_and_its_folder_can_go_on(tmp_path: Path) -> None:
    with agent(tmp_path, ephemeral=True) as one:
        live_on(one, 20)
        pending = one.decide(MENU, 0)
    assert list(stored(tmp_path).values()) == [20]
    again = agent(tmp_path)
    again.observe(pending.id, 0.5)
    live_on(again, 9, seed=1)
    upload(again)
    assert sorted(stored(tmp_path).values()) == [10, 20]
    counters = again.report().counters
    assert counters["conflicts"] == counters["lost"] == 0
    theta = again.theta
    again.close()
    np.testing.assert_allclose(agent(tmp_path).theta, theta, rtol=1e-9)


def test_a_lost_coordinator_gets_everything_again(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 20)
    upload(one)
    one.close()
    for end in ("", "-wal", "-shm"):
        (tmp_path / "gb" / f"coordinator.db{end}").unlink(missing_ok=True)
    one = agent(tmp_path)
    upload(one)
    assert list(stored(tmp_path).values()) == [20]


def test_the_sum_in_use_never_counts_an_observation_twice(tmp_path: Path) -> None:
    """I3, by the number of observations: pooled plus own is what both have counted in all."""
    one, other = agent(tmp_path), agent(tmp_path, task="tv")
    for step in range(12):
        live_on(one, 7, seed=step)
        live_on(other, 5, seed=100 + step)
        for each in (one, other, one):
            upload(each)
        for each in (one, other):
            used = each.status()["observations"]
            assert each.counted <= used <= one.counted + other.counted
    assert one.epoch == other.epoch > 0
