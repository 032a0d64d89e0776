"""Rounds with old widths and in blocks go as rounds one by one: every action, every count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.algorithms import Algorithm
from guardband.kernels.environment import Metric
from guardband.kernels.state import view
from guardband.problems import Problem
from guardband.sim.draws import TrialDraws
from guardband.sim.runners import CommonRunner, make_runner
from guardband.sim.trial import checkpoint_rounds


def play(
    problem: Problem, algorithm: Algorithm, rounds: int, *, quick: bool, seed: int = 3
) -> CommonRunner:
    """Return a runner after so many rounds; not `quick`: everything is computed, one by one."""
    world = problem.build(seed)
    agents = len(world.tasks)
    plan = algorithm.plan(world.facts(rounds))
    points = checkpoint_rounds(rounds)[49::50].copy()  # as it comes: one compiled loop
    runner = make_runner(world, plan, np.full(agents, 0.3), points, rounds)
    assert isinstance(runner, CommonRunner)
    if not quick:
        runner.widths = runner.widths._replace(reach=np.zeros(0))
        runner.before = runner.before._replace(numbers=np.zeros(0))
    for chunk in TrialDraws(world, rounds, seed, holds=True).chunks():
        runner.play(chunk)
    return runner


def both(problem: Problem, algorithm: Algorithm, rounds: int, **more: Any) -> CommonRunner:
    """Check that shortcuts change nothing; return the runner that took them."""
    one, other = (play(problem, algorithm, rounds, quick=quick, **more) for quick in (True, False))
    for quick, plain in zip(one.trace, other.trace, strict=True):
        assert_array_equal(quick, plain)
    assert_array_equal(one.metrics.totals, other.metrics.totals)
    assert_array_equal(one.metrics.curves, other.metrics.curves)
    assert_array_equal(one.metrics.syncs, other.metrics.syncs)
    assert_array_equal(one.clock.ints, other.clock.ints)
    mine, theirs = view(one.numbers, one.env.theta.size), view(other.numbers, one.env.theta.size)
    assert_array_equal(mine.own.gram, theirs.own.gram)
    assert_array_equal(mine.own.moment, theirs.own.moment)
    assert_allclose(mine.estimate.theta, theirs.estimate.theta, rtol=1e-8, atol=1e-10)
    return one


def tabular(features: np.ndarray, agents: int = 1, **more: Any) -> gb.Tabular:
    dim = features.shape[2]
    theta = np.random.default_rng(1).dirichlet(np.ones(dim))
    tasks = [list(range(dim))] * agents
    given = {"baseline": 2, "reward_std": 0.05, "tasks": tasks, **more}
    return gb.Tabular(given.pop("phi", features), features, theta, **given)


def features(contexts: int, actions: int, dim: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.0, 1.0, (contexts, actions, dim)) / np.sqrt(dim)


def with_ties(contexts: int, actions: int, dim: int) -> np.ndarray:
    """Return features of which many are equal, or equal but for the last bit, zero or tiny."""
    made = features(contexts, actions, dim)
    made[:, 5:10] = made[:, :5]
    made[:, 10:15] = np.nextafter(made[:, :5], 1.0)
    made[:, 15] = 0.0
    made[:, 16] = 5e-324
    made[:, 17] = 1e-310 * made[:, 0]
    made[:, 18] = made[:, 0][:, ::-1]  # the same length
    return made


TIES = with_ties(6, 24, 7)
BOUNDS = {"noise": 0.05, "context_noise": 0.02}
CLOSED = gb.DiscUCB(0.2, **BOUNDS)
CASES: dict[str, tuple[Problem, Algorithm, int]] = {
    "free": (tabular(features(8, 40, 6)), gb.DisLinUCB(**BOUNDS), 4_000),
    "free, tiny ridge": (tabular(TIES), gb.DisLinUCB(ridge=1e-6, **BOUNDS), 3_000),
    "ties": (tabular(TIES), gb.DisLinUCB(**BOUNDS), 4_000),
    "ties, together": (tabular(TIES, 3), gb.DisLinUCB(**BOUNDS), 3_000),
    "all equal": (tabular(np.full((4, 9, 5), 0.3)), gb.DisLinUCB(**BOUNDS), 500),
    "no gate": (tabular(TIES, 2), gb.DiscUCB(0.9, gate="none", **BOUNDS), 3_000),
    "shut": (tabular(features(8, 12, 6), 3), CLOSED, 6_000),
    "opens": (
        tabular(features(8, 12, 5), 2),
        gb.DiscUCB(0.9, noise=0.01, context_noise=0.01, ridge=0.01),
        12_000,
    ),
    "unknown": (tabular(features(8, 12, 5), 2), gb.DiscUCBUnknown(0.9, **BOUNDS), 4_000),
    "task directions": (
        tabular(features(8, 12, 5), tasks=[[0, 1, 2], [1, 2, 3, 4]]),
        gb.DiscUCB(0.2, mix="task-vector", **BOUNDS),
        4_000,
    ),
    "guard": (tabular(TIES, 2), gb.GuardUCB(0.5, **BOUNDS), 5_000),
    "guard, policy": (tabular(TIES), gb.GuardUCB(0.3, mode="policy", **BOUNDS), 4_000),
    "guard, free": (tabular(TIES, 2), gb.algorithms.GuardUCBFree(noise=0.05), 4_000),
    "guard, held back": (tabular(TIES), gb.GuardUCB(0.5, holdback=0.2, **BOUNDS), 3_000),
    "guard, fresh": (
        gb.problem("movielens", nature="fresh", agents=2),
        gb.GuardUCB(0.5, **BOUNDS),
        6_000,
    ),
    "guard, alarmed": (
        tabular(features(6, 20, 6), 2, phi=features(6, 20, 6, seed=5)),
        gb.GuardUCB(0.5, noise=0.05, context_noise=0.0),
        4_000,
    ),
    "wrong features": (
        tabular(features(8, 12, 6), 2, phi=features(8, 12, 6, seed=5)),
        CLOSED,
        6_000,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_round_goes_as_without_shortcuts(name: str) -> None:
    runner = both(*CASES[name])
    totals, rounds = runner.metrics.totals, CASES[name][2]
    if "guard" in name or "free" in name or "ties" in name:
        assert runner.widths.reach.size > 0
        assert runner.widths.form.any()
    if name == "shut":
        assert (totals[:, Metric.CONSERVATIVE] == rounds).all()
    if name == "opens":
        assert (totals[:, Metric.CONSERVATIVE] < rounds).all()
    if name == "guard, alarmed":
        assert totals[:, Metric.ALARMS_ASSUMPTIONS : Metric.NOTICED].sum() > 0
    if name == "wrong features":
        assert 0 < totals[0, Metric.OUTSIDE] < rounds
