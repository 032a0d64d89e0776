"""Monitors of live agents with a window: they begin anew with every half of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.test_departures import TASKS, comes_out_again, statuses, sync
from live.client.test_health import AFTER, BEFORE
from live.client.world import agent
from numpy.testing import assert_allclose

import guardband as gb
from guardband.kernels.monitors import Note

STATED: dict[str, Any] = {"alpha": 0.2, "noise": 0.1, "context_noise": 0.0}
WIDE = {"low": -2.0, "high": 3.0, "order": "prompt"}
SLID = [Note.LEVEL]  # what a fleet's agents pay for a half; of live ones the rules say it


def alone(folder: Path, **told: Any) -> gb.LiveAgent:
    return agent(folder, agents=1, shares="equal", rewards=WIDE, **STATED | told)


def play(
    one: Any, rounds: range, theta: np.ndarray, seed: int = 0, late: int = 0
) -> list[gb.Decision]:
    """Let an agent decide once in each round, with rewards `late` rounds later; up to an alarm."""
    rng, made, waiting = np.random.default_rng(seed), [], []
    for t in rounds:
        menu = rng.uniform(0.05, 0.55, (6, 3))
        told = {"round": t} if isinstance(one, gb.LiveAgent) else {}
        made.append(one.decide(menu, 0, **told))
        waiting.append((made[-1], float(menu[made[-1].action] @ theta + rng.normal(0.0, 0.1))))
        if len(waiting) > late:
            one.observe(*waiting.pop(0))
        if not one.health.ok:
            break
    for each in waiting:
        one.observe(*each)
    return made


def memory(one: gb.LiveAgent) -> bytes:
    return one._store.state.learner.monitors.as_bytes()


def test_they_remember_what_those_of_an_agent_in_a_process_do(tmp_path: Path) -> None:
    told: dict[str, Any] = {"window": 80, "drift": 1e-6}  # both then play the same
    fleet, live = (
        gb.Fleet({"movies": None}, dim=3, **STATED, **told)["movies"],
        alone(tmp_path, **told),
    )
    live.sync()
    for one in (fleet, live):
        play(one, range(1, 190), BEFORE)
    theirs = fleet._group.states[0].watch.copy()
    mine = live._store.state.learner.monitors.memory.copy()
    theirs[SLID] = mine[SLID] = 0.0
    assert mine[Note.STARTS] == 4
    assert mine[Note.REWARDS] == 189 - 160
    assert mine[Note.PLAYS] > 5
    assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.parametrize("late", [0, 7])
def test_a_world_that_turns_round_is_noticed_and_all_comes_out_again(
    tmp_path: Path, late: int
) -> None:
    one = alone(tmp_path, window=400)
    one.sync()
    play(one, range(1, 301), BEFORE)
    kept = memory(one)
    one.close()
    one = alone(tmp_path, window=400)
    assert memory(one) == kept
    play(one, range(301, 400), AFTER, seed=1, late=late)
    (alarm,) = one.health.alarms
    assert alarm.kind == "assumptions"
    assert (one.health.watched, one.counted) == (("assumptions", "certificates"), 0)
    one.resume()
    play(one, range(500, 800), AFTER, seed=2)
    assert one.health.ok
    assert np.abs(one.theta - AFTER).max() < 0.1
    comes_out_again(tmp_path, one)


def test_with_a_drift_only_certificates_are_watched(tmp_path: Path) -> None:
    one = alone(tmp_path, window=100, drift=1e-4)
    assert one.health.watched == ("certificates",)
    one.sync()
    play(one, range(1, 120), BEFORE)
    assert one._store.state.learner.monitors.memory[Note.STARTS] == 2
    assert one.health.ok


def test_without_monitors_a_window_forgets_all_the_same(tmp_path: Path) -> None:
    one = alone(tmp_path, window=100, delta_alarm=0)
    one.sync()
    play(one, range(1, 120), BEFORE)
    assert (one.health.watched, one._store.state.learner.observations()) == ((), 69)


def test_a_task_that_does_not_fit_leaves_with_what_counts(tmp_path: Path) -> None:
    given = {"agents": 3, "window": 300, "rewards": WIDE, **STATED}
    agents = [agent(tmp_path, task=task, **given) for task in TASKS]
    sync(agents, 1)
    for step in range(24):
        for place, each in enumerate(agents):
            rounds = range(1 + 25 * step, 26 + 25 * step)
            play(each, rounds, AFTER if place == 2 else BEFORE, seed=10 * step + place)
        sync(agents)
        if step == 6:
            assert [each.kind for each in agents[2].health.alarms] == ["fit"]
            agents[2].resume()
    assert statuses(tmp_path) == {"movies": "active", "tv": "active", "books": "apart"}
    assert agents[0].health.ok
    assert agents[1].health.ok
    for each, theta in zip(agents, (BEFORE, BEFORE, AFTER), strict=True):
        assert np.abs(each.theta - theta).max() < 0.15
        assert each.status()["observations"] <= 300 * (1 if each is agents[2] else 2)
        comes_out_again(tmp_path, each)
