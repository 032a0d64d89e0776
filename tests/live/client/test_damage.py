"""Journals that were damaged on the disk: nothing of the damage is used, and agents go on alone."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import numpy as np
import pytest
from live.client.world import agent, journal_of, live_on, menus

from guardband.live import sqlite
from guardband.live.client.journal import DamagedJournalError, Journal, JournalError
from guardband.live.client.mending import find_damage, mend_journal

MENU = menus(1)[0]
PAGE = 2048


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A space of two agents with epochs; the first has one decision that waits."""
    folder = tmp_path_factory.mktemp("sound")
    one, two = agent(folder), agent(folder, task="tv")
    for _ in range(4):
        live_on(one, 20)
        live_on(two, 20)
        for each in (one, two, one, two):
            each.sync()
    assert one.epoch > 1
    live_on(one, 3)  # not uploaded before it closes
    waiting = one.decide(MENU, 0)
    (folder / "waiting").write_text(waiting.id)
    (folder / "theta").write_text(json.dumps(one.theta.tolist()))
    one.close()
    two.close()
    return folder


def copy_of(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return journal_in(tmp_path)


def journal_in(folder: Path) -> Path:
    return folder / "gb" / "agents" / "default" / "movies" / "journal.db"


def flip(path: Path, at: int, bit: int = 1) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= bit
    path.write_bytes(raw)


def tear(path: Path, at: int) -> None:
    """Change more than one bit explains."""
    for place in range(at, at + 8):
        flip(path, place, 0x55)


def root_of(path: Path, table: str) -> int:
    """Return where a table's first page begins."""
    db = apsw.Connection(str(path))
    page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    db.close()
    return int((page - 1) * PAGE)


def test_every_page_has_a_checksum_that_its_content_must_match(
    folder: Path, tmp_path: Path
) -> None:
    path = copy_of(folder, tmp_path)
    assert find_damage(path) == []
    pages = path.stat().st_size // PAGE
    found = 0
    for page in range(pages):
        flip(path, page * PAGE + 1000, 16)
        found += bool(find_damage(path))
        flip(path, page * PAGE + 1000, 16)
    db = apsw.Connection(str(path))
    assert found == pages - db.pragma("freelist_count")
    db.close()
    assert find_damage(path) == []


@pytest.mark.parametrize("table", ["decision", "epoch", "cut", "head", "stream", "control", "meta"])
def test_an_agent_goes_on_with_what_is_sound(
    folder: Path, tmp_path: Path, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = copy_of(folder, tmp_path)
    tear(path, root_of(path, table) + PAGE - 20)
    assert find_damage(path)
    before = agent(tmp_path, task="tv")
    with caplog.at_level(logging.ERROR, "guardband.live"):
        one = agent(tmp_path)
    assert "was damaged and is mended" in caplog.text
    assert path.with_name("journal.db.damaged").exists()
    assert find_damage(path) == []
    assert one.report().counters["damaged"] == 1
    if table in ("decision", "epoch"):
        assert one.counted == 83
        theta = json.loads((folder / "theta").read_text())
        np.testing.assert_allclose(one.theta, theta, rtol=1e-9)
    live_on(one, 5)
    for each in (one, before, one, before):
        each.sync()
    # Both compute with one sum, in which everything is once.
    sums = {each.status()["epoch"]: each for each in (one, before)}
    assert len(sums) == 1
    store = apsw.Connection(str(tmp_path / "gb" / "coordinator.db"))
    counted = store.execute("select sum(n) from stream").get
    assert counted == 83 + 5 + 80 if table in ("decision", "epoch") else counted >= 83 + 80
    store.close()
    one.close()
    before.close()


def rows_of(path: Path) -> dict[str, list[object]]:
    """Return what a journal holds, but for the note that it was damaged."""
    db = apsw.Connection(str(path))
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    rows = {name: list(db.execute(f"SELECT * FROM {name}")) for name in names if name != "tally"}
    columns = [row[1] for row in db.execute("PRAGMA table_info(head)") if row[1] != "revision"]
    rows["head"] = list(db.execute(f"SELECT {', '.join(columns)} FROM head"))
    db.close()
    return rows


def places(path: Path, flips: int) -> list[tuple[int, int]]:
    """Return where bits flip: in every page, at every place in a word of 32, the last the most."""
    rng, pages = np.random.default_rng(flips), path.stat().st_size // PAGE
    found: list[tuple[int, int]] = []
    for k in range(flips):
        # The higher a bit, the more others have the same effect on a checksum.
        byte = 4 * int(rng.integers(PAGE // 4)) + (3 if k % 2 else int(rng.integers(4)))
        found.append((k % pages * PAGE + byte, 1 << int(rng.integers(8))))
    return found


@pytest.mark.parametrize("flips", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_a_single_bit_is_turned_back_and_nothing_is_lost(
    folder: Path, tmp_path: Path, flips: int
) -> None:
    path = tmp_path / "journal.db"
    whole, mended, unsure = journal_in(folder).read_bytes(), 0, 0
    sound = rows_of(journal_in(folder))
    for at, bit in places(journal_in(folder), flips):
        path.write_bytes(whole)
        flip(path, at, bit)
        said = mend_journal(path)
        mended += said is not None
        if said not in (None, "nothing is lost"):
            unsure += 1  # another bit has the same effect, and rows do not tell which it was
        else:
            assert rows_of(path) == sound
    assert mended > flips / 2
    assert unsure <= flips // 100


def test_one_of_two_damaged_pages_is_turned_back(folder: Path, tmp_path: Path) -> None:
    path = copy_of(folder, tmp_path)
    tear(path, root_of(path, "epoch") + PAGE - 20)
    flip(path, root_of(path, "head") + PAGE - 20)
    said = mend_journal(path) or ""
    assert "asked for again, and own data are used meanwhile" in said


def test_without_its_pooled_sum_an_agent_uses_its_own_data_until_it_hears_it_again(
    folder: Path, tmp_path: Path
) -> None:
    path = copy_of(folder, tmp_path)
    tear(path, root_of(path, "epoch") + PAGE - 20)
    said = mend_journal(path) or ""
    assert "asked for again, and own data are used meanwhile" in said
    journal = Journal(path)
    ((chain,),) = journal.query("SELECT chain FROM stream")
    assert json.loads(chain)["since"] is None
    journal.close()
    one = agent(tmp_path)
    assert one.status()["observations"] > one.counted
    one.close()


def test_a_page_that_is_damaged_while_the_agent_runs(folder: Path, tmp_path: Path) -> None:
    path = copy_of(folder, tmp_path)
    waiting = (folder / "waiting").read_text()
    one = agent(tmp_path)
    one.sync()
    journal_of(one).query_aside("PRAGMA wal_checkpoint(TRUNCATE)")
    journal_of(one).rest()  # as after a long pause: its pages are read again
    subprocess.run(  # by another process: closing the file here would drop SQLite's locks
        [sys.executable, "-c", FLIP, str(path), str(root_of(path, "head") + PAGE - 20)], check=True
    )
    decision = one.decide(MENU, 0)
    assert decision.kind == "baseline"
    assert decision.action == 0
    assert one.report().counters["damaged"] == 1
    with pytest.raises(Exception, match="decision"):
        one.observe(waiting, 0.5)
    one.observe(decision.id, 0.5)
    one.sync()
    live_on(one, 3)
    assert one.counted == 3  # by rules that are known again
    one.close()


FLIP = """
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    was = file.read(8)
    file.seek(int(sys.argv[2]))
    file.write(bytes(byte ^ 0x55 for byte in was))
"""


def test_a_row_that_another_program_changed_is_not_used(folder: Path, tmp_path: Path) -> None:
    path = copy_of(folder, tmp_path)
    db = sqlite3.connect(path)  # SQLite of the system knows nothing of the checksums
    change = "UPDATE decision SET weight = weight * 2 WHERE seq = 5"
    with pytest.raises(
        sqlite3.OperationalError, match="seal_of"
    ):  # nor can it write to sealed rows
        db.execute(change)
    db.create_function("seal_of", -1, lambda *_: 0, deterministic=True)
    db.execute(change)
    db.commit()
    db.close()
    assert find_damage(path)
    with pytest.raises(DamagedJournalError, match="audit --repair"):
        Journal(path).query("SELECT * FROM decision")


def die(folder: Path, work: str) -> None:
    """Let a process work with a journal and be killed, so that its log stays."""
    script = (
        "import os, signal\nfrom pathlib import Path\n"
        "from live.client.world import agent, live_on\n"
        f"one = agent(Path({str(folder)!r}))\n{work}\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    tests = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tests,
        env={**os.environ, "PYTHONPATH": str(tests)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


def in_header(log: bytearray) -> None:
    log[9] ^= 1


def in_the_middle(log: bytearray) -> None:
    log[32 + 3 * (24 + PAGE) + 700] ^= 1


def in_the_last_page(log: bytearray) -> None:
    log[-700] ^= 1


def in_the_last_salt(log: bytearray) -> None:
    log[-(24 + PAGE) + 9] ^= 1


@pytest.mark.parametrize("where", [in_header, in_the_middle, in_the_last_page, in_the_last_salt])
def test_what_a_damaged_log_has_lost_is_said(
    tmp_path: Path, where: Callable[[bytearray], None], caplog: pytest.LogCaptureFixture
) -> None:
    die(tmp_path, "live_on(one, 30)")
    path = Path(f"{journal_in(tmp_path)}-wal")
    raw = path.read_bytes()
    raw = raw[: 32 + (len(raw) - 32) // (24 + PAGE) * (24 + PAGE)]
    log = bytearray(raw)
    where(log)
    path.write_bytes(log)
    with caplog.at_level(logging.ERROR, "guardband.live"):
        one = agent(tmp_path)
    assert "the last changes that it held are lost" in caplog.text
    assert one.counted < 30
    assert one.report().counters["damaged"] == 1
    live_on(one, 3)
    one.close()


def test_a_journal_that_was_emptied_is_not_a_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    die(tmp_path, "live_on(one, 30)")
    path = journal_in(tmp_path)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").write_bytes(b"")
    with caplog.at_level(logging.ERROR, "guardband.live"):
        one = agent(tmp_path)
    assert "is empty, and was not" in caplog.text
    assert one.report().counters["damaged"] == 1
    live_on(one, 3)
    assert one.counted == 3
    one.close()


def test_a_journal_whose_first_process_was_killed_at_once_is_new(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = journal_in(tmp_path)
    path.parent.mkdir(parents=True)
    path.touch()
    one = agent(tmp_path)
    assert one.report().counters["damaged"] == 0
    assert caplog.text == ""
    one.close()


def test_a_log_that_is_whole_has_lost_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    die(tmp_path, "live_on(one, 30)")
    one, two = agent(tmp_path), agent(tmp_path)  # and one that is in use
    assert one.counted == 30
    assert one.report().counters["damaged"] == 0
    assert caplog.text == ""
    one.close()
    two.close()


def test_journals_of_before_get_checksums_when_nobody_else_has_them_open(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    old = apsw.Connection(str(path), vfs="unix")
    old.pragma("page_size", PAGE)
    old.pragma("journal_mode", "wal")
    old.execute("CREATE TABLE some(x); INSERT INTO some VALUES (1)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "_reserve", lambda db: None)
        sqlite.connect(path, 100, refusal=JournalError).close()
    in_use = sqlite.connect(path, 100, refusal=JournalError)
    assert not sqlite.has_checksums(in_use)
    in_use.close()
    old.close()
    alone = sqlite.connect(path, 100, refusal=JournalError)
    assert sqlite.has_checksums(alone)
    assert alone.execute("SELECT x FROM some").get == 1
    alone.close()


def test_an_apsw_without_checksums_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apsw, "vfs_names", lambda: ["unix"])
    monkeypatch.setattr(apsw.sqlite_extra, "has", lambda name: None)
    with pytest.raises(JournalError, match=r"checksums of pages.*from PyPI"):
        Journal(tmp_path / "journal.db")
