"""Tasks that learn together, and files that hold them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import guardband as gb
from guardband.agent.group import AgentGroup

TASKS = {"movies": [0, 1, 2], "tv": [0, 2]}
THETA = np.array([0.5, 0.6, 0.3])


def make(**settings: object) -> gb.Fleet:
    algorithm = gb.DiscUCB(gate="none", noise=0.01, context_noise=0.01, ridge=0.01)
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
            done.append(decision[:12])
    return done


def test_both_tasks_learn_from_both() -> None:
    fleet = make()
    play(fleet, 100)
    assert fleet.poolings > 0
    for agent in fleet.values():
        assert_allclose(agent.theta, THETA, atol=0.05)  # tv never saw feature 1 itself


def test_agents_that_do_not_share_stay_apart() -> None:
    algorithm = gb.DiscUCB(
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
    assert one[:12] == two[:12]


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
        (["a", "b"], TypeError, "which features each task uses"),
    ],
)
def test_bad_tasks(tasks: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        gb.Fleet(tasks, dim=3, alpha=0.3)


def test_a_wrong_task_name_gets_the_nearest() -> None:
    with pytest.raises(KeyError, match=r"^no task 'movie'.*Did you mean 'movies'"):
        make()["movie"]


@pytest.mark.parametrize("algorithm", [gb.GuardUCB, 3])
def test_an_algorithm_is_an_object_or_a_name(algorithm: Any) -> None:
    with pytest.raises(gb.InputError, match=r"an object such as gb\.GuardUCB\(\), or a name"):
        gb.Agent(dim=2, algorithm=algorithm)


def test_a_horizon_sets_the_paper_s_budget() -> None:
    group = AgentGroup(
        TASKS,
        dim=3,
        algorithm=gb.DiscUCB(gate="none"),
        feature_bound=1.0,
        horizon=100,
        reward_floor=None,
        seed=0,
    )
    assert group.engine.terms.budget == pytest.approx(100 * np.log(200) / (3 * 2))


def test_saved_and_loaded_it_goes_on_identically(tmp_path: Path) -> None:
    fleet = make(seed=3)
    play(fleet, 60, lose=0.1)
    waiting = fleet["movies"].decide(np.full((2, 3), 0.3), 0, 0.3)
    path = fleet.save(tmp_path / "deep" / "fleet.npz")
    twin = gb.Fleet.load(path)
    assert twin["movies"].pending == fleet["movies"].pending > 1
    assert play(fleet, 500, seed=1) == play(twin, 500, seed=1)  # 1,000 decisions
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
    with pytest.raises(ValueError, match="not a saved agent or fleet"):
        gb.Fleet.load(path)
    np.savez(path, about=np.array(json.dumps({"format": "guardband fleet", "version": 99})))
    with pytest.raises(ValueError, match=r"version 99.*upgrade"):
        gb.Fleet.load(path)
    with pytest.raises(FileNotFoundError):
        gb.Fleet.load(tmp_path / "nothing.npz")


def guarded(**settings: object) -> gb.Fleet:
    algorithm = gb.GuardUCB(
        0.3, noise=0.05, context_noise=0.05, baseline_tolerance=0.05, anchors=True, mode="policy"
    )
    return gb.Fleet(TASKS, dim=3, algorithm=algorithm, **settings)


def test_guard_ucb_is_saved_with_its_anchors(tmp_path: Path) -> None:
    fleet = guarded()
    play(fleet, 60, lose=0.1)
    twin = gb.Fleet.load(fleet.save(tmp_path / "guard.npz"))
    assert play(fleet, 200, seed=1) == play(twin, 200, seed=1)
    ends = fleet.save(tmp_path / "fleet.npz"), twin.save(tmp_path / "twin.npz")
    with np.load(ends[0]) as one, np.load(ends[1]) as other:
        assert "reports_pooled_gram" in one.files
        for name in one.files[1:]:  # the first is text
            assert_allclose(one[name], other[name], rtol=0)


def test_a_file_is_one_moment_even_while_agents_work(tmp_path: Path) -> None:
    fleet = guarded(on_alarm="warn")  # the rewards fit no parameter: a restart would drop them
    stop = threading.Event()
    failures: list[BaseException] = []

    def work(name: str) -> None:
        rng = np.random.default_rng(len(name))
        try:
            while not stop.is_set():
                decision = fleet[name].decide(rng.uniform(0, 0.5, (5, 3)), 0, 0.3)
                fleet[name].observe(decision.id, 0.3)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(name,)) for name in TASKS]
    for worker in workers:
        worker.start()
    try:
        for _ in range(30):
            with np.load(fleet.save(tmp_path / "busy.npz")) as file:
                learned = file["own_scalars"][:, 0].sum() + file["pooled_scalars"][0]
                about = json.loads(str(file["about"]))
            waiting = sum(len(entries) for entries in about["pending"])
            assert learned + waiting == sum(about["rounds"])
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not failures


def test_a_fast_agent_that_stops_holds_nobody_up() -> None:
    fleet = gb.Fleet({"fast": [0, 1], "b": [0, 1], "c": [0, 1]}, dim=2, algorithm=gb.DiscUCB(0.3))
    menu = np.array([[0.5, 0.1], [0.2, 0.6]])
    for decision in fleet["fast"].decide_many([menu] * 3000, [0] * 3000)[:10]:
        fleet["fast"].observe(decision.id, 0.5)
    for _ in range(200):
        for name in "bc":
            decision = fleet[name].decide(menu, 0)
            fleet[name].observe(decision.id, 0.5)
    assert fleet.poolings > 0


def test_tampered_numbers_and_unknown_kinds_are_refused(tmp_path: Path) -> None:
    path = make().save(tmp_path / "fleet.npz")
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **(arrays | {"estimate_inverse": arrays["estimate_inverse"] * np.nan}))
    with pytest.raises(ValueError, match="estimate_inverse does not fit"):
        gb.Fleet.load(path)
    np.savez(path, **{k: v for k, v in arrays.items() if k != "own_gram"})
    with pytest.raises(ValueError, match="damaged"):
        gb.Fleet.load(path)

    class Mine(gb.DisLinUCB):
        """Somebody's own algorithm."""

    with pytest.raises(TypeError, match="Mine cannot be saved"):
        gb.Fleet(TASKS, dim=3, algorithm=Mine()).save(tmp_path / "mine.npz")


def test_names_are_texts() -> None:
    with pytest.raises(TypeError, match="must be a text, not 0"):
        gb.Fleet({0: [0]}, dim=2)
