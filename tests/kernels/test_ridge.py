"""The ridge statistics, against their definitions from raw data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import naive

from guardband.kernels.ridge import absorb, absorb_tidily, exact_eigenvalue, radius, refresh
from guardband.kernels.state import new_state, new_statistic
from guardband.kernels.types import Rule, Statistic, Terms


def terms(ridge: float) -> Terms:
    return Terms(int(Rule.KNOWN), ridge, 1.5, 2 * np.log(2 / 0.05), sigma=0.7)


@pytest.mark.parametrize(("d", "ridge"), [(1, 1.0), (2, 0.05), (3, 7.0), (9, 4.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_absorb_keeps_what_the_definition_gives(
    d: int, ridge: float, weighted: bool, rng: np.random.Generator
) -> None:
    state, n = new_state(d, ridge), 200
    x, y = rng.normal(size=(n, d)), rng.normal(size=n)
    w = rng.uniform(0.1, 9.0, n) if weighted else np.ones(n)
    guess = rng.normal(size=n)
    for i in range(n):
        absorb(state, x[i], y[i], w[i], guess[i])
    V, theta, growth = naive.estimate((x, y), ridge, weights=w)
    assert_allclose(state.estimate.inverse, np.linalg.inv(V), rtol=1e-9, atol=1e-13)
    assert_allclose(state.estimate.theta, theta, rtol=1e-9, atol=1e-12)
    assert_allclose(state.estimate.scalars[0], growth, rtol=1e-11)
    assert_allclose(state.estimate.scalars[1], np.trace(V), rtol=1e-12)
    assert_allclose(state.own.gram, V - ridge * np.eye(d), rtol=1e-11, atol=1e-11)
    assert_allclose(state.own.moment, (w * y) @ x, rtol=1e-10, atol=1e-11)
    sums = [n, w @ y**2, w @ (guess**2 - 2 * y * guess), w.sum(), 0, 0]
    assert_allclose(state.own.scalars, sums, rtol=1e-11, atol=1e-11)
    got = radius(state.estimate, terms(ridge))
    log = np.log(np.sqrt(np.linalg.det(V)) * ridge ** (-d / 2) / (0.05 / 2))
    assert_allclose(got, 0.7 * np.sqrt(2 * log) + np.sqrt(ridge) * 1.5, rtol=1e-11)


def test_refresh_rebuilds_the_same_estimate(rng: np.random.Generator) -> None:
    ridge, d = 0.3, 5
    state = new_state(d, ridge)
    for _ in range(100):
        absorb(state, rng.normal(size=d), rng.normal(), 1.0, 0.0)
    before = [array.copy() for array in state.estimate]
    refresh(state, new_statistic(d), ridge)
    for old, new in zip(before, state.estimate, strict=True):
        assert_allclose(new, old, rtol=1e-10, atol=1e-12)


def test_exact_eigenvalue_is_of_all_the_data(rng: np.random.Generator) -> None:
    ridge, d = 0.2, 6
    state, pooled = new_state(d, ridge), new_statistic(d)
    others = rng.normal(size=(50, d))
    pooled.gram[:] = others.T @ others
    for _ in range(30):
        absorb(state, rng.normal(size=d), 0.0, 2.0, 0.0)
    V = ridge * np.eye(d) + pooled.gram + state.own.gram
    assert_allclose(exact_eigenvalue(state, pooled, ridge), np.linalg.eigvalsh(V)[0], rtol=1e-12)


def test_rounding_drift_after_a_million_updates(rng: np.random.Generator) -> None:
    d, ridge = 4, 1e-2
    state = new_state(d, ridge)
    x = rng.normal(size=(1000, d)) * np.array([1.0, 1.0, 1.0, 1e-3])  # one nearly flat direction
    y = x @ np.array([0.3, -0.2, 0.5, 0.1])
    for _ in range(1000):
        for i in range(1000):
            absorb(state, x[i], y[i], 1.0, 0.0)
    fresh = new_state(d, ridge)
    refresh(fresh, state.own, ridge)
    assert_allclose(state.estimate.inverse, fresh.estimate.inverse, rtol=1e-9)
    assert_allclose(state.estimate.theta, fresh.estimate.theta, rtol=1e-9)
    assert_allclose(state.estimate.scalars[0], fresh.estimate.scalars[0], rtol=1e-9)
    assert isinstance(state.own, Statistic)


def test_equal_terms_do_not_add_up_to_knowledge_that_is_not_there() -> None:
    """A baseline that is played for ever: every sum is rounded the same way, time after time."""
    x, y, w, n = np.array([0.3137, 0.7193]), 0.5173, 1.0 / 0.0123**2, 400_000
    across = np.array([x[1], -x[0]]) / np.linalg.norm(x)
    state, pooled = new_state(2, 1.0), new_statistic(2)
    by_variance = terms(1.0)._replace(by_variance=True)
    for _ in range(n):
        absorb_tidily(state, pooled, by_variance, x, y, w, y)
    plain = np.cumsum(np.broadcast_to(w * np.outer(x, x), (n, 2, 2)), axis=0)[-1]
    assert abs(across @ plain @ across) > 1e-4  # one by one
    assert abs(across @ state.own.gram @ across) < 1e-6
    assert_allclose(state.own.gram, n * w * np.outer(x, x), rtol=1e-13)
    assert_allclose(state.own.moment, n * w * y * x, rtol=1e-13)
    sums = [n, n * w * y * y, -n * w * y * y, n * w, n, 0]
    assert_allclose(state.own.scalars, sums, rtol=1e-13)


def test_a_block_begins_again_where_the_sums_were_replaced() -> None:
    """Sums that come from elsewhere, with the same count even, are not mixed with an old block."""
    rng = np.random.default_rng(0)
    state, pooled, plain = new_state(3, 1.0), new_statistic(3), terms(1.0)
    for _ in range(1000):
        absorb_tidily(state, pooled, plain, rng.random(3), rng.random(), 1.0, 0.1)
    other = new_state(3, 1.0)
    data = [(rng.random(3), rng.random()) for _ in range(1100)]
    for x, y in data[:1000]:
        absorb(other, x, y, 2.0, 0.3)
    for mine, theirs in zip(state.own, other.own, strict=True):
        mine[...] = theirs
    refresh(state, pooled, 1.0)
    for x, y in data[1000:]:
        absorb_tidily(state, pooled, plain, x, y, 2.0, 0.3)
    xs, ys = np.array([x for x, _ in data]), np.array([y for _, y in data])
    assert_allclose(state.own.gram, 2.0 * xs.T @ xs, rtol=1e-12)
    assert_allclose(state.own.moment, 2.0 * xs.T @ ys, rtol=1e-12)
