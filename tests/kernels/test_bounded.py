"""Bounds over the confidence set and the range of rewards, against a convex solver."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from guardband.kernels.bounded import EMPTY, HOLDS, UNSURE, find_point, least
from guardband.kernels.cuts import ACTION, COUNT, CUTS, MULTIPLIER, SIGN
from guardband.kernels.scan import scan_forms
from guardband.kernels.state import new_scratch, new_state, scores_of
from guardband.kernels.types import Knowledge, Scores, State

Array = NDArray[np.float64]
PROBLEMS = 2_000


class Case(NamedTuple):
    """A confidence set and a menu (d, K), the direction that is asked for, and theta."""

    menu: Array
    V: Array
    center: Array
    beta: float
    v: Array
    theta: Array


class Asked(NamedTuple):
    """What the kernels say of a case."""

    found: int
    bound: float
    against: float  # the bound of -v
    ellipsoid: float


def case_of(seed: int, *, lost: bool = False) -> Case:
    """A random case; theta gives rewards in [0, 1] and is in the ellipsoid, unless it is lost."""
    rng = np.random.default_rng(seed)
    d, K = int(rng.integers(1, 9)), int(rng.integers(2, 41))
    menu = np.abs(rng.normal(size=(d, K)))
    menu *= rng.uniform(0.3, 1.0, K) / np.linalg.norm(menu, axis=0)
    theta = np.abs(rng.normal(size=d))
    theta /= np.linalg.norm(theta)
    seen = menu[:, rng.integers(0, max(1, K // 3), int(rng.integers(0, 6 * d)))]
    V = np.eye(d) + rng.uniform(0.5, 20.0) * seen @ seen.T
    beta = rng.uniform(0.3, 4.0)
    off = rng.normal(size=d)
    off *= beta * (rng.uniform(1.0, 3.0) if lost else rng.uniform(0.0, 1.0)) / np.linalg.norm(off)
    center = theta + np.linalg.solve(np.linalg.cholesky(V).T, off)
    x, b = rng.choice(K, 2, replace=False)
    return Case(menu, V, center, beta, menu[:, x] - rng.uniform(0.5, 1.0) * menu[:, b], theta)


def prepared(case: Case) -> tuple[Knowledge, Scores, State]:
    d, K = case.menu.shape
    state, scores = new_state(d, 1.0), scores_of.py_func(new_scratch(K), K)
    inverse = np.linalg.inv(case.V)
    state.estimate.inverse[...] = (inverse + inverse.T) / 2
    state.estimate.theta[...] = case.center
    known = Knowledge(
        state.estimate,
        case.beta,
        np.ascontiguousarray(case.menu),
        np.arange(d),
        low=0.0,
        high=1.0,
        baseline=0,
        bottom=0.0,
        top=1.0,
    )
    scan_forms(state.estimate, known.coords, known.menu, scores.mean, scores.form)
    return known, scores, state


def ask(case: Case, enough: float = math.inf, *, careful: bool = True) -> Asked:
    """Ask the kernels; if they are not careful, also where the set is empty."""
    known, scores, state = prepared(case)
    found = find_point(known, scores, state.work)
    bounds = []
    for v in (case.v, -case.v):
        state.work[4][:] = v
        ok = found == HOLDS or not careful
        bounds.append(least(known, scores, state.work, enough) if ok else math.nan)
    width = case.beta * math.sqrt(case.v @ np.linalg.solve(case.V, case.v))
    return Asked(found, bounds[0], bounds[1], float(case.v @ case.center) - width)


def proved(case: Case, scores: Scores, v: Array) -> float:
    """Return what the multipliers in the scores prove: min of u'theta over the ellipsoid + mu b."""
    n = int(scores.cuts[COUNT, 0])
    mu, sign = scores.cuts[MULTIPLIER, :n], scores.cuts[SIGN, :n]
    assert (mu >= 0.0).all()
    u = v - case.menu[:, scores.cuts[ACTION, :n].astype(int)] @ (mu * sign)
    width = case.beta * math.sqrt(max(0.0, u @ np.linalg.solve(case.V, u)))
    return float(u @ case.center - width - mu[sign < 0].sum())  # b is 0, or -1 for the upper end


def solved(case: Case) -> tuple[float, float]:
    """Minimise v'theta over the set by a general solver; also by how much it breaks a constraint.

    theta = center + shape u with |u| <= 1.
    """
    shape = case.beta * np.linalg.inv(np.linalg.cholesky(case.V)).T
    rows, mean, cost = case.menu.T @ shape, case.menu.T @ case.center, shape.T @ case.v
    scale = max(float(np.abs(cost).max()), 1e-12)
    found = minimize(
        lambda u: cost @ u / scale,
        np.zeros(cost.size),
        jac=lambda _: cost / scale,
        constraints=[
            {"type": "ineq", "fun": lambda u: 1 - u @ u, "jac": lambda u: -2 * u},
            {"type": "ineq", "fun": lambda u: mean + rows @ u, "jac": lambda _: rows},
            {"type": "ineq", "fun": lambda u: 1 - mean - rows @ u, "jac": lambda _: -rows},
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    rewards = mean + rows @ found.x
    broken = max(found.x @ found.x - 1, -rewards.min(), rewards.max() - 1)
    return float(case.v @ case.center + cost @ found.x), float(broken)


def test_bounds_lie_between_the_ellipsoid_s_and_the_minimum() -> None:
    gaps = []
    for seed in range(PROBLEMS):
        case = case_of(seed)
        asked = ask(case)
        assert asked.found == HOLDS
        best, broken = solved(case)
        assert asked.ellipsoid - 1e-9 <= asked.bound <= case.v @ case.theta + 1e-9
        if broken <= 1e-9:
            assert asked.bound <= best + 1e-9 * (1 + abs(best))
            gaps.append(best - asked.bound)
    assert len(gaps) > 0.9 * PROBLEMS
    middle, nearly_all, largest = np.quantile(gaps, [0.5, 0.99, 1.0])
    print(f"gap: median {middle:.1e}, 99 % {nearly_all:.1e}, largest {largest:.1e}")
    assert nearly_all < 1e-9
    assert largest < 1e-6


def test_a_search_that_stops_early_finds_the_sign() -> None:
    """It stops at zero; almost always it certifies whenever the minimum is not negative."""
    missed = certified = 0
    for seed in range(PROBLEMS, PROBLEMS + 500):
        case = case_of(seed)
        bound = ask(case, enough=0.0).bound
        best, broken = solved(case)
        if broken > 1e-9:
            continue
        assert bound <= best + 1e-9
        certified += bound >= 0.0
        missed += bound < 0.0 <= best - 1e-6
    assert certified > 100
    assert missed <= 3


def test_empty_sets_are_found() -> None:
    """A set is called empty only if a solver finds no point in it either."""
    found = {HOLDS: 0, UNSURE: 0, EMPTY: 0}
    for seed in range(1_000):
        case = case_of(seed, lost=True)
        asked = ask(case)
        found[asked.found] += 1
        _, broken = solved(case)
        if broken <= 1e-9:
            assert asked.found != EMPTY
        elif broken >= 1e-6:
            assert asked.found != HOLDS
    assert found[EMPTY] > 50
    assert found[UNSURE] <= 2


def test_on_an_empty_set_multipliers_would_prove_anything() -> None:
    """The control: without the test for emptiness, lower bounds exceed upper bounds.

    Large multiples of those that show the emptiness prove whatever is asked for.
    """
    searched = empty = 0
    for seed in range(1_000):
        case = case_of(seed, lost=True)
        asked = ask(case, careful=False)
        if asked.found == HOLDS:
            assert asked.bound <= -asked.against + 1e-6
        if asked.found != EMPTY:
            continue
        empty += 1
        searched += asked.bound > -asked.against + 1e-6
        known, scores, state = prepared(case)
        find_point(known, scores, state.work)
        scores.cuts[MULTIPLIER, : int(scores.cuts[COUNT, 0])] *= 1e6
        assert min(proved(case, scores, case.v), proved(case, scores, -case.v)) > 1.0
    assert empty > 300
    assert searched > 10


def test_an_action_that_is_a_mixture_of_others_needs_no_data() -> None:
    """psi_0 = .7 psi_1 + .2 psi_2 cannot fall below .7 of the reward of action 1."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        menu = np.abs(rng.normal(size=(4, 6))) / 4
        menu[:, 0] = 0.7 * menu[:, 1] + 0.2 * menu[:, 2]
        case = Case(menu, np.eye(4), np.zeros(4), 5.0, menu[:, 0] - 0.7 * menu[:, 1], np.zeros(4))
        asked = ask(case, enough=0.0)
        assert asked.ellipsoid < -0.1
        assert asked.bound == 0.0


def test_rounding_does_not_decide_where_the_minimum_is_zero() -> None:
    """With one feature every lead is a multiple of every reward: its least value is zero."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        menu, theta = rng.uniform(0.1, 1.0, (1, 3)), rng.uniform(0.5, 0.99, 1)
        menu[0, 1] = menu.max()
        v = menu[:, 1] - 0.7 * menu[:, 0]
        asked = ask(Case(menu, np.array([[10.0]]), theta, 5.0, v, theta), enough=0.0)
        assert asked.found == HOLDS
        assert asked.ellipsoid < 0.0
        assert asked.bound == 0.0


def test_a_known_reward_of_the_baseline_counts() -> None:
    """With the baseline's reward known, the range of its action alone decides."""
    menu = np.array([[0.6, 0.8], [0.0, 0.0]])
    case = Case(menu, np.eye(2), np.zeros(2), 3.0, menu[:, 0], np.array([0.5, 0.0]))
    known, scores, state = prepared(case)
    known = known._replace(bottom=0.29, top=0.31)
    assert find_point(known, scores, state.work) == HOLDS
    state.work[4][:] = case.v
    assert least(known, scores, state.work, math.inf) == pytest.approx(0.29, abs=1e-8)
    known = known._replace(bottom=0.9, top=1.0)  # action 1 would be worth 1.2 or more
    assert find_point(known, scores, state.work) == EMPTY


def test_numbers_that_broke_down_are_no_point_of_a_set() -> None:
    case = case_of(3)
    assert ask(case._replace(center=np.full_like(case.center, math.nan))).found == UNSURE


@given(st.integers(0, 10**6), st.floats(0.1, 1.0))
def test_around_a_center_that_keeps_to_the_menu_no_set_is_empty(seed: int, share: float) -> None:
    case = case_of(seed)
    inside = case._replace(center=case.theta, beta=share * case.beta)
    asked = ask(inside)
    assert asked.found == HOLDS
    assert asked.ellipsoid - 1e-9 <= asked.bound <= case.v @ case.theta + 1e-9
    assert asked.bound <= -asked.against + 1e-9


@given(st.integers(0, 10**6))
def test_the_bound_follows_from_its_multipliers(seed: int) -> None:
    """With u = v - sum mu a and mu >= 0."""
    case = case_of(seed)
    known, scores, state = prepared(case)
    assert find_point(known, scores, state.work) == HOLDS
    state.work[4][:] = case.v
    bound = least(known, scores, state.work, math.inf)
    assert scores.cuts[COUNT, 0] <= CUTS
    assert bound == pytest.approx(proved(case, scores, case.v), abs=1e-8)
