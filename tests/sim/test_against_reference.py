"""Round by round, the simulator does what the paper says."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, Case
from numpy.testing import assert_allclose, assert_array_equal
from reference import naive

import guardband as gb
from guardband.algorithms import Plan
from guardband.facts import Facts

KINDS = {
    "disc-ucb": gb.DiscUCB,
    "disc-ucb-unknown": gb.DiscUCBUnknown,
    "dis-lin-ucb": gb.DisLinUCB,
}


def run(case: Case, alpha: float | tuple[float, ...] | None = None) -> gb.Results:
    draws = case.draws
    replay = gb.Replay(
        draws["contexts"], draws["reward_noise"], draws["rho"], draws["zeta"], draws["coin"]
    )
    problem = gb.Tabular(
        case.phi, case.psi, case.theta, tasks=case.tasks, baseline=case.baseline, reward_std=99.0
    )
    algorithm = KINDS[case.algorithm](**case.settings)
    return gb.simulate(problem, algorithm, replay=replay, trace=True, alpha=alpha)


@pytest.mark.parametrize("name", CASES)
def test_every_round_equals_the_reference(name: str) -> None:
    case = CASES[name]
    ref = case.reference()
    got = run(case).trace
    assert_array_equal(got.actions, ref.actions)
    assert_array_equal(got.conservative, ref.conservative)
    assert_array_equal(got.sync_rounds, ref.sync_rounds)
    assert_allclose(got.rewards, ref.rewards, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_the_books_equal_the_definitions(name: str) -> None:
    case = CASES[name]
    alpha = case.settings.get("alpha", 0.3)
    ref = case.reference()
    scores = naive.regret_and_violations(
        ref.actions,
        ref.conservative,
        phi=case.phi,
        psi=case.psi,
        theta=case.theta,
        tasks=case.tasks,
        baseline=case.baseline,
        alpha=alpha,
        contexts=case.draws["contexts"],
        rho=case.draws["rho"],
        zeta=case.draws["zeta"],
        mix=case.settings.get("mix", "vector"),
    )
    (series,) = run(case, alpha).series
    for metric in ("regret", "regret_expected", "violations_expected", "violations_realised"):
        assert_allclose(series.totals[metric][0], getattr(scores, metric), atol=1e-9, rtol=0)
        assert_allclose(series.curves[metric][0, -1], series.totals[metric][0])
    assert_array_equal(series.conservative[0], ref.conservative.sum(axis=0))
    assert_array_equal(series.totals["outside"][0], ref.outside.sum(axis=0))
    assert_array_equal(series.totals["optimum_pruned"][0], ref.pruned.sum(axis=0))
    assert series.sync_rounds[0] == len(ref.sync_rounds)
    d, agents = case.theta.size, len(case.tasks)
    assert series.numbers_sent[0] == len(ref.sync_rounds) * 2 * agents * (d * (d + 1) // 2 + d)


def test_the_cases_take_every_branch() -> None:
    refs = {name: case.reference() for name, case in CASES.items()}
    guarded = [ref for name, ref in refs.items() if name != "unconstrained"]
    assert any((ref.conservative & ~ref.gate_open).any() for ref in guarded)
    assert any(ref.empty_set.any() for ref in guarded)
    assert any((~ref.conservative).any() for ref in guarded)
    assert any(len(ref.sync_rounds) > 1 for ref in guarded)
    assert any(ref.pruned.any() for ref in guarded)
    assert any(ref.outside.any() for ref in guarded)
    assert any((ref.gate_open & ~ref.pruned).any() for ref in guarded)
    pruned = refs["unknown baseline, no gate, coin"]
    free = CASES["unknown baseline, no gate, coin"].reference(feature_bound=0.0)
    assert (pruned.actions != free.actions).any()


def test_one_agent_that_shares_is_one_that_does_not() -> None:
    rng = np.random.default_rng(5)
    phi = rng.uniform(0.1, 0.5, (4, 6, 3))
    problem = gb.Tabular(phi, phi, [0.5, 0.3, 0.6], baseline=2, reward_std=0.1)
    one, other = (
        gb.simulate(problem, gb.DisLinUCB(ridge=0.5, share=share), rounds=2000, trace=True)
        for share in (True, False)
    )
    assert one.series[0].sync_rounds[0] == 0 == other.series[0].sync_rounds[0]  # with whom?
    assert_array_equal(one.trace.actions, other.trace.actions)


class KeepsEverything(gb.DiscUCB):
    """DiSC-UCB with a floor so deep that no action is ever pruned."""

    def plan(self, facts: Facts) -> Plan:
        plan = super().plan(facts)
        return plan._replace(alpha=np.full_like(plan.alpha, 1e6))


def test_without_gate_and_pruning_disc_ucb_is_dis_lin_ucb() -> None:
    rng = np.random.default_rng(8)
    phi = rng.uniform(0.1, 0.5, (5, 7, 3))
    problem = gb.Tabular(
        phi, phi, [0.6, 0.4, 0.2], tasks=[[0, 1, 2], [0, 2]], baseline=3, reward_std=0.2
    )
    safe = gb.simulate(problem, KeepsEverything(gate="none"), rounds=3000, trace=True, alpha=0.5)
    free = gb.simulate(problem, gb.DisLinUCB(), rounds=3000, trace=True, alpha=0.5)
    assert not safe.trace.conservative.any()
    assert_array_equal(safe.trace.actions, free.trace.actions)
    assert_array_equal(safe.trace.sync_rounds, free.trace.sync_rounds)
