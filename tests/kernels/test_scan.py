"""Means and upper bounds of a menu, against the definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from guardband.kernels.ridge import absorb
from guardband.kernels.scan import scan
from guardband.kernels.state import new_scratch, new_state, scores_of
from guardband.kernels.types import Scores, State


def new_scores(actions: int) -> Scores:
    return scores_of.py_func(new_scratch(actions), actions)


def experienced(seed: int, d: int, ridge: float) -> State:
    rng, state = np.random.default_rng(seed), new_state(d, ridge)
    for _ in range(3 * d):
        absorb(state, rng.normal(size=d), rng.normal(), 1.0, 0.0)
    return state


@given(st.integers(0, 10**6), st.integers(1, 11), st.integers(1, 70), st.data())
def test_scan(seed: int, d: int, actions: int, data: st.DataObject) -> None:
    coords = np.array(sorted(data.draw(st.sets(st.integers(0, d - 1), min_size=1))))
    state, rng = experienced(seed, d, 0.5), np.random.default_rng(seed + 1)
    menu, scores, beta = rng.normal(size=(d, actions)), new_scores(actions), 1.7
    scan(state.estimate, beta, coords, menu, scores)
    psi = np.zeros((actions, d))
    psi[:, coords] = menu.T[:, coords]
    mean = psi @ state.estimate.theta
    width = np.sqrt(np.einsum("ki,ij,kj->k", psi, state.estimate.inverse, psi))
    assert_allclose(scores.mean, mean, rtol=1e-11, atol=1e-13)
    assert_allclose(scores.upper, mean + beta * width, rtol=1e-11, atol=1e-13)


def test_an_action_does_not_depend_on_its_neighbours() -> None:
    d, actions = 9, 53
    state, rng = experienced(3, d, 1.0), np.random.default_rng(4)
    menu, coords = rng.normal(size=(d, actions)), np.arange(d)
    scores = new_scores(actions)
    scan(state.estimate, 2.0, coords, menu, scores)
    for k in range(actions):
        alone = new_scores(1)
        scan(state.estimate, 2.0, coords, menu[:, k : k + 1].copy(), alone)
        assert_array_equal(alone.mean[0], scores.mean[k])
        assert_array_equal(alone.upper[0], scores.upper[k])
