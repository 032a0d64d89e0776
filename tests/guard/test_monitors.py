"""The monitors: against their definitions, and their expectation as long as nothing is wrong."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import monitors as reference

import guardband as gb
from guardband.facts import Facts
from guardband.kernels.alarms import misfit
from guardband.kernels.monitors import Note, monitor_of, watch, wealth_of
from guardband.kernels.state import new_group, view, view_of
from guardband.kernels.types import State, Terms

DIM = 2


def terms_of(**told: Any) -> Terms:
    told = {"noise": 0.5, "context_noise": 0.0, **told}
    facts = Facts((tuple(range(DIM)),) * told.pop("agents", 1), DIM)
    return Terms(*map(float, gb.GuardUCB(0.2, **told).plan(facts).terms))


def fresh(terms: Terms, agents: int = 1) -> tuple[State, State]:
    group = view(new_group(agents, DIM, terms.ridge), DIM)
    return group, view_of(group, 0)


def watched(terms: Terms, xs: Any, ys: Any, ws: Any, lowers: Any = None) -> State:
    """Let a new agent's monitors watch rewards; a threshold that is not reached is assumed."""
    _, state = fresh(terms)
    for t, (x, y, w) in enumerate(zip(xs, ys, ws, strict=True)):
        watch(state, terms, x, y, w, math.nan if lowers is None else lowers[t])
    return state


@pytest.mark.parametrize("bias", [0.0, 0.05])
@pytest.mark.parametrize("again", [False, True])
def test_evidence_against_the_assumptions_is_its_definition(bias: float, again: bool) -> None:
    rng, n = np.random.default_rng(3), 60
    xs = rng.uniform(0.1, 0.7, (4 if again else n, DIM))
    xs = xs[rng.integers(4, size=n)] if again else xs
    theta = np.where(np.arange(n)[:, None] < 30, [0.9, 0.1], [0.1, 0.9])  # it changes
    ys = (xs * theta).sum(axis=1) + 0.1 * rng.standard_normal(n)
    ws = rng.uniform(5.0, 100.0, n)
    terms = terms_of(bias_bound=bias)
    expected = reference.assumptions(xs, ys, ws, bias=bias)
    for m in (1, 2, 17, 60):
        state = watched(terms, xs[:m], ys[:m], ws[:m])
        assert state.watch[Note.EVIDENCE] == pytest.approx(expected[m - 1], abs=1e-8)
    monitor = monitor_of.py_func(state.watch, DIM)
    assert_allclose(monitor.own.gram, (xs.T * ws) @ xs)
    assert_allclose(monitor.own.moment, xs.T @ (ws * ys))
    assert monitor.own.scalars[0] == n


@pytest.mark.parametrize("bounded", [False, True])
def test_evidence_against_certificates_is_its_definition(bounded: bool) -> None:
    rng, n = np.random.default_rng(5), 25
    ys, lowers, ws = rng.random(n), rng.uniform(-0.2, 0.9, n), np.full(n, 4.0)
    terms = terms_of(noise=None if bounded else 0.5)
    expected = reference.certificates(ys, lowers, ws, bounded=bounded)
    xs = rng.random((n, DIM))
    for m in (1, 2, 25):
        state = watched(terms, xs[:m], ys[:m], ws[:m], lowers)
        assert wealth_of(state.watch) == pytest.approx(expected[m - 1], abs=1e-10)


@settings(deadline=None, max_examples=40)
@given(
    theta=st.tuples(st.floats(0.0, 0.7), st.floats(0.0, 0.7)),
    features=st.lists(
        st.tuples(st.floats(0.05, 0.7), st.floats(0.05, 0.7)), min_size=1, max_size=3
    ),
    n=st.integers(1, 7),
)
def test_expectations_are_at_most_one(
    theta: tuple[float, float], features: list[tuple[float, float]], n: int
) -> None:
    """By enumeration: rewards are 0 or 1, so that every course of n rewards can be gone through."""
    terms, p = terms_of(noise=None), np.array(features) @ np.array(theta)
    xs = np.array(features)[np.arange(n) % len(features)]
    rates = np.resize(p, n)
    means = np.zeros(2)
    for ys in itertools.product((0.0, 1.0), repeat=n):
        chance = np.prod(np.where(np.array(ys) > 0, rates, 1.0 - rates))
        state = watched(terms, xs, ys, np.full(n, 4.0), rates)  # the bounds are exact
        found = state.watch[Note.EVIDENCE], wealth_of(state.watch)
        means += chance * np.exp(found)
    # What is left of the second is the wealth of bets that start later: 1 / (n + 1).
    assert means[0] <= 1.0 + 1e-9
    assert means[1] + 1.0 / (n + 1.0) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("weight", "valid"), [(4.0, True), (12.0, False)])
def test_the_weight_is_what_makes_it_valid(weight: float, valid: bool) -> None:
    """By enumeration, with the true theta in place of the best: the process that dominates it."""
    xs, n = np.array([[0.7, 0.0], [0.0, 0.7]]), 8
    xs, means = xs[np.arange(n) % 2], []
    for p in (0.2, 0.5):
        mean = 0.0
        for course in itertools.product((0.0, 1.0), repeat=n):
            ys = np.array(course)
            state = watched(terms_of(noise=None), xs, ys, np.full(n, weight))
            theta = monitor_of.py_func(state.watch, DIM).theta
            least = weight * ((ys - xs @ theta) ** 2).sum() + theta @ theta
            log = (
                state.watch[Note.EVIDENCE]
                + 0.5
                - 0.5 * least
                + 0.5 * weight * ((ys - p) ** 2).sum()
            )
            mean += p ** ys.sum() * (1.0 - p) ** (n - ys.sum()) * math.exp(log)
        means.append(mean)
    assert (max(means) <= 1.0 + 1e-9) == valid


def test_the_distance_of_a_task_to_the_pool_is_its_definition() -> None:
    rng, n = np.random.default_rng(7), 40
    terms = terms_of(agents=2, delta_alarm=0.5)
    group, state = fresh(terms, agents=2)
    xs = rng.uniform(0.1, 0.7, (n, DIM))
    ys, ws = xs @ np.array([0.9, 0.0]) + 0.1 * rng.standard_normal(n), np.full(n, 100.0)
    other = view_of(group, 1)
    for x, y, w in zip(xs, ys, ws, strict=True):
        watch(state, terms, x, y, w, math.nan)
        watch(other, terms, x, x @ np.array([0.0, 0.9]), w, math.nan)
    # What both hold to be pooled: a set around a third point.
    V, centre = 500.0 * np.eye(DIM), np.array([0.3, 0.5])
    for each in (state, other):
        each.estimate.inverse[...] = np.linalg.inv(V)
        each.estimate.theta[...] = centre
    beta = math.sqrt(terms.confidence + 1.0)  # level + ridge S^2 in epoch 1: no data, no log det
    found, evidence = misfit(group, terms, 1)
    expected = reference.fit(xs, ys, ws, centre, V, beta)
    assert found == 0  # the other one is nearer to the set
    assert 0.7 * expected <= evidence <= expected + 1e-9
    near = reference.fit(xs, xs @ np.array([0.0, 0.9]), ws, centre, V, beta)
    assert near < expected
