"""What is certified beside a play: computed when it is asked for, by what was known then."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.agent import engine
from guardband.agent.engine import Engine
from guardband.agent.records import KnownThen
from guardband.kernels.serve import weigh_actions

DIM, ACTIONS = 3, 11
THETA = np.array([0.7, 0.3, 0.2])


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MANY", 0)


def menu(seed: int, actions: int = ACTIONS) -> np.ndarray:
    """Features that have most in common, the first with nothing of its own."""
    made = 0.15 * np.random.default_rng(seed).random((actions, DIM))
    made[0] = 0.0
    made[:, 0] = 0.8
    return made


def taught(**settings: Any) -> gb.Agent:
    """An agent that knows enough to certify some of what it is offered."""
    agent = gb.Agent(DIM, alpha=0.2, **settings)
    rows = np.concatenate([menu(seed) for seed in range(200)])
    agent.learn(rows, np.random.default_rng(0).random(len(rows)) < rows @ THETA)
    return agent


def at_once(agent: gb.Agent, given: np.ndarray, reward: float | None = None) -> Any:
    """What a decision would say now, computed without waiting."""
    group = agent._group
    group.settle(0)  # as a decision does first
    request = agent._reader.read(given, 0, reward)
    round_now = (group.poolings + 1, group.passed(0) + 1, group.next_coin[0])
    return group.engine.decide(0, request, *round_now).weighed


@pytest.mark.parametrize("reward", [None, 0.56])
def test_it_says_what_was_known_at_the_decision(reward: float | None) -> None:
    agent, made, wanted = taught(), [], []
    for seed in range(60):
        wanted.append(at_once(agent, menu(seed), reward))
        made.append(agent.decide(menu(seed), 0, reward))
        agent.observe(made[-1], float(seed % 2))
    counts = set()
    for decision, then in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(decision.certified, then.certified)
        np.testing.assert_array_equal(decision.table, then.table)
        counts.add(int(decision.certified.sum()))
    assert len(counts) > 1


def test_rewards_of_others_and_logs_and_poolings_change_nothing() -> None:
    fleet = gb.Fleet({"one": None, "two": None}, DIM, alpha=0.2)
    rows = np.concatenate([menu(seed) for seed in range(200)])
    for agent in fleet.values():
        agent.learn(rows, rows @ THETA)
    one, two = fleet.values()
    wanted = at_once(one, menu(1))
    decision = one.decide(menu(1), 0)
    for seed in range(50):
        two.observe(two.decide(menu(seed), 0), 0.1)
    one.learn(rows, rows @ THETA)
    poolings, group = fleet.poolings, fleet._group
    group.note_due(0, pool=True)
    two.decide(menu(0), 0)
    assert fleet.poolings > poolings
    np.testing.assert_array_equal(decision.table, wanted.table)


def calls_of(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls, run = [], Engine.run

    def counted(self: Engine, kernel: Any, *args: Any, **given: Any) -> Any:
        calls.append(kernel)
        return run(self, kernel, *args, **given)

    monkeypatch.setattr(Engine, "run", counted)
    return calls


def test_it_is_computed_once_and_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, calls = taught(), calls_of(monkeypatch)
    decision = agent.decide(menu(0), 0)
    assert weigh_actions not in calls
    assert decision.safe_actions == decision.safe_actions
    assert [choice.action for choice in decision.choices]
    assert calls.count(weigh_actions) == 1


def test_where_the_estimate_is_more_than_the_menu_nothing_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent, calls = taught(), calls_of(monkeypatch)
    assert agent.decide(menu(0, DIM), 0).certified.size == DIM
    assert weigh_actions not in calls


def test_what_nobody_asks_for_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, copies, keep = taught(), [], KnownThen.keep
    monkeypatch.setattr(KnownThen, "keep", lambda self: copies.append(1) or keep(self))
    agent.observe(agent.decide(menu(0), 0).id, 0.5)  # the decision is let go
    decision = agent.decide(menu(1), 0)
    assert decision.certified.any()
    agent.observe(decision, 0.5)  # it was asked for before
    assert not copies
    decision = agent.decide(menu(1), 0)
    agent.observe(decision, 0.5)
    assert copies == [1]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_copies_of_a_decision_say_the_same(again: Any) -> None:
    decision = taught().decide(menu(0), 0)
    other = again(decision)
    np.testing.assert_array_equal(other.table, decision.table)
    assert other.safe_actions == decision.safe_actions
