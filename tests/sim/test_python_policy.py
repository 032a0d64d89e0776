"""Policies in plain Python: the draws, rewards and metrics of the compiled algorithms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.report import verdict, write_report
from guardband.sim import PolicyError, Series

RIDGE, NOISE, CONTEXT_NOISE, DELTA = 1.0, 0.1, 0.2, 1e-3
COMPILED = gb.algorithms.LinUCB(ridge=RIDGE, noise=NOISE, context_noise=CONTEXT_NOISE, delta=DELTA)
PROBLEMS = {
    "tables": gb.problem("synthetic-b", agents=2),
    "fresh": gb.problem("synthetic-b", agents=2, nature="fresh"),
    "forecast": gb.problem("forecast", agents=2, contexts=30, support=4),
    "tasks": gb.problem("movielens", contexts=10, actions=12, baseline=5),
}


class HandmadeLinUCB:
    """LinUCB from its definition, one learner per agent."""

    name = "handmade"

    def __init__(self) -> None:
        self.V: dict[int, Any] = {}
        self.U: dict[int, Any] = {}

    def choose(
        self, agent: int, round: int, features: Any, baseline: int, baseline_reward: float | None
    ) -> int:
        assert baseline_reward is not None
        d = features.shape[1]
        V = self.V.setdefault(agent, RIDGE * np.eye(d))
        U = self.U.setdefault(agent, np.zeros(d))
        growth = np.linalg.slogdet(V / RIDGE)[1]
        sigma = math.hypot(CONTEXT_NOISE, NOISE)
        beta = sigma * math.sqrt(growth + 2 * math.log(2 / DELTA)) + math.sqrt(RIDGE)
        width = np.sqrt(np.einsum("kd,kd->k", features @ np.linalg.inv(V), features))
        return int(np.argmax(features @ np.linalg.solve(V, U) + beta * width))

    def update(self, agent: int, features: Any, action: int, reward: float) -> None:
        x = features[action]
        self.V[agent] += np.outer(x, x)
        self.U[agent] += reward * x


class Fixed:
    """Always the same row; remembers what it was told."""

    name = "fixed"

    def __init__(self, row: Any = 0) -> None:
        self.row, self.told = row, 0

    def choose(self, agent: int, round: int, features: Any, baseline: int, reward: Any) -> Any:
        self.told += 1
        assert self.told == 2 * (round - 1) + agent + 1  # a new copy in every trial
        return self.row

    def update(self, agent: int, features: Any, action: int, reward: float) -> None:
        features[:] = np.nan  # its own copy


class Raises(Fixed):
    name = "raises"

    def update(self, agent: int, features: Any, action: int, reward: float) -> None:
        if agent == 1:
            raise KeyError("gone")


def assert_same(one: Series, other: Series, *, but: tuple[str, ...] = ()) -> None:
    for metric in one.totals:
        if metric not in but:
            assert_array_equal(one.totals[metric], other.totals[metric], err_msg=metric)
            assert_array_equal(one.curves[metric], other.curves[metric], err_msg=metric)


@pytest.mark.filterwarnings("ignore::guardband.BoundWarning")
@pytest.mark.parametrize("name", PROBLEMS)
def test_lin_ucb_by_hand_plays_like_the_compiled_one(name: str) -> None:
    problem = PROBLEMS[name]
    runs = [
        gb.simulate(problem, algorithm, rounds=400, seed=3, alpha=0.2, trace=True)
        for algorithm in (HandmadeLinUCB(), COMPILED)
    ]
    assert_array_equal(runs[0].trace.actions, runs[1].trace.actions)
    assert_array_equal(runs[0].trace.rewards, runs[1].trace.rewards)
    # Whether theta is in its confidence set is known of compiled algorithms only.
    assert_same(runs[0].series[0], runs[1].series[0], but=("outside",))


@pytest.mark.filterwarnings("ignore::guardband.BoundWarning")
def test_it_runs_beside_compiled_ones_into_the_same_tables(tmp_path: Path) -> None:
    together = gb.simulate(
        PROBLEMS["tables"], [HandmadeLinUCB(), COMPILED, "guard-ucb"], rounds=150, trials=3
    )
    assert [series.label for series in together.series] == ["handmade", "lin-ucb", "guard-ucb"]
    assert_same(together["handmade"], together["lin-ucb"], but=("outside",))
    assert list(together.summary()["algorithm"]) == ["handmade", "lin-ucb", "guard-ucb"]
    assert any("handmade" in sentence for sentence in verdict(together))
    page = write_report(together, tmp_path).read_text(encoding="utf-8")
    assert "handmade" in page


def test_trials_share_no_state_whatever_the_workers() -> None:
    policy = Fixed(2)
    runs = [
        gb.simulate(PROBLEMS["tables"], policy, rounds=30, trials=4, workers=workers)
        for workers in (1, 3)
    ]
    assert_same(runs[0].series[0], runs[1].series[0])
    assert policy.told == 0


@pytest.mark.filterwarnings("ignore::guardband.BoundWarning")
def test_it_can_be_cached(tmp_path: Path) -> None:
    problem, told = PROBLEMS["tables"], {"rounds": 40, "trials": 2, "cache": tmp_path}
    first = gb.simulate(problem, [Fixed(1), COMPILED], **told)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert len(files) == 4  # two trials of each
    again = gb.simulate(problem, [COMPILED, Fixed(1), Fixed(2)], **told)
    assert len(list(tmp_path.rglob("*.npz"))) == 6
    assert_same(first["fixed"], again.series[1])
    with pytest.raises(ValueError, match="neither traces nor replays"):
        gb.simulate(problem, COMPILED, rounds=5, trace=True, cache=tmp_path)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Fixed(40), "fixed: choose returned 40 for agent 0 in round 1; .* 0 to "),
        (Fixed(-1), "choose returned -1"),
        (Fixed(1.0), r"choose returned 1\.0"),
        (Fixed(None), "choose returned None"),
        (Raises(), "raises: update raised KeyError for agent 1 in round 1: 'gone'"),
    ],
)
def test_mistakes_name_the_policy_the_agent_and_the_round(policy: Fixed, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        gb.simulate(PROBLEMS["tables"], policy, rounds=5)


class Nameless(Fixed):
    """It has a name that is no text."""

    name = None  # type: ignore[assignment]


@pytest.mark.parametrize("thing", [Fixed, Nameless(), object(), 3])
def test_what_cannot_play_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="the methods choose and update"):
        gb.simulate(PROBLEMS["tables"], [thing], rounds=5)
