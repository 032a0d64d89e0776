"""The time of a journal: one for all processes that have it, whatever is done to the clock."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from live.client.world import Hands, agent, journal_of, menus

import guardband as gb
from guardband.live.client import windows
from guardband.live.client.windows import Clock, this_boot
from guardband.live.link.local import LocalLink

FIRST = Path(__file__).parents[1] / "fixtures" / "v1"
RULES = {"window_s": 600.0, "default": 0.25, "order": "window"}
MENU = menus(1)[0]


def kept(one: Any) -> dict[str, Any] | None:
    row = journal_of(one).one("SELECT value FROM meta WHERE key = 'clock'")
    return None if row is None else json.loads(row[0])


@pytest.mark.parametrize("order", ["window", "prompt"])
@pytest.mark.parametrize("correction", [3_600.0, -3_600.0])
def test_workers_from_before_and_after_a_correction_agree(
    tmp_path: Path, order: str, correction: float
) -> None:
    hands = Hands(wall=1e9)
    rules = {**RULES, "order": order}
    mine = hands.clock("boot")
    one = agent(tmp_path, rewards=rules, clock=mine)
    made = [one.decide(MENU, 0) for _ in range(5)]
    hands.pass_(1.0)
    hands.wall += correction
    its = hands.clock("boot")
    other = agent(tmp_path, rewards=rules, clock=its)
    other.sync()
    assert other.pending == 5
    assert its.now() == mine.now() == 1e9 + 1.0
    for decision in made:
        one.observe(decision.id, 0.5)
    late = other.decide(MENU, 0)
    hands.pass_(600.0)
    one.sync()
    assert one.counted == 6
    other.observe(late.id, 0.5)
    counters = one.report().counters
    assert (counters["observed"], counters["defaulted"], counters["late"]) == (5, 1, 1)


def test_the_system_clock_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if this_boot() is None:
        pytest.skip("the system does not name its boots")
    mine = Clock()
    one = agent(tmp_path, clock=mine)
    one.decide(MENU, 0)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3_600.0)
    its = Clock()
    other = agent(tmp_path, clock=its)
    assert kept(other) == kept(one)
    assert its.now() == pytest.approx(mine.now(), abs=60.0)
    assert abs(mine.now() - real()) < 60.0
    assert its.jump() == pytest.approx(3_600.0, abs=60.0)  # and it is said once
    assert its.jump() == 0.0


@pytest.mark.parametrize("ahead", [-5_000.0, 0.0, 5_000.0])
def test_a_reboot_takes_a_new_base_not_before_the_last_decision(
    tmp_path: Path, ahead: float
) -> None:
    hands = Hands(wall=1e9)
    one = agent(tmp_path, rewards=RULES, clock=hands.clock("first"))
    hands.pass_(100.0)
    one.decide(MENU, 0)
    one.close()
    later = Hands(wall=hands.wall + ahead)
    later.steady = 7.0
    clocks = [later.clock("second") for _ in range(2)]
    two = [agent(tmp_path, rewards=RULES, clock=clock) for clock in clocks]
    assert clocks[0].now() == clocks[1].now() == 1e9 + 100.0 + max(0.0, ahead)
    assert kept(two[0]) == {"boot": "second", "base": clocks[0].now() - 7.0}


@pytest.mark.parametrize("correction", [1e6, -50.0])
def test_a_wrong_base_is_corrected_when_no_window_is_open(
    tmp_path: Path, correction: float
) -> None:
    hands = Hands(wall=1_000.0)  # a computer without a battery, before it heard the time
    first = hands.clock("boot")
    one = agent(tmp_path, rewards=RULES, clock=first)
    decision = one.decide(MENU, 0)
    hands.pass_(100.0)
    hands.wall += correction
    second, third = hands.clock("boot"), hands.clock("boot")
    early = agent(tmp_path, rewards=RULES, clock=second)
    assert second.now() == first.now() == 1_100.0
    one.discard(decision.id)
    agent(tmp_path, rewards=RULES, clock=third)
    assert third.now() == 1_100.0 + correction
    for each, clock in ((one, first), (early, second)):
        assert each.pending == 0  # it looks at the journal
        assert clock.now() == third.now()
        assert clock.jump() == 0.0


def test_clocks_of_unknown_origin_are_not_shared(tmp_path: Path) -> None:
    hands = Hands(wall=1e9)
    mine = hands.clock()
    one = agent(tmp_path, clock=mine)
    one.decide(MENU, 0)
    hands.wall += 50.0
    its = hands.clock()
    agent(tmp_path, clock=its)
    assert (mine.now(), its.now()) == (1e9, 1e9 + 50.0)
    assert kept(one) is None


def test_a_system_that_does_not_name_its_boots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "BOOT", tmp_path / "none")
    assert this_boot() is None
    assert Clock().boot is None
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert abs(Clock().now() - time.time()) < 60.0


def test_a_journal_of_the_first_format_gets_a_base(tmp_path: Path) -> None:
    shutil.copytree(FIRST / "gb", tmp_path / "gb")
    hands = Hands(wall=2e9)
    clock = hands.clock("boot")
    with gb.LiveAgent(
        LocalLink(tmp_path / "gb"),
        create=False,
        space="home",
        task="movies",
        state_dir=tmp_path / "gb" / "agents" / "home" / "movies",
        background=False,
        clock=clock,
    ) as one:
        assert kept(one) == {"boot": "boot", "base": 2e9}
        assert clock.now() == 2e9
