"""A whole number that no float can hold gets the ordinary error wherever a number is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.agent import engine, room
from guardband.features import LARGEST_DIM

LARGE = 10**400
MENU = [[0.5, 0.1], [0.2, 0.3]]
SETTINGS = [
    "dim",
    "alpha",
    "noise",
    "reward_ceiling",
    "context_noise",
    "theta_bound",
    "feature_bound",
    "ridge",
    "delta",
    "horizon",
    "reward_floor",
    "trial_budget",
    "max_loss",
    "holdback",
    "delta_alarm",
    "window",
    "drift",
]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("number", [LARGE, -LARGE])
def test_settings(name: str, number: int) -> None:
    mode = {"mode": "policy"} if name == "max_loss" else {}
    with pytest.raises(gb.InputError, match=name):
        gb.Agent(**{"dim": 2, **mode, name: number})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a, d: a.decide([[LARGE, 0.1], [0.2, 0.3]], 0), "features"),
        (lambda a, d: a.decide_many([[[LARGE, 0.1], [0.2, 0.3]]], [0]), "features"),
        (lambda a, d: a.decide(MENU, LARGE), "baseline"),
        (lambda a, d: a.decide(MENU, 0, LARGE), "baseline_reward must be finite"),
        (lambda a, d: a.decide(MENU, 0, value=[LARGE, 1.0]), "value has a number"),
        (lambda a, d: a.decide(MENU, 0, cost=[LARGE, 1.0]), "cost has a number"),
        (lambda a, d: a.decide(MENU, 0, support=[MENU], weights=[LARGE]), "weights"),
        (lambda a, d: a.decide(MENU, 0, covariance=[[LARGE, 0], [0, 1]]), "covariance"),
        (lambda a, d: a.observe(d, LARGE), "reward must be finite"),
        (lambda a, d: a.observe(d, -LARGE), "reward must be finite"),
        (lambda a, d: a.observe_many([d], [LARGE]), "reward must be finite"),
        (lambda a, d: a.observe(d, 0.5, cost=LARGE), "cost must be zero or a positive number"),
        (lambda a, d: a.override(d, action=LARGE), "action must be at most"),
        (lambda a, d: a.learn([[LARGE, 1.0]], [0.5]), "features"),
        (lambda a, d: a.learn([[0.1, 0.1]], [LARGE]), "rewards"),
        (lambda a, d: a.uplift(LARGE), "level"),
    ],
)
def test_rounds(call: Callable[[gb.Agent, gb.Decision], Any], words: str) -> None:
    agent = gb.Agent(dim=2, budget=gb.Budget(1e3, 100, max_cost=1.0), holdback=0.1)
    decision = agent.decide(MENU, 0)
    with pytest.raises(gb.InputError, match=words):
        call(agent, decision)
    assert (agent.rounds, agent.pending) == (1, 1)


def test_what_else_takes_numbers() -> None:
    for call in (
        lambda: gb.Budget(LARGE, 10),
        lambda: gb.Budget(1.0, LARGE),
        lambda: gb.Features(numbers={"x": (0, LARGE)}),
        lambda: gb.Features(vectors={"v": LARGE}),
        lambda: gb.Hashed(LARGE),
        lambda: gb.simulate("toy", "guard-ucb", rounds=LARGE, trials=1),
        lambda: gb.simulate("toy", "guard-ucb", rounds=10, trials=LARGE),
    ):
        with pytest.raises(gb.InputError):
            call()
    assert gb.Agent(dim=2, seed=LARGE).rounds == 0  # a seed may be any whole number


def test_an_error_about_a_number_is_short() -> None:
    with pytest.raises(gb.InputError, match=r"^alpha must lie in.*not inf"):
        gb.Agent(dim=2, alpha=LARGE)
    with pytest.raises(gb.InputError, match=r"^delta must .*, not a whole number of 1329 bits\.$"):
        gb.Agent(dim=2, delta=LARGE)


@pytest.mark.parametrize("dim", [LARGEST_DIM + 1, 10**9, LARGE])
def test_the_number_of_features_has_a_limit(dim: int) -> None:
    for make in (lambda: gb.Agent(dim=dim), lambda: gb.Fleet({"a": [0]}, dim=dim)):
        with pytest.raises(gb.InvalidValueError, match="dim must be at most"):
            make()


def test_the_number_of_actions_has_a_limit() -> None:
    agent = gb.Agent(dim=1)
    with pytest.raises(gb.InvalidValueError, match="1,000,001 actions are more than the 1,000,000"):
        agent.decide(np.zeros((1_000_001, 1)), 0)


@pytest.mark.parametrize("kind", [float, int])
def test_too_many_actions_are_refused_before_they_are_copied(kind: type) -> None:
    agent = gb.Agent(dim=2)
    menu = np.broadcast_to(np.array([[1, 0]], kind), (10**9, 2))  # 16 GB, if it were copied
    for call in (
        lambda: agent.decide(menu, 0),
        lambda: agent.decide_many([menu], [0]),
        lambda: agent.decide([[0.1, 0.2]] * 1_000_001, 0),
    ):
        with pytest.raises(gb.InvalidValueError, match="actions are more than the 1,000,000"):
            call()


def test_a_fleet_has_a_limit_before_memory_is_taken() -> None:
    tasks = {str(k): [0] for k in range(100_000)}
    with pytest.raises(ValueError, match=r"100,000 tasks with dim=3,000 .* at most 4,000,000,000"):
        gb.Fleet(tasks, dim=3_000)


@pytest.mark.parametrize("there", [16e9, float("inf")])
def test_a_fleet_for_which_there_is_no_memory_has_a_remedy(
    monkeypatch: pytest.MonkeyPatch, there: float
) -> None:
    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(room, "_memory", lambda: there)
    monkeypatch.setattr(engine, "new_group", full)
    words = (
        r"3,000 tasks with dim=1,024 need 227\.1 GB .* must be (less|at most 2\d\d,.*) here\. Use"
    )
    with pytest.raises(gb.InvalidValueError, match=words):
        gb.Fleet({str(k): [0] for k in range(3_000)}, dim=1_024)


@pytest.mark.parametrize("algorithm", ["guard-ucb", "dis-lin-ucb", "disc-ucb"])
def test_delta_has_a_limit(algorithm: str) -> None:
    with pytest.raises(ValueError, match="delta must be at least 1e-200, not 5e-324"):
        gb.Agent(dim=2, algorithm=algorithm, delta=5e-324)
