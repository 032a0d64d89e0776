"""Gate and pruned set: the lazy rule decides like the eager one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from guardband.kernels.disc_ucb import choose
from guardband.kernels.pruning import eigenvalue_bounds, gate_need, mark_pruned
from guardband.kernels.ridge import absorb, exact_eigenvalue, radius
from guardband.kernels.scan import scan
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
from guardband.kernels.types import Gate, Mix, RoundInput, Rule, Scores, Terms

NONE = np.zeros((0, 0, 0)), np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0, 0))


def make_terms(rule: Rule, gate: Gate, d: int, sigma: float) -> Terms:
    return Terms(
        int(rule),
        0.05,
        1.0,
        2 * math.log(2 / 1e-2),
        gate=int(gate),
        mix=int(Mix.ACTION),
        sigma=sigma,
        reward_floor=0.3,
    )


def given_of(
    menu: np.ndarray, baseline: int, reward: float, gap: float, alpha: float, coin: float = 0.0
) -> RoundInput:
    coords = np.arange(len(menu))
    return RoundInput(menu, coords, baseline, reward, False, gap, alpha, 0.4, 1, 1, coin, *NONE)


def new_scores(actions: int) -> Scores:
    return scores_of.py_func(new_scratch(actions), actions)


@pytest.mark.parametrize("rule", [Rule.KNOWN, Rule.UNKNOWN])
@pytest.mark.parametrize("gate", [Gate.PRINTED, Gate.NONE])
@pytest.mark.parametrize("d", [2, 5])
def test_lazy_eigenvalues_decide_like_eager_ones(rule: Rule, gate: Gate, d: int) -> None:
    """Two fleets play the same rounds; one computes lambda_min before every decision."""
    rng = np.random.default_rng(7 * d + int(rule))
    terms = make_terms(rule, gate, d, 0.03 if rule == Rule.KNOWN else 0.004)
    terms = terms._replace(theta_bound=0.9, reward_floor=0.4)
    agents, actions, rounds = 2, 12, 1500
    theta = np.full(d, 0.9 / math.sqrt(d))
    menus = np.abs(rng.normal(size=(20, d, actions)))
    menus *= rng.uniform(0.3, 1.0, (20, 1, actions)) / np.linalg.norm(menus, axis=1, keepdims=True)
    groups = [view(new_group(agents, d, terms.ridge), d) for _ in range(2)]
    scores = new_scores(actions)
    lazy_work, reasons = 0, set()
    for t in range(rounds):
        c = rng.integers(20)
        baseline = int(np.argsort(menus[c].T @ theta)[actions // 2])
        reward = float(menus[c, :, baseline] @ theta)
        for m in range(agents):
            coin, noise = rng.random(), rng.normal(0, 0.02)
            given = given_of(menus[c], baseline, reward, 0.0, 0.5, coin)
            played = []
            for eager in (False, True):
                state, shared = view_of(groups[eager], m), view_of(groups[eager], agents)
                pooled = shared.own
                if eager:
                    exact_eigenvalue(state, pooled, terms.ridge)
                before = state.estimate.scalars[3]
                outcome = choose(state, shared, terms, given, scores)
                lazy_work += (not eager) and state.estimate.scalars[3] != before
                low, high = eigenvalue_bounds(state.estimate)
                V = terms.ridge * np.eye(d) + pooled.gram + state.own.gram
                assert low <= np.linalg.eigvalsh(V)[0] <= high
                x = menus[c, :, outcome.action].copy()
                absorb(state, x, x @ theta + noise, 1.0, 0.0)
                played.append(outcome)
            assert played[0] == played[1]
            reasons.add(played[0].reason)
        if t % 100 == 99:
            for group in groups:
                pool(group, terms)
    assert 0 in reasons  # it did learn
    assert len(reasons) > 1  # and it was conservative, too
    assert lazy_work < 0.5 * rounds * agents  # and the eigenvalue was seldom needed


def test_mark_pruned_is_the_definition(rng: np.random.Generator) -> None:
    d, actions = 4, 30
    terms = make_terms(Rule.KNOWN, Gate.NONE, d, 0.05)
    state, pooled = new_state(d, terms.ridge), new_statistic(d)
    theta = np.array([0.5, 0.4, 0.3, 0.2])
    seen = 0
    for _ in range(300):
        x = rng.normal(size=d) / 4
        absorb(state, x, x @ theta + rng.normal(0, 0.02), 1.0, 0.0)
        menu = np.abs(rng.normal(size=(d, actions))) / 3
        scores, kept = new_scores(actions), np.empty(actions, np.bool_)
        beta, floor = radius(state.estimate, terms), 0.3
        scan(state.estimate, beta, np.arange(d), menu, scores)
        mark_pruned(state, pooled, terms, beta, floor, scores, kept)
        V = terms.ridge * np.eye(d) + state.own.gram
        threshold = beta / math.sqrt(np.linalg.eigvalsh(V)[0]) + floor
        assert_array_equal(kept, menu.T @ state.estimate.theta >= threshold)
        seen += 0 < kept.sum() < actions
    assert seen > 20


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_gate_without_margin_never_opens(value: float) -> None:
    menu = np.zeros((2, 1))
    terms = make_terms(Rule.KNOWN, Gate.PRINTED, 2, 0.1)
    assert gate_need(terms, given_of(menu, 0, value, 0.0, 0.5), 1.0) == math.inf


def test_gate_needs() -> None:
    menu = np.zeros((2, 1))
    given = given_of(menu, 0, 0.5, 0.25, 0.2)
    known = make_terms(Rule.KNOWN, Gate.PRINTED, 2, 0.1)._replace(feature_bound=2.0)
    assert gate_need(known, given, 3.0) == pytest.approx((2 * 2 * 3 / (0.2 * 0.5)) ** 2)
    gap = known._replace(gate=int(Gate.GAP))
    assert gate_need(gap, given, 3.0) == pytest.approx((12 / (0.25 + 0.1)) ** 2)
    unknown = known._replace(rule=int(Rule.UNKNOWN))
    need = (2 * (2 - 0.2) * 2 * 3 / (0.2 * 0.3)) ** 2
    assert gate_need(unknown, given, 3.0) == pytest.approx(need)
    assert gate_need(known._replace(gate=int(Gate.NONE)), given, 3.0) == 0.0
