"""Certificates, mixtures and radii of Guard-UCB, against solvers and definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import bounded
from scipy.optimize import minimize

import guardband as gb
from guardband.facts import Facts
from guardband.kernels.certify import guard_radius, slack_of, slacks, weigh
from guardband.kernels.guard_ucb import choose
from guardband.kernels.ridge import absorb
from guardband.kernels.scan import scan_forms, write_image
from guardband.kernels.state import (
    new_group,
    new_scratch,
    new_state,
    new_statistic,
    scores_of,
    view,
    view_of,
)
from guardband.kernels.sync import pool
from guardband.kernels.types import Reason, RoundInput, Scores, State, Terms

NONE = np.zeros((0, 0, 0)), np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0, 0))


def terms_of(agents: int = 1, dim: int = 3, **settings: object) -> Terms:
    facts = Facts(tuple(tuple(range(dim)) for _ in range(agents)), dim)
    own = {"noise": 0.3, "pooled_set": False}  # the sets of agents' own views
    return gb.GuardUCB(**(own | settings)).plan(facts).terms


def learned(seed: int, dim: int, terms: Terms, rounds: int = 12) -> State:
    rng, state = np.random.default_rng(seed), new_state(dim, terms.ridge)
    theta = np.abs(rng.normal(size=dim))
    theta /= np.linalg.norm(theta)
    for _ in range(rounds):
        x = np.abs(rng.normal(size=dim)) / 3
        guess = float(x @ state.estimate.theta)
        absorb(state, x, x @ theta + rng.normal(0, 0.3), rng.uniform(1, 10), guess)
    return state


def given_of(
    menu: np.ndarray,
    baseline: int,
    alpha: float = 0.1,
    reward: float | None = None,
    support: tuple = NONE,
    coin: float = 0.0,
) -> RoundInput:
    """Return what an agent is given; `reward` is the baseline's, if it is reported."""
    known, told, coords = reward is not None, reward or 0.0, np.arange(len(menu))
    return RoundInput(menu, coords, baseline, told, known, 0.0, alpha, 0.0, 1, 5, coin, *support)


def new_scores(given: RoundInput) -> Scores:
    actions = given.menu.shape[1]
    return scores_of.py_func(new_scratch(actions, given.weights.size), actions)


def scanned(state: State, given: RoundInput) -> Scores:
    scores, menu = new_scores(given), given.menu
    scan_forms(state.estimate, given.coords, menu, scores.mean, scores.form)
    write_image(state.estimate, menu, given.baseline, given.coords, state.work[1])
    return scores


def least(v: np.ndarray, theta: np.ndarray, V: np.ndarray, beta: float) -> float:
    """Minimise v'x over the ellipsoid with a solver that knows nothing of its closed form."""
    shape = beta * np.linalg.inv(np.linalg.cholesky(V)).T  # x = theta + shape u, |u| <= 1
    cost = shape.T @ v
    scale = max(np.abs(cost).max(), 1e-12)
    ball = {"type": "ineq", "fun": lambda u: 1 - u @ u, "jac": lambda u: -2 * u}
    found = minimize(
        lambda u: cost @ u / scale,
        -0.5 * np.sign(cost) / math.sqrt(v.size),
        jac=lambda _: cost / scale,
        constraints=[ball],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-15},
    )
    return float(v @ theta + cost @ found.x)


@pytest.mark.parametrize("reward", [None, 0.3])
def test_all_slacks_together_have_the_bits_of_one_by_one(reward: float | None) -> None:
    terms = terms_of(dim=6, baseline_tolerance=0.05 if reward else None)
    state, menu = learned(0, 6, terms), np.abs(np.random.default_rng(1).normal(size=(6, 83))) / 4
    menu[:, 7] = menu[:, 2]  # the baseline again
    given = given_of(menu, 2, reward=reward)
    scores = scanned(state, given)
    slacks(state.estimate, 0.4, terms, given, scores, state.work[1])
    for k in range(83):
        one = slack_of(state.estimate, 0.4, terms, given, scores, state.work[1], k)
        assert scores.slack[k] == one
    assert 0 < np.sum(scores.slack >= 0.0) < 83


@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0.05, 1.0))
def test_the_difference_certificate_is_the_minimum_over_the_set(
    seed: int, dim: int, alpha: float
) -> None:
    terms = terms_of(dim=dim)
    state, rng = learned(seed, dim, terms), np.random.default_rng(seed + 1)
    menu, beta = np.abs(rng.normal(size=(dim, 4))) / 2, 1.3
    given = given_of(menu, 1, alpha)
    scores = scanned(state, given)
    V = terms.ridge * np.eye(dim) + state.own.gram
    for k in range(4):
        got = slack_of(state.estimate, beta, terms, given, scores, state.work[1], k)
        V_theta = (state.estimate.theta, V, beta)
        share = least(menu[:, k] - (1 - alpha) * menu[:, 1], *V_theta)
        whole = 0.0 if k == 1 else least(menu[:, k] - menu[:, 1], *V_theta)
        assert got == pytest.approx(max(share, whole), abs=1e-6)
        inside = rng.normal(size=(50, dim))
        inside *= beta / np.sqrt(np.einsum("ni,ij,nj->n", inside, V, inside))[:, None]
        rewards = (state.estimate.theta + inside) @ menu
        possible = (rewards >= 0).all(axis=1)  # rewards are not negative
        leads = (rewards[:, k] - (1 - alpha) * rewards[:, 1])[possible]
        assert got <= leads.min(initial=np.inf) + 1e-12


def test_a_known_reward_is_a_certificate_with_a_tolerance() -> None:
    terms = terms_of(baseline_tolerance=0.02)
    state, alpha = learned(3, 3, terms, 200), 0.2
    menu, beta = np.array([[0.6, 0.1], [0.2, 0.5], [0.3, 0.3]]), 0.4
    given = given_of(menu, 1, alpha, 0.3)
    scores = scanned(state, given)
    V = terms.ridge * np.eye(3) + state.own.gram
    difference = least(menu[:, 0] - 0.8 * menu[:, 1], state.estimate.theta, V, beta)
    lower = least(menu[:, 0], state.estimate.theta, V, beta)
    got = slack_of(state.estimate, beta, terms, given, scores, state.work[1], 0)
    assert got == pytest.approx(max(difference, max(0, lower) - 0.8 * 0.32), abs=1e-6)
    baseline = slack_of(state.estimate, 50.0, terms, given, scores, state.work[1], 1)
    assert baseline == pytest.approx(0.2 * 0.28)


def decide(state: State, terms: Terms, given: RoundInput, coin: float):
    shared = view_of(view(new_group(1, len(given.menu), terms.ridge), len(given.menu)), 1)
    return choose(state, shared, terms, given._replace(coin=coin), new_scores(given))


@pytest.mark.parametrize("on_refuted", ["ellipsoid", "baseline"])
@pytest.mark.parametrize("known", [False, True])
def test_policy_mixtures_clear_the_floor_as_far_as_they_can(known: bool, on_refuted: str) -> None:
    """The mixture's minimum over the set is not negative, and a larger share of the target's is.

    The set is the ellipsoid, or what the range of rewards leaves of it.
    """
    tolerance = 0.0 if known else None
    seen = better = 0
    for seed in range(300):
        dim, alpha = 3, 0.15
        terms = terms_of(
            dim=dim, mode="policy", baseline_tolerance=tolerance, on_refuted=on_refuted
        )
        state, rng = learned(seed, dim, terms, 40), np.random.default_rng(seed)
        menu = np.abs(rng.normal(size=(dim, 6))) / 2.5
        given = given_of(menu, 2, alpha, 0.45 if known else None)
        outcome = decide(state, terms, given, coin=0.999999)
        if not outcome.conservative or outcome.reason == Reason.REFUTED:
            continue
        seen += 1
        assert outcome.chance >= alpha - 1e-12
        V = terms.ridge * np.eye(dim) + state.own.gram

        def bound(r, alpha=alpha, outcome=outcome, menu=menu, state=state, V=V) -> float:
            v = (1 - r) * menu[:, outcome.partner] + r * menu[:, outcome.target]
            v = v - (1 - alpha) * menu[:, 2]
            if on_refuted == "ellipsoid":
                return least(v, state.estimate.theta, V, outcome.beta)
            low, high = np.zeros(6), np.ones(6)
            if known:
                low[2] = high[2] = 0.45
            return bounded.minimum(v, state.estimate.theta, V, outcome.beta, menu.T, low, high)

        if outcome.chance > alpha + 1e-9 and not (known and on_refuted == "ellipsoid"):
            better += 1
            slack = 1e-5 if on_refuted == "ellipsoid" else 1e-3  # how exactly the chance is found
            assert -1e-5 <= bound(outcome.chance) <= slack
            assert bound(min(1.0, outcome.chance + 0.02)) < 0.0
        assert outcome.margin >= 0.0
        # By the coin: the partner here, the target for a coin below the chance.
        assert outcome.action == outcome.partner
        flipped = decide(state, terms, given, coin=outcome.chance - 1e-9)
        assert flipped.action == outcome.target
        assert flipped.propensity == pytest.approx(outcome.chance)
    assert seen > 50
    assert better > 5 or (known and on_refuted == "ellipsoid")


def raw_radius(w, x, y, guess, ridge, level, S) -> float:
    """Return the empirical radius from raw data: sum of squares around the predictions."""
    V = ridge * np.eye(x.shape[1]) + (x * w[:, None]).T @ x
    theta = np.linalg.solve(V, (x * w[:, None]).T @ y)
    residual = w @ (y - guess) ** 2  # sum w (y - yhat)^2
    best = w @ (y - x @ theta) ** 2 + ridge * theta @ theta  # the ridge minimum
    return math.sqrt(max(0.0, residual - best + level + ridge * S**2))


@pytest.mark.parametrize("late", [False, True])
def test_the_empirical_radius_is_its_definition_from_raw_data(late: bool) -> None:
    """Three streams; where one joins late, the others predicted without it all the while."""
    agents, dim, rng = 3, 3, np.random.default_rng(5)
    terms = terms_of(agents, dim, radius="empirical", delta=0.1)
    group, seen = view(new_group(agents, dim, terms.ridge), dim), []
    theta = np.array([0.5, 0.4, 0.6])
    for t in range(60):
        for m in range(agents):
            state = view_of(group, m)
            x = np.abs(rng.normal(size=dim)) / 2
            y, w = x @ theta + rng.normal(0, 0.3), rng.uniform(1, 9)
            guess = float(x @ state.estimate.theta)
            absorb(state, x, y, w, guess)
            seen.append((w, x, y, guess))
        if t % 20 == 19 and (not late or t > 50):
            pool(group, terms)
    w, x, y, guess = (np.array([row[i] for row in seen]) for i in range(4))
    epoch = 4
    level = 2 * math.log(math.pi**2 * agents * epoch**2 / (6 * 0.1))
    want = raw_radius(w, x, y, guess, terms.ridge, level, 1.0)
    got = guard_radius(view_of(group, 0), view_of(group, agents).own, terms, epoch)
    assert got == pytest.approx(want, rel=1e-9)


def test_the_log_det_radius_and_the_better_of_both() -> None:
    dim = 2
    settings = {"delta": 0.05, "theta_bound": 2.0, "ridge": 0.5}
    kinds = {r: terms_of(4, dim, radius=r, **settings) for r in ("best", "logdet", "empirical")}
    state, pooled = learned(1, dim, kinds["best"], 30), new_statistic(dim)
    V = 0.5 * np.eye(dim) + state.own.gram
    for epoch in (1, 7):
        level = 2 * math.log(math.pi**2 * 4 * epoch**2 / (6 * 0.05))
        logdet = math.sqrt(np.linalg.slogdet(V / 0.5)[1] + level + 0.5 * 4)
        assert guard_radius(state, pooled, kinds["logdet"], epoch) == pytest.approx(logdet)
        halves = [
            math.sqrt(guard_radius(state, pooled, kinds[k], epoch) ** 2 + 2 * math.log(2))
            for k in ("logdet", "empirical")
        ]
        assert guard_radius(state, pooled, kinds["best"], epoch) == pytest.approx(min(halves))


def test_a_bias_bound_widens_both_radii() -> None:
    dim, eps = 2, 0.05
    plain = {r: terms_of(1, dim, radius=r) for r in ("logdet", "empirical")}
    wide = {r: terms_of(1, dim, radius=r, bias_bound=eps) for r in ("logdet", "empirical")}
    state, pooled = learned(1, dim, plain["logdet"], 30), new_statistic(dim)
    total = state.own.scalars[3]
    base = guard_radius(state, pooled, plain["logdet"], 1)
    got = guard_radius(state, pooled, wide["logdet"], 1)
    assert got == pytest.approx(base + eps * math.sqrt(total))
    level = 2 * math.log(math.pi**2 / (6 * 1e-3))
    square = guard_radius(state, pooled, plain["empirical"], 1) ** 2 + level + 2 * eps**2 * total
    assert guard_radius(state, pooled, wide["empirical"], 1) == pytest.approx(math.sqrt(square))


def test_the_paper_s_radius_is_the_paper_s() -> None:
    """In units where an observation weighs 1 / (1 + R^2), the widths are those of eq. conf."""
    R, delta, ridge, dim = 0.5, 0.05, 0.7, 3
    scale = 1 + R**2
    terms = terms_of(1, dim, noise=R, delta=delta, radius="paper", ridge=ridge / scale)
    state, rng = new_state(dim, terms.ridge), np.random.default_rng(0)
    x = rng.normal(size=(40, dim)) / 2
    given = given_of(x.T.copy(), 0)
    for i in range(40):
        weight = weigh(state.estimate, 1.0, terms, given, i, 0.0)[0]
        assert weight == pytest.approx(1 / scale)
        absorb(state, x[i], 0.3, weight, 0.0)
    V = ridge * np.eye(dim) + x.T @ x
    log = 0.5 * np.linalg.slogdet(V / ridge)[1] + math.log(2 / delta)
    paper = math.sqrt(scale) * math.sqrt(2 * log) + math.sqrt(ridge)
    z = np.array([0.3, 0.2, 0.7])
    ours = guard_radius(state, new_statistic(dim), terms, 9) * math.sqrt(
        z @ state.estimate.inverse @ z
    )
    assert ours == pytest.approx(paper * math.sqrt(z @ np.linalg.inv(V) @ z))


def test_weights_follow_the_spread() -> None:
    dim, n = 2, 4
    terms = terms_of(5, dim, noise=0.1, theta_bound=1.2)
    state, rng = learned(2, dim, terms, 50), np.random.default_rng(3)
    pages, weights = np.abs(rng.normal(size=(n, dim, 3))) / 4, np.array([0.4, 0.0, 0.3, 0.3])
    menu = np.einsum("n,ndk->dk", weights, pages)
    given = given_of(menu, 0, support=(pages, np.arange(n), weights, NONE[3]))
    used = [0, 2, 3]
    for beta in (0.01, 0.3, 9.0):
        for k in range(3):
            phi = pages[used, :, k]
            width = beta * np.sqrt(np.einsum("ni,ij,nj->n", phi, state.estimate.inverse, phi))
            mean = phi @ state.estimate.theta
            seen = (min(1, (mean + width).max()) - max(0, (mean - width).min())) / 2
            far = max(np.linalg.norm(a - b) for a in phi for b in phi)
            s = max(0.0, min(0.5, 1.2 / 2 * far, seen))
            got = weigh(state.estimate, beta, terms, given, k, 0.0)[0]
            assert got == pytest.approx(1 / (0.01 + 5 * s**2))
    bare = given_of(menu, 0)
    assert weigh(state.estimate, 1.0, terms, bare, 0, 0.0)[0] == pytest.approx(1 / (0.01 + 5 / 4))
    told = terms_of(5, dim, noise=0.1, context_noise=0.2, shared_context=False)
    assert weigh(state.estimate, 1.0, told, given, 0, 0.0)[0] == pytest.approx(1 / 0.05)


def test_many_support_points_use_a_bound_that_is_never_smaller() -> None:
    dim, n = 2, 100
    terms, rng = terms_of(1, dim, noise=0.1), np.random.default_rng(1)
    state = learned(2, dim, terms, 5)
    pages, weights = rng.uniform(0.2, 0.3, (n, dim, 1)), np.full(n, 1 / n)
    support = (pages, np.arange(n), weights, NONE[3])
    given = given_of(pages.mean(axis=0), 0, support=support)
    phi = pages[:, :, 0]
    exact = max(np.linalg.norm(a - b) for a in phi for b in phi) / 2
    got = weigh(state.estimate, 99.0, terms, given, 0, 0.0)[0]
    s = math.sqrt(1 / got - 0.01)
    assert exact <= s <= 2 * exact


@given(st.integers(0, 10**6), st.floats(0.0, 3.0), st.floats(0.0, 3.0))
def test_what_is_certified_stays_so_when_the_radius_shrinks(seed: int, a: float, b: float) -> None:
    terms = terms_of()
    state, rng = learned(seed, 3, terms), np.random.default_rng(seed)
    menu = np.abs(rng.normal(size=(3, 5))) / 2
    given = given_of(menu, 0, 0.3)
    scores = scanned(state, given)
    for k in range(5):
        wide, narrow = (
            slack_of(state.estimate, beta, terms, given, scores, state.work[1], k)
            for beta in (max(a, b), min(a, b))
        )
        assert narrow >= wide
