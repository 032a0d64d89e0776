"""Sets made of logs: rules of the past are covered, rows chosen by their reward are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

import guardband as gb

DELTA, ROWS, RUNS = 0.2, 120, 300
THETA = np.array([0.3, 0.6])
Rows = tuple[list[np.ndarray], list[float]]


def click(rng: Generator, x: np.ndarray) -> float:
    return float(rng.random() < x @ THETA)


def by_rule(choose: Callable[[Any, list[np.ndarray], list[float]], np.ndarray]) -> Any:
    """Logs of a rule that chooses features from theta and the rows before."""

    def logs(rng: Generator) -> Rows:
        rows: list[np.ndarray] = []
        rewards: list[float] = []
        for _ in range(ROWS):
            rows.append(choose(rng, rows, rewards))
            rewards.append(click(rng, rows[-1]))
        return rows, rewards

    return logs


def one_direction(rng: Generator, rows: Any, rewards: Any) -> np.ndarray:
    return np.array([1.0, 0.0])


def farthest_off(rng: Generator, rows: Any, rewards: Any) -> np.ndarray:
    """The direction in which least squares are farthest off, in standard deviations."""
    x = np.array(rows).reshape(-1, 2)
    V = np.eye(2) + x.T @ x
    off = np.abs(np.linalg.solve(V, x.T @ np.array(rewards)) - THETA) * np.sqrt(np.diag(V))
    return np.eye(2)[int(np.argmax(off))]


def until_lucky(rng: Generator, rows: Any, rewards: Any) -> np.ndarray:
    """Play on while rewards exceed what is expected, then change: the mean so far looks good."""
    surplus = sum(y - x @ THETA for x, y in zip(rows, rewards, strict=True))
    return np.array([1.0, 0.0]) if surplus <= 0.5 else np.array([0.0, 0.01])


def greedy(rng: Generator, rows: Any, rewards: Any) -> np.ndarray:
    x = np.array(rows).reshape(-1, 2)
    mean = (x.T @ np.array(rewards) + 0.5) / (x.sum(axis=0) + 1.0)
    return np.eye(2)[int(rng.integers(2) if rng.random() < 0.1 else np.argmax(mean))]


RULES = {
    rule.__name__: by_rule(rule) for rule in (one_direction, farthest_off, until_lucky, greedy)
}


def left_out(rng: Generator) -> Rows:
    """Half of the rows without a reward were not kept."""
    rows, rewards = RULES["one_direction"](rng)
    kept = [i for i, y in enumerate(rewards) if y or rng.random() < 0.5]
    return [rows[i] for i in kept], [rewards[i] for i in kept]


def confounded(rng: Generator) -> Rows:
    """The rule knew the mood of every visitor, and showed the first action to the good ones."""
    moods = rng.random(ROWS) < 0.5
    rows = [np.eye(2)[0 if mood else 1] for mood in moods]
    rates = [x @ THETA + (0.2 if mood else -0.2) for x, mood in zip(rows, moods, strict=True)]
    return rows, [float(rng.random() < rate) for rate in rates]


def best_first(rng: Generator) -> Rows:
    """Rows were sorted by their reward."""
    rows, rewards = RULES["one_direction"](rng)
    order = np.argsort(rewards)[::-1]
    return [rows[i] for i in order], [rewards[i] for i in order]


def failures(logs: Callable[[Generator], Rows], seed: int = 0, **settings: Any) -> float:
    """Return the share of runs in which theta leaves the set after some row."""
    rng, left = np.random.default_rng(seed), 0
    for _ in range(RUNS):
        agent = gb.Agent(2, delta=DELTA, theta_bound=float(np.linalg.norm(THETA)), **settings)
        group, estimate = agent._group, agent._group.states[0].estimate
        for x, y in zip(*logs(rng), strict=True):
            radius = group.learn_rows(0, x[None], np.array([y])).radius
            off = estimate.theta - THETA
            if off @ np.linalg.solve(estimate.inverse, off) > radius**2:
                left += 1
                break
    return left / RUNS


@pytest.mark.parametrize("settings", [{}, {"noise": 0.5, "context_noise": 0.0}])
@pytest.mark.parametrize("rule", RULES)
def test_theta_stays_whatever_a_rule_of_the_past_played(
    rule: str, settings: dict[str, Any]
) -> None:
    assert failures(RULES[rule], **settings) <= DELTA


@pytest.mark.parametrize("logs", [left_out, confounded, best_first])
def test_rows_that_know_more_than_the_past_are_seen_to_fail(logs: Any) -> None:
    assert failures(logs) > DELTA


def test_fleets_learn_logs_of_one_context() -> None:
    """All tasks were logged under the same hidden contexts, and pool afterwards.

    The context makes the rewards of all tasks the same, the worst that it can.
    """
    rng, left, agents = np.random.default_rng(3), 0, 8
    theta = np.array([0.4])
    for _ in range(RUNS):
        algorithm = gb.GuardUCB(0.1, delta=DELTA, theta_bound=0.5, shared_context=True)
        fleet = gb.Fleet({str(m): [0] for m in range(agents)}, 1, algorithm=algorithm)
        rewards = (rng.random(60) < 0.4).astype(float)
        for agent in fleet.values():
            agent.learn(np.ones((60, 1)), rewards)
        group = fleet._group
        group.settle(0)
        assert fleet.poolings == 1
        radius = group.learn_rows(0, np.zeros((0, 1)), np.zeros(0)).radius
        estimate = group.states[0].estimate
        left += abs(estimate.theta - theta)[0] / np.sqrt(estimate.inverse[0, 0]) > radius
    assert left / RUNS <= DELTA
