"""Monitors beside everything else that agents have: values, budgets, holdbacks, overrides, logs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.kernels.monitors import Note, monitor_of

STATED: dict[str, Any] = {"alpha": 0.2, "noise": 0.1, "context_noise": 0.0}
FIRST, SECOND = np.array([0.9, 0.1, 0.3]), np.array([0.1, 0.9, 0.3])


def rounds_of(
    agent: gb.Agent, theta: np.ndarray, rounds: int, seed: int, **given: Any
) -> list[gb.Decision]:
    rng, made = np.random.default_rng(seed), []
    for _ in range(rounds):
        menu = rng.uniform(0.05, 0.55, (6, 3))
        made.append(agent.decide(menu, baseline=int(np.argsort(menu @ theta)[3]), **given))
        agent.observe(made[-1], menu[made[-1].action] @ theta + 0.1 * rng.standard_normal())
    return made


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({}, {"value": np.arange(6.0)}),
        ({"budget": gb.Budget(10_000.0, 10_000)}, {"cost": np.full(6, 0.5)}),
        ({"holdback": 0.1}, {}),
        ({"trial_budget": 5.0}, {}),
        ({"mode": "policy", "max_loss": 5.0}, {}),
    ],
    ids=["value", "budget", "holdback", "trials", "policy"],
)
def test_a_change_is_noticed_and_answered(settings: Any, given: Any) -> None:
    agent = gb.Agent(dim=3, **{**STATED, **settings})
    rounds_of(agent, FIRST, 300, 1, **given)
    assert agent.health.ok
    for block in range(40):
        rounds_of(agent, SECOND, 10, 2 + block, **given)
        if not agent.health.ok:
            break
    assert not agent.health.ok
    decision = rounds_of(agent, SECOND, 1, 99, **given)[0]
    assert "an alarm was raised" in decision.reason
    rounds_of(agent, SECOND, 300, 100, **given)
    assert np.linalg.norm(agent.theta - SECOND) < 0.3


def test_what_is_held_back_is_the_baseline_and_claims_no_certificate() -> None:
    agent = gb.Agent(dim=3, holdback=0.5, **STATED)
    made = rounds_of(agent, FIRST, 200, 1)
    learned = sum(each.kind == "learned" for each in made)
    assert learned < 150
    notes = agent._group.states[0].watch
    assert notes[Note.REWARDS] == 200
    assert notes[Note.PLAYS] == sum(each.action != _baseline(t) for t, each in enumerate(made))


def _baseline(turn: int) -> int:
    rng = np.random.default_rng(1)
    for _ in range(turn + 1):
        menu = rng.uniform(0.05, 0.55, (6, 3))
        rng.standard_normal()
    return int(np.argsort(menu @ FIRST)[3])


def test_what_was_played_instead_is_watched_as_it_stood() -> None:
    """Declared weight 1 / noise^2, and theta-hat's value less the radius, of what was played."""
    agent = gb.Agent(dim=3, **STATED)
    rounds_of(agent, FIRST, 50, 1)
    menu = np.eye(3) * 0.5
    decision = agent.decide(menu, baseline=0)
    group = agent._group
    state, theta = group.states[0], agent.theta
    recall = group.recalls[0].get(decision.id)
    agent.override(decision, action=2)
    awaited = group.pending[0][decision.id]
    assert awaited.declared == pytest.approx(100.0)
    width = recall.radius * math.sqrt(menu[2] @ state.estimate.inverse @ menu[2])
    assert awaited.lower == pytest.approx(menu[2] @ theta - width)
    before = monitor_of.py_func(state.watch, 3).own.gram.copy()
    agent.observe(decision, 0.2)
    after = monitor_of.py_func(state.watch, 3).own.gram
    np.testing.assert_allclose(after - before, 100.0 * np.outer(menu[2], menu[2]), atol=1e-9)
    back = agent.decide(menu, baseline=1)
    agent.override(back, action=1)
    assert math.isnan(group.pending[0][back.id].lower)


def test_logs_that_contradict_the_model_are_noticed_at_the_next_decision() -> None:
    rng, agent = np.random.default_rng(0), gb.Agent(dim=3, **STATED)
    features = rng.uniform(0.05, 0.55, (600, 3))
    rewards = np.where(np.arange(600) < 300, features @ FIRST, features @ SECOND)
    agent.learn(features, rewards + 0.1 * rng.standard_normal(600))
    decision = agent.decide(rng.uniform(0.05, 0.55, (6, 3)), baseline=0)
    assert [each.kind for each in agent.health.alarms] == ["assumptions"]
    assert decision.kind == "baseline"


def test_late_rewards_of_the_old_start_still_count_for_the_uplift() -> None:
    agent = gb.Agent(dim=3, holdback=0.5, seed=3, **STATED)
    rounds_of(agent, FIRST, 300, 1)
    rng = np.random.default_rng(5)
    late = [agent.decide(rng.uniform(0.05, 0.55, (6, 3)), baseline=0) for _ in range(20)]
    while agent.health.ok:
        rounds_of(agent, SECOND, 10, agent.rounds)
    before, theta = agent.uplift().rounds, agent.theta
    for each in late:
        agent.observe(each, 0.5)
    assert agent.uplift().rounds == before + 20
    np.testing.assert_array_equal(agent.theta, theta)


def test_files_from_before_monitors_load(tmp_path: Path) -> None:
    agent = gb.Agent(dim=3, **STATED)
    rounds_of(agent, FIRST, 50, 1)
    waiting = agent.decide(np.eye(3), baseline=0)
    path = agent.save(tmp_path / "agent.npz")
    with np.load(path) as file:
        arrays = dict(file)
    text = str(arrays.pop("about")).replace('"version": 5', '"version": 4')
    for name in ("watch", "pending_watch"):
        del arrays[name]
    for name in ("calls", "starts", "alarms", "parts"):
        assert f'"{name}": ' in text
        text = text.replace(f'"{name}": ', f'"not_{name}": ')
    np.savez(path, about=np.array(text), **arrays)
    again = gb.Agent.load(path)
    np.testing.assert_array_equal(again.theta, agent.theta)
    again.observe(waiting.id, 0.5)
    assert again._group.states[0].watch[Note.REWARDS] == 0
    rounds_of(again, FIRST, 20, 2)
    assert again._group.states[0].watch[Note.REWARDS] == 20
    assert again.health.ok
