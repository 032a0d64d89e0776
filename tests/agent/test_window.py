"""Windows over data: what counts, what is promised when the world moves, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import window as reference

import guardband as gb

STATED: dict[str, Any] = {"alpha": 0.3, "noise": 0.1, "context_noise": 0.0}
WEIGHT = 100.0  # 1 / noise^2


def theta_at(t: int, drift: float, dim: int = 3) -> np.ndarray:
    """Return a parameter of length 0.9 that turns to and fro by at most `drift` in a round."""
    angle = 0.2 + 0.5 * (1.0 + np.sin(2.0 * drift / 0.9 * t))
    theta = np.zeros(dim)
    theta[:2] = 0.9 * np.cos(angle), 0.9 * np.sin(angle)
    return theta


def turn(agent: gb.Agent, rng: np.random.Generator, theta: np.ndarray) -> tuple:
    menu = rng.uniform(0.05, 0.55, (8, 3))
    worth = menu @ theta
    decision = agent.decide(menu, baseline=int(np.argsort(worth)[4]))
    reward = worth[decision.action] + 0.1 * rng.standard_normal()
    agent.observe(decision, reward)
    return decision, menu, worth, reward


@pytest.mark.parametrize("drift", [None, 1e-4])
def test_estimates_and_sets_are_those_of_the_window(drift: float | None) -> None:
    half, rng = 25, np.random.default_rng(0)
    agent = gb.Agent(dim=3, window=2 * half, drift=drift, **STATED)
    rows: list[np.ndarray] = []
    rewards: list[float] = []
    told = {"delta": 1e-3, "theta_bound": 1.0, "drift": drift}
    for now in range(1, 180):
        decision, menu, _, reward = turn(agent, rng, theta_at(now, 1e-4))
        since = reference.first_round(now, half) - 1
        seen, paid = np.array(rows[since:]).reshape(-1, 3), np.array(rewards[since:])
        V, theta = reference.ridge(seen, paid, WEIGHT, 1.0)
        x = menu[decision.action]
        assert decision.mean == pytest.approx(x @ theta, abs=1e-9)
        if drift is not None:
            beta = reference.radius(V, WEIGHT, len(seen), now, half, told)
            width = beta * np.sqrt(x @ np.linalg.solve(V, x))
            assert decision.upper - decision.mean == pytest.approx(width, rel=1e-9)
        rows.append(x)
        rewards.append(reward)


def outside_and_below(moves: float, **told: Any) -> tuple[int, int]:
    """Return in how many rounds theta was outside of the set, and plays were below the floor."""
    rng, agent = np.random.default_rng(1), gb.Agent(dim=3, **STATED, **told)
    outside = below = 0
    for t in range(1_500):
        theta, menu = theta_at(t, moves), rng.uniform(0.05, 0.55, (8, 3))
        worth = menu @ theta
        baseline = int(np.argsort(worth)[4])
        decision = agent.decide(menu, baseline)
        known = agent._group.recalls[0].get(decision.id)
        gap = theta - known.theta
        outside += gap @ np.linalg.solve(known.inverse, gap) > known.radius**2
        below += worth[decision.action] < 0.7 * worth[baseline] - 1e-12
        agent.observe(decision, worth[decision.action] + 0.1 * rng.standard_normal())
    return outside, below


def test_a_declared_drift_keeps_the_promise_where_data_without_it_do_not() -> None:
    drift = 2e-3
    assert outside_and_below(drift, window=50, drift=drift) == (0, 0)
    without, _ = outside_and_below(drift, on_alarm="warn")
    assert without > 300


def test_fleets_simulations_and_files_agree(tmp_path: Path) -> None:
    """Agents in step forget together, and a saved fleet goes on as if nothing had happened."""
    fleets = [gb.Fleet(dict.fromkeys("ab"), dim=3, window=40, **STATED) for _ in range(2)]
    rngs = [np.random.default_rng(2), np.random.default_rng(2)]
    for t in range(1, 131):
        for i, (fleet, rng) in enumerate(zip(fleets, rngs, strict=True)):
            for name in "ab":
                turn(fleet[name], rng, theta_at(t, 1e-4))
            group = fleet._group
            count = sum(state.own.scalars[0] for state in group.states) + group.pooled.scalars[0]
            assert count == 2 * (t - reference.first_round(t, 20) + 1)
            if i and t in (57, 60, 61):
                fleets[1] = gb.Fleet.load(fleet.save(tmp_path / "fleet.npz"))
    for name in "ab":
        assert_array_equal(fleets[0][name].theta, fleets[1][name].theta)


def test_rewards_that_come_after_the_window_moved_do_not_count() -> None:
    agent, rng = gb.Agent(dim=3, window=20, **STATED), np.random.default_rng(3)
    late = agent.decide(rng.uniform(0.05, 0.55, (8, 3)), baseline=0)
    for t in range(10):
        turn(agent, rng, theta_at(t, 1e-4))
    before = agent.theta
    agent.observe(late, 0.9)
    assert_array_equal(agent.theta, before)


def test_certificates_are_watched_where_a_drift_is_declared() -> None:
    agent, rng = gb.Agent(dim=3, window=2_000, drift=1e-6, **STATED), np.random.default_rng(4)
    assert agent.health.watched == ("certificates",)
    theta = np.array([0.5, 0.3, 0.4])
    for _ in range(400):
        turn(agent, rng, theta)
    assert agent.health.ok
    for _ in range(20):  # learned plays earn nothing
        menu = rng.uniform(0.05, 0.55, (8, 3))
        decision = agent.decide(menu, baseline=int(np.argsort(menu @ theta)[4]))
        kept = menu[decision.action] @ theta if decision.kind == "baseline" else 0.0
        agent.observe(decision, kept + 0.1 * rng.standard_normal())
    assert {each.kind for each in agent.health.alarms} == {"certificates"}


def test_without_monitors_a_window_moves_all_the_same() -> None:
    agents = [
        gb.Agent(dim=3, algorithm=gb.GuardUCB(window=20, delta_alarm=level, **STATED))
        for level in (1e-3, None)
    ]
    for agent in agents:
        rng = np.random.default_rng(5)
        for t in range(70):
            turn(agent, rng, theta_at(t, 1e-4))
    assert_allclose(agents[0].theta, agents[1].theta, rtol=0)
    assert agents[1].health == gb.Health(True, (), ())


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"drift": 0.1}, "say with window=... for how many rounds"),
        ({"window": 1}, "window must be"),
        ({"window": 10, "drift": -1.0}, "drift must be"),
        ({"window": 10, "tolerate": 1}, "window=10 is for tolerate=0, not 1"),
        ({"window": 10, "anchors": True, "baseline_tolerance": 0.1}, "window=10 is for anchors"),
        ({"window": 10, "radius": "paper"}, "is for radius='best', not 'paper'"),
        ({"window": 10, "drift": 0.1, "radius": "empirical"}, "not 'empirical'"),
    ],
)
def test_what_does_not_go_with_a_window_is_refused(told: dict[str, Any], words: str) -> None:
    with pytest.raises(gb.InvalidValueError, match=words):
        gb.GuardUCB(**told)


def test_logs_are_refused_and_change_nothing() -> None:
    agent = gb.Agent(dim=3, window=20, **STATED)
    with pytest.raises(gb.InvalidValueError, match="for agents without a window"):
        agent.learn(np.full((4, 3), 0.2), np.full(4, 0.2), ids=["a", "b", "c", "d"])
    assert not agent.theta.any()
    assert not len(agent._group.row_ids.digests)
