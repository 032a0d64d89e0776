"""Agents that belong to a larger group: sums from elsewhere take the place of pooling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.agent.group import AgentGroup
from guardband.agent.records import Awaited, Request
from guardband.kernels.state import new_statistic
from guardband.kernels.types import Statistic

DIM = 3


def group(algorithm: Any, size: int | None = None) -> AgentGroup:
    return AgentGroup(
        {"only": range(DIM)},
        dim=DIM,
        algorithm=algorithm,
        feature_bound=1.0,
        horizon=None,
        reward_floor=None,
        seed=0,
        size=size,
    )


def sums(count: int, seed: int) -> Statistic:
    """The sums over some observations, as the definition has them."""
    rng = np.random.default_rng(seed)
    total = new_statistic(DIM)
    for x, y, w, g in zip(
        rng.uniform(0, 0.5, (count, DIM)),
        rng.random(count),
        rng.uniform(0.5, 2.0, count),
        rng.random(count),
        strict=True,
    ):
        total.gram[...] += w * np.outer(x, x)
        total.moment[...] += w * y * x
        total.scalars[:4] += (1.0, w * y * y, w * (g * g - 2.0 * y * g), w)
    return total


def test_the_estimate_follows_from_all_sums_together() -> None:
    one = group(gb.GuardUCB(noise=0.5), size=4)
    pooled, handed_in, own = sums(30, 1), sums(7, 2), sums(5, 3)
    one.adopt(pooled, handed_in, own)
    V = np.eye(DIM) + pooled.gram + handed_in.gram + own.gram
    U = pooled.moment + handed_in.moment + own.moment
    estimate = one.states[0].estimate
    assert_allclose(estimate.theta, np.linalg.solve(V, U), rtol=1e-10)
    assert_allclose(estimate.inverse, np.linalg.inv(V), rtol=1e-9)
    assert estimate.scalars[0] == pytest.approx(np.linalg.slogdet(V)[1])
    assert estimate.scalars[2] == pytest.approx(np.linalg.eigvalsh(V)[0])
    assert one.logdet_pooled == pytest.approx(np.linalg.slogdet(np.eye(DIM) + pooled.gram)[1])
    assert_array_equal(one.states[0].own.gram, own.gram)
    # Fewer data than before: nothing of what was known of V remains.
    one.adopt(new_statistic(DIM), new_statistic(DIM), new_statistic(DIM))
    assert_allclose(estimate.theta, 0.0)
    assert estimate.scalars[2] == pytest.approx(1.0)


def test_handing_in_changes_no_estimate() -> None:
    one = group(gb.GuardUCB(noise=0.5), size=4)
    one.adopt(sums(30, 1), new_statistic(DIM), sums(5, 3))
    before = [array.copy() for array in one.states[0].estimate]
    whole = one.pooled.gram + one.states[0].own.gram
    one.hand_in()
    for array, then in zip(one.states[0].estimate, before, strict=True):
        assert_array_equal(array, then)
    assert_array_equal(one.pooled.gram, whole)
    assert not one.states[0].own.scalars.any()


def test_company_sets_m_but_not_the_number_of_seats() -> None:
    alone, among = group(gb.GuardUCB()), group(gb.GuardUCB(), size=4)
    assert (alone.engine.terms.agents, among.engine.terms.agents) == (1.0, 4.0)
    assert (alone.engine.terms.sharing, among.engine.terms.sharing) == (1.0, 4.0)
    assert len(among.states) == 1


@pytest.mark.parametrize("algorithm", [gb.GuardUCB(radius="logdet"), gb.DisLinUCB()])
def test_the_level_can_be_set(algorithm: Any) -> None:
    """The width at the start is sigma sqrt(level) + sqrt(ridge) S, or its like without a bias."""
    one = group(algorithm, size=2)
    empty = np.zeros((0, 0, 0))
    menu = np.zeros((DIM, 1))
    menu[0, 0] = 1.0
    request = Request(menu, 0, 0.5, empty, np.zeros(0), empty)
    for level in (5.0, 20.0):
        one.engine.set_confidence(level)
        got = one.engine.decide(0, request, 1, 1, 0.5).width
        if isinstance(algorithm, gb.GuardUCB):
            want = np.sqrt(level + 1.0)
        else:
            want = one.engine.terms.sigma * np.sqrt(level) + 1.0
        assert got == pytest.approx(want)
    assert one.engine.learn(0, Awaited(menu[:, 0].copy(), 0.0, 1.0, False), 0.5, 0.0, 1, 1) in (
        True,
        False,
    )
