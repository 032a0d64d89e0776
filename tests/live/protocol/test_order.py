"""When rewards count is settled as a space is made: not as they come where contexts are shared."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from live.client.world import agent, journal_of
from live.earlier import is_refused_now, made_earlier
from live.memory_store import MemoryStore
from live.protocol.harness import Harness, code_of
from live.protocol.world import make_space

import guardband as gb
from guardband.live.client.windows import End
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.store.sqlite import SqliteStore

PROMPT = {"order": "prompt"}
BOTH = make_space().changed(rewards=PROMPT)
MENU = np.array([[0.4, 0.3, 0.1], [0.1, 0.2, 0.6]])


def test_a_new_space_has_one_of_both_only() -> None:
    store = MemoryStore()
    coordinator = Coordinator(store)
    problem = code_of(coordinator.create_space, BOTH, who="", now=0.0)
    assert (problem.code, problem.status) == ("order_refused", 422)
    for part in ("order='prompt'", "contexts='shared'", "order='window'", "'per-request'"):
        assert part in problem.detail
    assert coordinator.spaces() == []
    for number, change in enumerate(
        ({"rewards": {"order": "window"}}, {"contexts": "per-request"})
    ):
        made = BOTH.changed(name=f"home{number}", **change)
        assert coordinator.create_space(made, who="", now=0.0) == 1


def test_a_space_that_waits_for_windows_goes_on_to() -> None:
    harness = Harness()
    problem = code_of(harness.coordinator.configure, "home", BOTH, who="", now=0.0)
    assert problem.code == "order_refused"
    assert harness.coordinator.space("home")[0] == harness.space
    free = Harness(space=make_space(contexts="per-request"))
    prompt = free.space.changed(rewards=PROMPT)
    assert free.coordinator.configure("home", prompt, who="", now=0.0) == 2


def test_a_space_of_an_earlier_version_goes_on_and_can_be_set() -> None:
    coordinator = Coordinator(MemoryStore())
    made_earlier(coordinator.store, BOTH)
    assert coordinator.space("home")[0] == BOTH
    slower = BOTH.changed(rewards={**PROMPT, "window_s": 5.0}, alpha=0.2)
    assert coordinator.configure("home", slower, who="", now=0.0) == 2
    window = slower.changed(rewards={"order": "window"})
    assert coordinator.configure("home", window, who="", now=0.0) == 3
    assert code_of(coordinator.configure, "home", slower, who="", now=0.0).code == "order_refused"


def test_what_python_says_is_a_value_error_and_makes_nothing(tmp_path: Path) -> None:
    given = gb.SpaceSettings(features=["a"], agents=2, rewards=PROMPT)  # contexts are shared
    with pytest.raises(gb.GuardbandError, match="do not go together") as caught:
        gb.connect(f"local:{tmp_path / 'gb'}", task="a", settings=given, background=False)
    assert isinstance(caught.value, ValueError)
    assert not (tmp_path / "gb" / "agents").exists()
    made = given.changed(rewards={"order": "window"})
    gb.connect(f"local:{tmp_path / 'gb'}", task="a", settings=made, background=False).close()


def test_agents_of_an_earlier_space_go_on_with_the_same_call(tmp_path: Path) -> None:
    """Folder and store are opened again by a program that still names both."""
    for count in (2, 4):
        one = agent(tmp_path, contexts="shared", rewards=PROMPT)
        assert is_refused_now(one.settings)
        made = [one.decide(MENU, 0, round=count * 10 + t) for t in (1, 2)]
        one.observe(made[1].id, 0.3)
        assert one.counted == count - 2
        one.observe(made[0].id, 0.5)
        assert (one.counted, one.pending) == (count, 0)
        one.sync()
        assert one.status()["acknowledged"] == count
        one.close()
    assert journal_of(one).query("SELECT DISTINCT ended FROM outcome") == [(End.OBSERVED,)]


def test_a_store_of_the_first_format_with_both_opens(tmp_path: Path) -> None:
    """The committed one has contexts per request; its settings are rewritten as they were then."""
    shutil.copytree(Path(__file__).parents[1] / "fixtures" / "v1" / "gb", tmp_path / "gb")
    path = tmp_path / "gb" / "coordinator.db"
    db = sqlite3.connect(path)
    (text,) = db.execute("SELECT config FROM space").fetchone()
    db.execute("UPDATE space SET config = ?", (text.replace('"per-request"', '"shared"'),))
    db.commit()
    db.close()
    store = SqliteStore(path)
    space, _ = Coordinator(store).space("home")
    store.close()
    assert is_refused_now(space)


def test_where_such_a_store_is_gone_the_space_is_made_with_the_other_order(tmp_path: Path) -> None:
    """Its agents keep their folders, and what they have counted comes back."""
    given = {"contexts": "shared", "rewards": PROMPT}
    one = agent(tmp_path, **given)
    for t in (1, 2, 3):
        one.observe(one.decide(MENU, 0, round=t).id, 0.5)
    one.sync()
    settings, folder = one.settings, one.state_dir
    one.close()
    (tmp_path / "gb" / "coordinator.db").unlink()
    where = {"task": "movies", "state_dir": folder, "background": False}
    with pytest.raises(ValueError, match="order='window'"):
        gb.connect(f"local:{tmp_path / 'gb'}", settings=settings, **where)
    window = settings.changed(rewards={"order": "window"})
    again = gb.connect(f"local:{tmp_path / 'gb'}", settings=window, **where)
    again.sync()
    assert (again.counted, again.status()["acknowledged"]) == (3, 3)
    again.close()
