"""Rivals against their plain NumPy reference: the same draws, action by action.

Those that eliminate actions are in test_elimination_against_reference.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from algorithms.small import SIGHTS, Small, agree, sigma_of, small
from numpy.testing import assert_array_equal
from reference import rivals

import guardband as gb
from guardband.algorithms import ALGORITHMS


def alone(case: Small, run: Any, context: str = "hidden", **settings: Any) -> rivals.Trace:
    """Run a single-task reference for every agent in its own coordinates."""
    traces = []
    for m, task in enumerate(case.tasks):
        tables = [table[:, :, task] for table in case.tables(context)]
        draws = rivals.own(case.draws, m, task)
        mine = {k: v[m] if k == "kappa" else v for k, v in settings.items()}
        traces.append(run(*tables, case.theta[task], case.baseline[m], draws, **mine))
    return rivals.beside(traces)


@pytest.mark.parametrize("context", SIGHTS)
@pytest.mark.parametrize("name", ["sclts", "scl-ucb"])
@pytest.mark.parametrize("d", [2, 4])
def test_scl(name: str, context: str, d: int) -> None:
    case, alpha = small(d=d, T=250), 0.6
    kind = {"sclts": gb.algorithms.SCLTS, "scl-ucb": gb.algorithms.SCLUCB}[name]
    made = kind(
        alpha, noise=0.01, context_noise=0.01, ridge=0.01, constant="paper", context=context
    )
    level = 1e-3 / (2 if context == "hidden" else 1)
    level /= 4 * 250 if name == "sclts" else 1
    ref = alone(
        case,
        rivals.stage_wise,
        context,
        method=name,
        alpha=alpha,
        sigma=sigma_of(context, 0.01, 0.01),
        level=level,
        ridge=0.01,
    )
    assert 0 < ref.conservative.mean() < 1
    agree(case.run(made), ref)


@pytest.mark.parametrize("name", ["sclts", "scl-ucb"])
def test_scl_as_its_authors_wrote_it_ignores_the_hidden_context(name: str) -> None:
    case = small()
    kind = {"sclts": gb.algorithms.SCLTS, "scl-ucb": gb.algorithms.SCLUCB}[name]
    made = kind(0.6, noise=0.02, ridge=0.01, theta_bound=0.96, feature_bound=0.99)
    level = 1e-3 / (4 * 250) if name == "sclts" else 1e-3
    common = {"sigma": 0.02, "level": level, "ridge": 0.01, "S": 0.96, "L": 0.99}
    ref = alone(case, rivals.stage_wise, method=name, alpha=0.6, **common)
    assert 0 < ref.conservative.mean() < 1
    agree(case.run(made), ref)


@pytest.mark.parametrize("gate", ["gap", "none"])
@pytest.mark.parametrize("known", [True, False])
def test_scl_ucb_gates_and_unknown_baseline(gate: str, known: bool) -> None:
    case = small(3, K=8)
    kappa = np.random.default_rng(0).uniform(0.0, 0.3, case.baseline.shape)
    made = gb.algorithms.SCLUCB(
        0.5,
        noise=0.01,
        ridge=0.01,
        gate=gate,
        gap=kappa if gate == "gap" else None,
        known_baseline=known,
        reward_floor=0.2,
    )
    ref = alone(
        case,
        rivals.stage_wise,
        method="scl-ucb",
        alpha=0.5,
        sigma=0.01,
        level=1e-3,
        ridge=0.01,
        kappa=kappa,
        gate=gate == "gap",
        known=known,
        reward_floor=0.2,
    )
    assert 0 < ref.conservative.mean() < 1
    agree(case.run(made), ref)


@pytest.mark.parametrize("context", SIGHTS)
def test_sege(context: str) -> None:
    case = small(2, d=3, rho=(0.5, 0.8))
    made = gb.algorithms.SEGE(0.4, noise=0.02, ridge=0.02, pace=0.3, context=context)
    ref = alone(
        case,
        rivals.stage_wise,
        context,
        method="sege",
        alpha=0.4,
        sigma=0.02,
        level=1e-3,
        ridge=0.02,
        pace=0.3,
    )
    assert 0 < ref.conservative.mean() < 1
    agree(case.run(made), ref)


@pytest.mark.parametrize("context", ["hidden", "observed"])
@pytest.mark.parametrize("known", [True, False], ids=["CLUCB", "CLUCB2"])
def test_cl_ucb(known: bool, context: str) -> None:
    case = small(4, d=3)
    made = gb.algorithms.CLUCB(
        0.1, noise=0.05, ridge=0.1, known_baseline=known, reward_floor=0.2, context=context
    )
    ref = alone(
        case,
        rivals.cumulative,
        context,
        alpha=0.1,
        sigma=0.05,
        level=1e-3,
        ridge=0.1,
        known=known,
        reward_floor=0.2,
    )
    assert 0 < ref.conservative.mean() < 1
    agree(case.run(made), ref)


@pytest.mark.parametrize("context", SIGHTS)
@pytest.mark.parametrize("mix", ["vector", "action"])
@pytest.mark.parametrize("d", [2, 4])
def test_roful(mix: str, context: str, d: int) -> None:
    case = small(13, d=d)
    made = gb.algorithms.ROFUL(
        0.2, noise=0.05, ridge=0.1, theta_bound=0.96, feature_bound=0.99, mix=mix, context=context
    )
    ref = alone(
        case,
        rivals.directional,
        context,
        alpha=0.2,
        sigma=0.05,
        level=1e-3,
        ridge=0.1,
        S=0.96,
        L=0.99,
        whole=mix == "action",
    )
    assert 0 < ref.conservative.mean() < 1
    agree(case.run(made), ref)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", ["sclts", "scl-ucb"])
def test_scl_with_a_lower_bound_on_the_lead(name: str, known: bool) -> None:
    case = small(3, K=8)
    made = ALGORITHMS[name].make(
        alpha=0.5, noise=0.01, ridge=0.01, kappa_l=0.15, known_baseline=known, reward_floor=0.2
    )
    ref = alone(
        case,
        rivals.stage_wise,
        method=name,
        alpha=0.5,
        sigma=0.01,
        level=1e-3 / (4 * 250) if name == "sclts" else 1e-3,
        ridge=0.01,
        kappa=np.full(case.baseline.shape, 0.15),
        known=known,
        reward_floor=0.2,
    )
    assert 0 < ref.conservative.mean() < 1
    agree(case.run(made), ref)


@pytest.mark.parametrize("name", ["sclts", "scl-ucb", "sege", "roful", "cl-ucb"])
def test_the_confidence_set_of_guard_ucb(name: str) -> None:
    case, alpha = small(14, d=3), 0.2
    told = {"noise": 0.05, "context_noise": 0.03, "delta": 0.01, "theta_bound": 0.96}
    lead = {"kappa_l": 2.0} if "scl" in name else {}
    made = ALGORITHMS[name].make(alpha=alpha, constant="guard", **told, **lead)
    kappa = np.full(case.baseline.shape, 2.0)
    own: dict[str, tuple[Any, dict[str, Any]]] = {
        "sclts": (rivals.stage_wise, {"method": "sclts", "kappa": kappa}),
        "scl-ucb": (rivals.stage_wise, {"method": "scl-ucb", "kappa": kappa}),
        "sege": (rivals.stage_wise, {"method": "sege", "pace": 1.0}),
        "roful": (rivals.directional, {}),
        "cl-ucb": (rivals.cumulative, {}),
    }
    run, more = own[name]
    guard = rivals.GuardSet(0.05, 0.03, 0.01, agents=3, S=0.96)
    ref = alone(
        case, run, alpha=alpha, sigma=None, level=None, ridge=None, S=0.96, guard=guard, **more
    )
    assert 0 < ref.conservative.mean() < 1
    agree(case.run(made), ref)


def test_optimism_with_the_confidence_set_of_guard_ucb_is_guard_ucb_free() -> None:
    case = small(16, d=3)
    told: dict[str, Any] = {"noise": 0.05, "context_noise": 0.03, "ridge": 0.5}
    one = case.run(gb.algorithms.LinUCB(constant="guard", **told)).trace
    two = case.run(gb.algorithms.GuardUCBFree(share=False, optimism=1.0, **told)).trace
    assert_array_equal(one.actions, two.actions)
    assert_array_equal(one.rewards, two.rewards)


@pytest.mark.parametrize("context", SIGHTS)
def test_c_square_cb(context: str) -> None:
    case = small(15, d=3)
    made = gb.algorithms.CSquareCB(
        0.3, delta=0.01, ridge=0.2, slack=0.2, gamma=3.0, feature_bound=0.96, context=context
    )
    common = {"alpha": 0.3, "level": 0.01, "ridge": 0.2, "slack": 0.2, "gamma": 3.0, "L": 0.96}
    ref = alone(case, rivals.by_gaps, context, **common)
    assert 0.1 < ref.conservative.mean() < 0.9
    agree(case.run(made), ref)


@pytest.mark.parametrize("kappa", [0.0, 0.2])
def test_ma_scl_ucb(kappa: float) -> None:
    case = small(7, T=200)
    made = gb.algorithms.MASCLUCB(0.5, noise=0.01, context_noise=0.01, ridge=0.01, kappa_l=kappa)
    ref = rivals.dis_lin_ucb(
        *case.tables("hidden"),
        case.theta,
        case.tasks,
        case.baseline,
        case.draws,
        sigma=math.hypot(0.01, 0.01),
        level=5e-4,
        ridge=0.01,
        alpha=0.5,
        kappa=kappa,
    )
    assert 0 < ref.conservative.mean() < 1
    assert ref.sync_rounds
    agree(case.run(made), ref)


@pytest.mark.parametrize("context", SIGHTS)
@pytest.mark.parametrize("growth", [None, 1.0])
def test_fed_lin_ucb(growth: float | None, context: str) -> None:
    case = small(5, d=3, T=150)
    made = gb.algorithms.FedLinUCB(
        noise=0.02, context_noise=0.02, ridge=0.5, growth=growth, context=context, delta=0.01
    )
    ref = rivals.fed_lin_ucb(
        *case.tables(context),
        case.theta,
        case.tasks,
        case.baseline,
        case.draws,
        sigma=sigma_of(context, 0.02, 0.02),
        level=0.005 if context == "hidden" else 0.01,
        ridge=0.5,
        growth=1.0 / 9.0 if growth is None else growth,
    )
    results = case.run(made)
    agree(results, ref)
    assert results.series[0].sync_rounds[0] >= len(ref.sync_rounds) > 2


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("context", SIGHTS)
def test_dis_lin_ucb_and_lin_ucb(context: str, share: bool) -> None:
    case = small(6, d=3, T=150)
    kind = gb.DisLinUCB if share else gb.algorithms.LinUCB
    made = kind(noise=0.1, context_noise=0.1, ridge=0.2, context=context, constant="paper")
    ref = rivals.dis_lin_ucb(
        *case.tables(context),
        case.theta,
        case.tasks,
        case.baseline,
        case.draws,
        sigma=sigma_of(context, 0.1, 0.1),
        level=5e-4 if context == "hidden" else 1e-3,
        ridge=0.2,
        share=share,
    )
    assert bool(ref.sync_rounds) == share
    agree(case.run(made), ref)


def test_a_guarded_dis_lin_ucb() -> None:
    case = small(7, T=200)
    made = gb.algorithms.Guarded(gb.DisLinUCB(noise=0.03, ridge=0.1, constant="source"), 0.3)
    ref = rivals.dis_lin_ucb(
        *case.tables("hidden"),
        case.theta,
        case.tasks,
        case.baseline,
        case.draws,
        sigma=0.03,
        level=1e-3,
        ridge=0.1,
        alpha=0.3,
    )
    assert 0 < ref.conservative.mean() < 1
    assert ref.sync_rounds
    agree(case.run(made), ref)


def test_a_guarded_fed_lin_ucb() -> None:
    case = small(8, T=150)
    made = gb.algorithms.Guarded(
        gb.algorithms.FedLinUCB(noise=0.01, ridge=0.1, constant="source", growth=0.5, radius=0.4),
        0.4,
    )
    ref = rivals.fed_lin_ucb(
        *case.tables("hidden"),
        case.theta,
        case.tasks,
        case.baseline,
        case.draws,
        sigma=0.01,
        level=1e-3,
        ridge=0.1,
        growth=0.5,
        radius=0.4,
        alpha=0.4,
    )
    assert 0 < ref.conservative.mean() < 1
    agree(case.run(made), ref)
