"""Tasks that learn together, and files that hold them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import guardband as gb

TASKS = {"movies": [0, 1, 2], "tv": [0, 2]}
THETA = np.array([0.5, 0.6, 0.3])


def make(**settings: object) -> gb.Fleet:
    algorithm = gb.DiscUcb(gate="none", noise=0.01, context_noise=0.01, ridge=0.01)
    return gb.Fleet(TASKS, dim=3, algorithm=algorithm, **({"alpha": 0.5} | settings))


def play(fleet: gb.Fleet, rounds: int, seed: int = 0, lose: float = 0.0) -> list[tuple]:
    rng, done = np.random.default_rng(seed), []
    for _ in range(rounds):
        menu = rng.uniform(0, 0.5, (6, 3))
        for name, agent in fleet.items():
            mask = np.isin(range(3), TASKS[name])
            rewards = (menu * mask) @ THETA
            decision = agent.decide(menu, 2, float(rewards[2]))
            if rng.random() >= lose:
                agent.observe(decision.id, float(rewards[decision.action]) + rng.normal(0, 0.005))
            done.append(decision[:-1])
    return done


def test_both_tasks_learn_from_both() -> None:
    fleet = make()
    play(fleet, 100)
    assert fleet.poolings > 0
    for agent in fleet.values():
        assert_allclose(agent.theta, THETA, atol=0.05)  # tv never saw feature 1 itself


def test_agents_that_do_not_share_stay_apart() -> None:
    algorithm = gb.DiscUcb(
        0.5, gate="none", noise=0.01, context_noise=0.01, ridge=0.01, share=False
    )
    fleet = gb.Fleet(TASKS, dim=3, algorithm=algorithm)
    play(fleet, 100)
    assert fleet.poolings == 0
    assert fleet["tv"].theta[1] == 0.0


def test_short_features_are_the_task_s_own_columns() -> None:
    menu = np.random.default_rng(2).uniform(0, 0.5, (4, 3))
    long, short = make(), make()
    one = long["tv"].decide(menu, 1, 0.2)
    two = short["tv"].decide(menu[:, [0, 2]], 1, 0.2)
    assert one[:-1] == two[:-1]


def test_features_outside_the_task_do_not_count_but_must_be_numbers() -> None:
    menu = np.array([[0.1, 5.0, 0.2], [0.3, 0.0, 0.1]])
    assert make()["tv"].decide(menu, 0, 0.1).action in (0, 1)
    menu[0, 1] = np.nan
    with pytest.raises(ValueError, match="action 0 are not finite"):
        make()["tv"].decide(menu, 0, 0.1)


def test_alpha_per_task() -> None:
    by_name = make(alpha={"tv": 0.1, "movies": 0.4})
    in_order = make(alpha=[0.4, 0.1])
    for fleet in (by_name, in_order):
        assert fleet["movies"].decide(np.eye(3) / 2, 0, 0.2).floor == pytest.approx(0.12)
        assert fleet["tv"].decide(np.eye(3) / 2, 0, 0.2).floor == pytest.approx(0.18)
    with pytest.raises(ValueError, match="alpha names"):
        make(alpha={"tv": 0.1})
    with pytest.raises(ValueError, match="3 values for 2 tasks"):
        make(alpha=[0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("tasks", "error", "message"),
    [
        ({}, ValueError, "tasks is empty"),
        ({"a": []}, ValueError, "'a' is empty"),
        ({"a": [3]}, ValueError, "feature 3"),
        ({"a": [-1]}, ValueError, "feature -1"),
        ({"a": [0, 0]}, ValueError, "twice"),
        ({"a": [0.5]}, TypeError, "0.5"),
    ],
)
def test_bad_tasks(tasks: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        gb.Fleet(tasks, dim=3, alpha=0.3)


def test_a_wrong_task_name_gets_the_nearest() -> None:
    with pytest.raises(KeyError, match="Did you mean 'movies'"):
        make()["movie"]


def test_a_horizon_sets_the_paper_s_budget() -> None:
    fleet = make(horizon=100)
    terms = fleet._team.engine.terms
    assert terms.budget == pytest.approx(100 * np.log(200) / (3 * 2))


def test_saved_and_loaded_it_goes_on_identically(tmp_path: Path) -> None:
    fleet = make(seed=3)
    play(fleet, 60, lose=0.1)
    path = fleet.save(tmp_path / "deep" / "fleet.npz")
    twin = gb.Fleet.load(path)
    assert play(fleet, 500, seed=1) == play(twin, 500, seed=1)  # 1,000 decisions
    waiting = next(iter(fleet._team.pending[0]))
    fleet["movies"].observe(waiting, 0.3)
    twin["movies"].observe(waiting, 0.3)
    assert play(fleet, 5, seed=2) == play(twin, 5, seed=2)
    assert list(tmp_path.rglob("*.part")) == []


def test_an_agent_is_saved_alike(tmp_path: Path) -> None:
    agent = gb.Agent(dim=2, alpha=(0.3), seed=0)
    first = agent.decide([[0.5, 0.1]], 0, 0.4)
    twin = gb.Agent.load(agent.save(tmp_path / "agent.npz"))
    twin.observe(first.id, 0.4)
    assert twin.rounds == 1
    with pytest.raises(ValueError, match=r"use gb\.Fleet\.load"):
        gb.Agent.load(make().save(tmp_path / "fleet.npz"))


def test_damaged_foreign_and_newer_files_are_refused(tmp_path: Path) -> None:
    path = make().save(tmp_path / "fleet.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged"):
        gb.Fleet.load(path)
    np.savez(path, x=np.zeros(3))
    with pytest.raises(ValueError, match="not a saved fleet"):
        gb.Fleet.load(path)
    np.savez(path, about=np.array(json.dumps({"format": "guardband fleet", "version": 99})))
    with pytest.raises(ValueError, match=r"version 99.*upgrade"):
        gb.Fleet.load(path)
    with pytest.raises(FileNotFoundError):
        gb.Fleet.load(tmp_path / "nothing.npz")
