"""Pooling: sums, in any order, shared out to everyone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import naive

from guardband.kernels.ridge import absorb
from guardband.kernels.state import new_group, new_statistic, view, view_of
from guardband.kernels.sync import add_statistic, due, pool
from guardband.kernels.types import State, Terms, Trigger


def filled(seed: int, agents: int, d: int, ridge: float) -> tuple[State, list]:
    rng, group = np.random.default_rng(seed), view(new_group(agents, d, ridge), d)
    data = [(rng.normal(size=(7 + m, d)), rng.normal(size=7 + m)) for m in range(agents)]
    for m, (x, y) in enumerate(data):
        for row, value in zip(x, y, strict=True):
            absorb(view_of(group, m), row, value, 1.0, 0.3)
    return group, data


def test_pooled_agents_know_what_all_have_seen() -> None:
    agents, d, ridge = 4, 3, 0.7
    group, data = filled(1, agents, d, ridge)
    logdet, pooled = pool(group, Terms(0.0, ridge, 1.0, 1.0)), view_of(group, agents).own
    x, y = np.concatenate([x for x, _ in data]), np.concatenate([y for _, y in data])
    V, theta, growth = naive.estimate((x, y), ridge)
    assert_allclose(logdet, growth, rtol=1e-12)
    assert pooled.scalars[0] == len(y)
    for m in range(agents):
        state = view_of(group, m)
        assert_allclose(state.estimate.inverse, np.linalg.inv(V), rtol=1e-10)
        assert_allclose(state.estimate.theta, theta, rtol=1e-10)
        assert not any(array.any() for array in state.own)


@given(st.integers(0, 10**6), st.permutations(range(5)))
def test_the_order_of_merges_does_not_matter(seed: int, order: list[int]) -> None:
    group, _ = filled(seed, 5, 3, 1.0)
    parts = [view_of(group, m).own for m in range(5)]
    straight, mixed = new_statistic(3), new_statistic(3)
    for part in parts:
        add_statistic(straight, part)
    for m in order:
        add_statistic(mixed, parts[m])
    for one, other in zip(straight, mixed, strict=True):
        assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_pooling_nothing_new_changes_nothing() -> None:
    group, _ = filled(3, 2, 4, 0.5)
    pool(group, Terms(0.0, 0.5, 1.0, 1.0))
    before = [array.copy() for array in (*group.estimate, *group.own)]
    pool(group, Terms(0.0, 0.5, 1.0, 1.0))
    for old, new in zip(before, (*group.estimate, *group.own), strict=True):
        assert_array_equal(old, new)


@pytest.mark.parametrize(
    ("trigger", "budget", "growth", "rounds", "expected"),
    [
        (Trigger.NEVER, 0.0, 9.0, 9, False),
        (Trigger.PAPER, 6.0, 2.0, 3, True),
        (Trigger.PAPER, 6.1, 2.0, 3, False),
        (Trigger.GROWTH, math.log(2), math.log(2), 1, True),
        (Trigger.GROWTH, math.log(2), 0.69, 99, False),
    ],
)
def test_due(trigger: Trigger, budget: float, growth: float, rounds: int, expected: bool) -> None:
    terms = Terms(0, 1.0, 1.0, 1.0, trigger=int(trigger), budget=budget)
    assert due(terms, 1.5 + growth, 1.5, rounds, 100, False, 3) == expected
