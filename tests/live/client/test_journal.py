"""The journal: nothing that was returned is lost, whatever happens to the process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from live.client.world import (
    agent,
    check_journal,
    journal_of,
    link_of,
    live_on,
    menus,
    watch_connections,
)

from guardband.live.client.journal import Journal, JournalError
from guardband.live.client.journal_schema import FORMAT
from guardband.live.client.replay import rebuild
from guardband.live.client.windows import End

TESTS = Path(__file__).parents[2]
MENU = menus(1)[0]


def worker(folder: Path, seed: int, count: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "live.client.worker", str(folder), str(seed), str(count), *more],
        stdout=subprocess.PIPE,
        text=True,
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )


def said(lines: list[str]) -> tuple[set[int], dict[int, float], set[int]]:
    """What a worker has said it did: decisions, rewards, exclusions by number."""
    words = [line.split() for line in lines if line.endswith("\n")]
    made = {int(w[1].rpartition("-")[2]) for w in words if w[0] == "d"}
    rewards = {int(w[1].rpartition("-")[2]): float(w[2]) for w in words if w[0] == "o"}
    voids = {int(w[1].rpartition("-")[2]) for w in words if w[0] == "v"}
    return made, rewards, voids


def check_kept(journal: Journal, lines: list[str]) -> None:
    made, rewards, voids = said(lines)
    kept = {seq for (seq,) in journal.query("SELECT seq FROM decision")}
    assert made <= kept
    outcomes = {s: (e, r) for s, e, r in journal.query("SELECT seq, ended, reward FROM outcome")}
    for seq, reward in rewards.items():
        assert outcomes[seq] in ((End.HEARD, reward), (End.OBSERVED, reward))
    for seq in voids:
        assert outcomes[seq][0] == End.DISCARDED


@pytest.mark.slow
def test_I8_nothing_returned_is_lost_by_kill_9(tmp_path: Path) -> None:
    """SIGKILL at random moments, again and again in the same folder; I4 and I8 each time."""
    rng = np.random.default_rng(1)
    lines: list[str] = []
    for life in range(8):
        process = worker(tmp_path, life, 100_000, *(["background"] if life % 2 else []))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        reader: list[str] = []
        thread = threading.Thread(target=lambda p=process, r=reader: r.extend(p.stdout))
        thread.start()
        time.sleep(float(rng.uniform(0.02, 0.8)))
        process.kill()
        process.wait()
        thread.join()
        process.stdout.close()
        lines += reader
        journal = Journal(tmp_path / "gb" / "agents" / "default" / "movies" / "journal.db")
        check_kept(journal, lines)
        check_journal(journal)
        journal.close()
    assert len(said(lines)[1]) > 100


@pytest.mark.slow
def test_processes_share_a_folder_as_one_stream(tmp_path: Path) -> None:
    first = agent(tmp_path)
    live_on(first, 3)
    crowd = [worker(tmp_path, seed, 150, *(["background"] if seed else [])) for seed in range(3)]
    outputs = [process.communicate(timeout=300)[0].splitlines(keepends=True) for process in crowd]
    for process, lines in zip(crowd, outputs, strict=True):
        assert process.returncode == 0
        assert lines[-1] == "done\n"
    journal = journal_of(first)
    ids = [seq for lines in outputs for seq in said(lines)[0]]
    assert len(ids) == len(set(ids)) == 450
    for lines in outputs:
        check_kept(journal, lines)
    check_journal(journal)
    assert journal.query("SELECT count(*) FROM stream") == [(1,)]
    # Who has slept meanwhile knows it all before it decides.
    assert first.rounds == 453
    decision = first.decide(MENU, 0)
    assert int(decision.id.rpartition("-")[2]) == 454
    fresh = agent(tmp_path)
    np.testing.assert_allclose(first.theta, fresh.theta, rtol=1e-9)
    counters = fresh.report().counters
    assert counters["decisions"] == 454
    assert counters["decisions"] == fresh.pending + sum(
        counters[end] for end in ("observed", "defaulted", "discarded", "lost")
    )


def test_two_handles_in_one_process_see_each_other(tmp_path: Path) -> None:
    one, other = agent(tmp_path), agent(tmp_path)
    for i, menu in enumerate(menus(30)):
        decision = (one, other)[i % 2].decide(menu, 0, 0.2)
        (other, one)[i % 2].observe(decision.id, 0.5)
    assert one.counted == other.counted == 30
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-12)
    check_journal(journal_of(one))
    assert one.sync()
    assert not other.sync()  # one of them exchanges the messages
    assert other.epoch == one.epoch
    one.close()
    assert other.sync()


def test_a_restart_goes_on(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 40)
    pending = one.decide(MENU, 0)
    theta, counted = one.theta, one.counted
    one.close()
    again = agent(tmp_path)
    np.testing.assert_allclose(again.theta, theta, rtol=1e-9)
    assert (again.counted, again.pending) == (counted, 1)
    again.observe(pending.id, 0.5)
    assert again.pending == 0
    check_journal(journal_of(again))


def test_what_is_in_no_epoch_yet_counts_after_a_restart(tmp_path: Path) -> None:
    never = {"trigger": "interval", "interval_s": 1e6}
    one = agent(tmp_path, sync=never)
    for step in range(3):
        live_on(one, 10, seed=step)
        one.sync()
    live_on(one, 10, seed=9)
    assert journal_of(one).query("SELECT count(*) FROM cut") == [(4,)]
    theta = one.theta
    one.close()
    again = agent(tmp_path)
    assert (again.epoch, again.counted) == (0, 40)
    np.testing.assert_allclose(again.theta, theta, rtol=1e-9)
    live_on(again, 5, seed=4)
    assert again.decide(MENU, 0).mean == pytest.approx(
        rebuild(journal_of(again), 46).decide().mean, rel=1e-9
    )


def test_bad_requests_write_nothing(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 3)
    before = journal_of(one).query("SELECT count(*), max(seq) FROM decision")
    head = journal_of(one).head()
    for bad in (
        {"features": MENU * np.nan, "baseline": 0},
        {"features": MENU, "baseline": 9},
        {"features": MENU[:, :2], "baseline": 0},
        {"features": MENU * 100, "baseline": 0},
        {"features": MENU, "baseline": 0, "baseline_reward": 50.0},
        {"features": MENU, "baseline": True},
        {"features": MENU, "baseline": 0, "round": 0},
    ):
        with pytest.raises((TypeError, ValueError)):
            one.decide(**bad)
    assert journal_of(one).query("SELECT count(*), max(seq) FROM decision") == before
    assert journal_of(one).head() == head


def test_old_decisions_are_forgotten_pending_ones_never(tmp_path: Path) -> None:
    one = agent(tmp_path, keep_decisions=20)
    oldest = one.decide(MENU, 0)
    made = live_on(one, 600)
    one.sync()
    assert journal_of(one).query("SELECT min(seq), max(seq) FROM decision") == [(1, 601)]
    one.observe(oldest.id, 0.5)
    one.sync()
    assert journal_of(one).query("SELECT min(seq), max(seq) FROM decision") == [(582, 601)]
    assert journal_of(one).query("SELECT min(seq) FROM outcome") == [(582,)]
    counters = one.report().counters
    assert counters["decisions"] == counters["observed"] == 601
    one.observe(made[0].id, 0.9)  # forgotten: late, and nobody is hurt
    assert one.report().counters["late"] == 1
    np.testing.assert_allclose(agent(tmp_path).theta, one.theta, rtol=1e-9)


def test_a_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = watch_connections(monkeypatch)
    one = agent(tmp_path)
    live_on(one, 10)
    decision = one.decide(MENU, 0)
    theta = one.theta
    full = apsw.FullError("database or disk is full")
    failing.append(lambda sql: full if sql == "COMMIT" else None)
    with pytest.raises(JournalError, match="disk is full"):
        one.observe(decision.id, 0.9)
    with pytest.raises(JournalError):
        one.decide(MENU, 0)
    failing.clear()
    assert (one.counted, one.pending, one.rounds) == (10, 1, 11)
    np.testing.assert_allclose(one.theta, theta, rtol=1e-9)
    one.observe(decision.id, 0.5)
    assert one.counted == 11
    check_journal(journal_of(one))


def test_a_journal_of_a_later_version_is_refused(tmp_path: Path) -> None:
    agent(tmp_path).close()
    path = tmp_path / "gb" / "agents" / "default" / "movies" / "journal.db"
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA user_version").get == FORMAT == 15
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(JournalError, match="upgrade guardband"):
        agent(tmp_path)
    path.write_bytes(b"no journal at all" * 1000)
    Path(f"{path}-wal").unlink(missing_ok=True)
    Path(f"{path}-shm").unlink(missing_ok=True)
    with pytest.raises(JournalError, match="cannot be opened"):
        agent(tmp_path)


def test_an_upload_is_on_disk_before_it_is_sent(tmp_path: Path) -> None:
    """What the coordinator has been told is in a copy of the files that were synchronised."""
    one = agent(tmp_path)
    live_on(one, 30)
    synced: list[tuple[int, ...]] = []
    real, link = os.fsync, link_of(one)
    upload = link.upload

    def fsync(handle: int) -> None:
        synced.append((handle,))
        real(handle)

    def send(stream: str, request: Any) -> Any:
        assert synced, "sent before it was on disk"
        kept = journal_of(one).query("SELECT version FROM cut")
        assert (request.checkpoint.version,) in kept
        return upload(stream, request)

    link.upload = send
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        one.sync()
    assert synced


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_everything_anew(tmp_path: Path) -> None:
    one = agent(tmp_path, background=True)
    live_on(one, 20)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            live_on(one, 20, seed=1)
            code = 0 if one.rounds >= 40 else 2
        finally:
            os._exit(code)
    live_on(one, 20, seed=2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert one.rounds == one.counted == 60
    one.close()
    check_journal(journal_of(one))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_outlives_its_parent_loses_nothing(tmp_path: Path) -> None:
    """Locks of SQLite are not inherited: a parent that closes would take the log away."""
    one = agent(tmp_path)
    live_on(one, 5)
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if one.rounds == one.counted == 5 else 2  # also what only looks
            live_on(one, 1, seed=1)
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            live_on(one, 10, seed=2)
        finally:
            os._exit(code)
    os.read(ready[0], 1)
    one.close()
    os.write(go[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    again = agent(tmp_path)
    assert again.rounds == again.counted == 16
    check_journal(journal_of(again))
    again.close()


def test_a_second_look_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """To close any handle of a file is to give up all locks that the process has on it."""
    locks = Path("/proc/locks")
    if not locks.exists():
        pytest.skip("needs /proc/locks")

    def held() -> int:
        number = f":{path.stat().st_ino} "
        mine = f" {os.getpid()} "
        return sum(number in line and mine in line for line in locks.read_text().splitlines())

    path = tmp_path / "journal.db"
    first = Journal(path)
    first.begin()
    first.commit()
    before = held()
    Journal(path).close()
    assert held() == before > 0
    first.close()


def test_several_threads_share_an_agent(tmp_path: Path) -> None:
    one = agent(tmp_path, background=True)
    threads = [threading.Thread(target=live_on, args=(one, 60, s)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (one.rounds, one.pending) == (240, 0)
    one.close()
    check_journal(journal_of(one))
