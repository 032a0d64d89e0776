"""What chaos has found, without the chaos: each in the fewest steps. See docs/live-bugs.md."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import DIM, Hands, agent, check_journal, journal_of, link_of, live_on, names

import guardband as gb
from guardband.live import Unreachable
from guardband.live.client.journal import Journal
from guardband.live.client.sync_worker import longest_wait
from guardband.live.client.windows import End
from guardband.live.store.sqlite import SqliteStore

MENU = np.eye(DIM) / 2.0
NOWHERE = "http://127.0.0.1:9"


def test_a_reward_after_its_window_leaves_what_was_counted(tmp_path: Path) -> None:
    """Found in seed 1: a decision that had counted by default was written over by its reward."""
    hands = Hands()
    one: Any = agent(tmp_path, clock=hands.clock(), rewards={"window_s": 10.0, "default": 0.25})
    decision = one.decide(MENU, 0)
    hands.pass_(11.0)
    one.sync()
    assert one.counted == 1
    one.observe(decision.id, 0.75)
    row = journal_of(one).query("SELECT ended, reward, k, late FROM outcome")
    assert row == [(End.DEFAULTED, 0.25, 1, 0.75)]
    check_journal(journal_of(one))


@pytest.mark.parametrize("said", [False, True])
def test_an_agent_starts_again_before_anybody_ever_answered(tmp_path: Path, said: bool) -> None:
    """Found in seed 2: killed before it was registered, it did not start without a coordinator."""
    given: dict[str, Any] = {"task": "a", "background": False, "state_dir": tmp_path}
    settings = gb.SpaceSettings(name="default", features=names(DIM), agents=3, noise=1.0)
    with gb.connect(NOWHERE, settings=settings, **given) as one:
        first = one.decide(MENU, 1)
    with gb.connect(NOWHERE, settings=settings if said else None, **given) as one:
        one.observe(first.id, 0.5)
        assert one.decide(MENU, 1).action == 1
        assert one.rounds == 2


def test_rewards_of_forgotten_decisions_reach_no_other(tmp_path: Path) -> None:
    """Found in seed 3: a folder that went back in time gave ids again, and rewards with them."""
    one: Any = agent(tmp_path)
    live_on(one, 5)
    one.close()
    shutil.copytree(one.state_dir, tmp_path / "kept")
    one = agent(tmp_path)
    forgotten = one.decide(MENU, 0)
    one.close()
    shutil.rmtree(one.state_dir)
    shutil.copytree(tmp_path / "kept", one.state_dir)
    time.sleep(0.001)
    one = agent(tmp_path)
    other = one.decide(MENU, 1)
    assert other.id.rpartition("-")[2] == forgotten.id.rpartition("-")[2]
    with pytest.raises(gb.UnknownDecisionError):
        one.observe(forgotten.id, 0.75)
    with pytest.raises(gb.UnknownDecisionError):
        one.discard(forgotten.id)
    assert one.pending == 1
    one.observe(other.id, 0.25)
    assert journal_of(one).query("SELECT reward FROM outcome WHERE seq = 6") == [(0.25,)]
    assert one.report().counters["orphan"] == 1


def test_a_call_for_an_epoch_that_got_lost_is_repeated(tmp_path: Path) -> None:
    """Found in seed 3: it was, but only half a minute later."""
    one: Any = agent(tmp_path, sync={"trigger": "ratio", "growth": 0.01})
    live_on(one, 30)
    link = link_of(one)
    upload = link.upload

    def lost(*_: Any) -> Any:
        raise Unreachable("the request was lost")

    link.upload = lost
    for _ in range(2):
        with pytest.raises(Unreachable):
            one.sync()
    link.upload = upload
    one.sync()
    assert one.epoch == 1
    assert journal_of(one).query("SELECT own_n FROM epoch WHERE epoch = 1") == [(30,)]


@pytest.mark.parametrize("make", [Journal, SqliteStore])
def test_a_new_file_can_be_opened_by_several_at_once(make: Any, tmp_path: Path) -> None:
    """Found in seed 1: of two workers that made a journal, one heard that it was locked."""
    crowd = 6
    for number in range(25):
        together = threading.Barrier(crowd)

        def open_it(name: str, together: threading.Barrier = together) -> Any:
            together.wait()
            return make(tmp_path / name)

        with ThreadPoolExecutor(crowd) as pool:
            for opened in list(pool.map(open_it, [f"{number}.db"] * crowd)):
                opened.close()


def test_waits_for_news_are_shorter_than_the_lease(tmp_path: Path) -> None:
    """Found while the harness was written: with a short lease it ran out during a quiet wait."""
    one = agent(tmp_path, lease_s=3.0, sync={"live_s": 30.0})
    assert longest_wait(one.settings) <= 1.0
    other = agent(tmp_path / "other", sync={"live_s": 9.0})
    assert longest_wait(other.settings) <= 3.0
