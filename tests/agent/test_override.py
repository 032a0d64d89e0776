"""Overrides: somebody played another action; it is learned as if it had been decided."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from agent.test_value import features
from numpy.testing import assert_array_equal, assert_equal

import guardband as gb
from guardband.agent import recall
from guardband.errors import InvalidTypeError, InvalidValueError, UnknownDecisionError


def forced(agent: gb.Agent, menu: np.ndarray, k: int, reward: float, **given: Any) -> None:
    """Decide and learn a menu of action k alone: what the agent does with its own plays."""
    agent.observe(agent.decide(menu[k : k + 1], 0, **given), reward)


@pytest.mark.parametrize("noise", [None, 0.1])
def test_an_override_is_learned_as_the_action_itself(noise: float | None) -> None:
    """Weight and prediction follow from what was known at the decision."""
    rng = np.random.default_rng(0)
    one, other = (gb.Agent(dim=3, noise=noise, alpha=0.2) for _ in range(2))
    for _ in range(30):
        menu, reward = features(rng, 4), float(rng.random())
        k = int(rng.integers(4))
        decision = one.decide(menu, 0)
        one.override(decision, action=k)
        one.observe(decision, reward)
        forced(other, menu, k, reward)
    own, theirs = one._group.states[0].own, other._group.states[0].own
    for a, b in zip(own, theirs, strict=True):
        assert_array_equal(a, b)


def test_what_came_between_does_not_count() -> None:
    rng = np.random.default_rng(1)
    menu, first = features(rng, 4), features(rng, 5)
    agent = gb.Agent(dim=3, alpha=0.2)
    decision = agent.decide(menu, 0)
    before = agent._group.pending[0][decision.id]
    agent.learn(first, rng.random(5))
    agent.override(decision.id, action=decision.action)
    after = agent._group.pending[0][decision.id]
    assert_array_equal(before.x, after.x)
    assert_equal(before[1:], after[1:])


def test_decisions_share_what_was_known_until_it_changes() -> None:
    """One copy for all that wait, made by the first reward after them; none where nobody waits."""
    rng, agent = np.random.default_rng(3), gb.Agent(dim=3, alpha=0.2)
    own, recalls = agent._group.states[0].estimate, agent._group.recalls[0]
    first, second, third = (agent.decide(features(rng, 4), 0) for _ in range(3))
    was = own.inverse.copy(), own.theta.copy()
    assert recalls.get(first.id).inverse is own.inverse
    agent.observe(first, 0.5)
    kept = recalls.get(second.id).known
    assert kept is recalls.get(third.id).known
    assert_array_equal(kept.inverse, was[0])
    assert_array_equal(kept.theta, was[1])
    assert (own.inverse != was[0]).any()
    last = agent.decide(features(rng, 4), 0)
    assert recalls.get(last.id).inverse is own.inverse
    name, known = last.id, weakref.ref(recalls.get(last.id).known)
    del last
    agent.observe(name, 0.5)
    assert known().inverse is own.inverse  # nobody needed it, so nothing was copied
    agent.observe(second, 0.5)
    assert_array_equal(recalls.get(third.id).inverse, was[0])


def test_supports_count_as_they_did() -> None:
    rng = np.random.default_rng(2)
    support = np.array([features(rng, 4) for _ in range(3)])
    weights = np.array([0.2, 0.3, 0.5])
    menu = np.einsum("n,nkd->kd", weights, support)
    agent = gb.Agent(dim=3, alpha=0.2, noise=0.1)
    agent.learn(features(rng, 50), rng.random(50))
    decision = agent.decide(menu, 0, support=support, weights=weights)
    before = agent._group.pending[0][decision.id]
    agent.override(decision, action=decision.action)
    assert_equal(before[1:], agent._group.pending[0][decision.id][1:])


def test_what_cannot_be_overridden_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, menu = gb.Agent(dim=3), features(np.random.default_rng(0), 4)
    decision = agent.decide(menu, 0)
    with pytest.raises(InvalidValueError, match="not one of the 4 actions"):
        agent.override(decision, action=4)
    with pytest.raises(InvalidValueError, match="at least 0"):
        agent.override(decision, action=-1)
    with pytest.raises(InvalidTypeError, match="whole number"):
        agent.override(decision, action="best")  # type: ignore[arg-type]
    agent.observe(decision, 0.5)
    with pytest.raises(UnknownDecisionError):
        agent.override(decision, action=1)
    monkeypatch.setattr(recall, "NUMBERS", 40)
    old, new = agent.decide(menu, 0), agent.decide(menu, 0)
    with pytest.raises(InvalidValueError, match="newest decisions only"):
        agent.override(old, action=1)
    agent.override(new, action=1)


def test_an_override_is_paid_for() -> None:
    agent, menu = gb.Agent(dim=3, budget=gb.Budget(1.0, 2)), features(np.random.default_rng(0), 3)
    decision = agent.decide(menu, 0, cost=[0.1, 0.4, 2.0])
    agent.override(decision, action=1)
    assert agent._group.purses[0].left == pytest.approx(0.6)
    with pytest.raises(gb.BudgetSpentError, match=r"1\.6 more"):
        agent.override(decision, action=2)
    assert agent._group.purses[0].left == pytest.approx(0.6)
