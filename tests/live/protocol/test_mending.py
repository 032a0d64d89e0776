"""A coordinator's SQLite file that was damaged on the disk: it goes on with what is sound."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from live.look import events_of
from live.protocol.harness import Harness

from guardband.live.client.stream_state import Effect
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.coordinator.mending import open_store
from guardband.live.protocol.messages import Refused
from guardband.live.store import StoreError
from guardband.live.store.rows import TABLES
from guardband.live.store.sqlite import SqliteStore

PAGE = 4096
TEAR = """
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]) - 100)
    file.write(bytes(range(100)))
"""
FLIP = """
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    (byte,) = file.read(1)
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 1]))
"""


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """Two tasks with two epochs, and observations since."""
    harness = Harness(SqliteStore(tmp_path / "store.db"))
    a, b = harness.join("movies"), harness.join("tv")
    for _ in range(2):
        for who in (a, b):
            harness.observe(who, 2)
        harness.pool(a, b)
    for who in (a, b):
        harness.observe(who)
        harness.checkpoint(who)
        harness.send(who)
    return harness


def damage(harness: Harness, table: str, how: str = FLIP) -> None:
    """Flip a bit in a table's first page, while the store is open; it reads its pages again."""
    store: Any = harness.store
    store.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    query = "select rootpage from sqlite_schema where name = ?"
    at = (store.connection.execute(query, (table,)).get - 1) * PAGE + PAGE - 30
    # By another process: to close the file here would drop SQLite's locks.
    subprocess.run([sys.executable, "-c", how, str(store.path), str(at)], check=True)
    store.connection.execute("pragma shrink_memory")
    with pytest.raises(Refused, match="mended from what is sound"), store.reading() as t:
        t.ask(f"select * from {table} not indexed")


def go_on(harness: Harness, who: str) -> None:
    """Let an agent send what it has, as often as it is told to; each answer has a remedy."""
    harness.observe(who)
    harness.checkpoint(who)
    for _ in range(4):
        try:
            harness.send(who)
            return
        except Exception as problem:
            code = getattr(problem, "code", "")
            if code == "store_unavailable":
                continue
            step = harness.states[who].refused(problem, stream=harness.fresh("stream"))
            harness.states[who] = step.stream
            assert step.effect in (Effect.REGISTER, Effect.RESEND)
            if step.effect is Effect.REGISTER:
                harness.register(who)
    raise AssertionError("it never got through")


def alter(harness: Harness, table: str) -> None:
    """Change a row by a sound write, of which only its seal tells: a bit of the log, in use."""
    store: Any = harness.store
    kind = next(kind for kind, name in TABLES.items() if name == table)
    (text,) = {"library", "opened_by", "version", "reason"} & set(kind._fields) - {"state"}
    store.connection.execute(f"update {table} set {text} = {text} || '!'")
    with pytest.raises(Refused, match="mended from what is sound"), store.reading() as t:
        t._rows(kind, "true")


ALTERED = [(alter, table) for table in ("epoch", "entry", "task")]
DAMAGED = [
    (damage, table) for table in ("stream", "epoch", "pulse", "entry", "audit", "task", "meta")
]


@pytest.mark.parametrize(("spoil", "table"), DAMAGED + ALTERED)
def test_it_goes_on_with_what_is_sound(harness: Harness, spoil: Any, table: str) -> None:
    spoil(harness, table)
    for who in ("movies", "tv"):
        go_on(harness, who)
    store: Any = harness.store
    assert store.check() == []
    assert store.path.with_name("store.db.damaged").exists()
    events = [json.loads(e.detail) for e in events_of(harness.coordinator)]
    assert [table] in [each.get("damaged") for each in events]
    with store.reading() as t:
        row, task = t.space("home"), t.task("home", "movies")
        assert [each.n for each in t.streams("home")] == [6, 6]
    assert (row.paused is not None) == (table in ("task", "meta"))
    assert task is not None
    # The next epoch holds everything once.
    harness.now += 1.0
    harness.pool("movies", "tv")
    for who in ("movies", "tv"):
        seen = harness.view(who)
        assert set(seen.values()) == {1}
        assert len(seen) == 12
    assert row.epoch >= 2


def test_nobody_adopts_a_sum_of_which_the_entries_are_lost(harness: Harness) -> None:
    """Who asks late for the newest epoch would not be told that its own data are in it."""
    late = harness.copy("movies", "late")
    damage(harness, "stream")
    harness.coordinator.tick(now=harness.now)
    go_on(harness, "movies")
    news = harness.coordinator.news(
        "home", harness.stream(late), after=1, open_after=0, config_version=1, now=harness.now
    )
    assert news is not None
    assert news.epoch == 2
    assert news.sums is None


def test_a_lost_epoch_is_added_up_again(harness: Harness) -> None:
    with harness.store.reading() as t:
        before = t.epoch("home", 2)
    damage(harness, "epoch")
    go_on(harness, "movies")
    with harness.store.reading() as t:
        after = t.epoch("home", 2)
    assert (after.sha256, after.n, after.tasks) == (before.sha256, before.n, before.tasks)


def test_where_the_spaces_are_lost_a_person_is_needed(harness: Harness) -> None:
    damage(harness, "space", TEAR)
    harness.observe("movies")
    harness.checkpoint("movies")
    for _ in range(2):
        with pytest.raises(StoreError, match="restore a backup"):
            harness.send("movies")


def test_a_bit_where_the_spaces_are_kept_is_turned_back(harness: Harness) -> None:
    with harness.store.reading() as t:
        before = t.space("home")
    damage(harness, "space")
    go_on(harness, "movies")
    with harness.store.reading() as t:
        row = t.space("home")
        assert [each.n for each in t.streams("home")] == [6, 5]
    assert row.config == before.config
    assert row.paused is None
    left = {each.name for each in harness.store.path.parent.iterdir()}
    assert "store.db.corrected" not in left
    assert "store.db.damaged" in left


def test_what_cannot_be_opened_or_mended_is_refused(harness: Harness) -> None:
    store: Any = harness.store
    store.close()
    raw = store.path.read_bytes()
    store.path.write_bytes(bytes(500) + raw[500:])
    with pytest.raises(StoreError, match="guardband restore FILE"):
        open_store(store.path)
    store.path.write_bytes(b"hello" * 1000)
    with pytest.raises(StoreError, match="is not a store"):
        open_store(store.path)
    assert store.path.read_bytes() == b"hello" * 1000


@pytest.mark.parametrize("at", [5, 18, 30, 45, 103, 2000])
def test_a_bit_of_the_first_page_is_turned_back(harness: Harness, at: int) -> None:
    store: Any = harness.store
    store.close()
    raw = bytearray(store.path.read_bytes())
    raw[at] ^= 1
    store.path.write_bytes(raw)
    harness.store = store = open_store(store.path)
    harness.coordinator = Coordinator(store)
    for who in ("movies", "tv"):
        go_on(harness, who)
    assert store.check() == []
    harness.now += 1.0
    harness.pool("movies", "tv")
    assert set(harness.view("tv").values()) == {1}
    assert len(harness.view("tv")) == 12


def test_a_log_that_lost_its_end_is_a_restore(tmp_path: Path) -> None:
    """What it had given out since is not known: positions are skipped, as after a backup."""
    script = (
        "import os, signal\nfrom pathlib import Path\n"
        "from live.protocol.harness import Harness\n"
        "from guardband.live.store.sqlite import SqliteStore\n"
        f"harness = Harness(SqliteStore(Path({str(tmp_path)!r}) / 'store.db'))\n"
        "harness.join('movies')\nharness.observe('movies')\nharness.join('tv')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    tests = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(tests)}
    done = subprocess.run([sys.executable, "-c", script], cwd=tests, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    sound, log = tmp_path / "sound", tmp_path / "store.db-wal"
    sound.mkdir()
    for name in ("store.db", "store.db-wal"):
        shutil.copy(tmp_path / name, sound / name)
    raw = bytearray(log.read_bytes())
    raw[-PAGE // 2] ^= 4
    log.write_bytes(raw)
    for folder, restores in ((tmp_path, 1), (sound, 0)):
        store = SqliteStore(folder / "store.db")
        found = [event.what for event in events_of(Coordinator(store))]
        assert found.count("server restore") == restores
        store.close()
