"""Batches: many decisions, or rewards, in one call are what they are one after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.agent import recall
from guardband.agent.engine import Engine
from guardband.agent.requests import MOST_AT_ONCE

DIM = 4
THETA = np.array([0.5, 0.3, 0.2, 0.1])


def menus(count: int, seed: int = 0) -> list[np.ndarray]:
    """Menus of different lengths, some with rows that are equal, or nearly."""
    rng, made = np.random.default_rng(seed), []
    for n in range(count):
        menu = 0.25 * np.abs(rng.normal(size=(int(rng.integers(1, 15)), DIM)))
        menu /= np.maximum(1.0, np.linalg.norm(menu, axis=1, keepdims=True))
        if n % 3 == 0:
            menu[-1] = menu[0]
        if n % 3 == 1:
            menu[-1] = np.nextafter(menu[0], 1.0)
        made.append(menu)
    return made


def same(one: gb.Decision, other: gb.Decision) -> None:
    """Assert that two decisions are equal to the last bit, in all that they say."""
    mine, its = one._asdict(), other._asdict()
    for name in mine.keys() - {"weighed"}:
        np.testing.assert_equal(mine[name], its[name], err_msg=name)
    np.testing.assert_array_equal(one.certified, other.certified)
    np.testing.assert_array_equal(one.table, other.table)


def play(fleet: gb.Fleet, turns: int, size: int, *, many: bool) -> list[gb.Decision]:
    """Let all agents of a fleet decide and learn, in batches or one by one."""
    rng, made = np.random.default_rng(1), []
    for turn in range(turns):
        for agent in fleet.values():
            given = menus(size, seed=turn)
            baselines = [len(menu) // 2 for menu in given]
            rewards = [
                float(menu[b] @ THETA) if len(menu) % 2 else None
                for menu, b in zip(given, baselines, strict=True)
            ]
            if many:
                here = agent.decide_many(given, baselines, rewards)
            else:
                here = [agent.decide(*row) for row in zip(given, baselines, rewards, strict=True)]
            earned = [
                float(rng.random() < menu[each.action] @ THETA)
                for menu, each in zip(given, here, strict=True)
            ]
            made += here
            if many:
                agent.observe_many(here, earned)
            else:
                for each, reward in zip(here, earned, strict=True):
                    agent.observe(each, reward)
    return made


SETTINGS: list[dict[str, Any]] = [
    {},
    {"holdback": 0.2},
    {"mode": "policy"},
    {"trial_budget": 5.0},
    {"window": 40, "drift": 0.001},
    {"on_alarm": "baseline", "delta_alarm": 0.5},
    {"algorithm": gb.GuardUCB(tolerate=1)},
    {"algorithm": gb.DiscUCB(), "horizon": 1_000},
    {"algorithm": gb.DisLinUCB(), "horizon": 1_000},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: "-".join(each) or "default")
def test_a_batch_is_what_one_after_another_are(settings: dict[str, Any]) -> None:
    tasks = {"all": range(DIM), "some": [0, 2, 3]}
    one, other = (gb.Fleet(tasks, DIM, **settings) for _ in range(2))
    turns, size = 6, 9
    for mine, its in zip(
        play(one, turns, size, many=True), play(other, turns, size, many=False), strict=True
    ):
        same(mine, its)
    assert one.poolings == other.poolings
    arrays, others = one._group.engine.arrays(), other._group.engine.arrays()
    for name in arrays.keys() - {"work"}:
        np.testing.assert_array_equal(arrays[name], others[name], err_msg=name)
    assert one._group.next_coin == other._group.next_coin


def test_a_batch_is_a_few_calls_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, calls = gb.Agent(DIM), []
    run = Engine.run

    def counted(self: Engine, kernel: Any, *args: Any, **given: Any) -> Any:
        calls.append(kernel)
        return run(self, kernel, *args, **given)

    monkeypatch.setattr(Engine, "run", counted)
    parts = 3
    agent._reader._run = agent._group.engine.run
    made = agent.decide_many(menus(parts * MOST_AT_ONCE), [0] * (parts * MOST_AT_ONCE))
    assert len(calls) == 2 * parts  # menus are loaded, and decided about
    calls.clear()
    agent.observe_many(made, [0.5] * len(made))
    assert len(calls) == 1


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 2.0])
def test_one_wrong_number_and_nothing_is_decided(wrong: float) -> None:
    agent, given = gb.Agent(DIM), menus(5)
    given[3][0, 1] = wrong
    with pytest.raises(ValueError, match="features of action 0"):
        agent.decide_many(given, [0] * 5)
    assert agent.rounds == agent.pending == 0


def test_what_a_batch_leaves_in_memory_is_counted_once() -> None:
    """Its menus lie in one array, which stays until the last of its decisions is forgotten."""
    agent, size = gb.Agent(DIM), 10
    made = agent.decide_many([np.full((3, DIM), 0.1)] * size, [0] * size)
    recalls = agent._group.recalls[0]
    beside = DIM * DIM + DIM
    assert recalls._size == size * (3 * DIM + beside)
    for each in made[1:]:
        agent.discard(each)
    assert recalls._size == size * 3 * DIM + beside
    agent.discard(made[0])
    assert recalls._size == 0


def test_old_batches_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "NUMBERS", 500)
    agent = gb.Agent(DIM)
    old, new = (agent.decide_many([np.full((3, DIM), 0.1)] * 10, [0] * 10) for _ in range(2))
    agent.override(new[-1], action=1)
    with pytest.raises(ValueError, match="cannot be overridden any more"):
        agent.override(old[0], action=1)
