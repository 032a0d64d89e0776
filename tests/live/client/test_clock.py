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

FIRST = Path(__file__).parents[1] / "fixtures" / "v1"
RULES = {"window_s": 600.0, "default": 0.25, "order": "window"}
MENU = menus(1)[0]


def kept(one: Any) -> dict[str, Any] | None:
    row = journal_of(one).one("SELECT value FROM meta WHERE key = 'clock'")
    return None if row is None else json.loads(row[0])


def now(one: Any) -> float:
    return one._store.clock.now()


@pytest.mark.parametrize("order", ["window", "prompt"])
@pytest.mark.parametrize("correction", [3_600.0, -3_600.0])
def test_workers_from_before_and_after_a_correction_agree(
    tmp_path: Path, order: str, correction: float
) -> None:
    hands = Hands(wall=1e9)
    rules = {**RULES, "order": order}
    one = agent(tmp_path, rewards=rules, clock=hands.clock("boot"))
    made = [one.decide(MENU, 0) for _ in range(5)]
    hands.pass_(1.0)
    hands.wall += correction
    other = agent(tmp_path, rewards=rules, clock=hands.clock("boot"))
    assert other._store.settle() == 0
    assert now(other) == now(one) == 1e9 + 1.0
    for decision in made:
        one.observe(decision.id, 0.5)
    late = other.decide(MENU, 0)
    hands.pass_(600.0)
    one._store.settle()
    assert one.counted == 6
    other.observe(late.id, 0.5)
    counters = one.report().counters
    assert (counters["observed"], counters["defaulted"], counters["late"]) == (5, 1, 1)


def test_the_system_clock_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if this_boot() is None:
        pytest.skip("the system does not name its boots")
    one = agent(tmp_path)
    one.decide(MENU, 0)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3_600.0)
    other = agent(tmp_path)
    assert other._store.clock._base == one._store.clock._base
    assert abs(now(one) - real()) < 60.0
    assert other._store.clock.jump() == pytest.approx(3_600.0, abs=60.0)  # and it is said once
    assert other._store.clock.jump() == 0.0


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
    two = [agent(tmp_path, rewards=RULES, clock=later.clock("second")) for _ in range(2)]
    assert now(two[0]) == now(two[1]) == 1e9 + 100.0 + max(0.0, ahead)
    assert kept(two[0]) == {"boot": "second", "base": now(two[0]) - 7.0}


@pytest.mark.parametrize("correction", [1e6, -50.0])
def test_a_wrong_base_is_corrected_when_no_window_is_open(
    tmp_path: Path, correction: float
) -> None:
    hands = Hands(wall=1_000.0)  # a computer without a battery, before it heard the time
    one = agent(tmp_path, rewards=RULES, clock=hands.clock("boot"))
    decision = one.decide(MENU, 0)
    hands.pass_(100.0)
    hands.wall += correction
    early = agent(tmp_path, rewards=RULES, clock=hands.clock("boot"))
    assert now(early) == now(one) == 1_100.0
    one.discard(decision.id)
    late = agent(tmp_path, rewards=RULES, clock=hands.clock("boot"))
    assert now(late) == 1_100.0 + correction
    for each in (one, early):
        assert each.pending == 0  # it looks at the journal
        assert now(each) == now(late)
        assert each._store.clock.jump() == 0.0


def test_clocks_of_unknown_origin_are_not_shared(tmp_path: Path) -> None:
    hands = Hands(wall=1e9)
    one = agent(tmp_path, clock=hands.clock())
    one.decide(MENU, 0)
    hands.wall += 50.0
    other = agent(tmp_path, clock=hands.clock())
    assert (now(one), now(other)) == (1e9, 1e9 + 50.0)
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
    with gb.LiveAgent(
        coordinator=f"local:{tmp_path / 'gb'}",
        space="home",
        task="movies",
        background=False,
        clock=hands.clock("boot"),
    ) as one:
        assert kept(one) == {"boot": "boot", "base": 2e9}
        assert now(one) == 2e9
