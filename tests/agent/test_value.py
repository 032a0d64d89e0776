"""A value of one's own: what is played, what `choices` lists, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guardband as gb
from guardband.errors import InvalidValueError

NOISE, DIM, ALPHA = 0.05, 3, 0.1


def taught(seed: int, rows: int, **settings: Any) -> gb.Agent:
    """An agent that learned some rows; nothing is hidden, so weights are 1 / noise^2."""
    rng = np.random.default_rng(seed)
    theta = np.array([0.5, 0.3, 0.4])
    algorithm = gb.GuardUCB(ALPHA, noise=NOISE, context_noise=0.0, **settings)
    agent = gb.Agent(dim=DIM, algorithm=algorithm)
    x = features(rng, rows)
    agent.learn(x, x @ theta + NOISE * rng.uniform(-1.0, 1.0, rows))
    return agent


def features(rng: np.random.Generator, actions: int) -> np.ndarray:
    x = np.abs(rng.standard_normal((actions, DIM)))
    return x * rng.uniform(0.5, 1.0, (actions, 1)) / np.linalg.norm(x, axis=1, keepdims=True)


def certain(agent: gb.Agent, menu: np.ndarray, b: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest lead over the floor in the set, from V, theta and log det.

    One agent that learned alone: beta^2 = log det(V / ridge) + 2 log(2 pi^2 / 6 delta) + 1, or the
    empirical one, which is left out by radius="logdet".
    """
    own = agent._group.states[0].own
    V = np.eye(DIM) + own.gram
    theta = np.linalg.solve(V, own.moment)
    level = 2.0 * np.log(np.pi**2 / (6.0 * 1e-3))
    beta = np.sqrt(np.linalg.slogdet(V)[1] + level + 1.0)

    def ends(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wide = beta * np.sqrt(np.einsum("ki,ij,kj->k", v, np.linalg.inv(V), v))
        return v @ theta - wide, v @ theta + wide

    low, high = ends(menu - (1.0 - ALPHA) * menu[b])
    low = np.maximum(low, ends(menu - menu[b])[0])
    low[b] = max(low[b], 0.0)
    return low, high


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.sampled_from([1, 3, 40, 400, 4000]),
    st.integers(1, 5),
)
def test_the_most_valuable_certified_action_is_played(
    seed: int, actions: int, rows: int, levels: int
) -> None:
    agent = taught(seed, rows, radius="logdet", on_refuted="ellipsoid")
    rng = np.random.default_rng(seed)
    menu, b = features(rng, actions), int(rng.integers(actions))
    value = rng.integers(0, levels, actions) - 1.0
    low, high = certain(agent, menu, b)
    if np.abs(np.concatenate([np.delete(low, b), high])).min(initial=1.0) < 1e-9:
        return  # rounding decides
    mean = menu @ agent.theta
    order = sorted(range(actions), key=lambda k: (-value[k], -mean[k], k))
    best = next(k for k in order if low[k] >= 0.0)
    target = next(k for k in order if low[k] >= 0.0 or high[k] >= 0.0)
    agent._group.next_coin[0] = 0.9  # never the teacher
    decision = agent.decide(menu, b, value=value)
    assert decision.action == best
    assert decision.safe_actions == [k for k in range(actions) if low[k] >= 0.0]
    assert [c.action for c in decision.choices] == [k for k in order if low[k] >= 0.0]
    for choice in decision.choices:
        assert choice.value == value[choice.action]
        assert choice.margin == pytest.approx(low[choice.action], abs=1e-9)
    assert decision.choices[0].action == best
    assert agent._group.pending[0][decision.id].conservative == (best != target)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([3, 40, 400]))
def test_the_range_of_rewards_certifies_for_values_too(seed: int, rows: int) -> None:
    """What is played has the largest value of all that either certificate allows."""
    rng = np.random.default_rng(seed)
    menu, b = features(rng, 6), int(rng.integers(6))
    plays = {}
    for on_refuted in ("ellipsoid", "baseline"):
        agent = taught(seed, rows, radius="logdet", on_refuted=on_refuted)
        agent._group.next_coin[0] = 0.9
        value = np.random.default_rng(seed + 1).permutation(6).astype(float)
        plays[on_refuted] = agent.decide(menu, b, value=value)
    first, second = plays["ellipsoid"], plays["baseline"]
    if "assumption is wrong" not in second.reason:
        assert value[second.action] >= value[first.action]
        assert set(first.safe_actions) <= set(second.safe_actions)


def test_without_a_value_nothing_of_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, rng = taught(0, 100), np.random.default_rng(0)

    class Refusing:
        ready, code = True, None

        def at_once(self, *_: Any) -> None:
            raise AssertionError

    monkeypatch.setattr(agent._group.engine, "_serve_valued", Refusing())
    for _ in range(20):
        decision = agent.decide(features(rng, 4), 0)
        agent.observe(decision, 0.5)
        assert decision.value is None
        assert all(choice.value is None for choice in decision.choices)
        ranked = [decision.table[0][choice.action] for choice in decision.choices]
        assert ranked == sorted(ranked, reverse=True)
    with pytest.raises(AssertionError):
        agent.decide(features(rng, 4), 0, value=[0.0] * 4)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1.0, 2.0], "shape"),
        ([1.0, np.nan, 0.0, 0.0], "finite"),
        ([1.0, np.inf, 0.0, 0.0], "finite"),
        (["dear", 1.0, 0.0, 0.0], "numbers"),
        (3.0, "shape"),
    ],
)
def test_values_that_do_not_fit_change_nothing(value: Any, words: str) -> None:
    agent, menu = taught(0, 50), features(np.random.default_rng(0), 4)
    with pytest.raises(InvalidValueError, match=words):
        agent.decide(menu, 0, value=value)
    with pytest.raises(InvalidValueError, match=words):
        agent.decide_many([menu, menu], [0, 0], values=[[0.0] * 4, value])
    assert agent.rounds == 0
    assert agent.pending == 0


def test_only_guard_ucb_takes_values() -> None:
    agent = gb.Agent(dim=DIM, algorithm=gb.DiscUCB(alpha=0.1))
    with pytest.raises(InvalidValueError, match="guard-ucb"):
        agent.decide(features(np.random.default_rng(0), 4), 0, 0.5, value=[0.0] * 4)


def test_batches_and_distributions_take_values() -> None:
    one, other = taught(0, 4000), taught(0, 4000)
    menu = features(np.random.default_rng(1), 5)
    value = np.arange(5.0)
    batch = one.decide_many([menu, menu], [0, 0], values=[value, None])
    assert batch[0].action == other.decide(menu, 0, value=value).action
    assert batch[1].value is None
    law = gb.Samples(np.zeros((3, 1)))
    decision = taught(0, 4000).decide_from(lambda k, _: menu[k], range(5), law, 0, value=value)
    assert decision.action == batch[0].action


def test_a_trial_and_a_mixture_work_towards_the_value() -> None:
    menu = np.array([[0.9, 0.0, 0.0], [0.0, 0.9, 0.0]])
    settings = {"noise": NOISE, "context_noise": 0.0}
    agent = gb.Agent(dim=DIM, algorithm=gb.GuardUCB(0.1, trial_budget=50.0, **settings))
    tried = []
    for _ in range(200):
        tried.append(agent.decide(menu, 0, value=[0.0, 1.0]))
        agent.observe(tried[-1], 0.5)
    assert {d.action for d in tried if d.kind == "trial"} == {1}
    assert {d.action for d in tried if d.kind == "baseline"} == {0}
    policy = gb.Agent(dim=DIM, algorithm=gb.GuardUCB(0.1, mode="policy", **settings))
    seen = [policy.decide(menu, 0, value=[0.0, 1.0]) for _ in range(100)]
    assert {d.promise for d in seen} == {"policy"}
    assert 2 <= sum(d.action for d in seen) <= 30


def test_a_lesson_costs_no_more_than_its_target_would_bring() -> None:
    """On a grid of prices the far end teaches most, and is worth least: nobody plays it for that.

    The target is worth 14 at most, so nothing is played that is farther below the best certified
    price than that price is below 14.
    """
    rng, prices = np.random.default_rng(0), np.arange(8.0, 14.1, 0.25)
    steps = (prices - 10.0) / 10.0
    menu = np.column_stack([np.ones(prices.size), steps]) / 1.1
    agent = gb.Agent(dim=2, alpha=ALPHA, noise=NOISE, context_noise=0.0)
    lessons = 0
    for _ in range(600):
        d = agent.decide(menu, baseline=8, value=prices)
        best = d.choices[0].value
        assert best is not None
        assert prices[d.action] >= best - (prices[-1] - best)
        lessons += bool(prices[d.action] < best)
        agent.observe(d, 0.52 - 0.3 * steps[d.action] + rng.uniform(-NOISE, NOISE))
    assert lessons > 10
    assert best > 10.5
