"""Live agents with a window: what counts, what is promised, and that it can be made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client import test_lockstep as lockstep
from live.client.world import THETA, agent
from numpy.testing import assert_allclose, assert_array_equal
from reference import window as reference

import guardband as gb
from guardband.live.client.replay import rebuild
from guardband.live.operators.rows_check import changed_rows
from guardband.live.operators.sums_check import changed_sums

WEIGHT = 100.0  # 1 / noise^2
STATED: dict[str, Any] = {"alpha": 0.3, "noise": 0.1, "context_noise": 0.0}
WIDE = {"low": -2.0, "high": 3.0, "order": "prompt"}


def theta_at(t: int, drift: float) -> np.ndarray:
    """A parameter of length 0.9 that turns to and fro by at most `drift` in a round."""
    angle = 0.2 + 0.5 * (1.0 + np.sin(2.0 * drift / 0.9 * t))
    return 0.9 * np.array([np.cos(angle), np.sin(angle), 0.0])


def turn(one: Any, rng: np.random.Generator, theta: np.ndarray, **told: Any) -> tuple:
    menu = rng.uniform(0.05, 0.55, (8, 3))
    worth = menu @ theta
    decision = one.decide(menu, int(np.argsort(worth)[4]), **told)
    reward = worth[decision.action] + 0.1 * rng.standard_normal()
    one.observe(decision.id, reward)
    return decision, menu, worth, reward


def alone(folder: Path, **told: Any) -> gb.LiveAgent:
    return agent(folder, agents=1, shares="equal", rewards=WIDE, **STATED, **told)


@pytest.mark.parametrize("drift", [None, 1e-4])
def test_estimates_and_sets_are_those_of_the_window(drift: float | None, tmp_path: Path) -> None:
    half, rng = 15, np.random.default_rng(0)
    rows: list[np.ndarray] = []
    rewards: list[float] = []
    told = {"delta": 1e-3, "theta_bound": 1.0, "drift": drift}
    one = alone(tmp_path, window=2 * half, drift=drift)
    one.sync()
    for now in range(1, 100):
        decision, menu, _, reward = turn(one, rng, theta_at(now, 1e-4))
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
        if now in (20, 31, 47):  # between two halves, and in the middle of one
            one.close()
            one = alone(tmp_path, window=2 * half, drift=drift)
    one.close()


def test_one_live_agent_plays_as_one_in_a_process(tmp_path: Path) -> None:
    """Coins, menus and rewards are the same; no sum is added up in another order."""
    told: dict[str, Any] = {"window": 40, "drift": 1e-6}
    made = [gb.Fleet({"movies": None}, dim=3, **STATED, **told)["movies"], alone(tmp_path, **told)]
    made[1].sync()
    for number, one in enumerate(made):
        rng = np.random.default_rng(3)
        played = [turn(one, rng, theta_at(t, 1e-4))[0] for t in range(1, 150)]
        if number == 0:
            wanted = [(each.action, each.kind) for each in played]
    assert [(each.action, each.kind) for each in played] == wanted
    assert {"learned", "baseline"} <= {kind for _, kind in wanted}
    assert_allclose(made[1].theta, made[0].theta, rtol=1e-9)
    made[1].close()


def test_fleet_and_live_agents_play_the_same(tmp_path: Path) -> None:
    case, told = lockstep.guard("strict", shared=True), {"window": 150, "drift": 1e-6}
    algorithm = gb.GuardUCB(lockstep.ALPHA, noise=lockstep.NOISE, delta_alarm=None, **told)
    case = case._replace(algorithm=algorithm, space={**case.space, **told})
    draws = lockstep.TrialDraws(500)
    together, fleet = lockstep.fleet_actions(draws, case)
    agents = lockstep.live_agents(tmp_path, lockstep.settings(case))
    live = lockstep.play(draws, agents, lockstep.in_step(agents), known=False)
    assert_array_equal(live, together)
    assert (live != 2).mean() > 0.1
    for each in agents:
        assert_allclose(each.theta, fleet[each.name].theta, rtol=1e-9)
        each.close()


def pair(folder: Path, **told: Any) -> list[gb.LiveAgent]:
    given: dict[str, Any] = {"agents": 2, "window": 20, "rewards": WIDE, **STATED, **told}
    made = [agent(folder, task, **given) for task in ("movies", "tv")]
    for each in made:
        each.sync()
    return made


def go_round(made: list[gb.LiveAgent]) -> None:
    """Let an epoch go around, whether one is due or not."""
    before = max(each.epoch for each in made)
    made[0]._store.state.due = True
    for _ in range(4):
        for each in made:
            each.sync()
    assert {each.epoch for each in made} == {before + 1}


def known(one: gb.LiveAgent) -> int:
    """How many observations its estimate rests on."""
    return one._store.state.learner.observations()


def test_tasks_of_different_speed_forget_by_one_clock(tmp_path: Path) -> None:
    """Rounds are the world's: one task decides ten times in each, the other in every fifth."""
    quick, slow = pair(tmp_path)
    rng, rows = np.random.default_rng(4), []
    for t in range(1, 48):
        for one, often in ((quick, 10), (slow, int(t % 5 == 0))):
            for _ in range(often):
                turn(one, rng, theta_at(t, 1e-4), round=t)
                rows.append(t)
        if t % 5 == 0:
            go_round([quick, slow])
            assert_allclose(quick.theta, slow.theta, rtol=1e-9)
            since = reference.first_round(t, 10)
            assert known(quick) == known(slow) == sum(row >= since for row in rows)
    made = slow.decide(rng.uniform(0.05, 0.55, (8, 3)), 0, round=53)
    assert known(slow) == sum(41 <= row <= 45 for row in rows)  # what the last epoch told
    slow.discard(made.id)
    with pytest.raises(gb.InvalidValueError, match="round 52 is before round 53"):
        slow.decide(rng.uniform(0.05, 0.55, (8, 3)), 0, round=52)
    for each in (quick, slow):
        each.close()


def test_an_epoch_from_the_future_waits(tmp_path: Path) -> None:
    ahead, behind = pair(tmp_path)
    rng = np.random.default_rng(5)
    turn(behind, rng, theta_at(1, 0.0), round=1)
    for t in (1, 12):
        turn(ahead, rng, theta_at(t, 0.0), round=t)
    ahead._store.state.due = True
    for each in (ahead, behind, ahead, behind):
        each.sync()
    assert (ahead.epoch, behind.epoch) == (1, 0)
    assert known(behind) == 1
    turn(behind, rng, theta_at(12, 0.0), round=12)
    assert behind.epoch == 1
    assert known(behind) == 4
    for each in (ahead, behind):
        each.close()


def test_a_reward_counts_as_long_as_its_decision_does(tmp_path: Path) -> None:
    one, rng = alone(tmp_path, window=20), np.random.default_rng(6)
    one.sync()
    menu = rng.uniform(0.05, 0.55, (8, 3))
    first, second = (one.decide(menu, 0, round=t).id for t in (1, 2))
    third = one.decide(menu, 0, round=15).id
    one.observe(first, 0.3)  # its half is the older one now, and counts
    assert known(one) == 1
    fourth = one.decide(menu, 0, round=25).id
    assert known(one) == 0
    one.observe(second, 0.3)  # too late
    assert (known(one), one.counted) == (0, 2)
    one.observe(third, 0.3)
    one.observe(fourth, 0.3)
    assert (known(one), one.counted) == (2, 4)
    one.sync()
    assert one.status()["acknowledged"] == 4
    one.close()


def test_every_decision_comes_out_again(tmp_path: Path) -> None:
    made = pair(
        tmp_path, contexts="shared", context_noise=None, noise=None, rewards={"order": "prompt"}
    )
    rng = np.random.default_rng(7)
    for t in range(1, 64):
        for each in made:
            menu = rng.uniform(0.05, 0.55, (8, 3))
            decision = each.decide(menu, 0, round=t)
            each.observe(decision.id, float(rng.uniform() < menu[decision.action] @ THETA))
        if t % 7 == 0:
            go_round(made)
    journal = made[0]._store.journal
    for seq in range(1, 64):
        found = rebuild(journal, seq)
        again, row = found.decide(), found.row
        assert (again.action, again.reason, again.mean, again.width) == (
            row["action"],
            row["reason"],
            pytest.approx(row["mean"], abs=1e-9),
            pytest.approx(row["width"], rel=1e-9),
        )
    assert changed_rows(journal) == []
    assert changed_sums(journal, 3) == []
    journal.query("UPDATE main.outcome SET reward = 1 - reward WHERE seq = 60")
    assert changed_sums(journal, 3)
    for each in made:
        each.close()


def test_a_declared_drift_keeps_the_promise_where_data_without_it_do_not(tmp_path: Path) -> None:
    drift, outside = 2e-3, {}
    for window in (50, None):
        told = {} if window is None else {"window": window, "drift": drift}
        one, rng = alone(tmp_path / str(window), **told), np.random.default_rng(1)
        one.sync()
        found = 0
        for t in range(1, 600):
            turn(one, rng, theta_at(t, drift))
            learner = one._store.state.learner
            estimate = learner.state.estimate
            gap = theta_at(t, drift) - estimate.theta
            found += bool(gap @ np.linalg.solve(estimate.inverse, gap) > learner.radius() ** 2)
        outside[window] = found
        one.close()
    assert outside[50] == 0
    assert outside[None] > 20


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"drift": 0.1}, "say with window=... for how many rounds"),
        ({"window": 1}, "window"),
        ({"window": 10, "tolerate": 1}, "window=10 is for tolerate=0, not 1"),
        ({"window": 10, "radius": "paper"}, "is for radius='best', not 'paper'"),
        ({"window": 10, "sync": {"min_streams": 2}}, "less than sync.min_streams=2 asks for"),
        ({"window": 10, "sync": {"min_batch": 2}}, "less than sync.min_batch=2 asks for"),
        ({"window": 10, "algorithm": "dis-lin-ucb"}, "has no setting window=10"),
    ],
)
def test_what_does_not_go_with_a_window_is_refused(told: dict[str, Any], words: str) -> None:
    with pytest.raises(gb.InvalidValueError, match=words):
        gb.SpaceSettings(name="home", features=["a", "b"], agents=2, **told)


def test_rounds_must_be_told_and_logs_are_refused(tmp_path: Path) -> None:
    one, other = pair(tmp_path)
    menu = np.full((2, 3), 0.2)
    with pytest.raises(gb.InvalidValueError, match="forgets by rounds, window=20: give round="):
        one.decide(menu, 0)
    with pytest.raises(gb.InvalidValueError, match="in a space without a window"):
        one.learn(menu, np.full(2, 0.2), ids=["a", "b"])
    assert known(one) == 0
    many = one.decide_many([menu, menu], [0, 0], round=3)
    assert [one._store.journal.find(k).round for k in (1, 2)] == [3, 3]
    assert len(many) == 2
    for each in (one, other):
        each.close()
