"""Statements that tie the algorithms to each other and to what their papers promise.

That DiSC-UCB without gate and pruning is DisLinUCB is tested with the simulator.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from algorithms.small import small
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.algorithms import optimal_design
from guardband.facts import Facts
from guardband.kernels.pruning import best_clear, mark_pruned
from guardband.kernels.ridge import absorb, radius
from guardband.kernels.scan import scan
from guardband.kernels.state import new_scratch, new_state, new_statistic, scores_of
from guardband.problems import Fresh, GaussianNoise, SyntheticA, SyntheticB, World
from guardband.seeds import trial_seed
from guardband.sim.draws import TrialDraws
from guardband.sim.runners import PhasedRunner

STAGED = [
    gb.algorithms.SCLTS(0.3, noise=0.1, ridge=0.1),
    gb.algorithms.SCLUCB(0.3, noise=0.1, ridge=0.1),
    gb.algorithms.SCLUCB(0.3, noise=0.1, ridge=0.1, known_baseline=False),
    gb.algorithms.SEGE(0.3, noise=0.1, ridge=0.1),
    gb.algorithms.Guarded(gb.DisLinUCB(noise=0.1, ridge=0.1), 0.3),
    gb.algorithms.Guarded(gb.algorithms.FedLinUCB(noise=0.1, ridge=0.1), 0.3),
]


def test_one_agent_with_dis_lin_ucb_is_lin_ucb() -> None:
    case = small(20, d=3, tasks=[[0, 1, 2]], T=2000)
    settings: dict[str, Any] = {"noise": 0.2, "ridge": 0.5}
    one, other = (case.run(kind(**settings)) for kind in (gb.DisLinUCB, gb.algorithms.LinUCB))
    assert one.trace.sync_rounds.size == 0 == other.trace.sync_rounds.size  # nobody pools alone
    assert_array_equal(one.trace.actions, other.trace.actions)


def test_alone_in_its_own_coordinates_is_alone_among_all() -> None:
    """What a task does not use is never learned about: the set is that of its own dimensions."""
    case = small(21, d=4, tasks=[[1, 3]], T=500)
    draws = case.draws
    narrow = case._replace(
        phi=case.phi[:, :, [1, 3]],
        psi=case.psi[:, :, [1, 3]],
        theta=case.theta[[1, 3]],
        tasks=[[0, 1]],
        draws=draws._replace(zeta=draws.zeta[:, [1, 3]], normal=draws.normal[:, :, [1, 3]]),
    )
    algorithms = [
        gb.algorithms.LinUCB(noise=0.1),
        gb.algorithms.SCLTS(0.6, noise=0.01, ridge=0.01),
        gb.algorithms.CLUCB(0.2, noise=0.1),
    ]
    for algorithm in algorithms:
        assert_array_equal(case.run(algorithm).trace.actions, narrow.run(algorithm).trace.actions)


@pytest.mark.parametrize("seed", range(20))
def test_the_ellipsoid_certifies_all_that_disc_ucb_keeps(seed: int) -> None:
    """Its width is at most beta L / sqrt(lambda_min), if L bounds the features."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    menu = np.ascontiguousarray(rng.uniform(0, 1, (d, 30)) / np.sqrt(d))
    state, theta, ridge = new_state(d, 0.1), rng.uniform(0, 1, d), 0.1
    for _ in range(300):
        x = menu[:, rng.integers(30)].copy()
        absorb(state, x, float(x @ theta), 1.0, 0.0)
    facts = Facts((tuple(range(d)),), d)
    terms = gb.DiscUCB(0.1, noise=0.05, context_noise=0.0, ridge=ridge).plan(facts).terms
    beta, floor = radius(state.estimate, terms), float(rng.uniform(0.1, 0.6))
    scores = scores_of.py_func(new_scratch(30), 30)
    kept = np.zeros(30, bool)
    scan(state.estimate, beta, np.arange(d), menu, scores)
    count = mark_pruned(state, new_statistic(d), terms, beta, floor, scores, kept)
    certified = 2 * scores.mean - scores.upper >= floor
    assert (certified | ~kept).all()
    assert count == kept.sum()
    score = rng.normal(size=30)
    best = best_clear(score, scores, floor)
    assert best == (np.where(certified, score, -np.inf).argmax() if certified.any() else -1)


def test_longer_features_than_stated_break_that() -> None:
    menu = np.array([[2.0, 0.1], [0.0, 0.9]])
    state = new_state(2, 1.0)
    for _ in range(50):
        absorb(state, np.array([0.0, 1.0]), 0.5, 1.0, 0.0)
        absorb(state, np.array([0.2, 0.0]), 0.2, 1.0, 0.0)
    facts = Facts(((0, 1),), 2)
    terms = gb.DiscUCB(0.1, noise=0.1, context_noise=0.0).plan(facts).terms
    beta = radius(state.estimate, terms)
    scores = scores_of.py_func(new_scratch(2), 2)
    kept = np.zeros(2, bool)
    scan(state.estimate, beta, np.arange(2), menu, scores)
    least = 1.0 + 50 * 0.04
    floor = scores.mean[0] - beta / np.sqrt(least) - 1e-6
    mark_pruned(state, new_statistic(2), terms, beta, floor, scores, kept)
    assert kept[0]
    assert not 2 * scores.mean[0] - scores.upper[0] >= floor


@pytest.mark.parametrize("algorithm", STAGED, ids=lambda a: a.name)
def test_conservative_rounds_keep_the_promise(algorithm: Any) -> None:
    problem, seed = SyntheticA(agents=3, psi_noise=0.0), trial_seed(0, 0)
    trace = gb.simulate(problem, algorithm, rounds=400, trace=True, alpha=0.3).trace
    world = problem.build(seed)
    contexts = np.concatenate([draws.contexts for draws in TrialDraws(world, 400, seed).chunks()])
    told = world.baseline_rewards[contexts]
    rounds = trace.conservative & (told > 0)
    assert rounds.any()
    assert (trace.rewards >= 0.7 * told - 1e-12)[rounds].all()


@pytest.mark.parametrize(
    ("clients", "actions", "dim"), [(300, 10, 2), (100, 50, 9), (1, 40, 2), (1, 60, 6), (7, 3, 5)]
)
def test_designs_reach_their_optimum(clients: int, actions: int, dim: int) -> None:
    rng = np.random.default_rng(clients + dim)
    design = optimal_design(rng.normal(size=(clients, actions, dim)), tolerance=0.01)
    assert design.optimum == pytest.approx(dim)
    assert dim - 1e-9 <= design.value <= dim + 0.01
    np.testing.assert_allclose(design.shares.sum(axis=1), 1.0)
    assert (design.shares >= 0).all()


def test_the_design_of_masked_tasks_reaches_the_rank() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(300, 10, 3))
    features[100:200, :, 1:] = 0.0
    features[200:, :, 0] = 0.0
    design = optimal_design(features)
    assert design.optimum == pytest.approx(3.0)
    assert design.value <= 3.1
    features[:, :, 2] = 0.0  # a feature that nobody has
    features[5] = 0.0  # a client who cannot learn
    design = optimal_design(features)
    assert design.optimum == pytest.approx(2.0)
    assert design.value <= 2.1
    assert np.isfinite(design.shares).all()


def test_a_design_gives_nothing_to_eliminated_actions() -> None:
    rng = np.random.default_rng(2)
    alive = rng.random((20, 6)) < 0.5
    alive[np.arange(20), rng.integers(6, size=20)] = True
    design = optimal_design(rng.normal(size=(20, 6, 2)), alive, tolerance=0.01)
    assert (design.shares[~alive] == 0.0).all()
    assert design.value <= 2.01


def fresh_world(seed: int) -> World:
    world = SyntheticB(contexts=20, nature="fresh").build(seed)
    return World(
        world.phi,
        world.psi,
        world.theta,
        world.tasks,
        world.baseline,
        GaussianNoise(0.1),
        Fresh(0.1),
    )


@pytest.mark.parametrize(
    "algorithm",
    [
        gb.algorithms.DisLSB(pulls=None, noise=0.1, constant="tight"),
        gb.algorithms.DisLSB(pulls=1.0, noise=0.1),
        gb.algorithms.FedPECD(noise=0.1, constant="tight"),
    ],
    ids=["dis-lsb, finite arms", "dis-lsb, C = 1", "fed-pe-cd"],
)
def test_elimination_keeps_the_best(algorithm: Any) -> None:
    """In at least 1 - delta of the runs, where the theory's assumptions hold."""
    runs, kept, removed = 12, 0, 0
    for seed in range(runs):
        world = fresh_world(seed)
        plan = algorithm.plan(world.facts(4000))
        runner = PhasedRunner(world, plan, np.full(3, 0.5), np.array([4000]), 0)
        for draws in TrialDraws(world, 4000, seed).chunks():
            runner.play(draws)
        alive = runner.phases.alive
        best = np.take_along_axis(alive, world.best.T[:, :, None], axis=2)
        kept += bool(best.all())
        removed += int((~alive).sum())
    assert removed > 0
    assert kept >= (1 - algorithm.delta) * runs


def test_fed_lin_ucb_decides_by_what_it_downloaded() -> None:
    """Between two downloads the same context gets the same action."""
    case = small(23, d=3, tasks=[[0, 1, 2]], T=600, K=12)
    trace = case.run(gb.algorithms.FedLinUCB(noise=0.05, ridge=0.1, growth=1.0, radius=0.5)).trace
    assert trace.sync_rounds.size > 3
    starts = [0, *trace.sync_rounds]
    played = []
    for start, stop in zip(starts, [*trace.sync_rounds, 600], strict=True):
        actions: dict[int, set[int]] = {}
        for t in range(start, stop):
            actions.setdefault(int(case.draws.contexts[t]), set()).add(int(trace.actions[t, 0]))
        assert all(len(seen) == 1 for seen in actions.values())
        played.append({c: seen.pop() for c, seen in actions.items()})
    assert any(a.get(c, k) != k for a, b in pairwise(played) for c, k in b.items())


@pytest.mark.parametrize("kind", [SyntheticA, SyntheticB])
def test_no_index_is_a_good_policy(kind: Any) -> None:
    """Actions are shuffled in every context; ranked, the first index would win for free."""
    world = kind().build(3)
    regret = world.expected[:, 0].max(axis=1)[:, None] - world.expected[:, 0]
    assert regret.mean(axis=0).min() > 0.2
    ranked = kind(order="ranked").build(3)
    assert (ranked.realised[:, 0].max(axis=1) - ranked.realised[:, 0, 0]).mean() < 0.05
