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
from guardband.kernels.alarms import contradiction, doubt_of, is_look, misfit
from guardband.kernels.monitors import Note, monitor_of, rebuild, watch, wealth_of
from guardband.kernels.state import new_group, view, view_of
from guardband.kernels.types import State, Statistic, Terms

DIM = 2
ALL = np.zeros(0)  # look at all


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


@pytest.mark.parametrize(
    ("bias", "scale", "valid"), [(0.0, 1, True), (0.1, 1, True), (0.0, 2, False)]
)
def test_expectations_are_at_most_one_where_noise_is_stated(
    bias: float, scale: int, valid: bool
) -> None:
    """By enumeration: rewards are one half more or less, or `scale` times that, and biased."""
    terms, n = terms_of(noise=0.5, bias_bound=bias), 7
    xs = np.array([[0.5, 0.2], [0.1, 0.6]])[np.arange(n) % 2]
    p, means = xs @ [0.6, 0.4], np.zeros(2)
    shift = bias * np.where(np.arange(n) % 3, 1.0, -1.0)
    for signs in itertools.product((-0.5, 0.5), repeat=n):
        ys = p + shift + scale * np.array(signs)
        state = watched(terms, xs, ys, np.full(n, 4.0), p - bias)
        means += np.exp([state.watch[Note.EVIDENCE], wealth_of(state.watch)]) / 2.0**n
    means[1] += 1.0 / (n + 1.0)  # the wealth of bets that start later
    assert (max(means) <= 1.0 + 1e-9) == valid


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


Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def pooled_with(terms: Terms, tasks: list[Rows]) -> State:
    """Return a group of agents whose monitors have watched these rewards."""
    group, _ = fresh(terms, agents=len(tasks))
    for m, rows in enumerate(tasks):
        for x, y, w in zip(*rows, strict=True):
            watch(view_of(group, m), terms, x, y, w, math.nan)
    return group


def rows_of(theta: Any, n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    xs = rng.uniform(0.1, 0.7, (n, DIM))
    return xs, xs @ np.array(theta) + 0.1 * rng.standard_normal(n), rng.uniform(5.0, 100.0, n)


@pytest.mark.parametrize("bias", [0.0, 0.01])
def test_evidence_that_a_task_does_not_fit_is_its_definition(bias: float) -> None:
    terms = terms_of(agents=3, bias_bound=bias)
    thetas = ([0.9, 0.0], [0.9, 0.0], [0.0, 0.9])
    tasks = [rows_of(theta, 80 + m, seed=m) for m, theta in enumerate(thetas)]
    group = pooled_with(terms, tasks)
    expected = []
    for m in range(3):
        others = tuple(
            np.concatenate(parts)
            for parts in zip(*(tasks[k] for k in range(3) if k != m), strict=True)
        )
        expected.append(reference.fit(tasks[m], others, bias=bias))
        xs, ys, ws = others
        sums = Statistic((xs.T * ws) @ xs, xs.T @ (ws * ys), np.array([0, 0, 0, ws.sum(), 0, 0.0]))
        monitor = monitor_of.py_func(group.watch[m], DIM)
        found = contradiction(monitor, sums, terms, np.zeros((2 * DIM + 12, DIM)))
        assert found == pytest.approx(expected[m], abs=1e-8)
    for due in ([], [1, 1, 1], [0, 0, 1]):
        found = misfit(group, terms, np.array(due, float))
        assert found == (2, pytest.approx(expected[2], abs=1e-8))
    assert misfit(group, terms, np.zeros(3))[0] == -1
    assert expected[2] > 2 * max(expected[:2])  # and not its neighbours
    group.watch[2, Note.APART] = 1.0
    assert misfit(group, terms, ALL)[0] == -1  # who is left fits
    evidence, enough = doubt_of(group, 2, terms)
    assert evidence == pytest.approx(expected[2], abs=1e-8)
    assert enough == pytest.approx(math.log(3 * 3 * 2 / 1e-3))


def test_where_a_neighbour_is_looked_at_all_are_and_the_worst_is_named() -> None:
    terms, thetas = terms_of(agents=3), ([0.9, 0.0], [0.9, 0.0], [0.0, 0.9])
    group = pooled_with(terms, [rows_of(each, 900, seed=m) for m, each in enumerate(thetas)])
    evidence, enough = doubt_of(group, 0, terms)
    assert evidence > enough
    assert misfit(group, terms, np.array([1.0, 0.0, 0.0]))[0] == 2


@pytest.mark.parametrize("number", [1e3, 1e9, 1e15])
def test_who_makes_up_the_most_is_named_by_those_who_agree(number: float) -> None:
    terms = terms_of(agents=4)
    tasks = [rows_of([0.9, 0.1], 60, seed=m) for m in range(3)]
    xs, _, ws = rows_of([0.1, 0.9], 60, seed=9)
    tasks.append((xs, xs @ np.array([0.1, 0.9]), ws))
    group = pooled_with(terms, tasks)
    monitor = monitor_of.py_func(group.watch[3], DIM)
    for part in monitor.own:
        part[...] *= number  # so many times the same rows
    rebuild(monitor, terms, np.zeros((DIM, DIM)))
    found, evidence = misfit(group, terms, ALL)
    assert found == 3
    others = tuple(np.concatenate(parts) for parts in zip(*tasks[:3], strict=True))
    assert evidence == pytest.approx(
        reference.fit((xs, tasks[3][1], ws * number), others), rel=1e-3
    )


@settings(deadline=None, max_examples=40)
@given(
    theta=st.tuples(st.floats(0.0, 0.7), st.floats(0.0, 0.7)),
    features=st.lists(
        st.tuples(st.floats(0.05, 0.7), st.floats(0.05, 0.7)), min_size=1, max_size=3
    ),
    n=st.integers(2, 7),
    weight=st.floats(0.5, 4.0),
)
def test_tasks_that_fit_are_expected_to(
    theta: tuple[float, float], features: list[tuple[float, float]], n: int, weight: float
) -> None:
    """By enumeration, as above: rewards of two tasks in turn."""
    xs = np.array(features)[np.arange(n) % len(features)]
    rates, mean = xs @ np.array(theta), 0.0
    for course in itertools.product((0.0, 1.0), repeat=n):
        ys, ws = np.array(course), np.full(n, weight)
        one, two = ((xs[s], ys[s], ws[s]) for s in (slice(0, n, 2), slice(1, n, 2)))
        chance = np.prod(np.where(ys > 0, rates, 1.0 - rates))
        mean += chance * math.exp(reference.fit(one, two))
    assert mean <= 1.0 + 1e-9


@pytest.mark.parametrize("d", [1, 3, 50])
def test_looks_take_a_square_of_work_per_reward_and_come_an_eighth_later_at_most(d: int) -> None:
    looks = [n for n in range(4_000) if is_look(float(n), d)]
    assert looks[:17] == [*range(d, 16 * d + 1, d), 18 * d][: len(looks[:17])]
    gaps = np.diff(looks)
    assert gaps.min() >= d
    assert (gaps <= np.maximum(np.array(looks[:-1]) / 8, d)).all()
