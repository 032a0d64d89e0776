"""Means and upper bounds of a menu, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from guardband.kernels.menus import FINE, NOT_FINITE, TOO_LONG, load_menu
from guardband.kernels.ridge import absorb
from guardband.kernels.scan import (
    argmax,
    product,
    scan,
    scan_forms,
    write_image,
    write_products,
)
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


SIZES = [1, 3, 4, 5, 8, 21, 50]


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("size", [1e30, 1.0, 1e-155])  # beyond float32; forms that are subnormal
def test_every_size_is_as_defined(d: int, size: float) -> None:
    """More actions than a block; in extended precision, one action after another."""
    state, rng = experienced(d, d, 1.0), np.random.default_rng(d)
    menu, scores = size * rng.normal(size=(d, 600)), new_scores(600)
    scan_forms(state.estimate, np.arange(d), menu, scores.mean, scores.form)
    inverse = state.estimate.inverse.astype(np.longdouble)
    least = 5e-324 * d * d  # every product of subnormal numbers may be off by half the smallest
    for k in range(0, 600, 7):
        psi = menu[:, k].astype(np.longdouble)
        assert_allclose(scores.form[k], float(psi @ inverse @ psi), rtol=1e-12, atol=least)
        assert_allclose(scores.mean[k], float(psi @ state.estimate.theta), rtol=1e-10)


@pytest.mark.parametrize("d", SIZES)
def test_equal_actions_are_equal_to_the_bit_wherever_they_stand(d: int) -> None:
    state, rng = experienced(d, d, 1.0), np.random.default_rng(d)
    menu, scores = np.repeat(rng.normal(size=(d, 1)), 523, axis=1), new_scores(523)
    scan(state.estimate, 2.0, np.arange(d), menu, scores)
    assert np.unique(scores.upper).size == 1
    assert argmax(scores.upper) == 0
    menu[:, 300:] = np.nextafter(menu[:, 300:], np.inf)  # as near a tie as there is
    scan(state.estimate, 2.0, np.arange(d), menu, scores)
    assert np.unique(scores.upper[:300]).size == np.unique(scores.upper[300:]).size == 1
    assert argmax(scores.upper) == (300 if scores.upper[300] > scores.upper[0] else 0)


@pytest.mark.parametrize("d", SIZES)
def test_products_and_images_have_the_bits_of_plain_sums(d: int) -> None:
    rng, state = np.random.default_rng(d), experienced(d, d, 1.0)
    menu, image, found = rng.normal(size=(d, 37)), rng.normal(size=d), np.empty(37)
    for coords in (np.arange(d), np.arange(0, d, 2)):
        write_products(image, menu, coords, found)
        assert [product(image, menu, k, coords) for k in range(37)] == found.tolist()
        write_image(state.estimate, menu, 5, coords, image)
        for i in coords:
            total = 0.0
            for j in coords:
                total += state.estimate.inverse[i, j] * menu[j, 5]
            assert image[i] == total


@pytest.mark.parametrize("fault", [np.nan, np.inf, 1e200, 0.9])
@pytest.mark.parametrize("used", [4, 3])
def test_the_first_action_at_fault_is_named(fault: float, used: int) -> None:
    """In blocks of four, and in what is left over; with all features, and with some of them."""
    rng, index, menu = np.random.default_rng(0), np.arange(used), np.empty((4, 11))
    for k in range(11):
        features = rng.uniform(0.0, 0.5, (11, 4))
        assert load_menu(features, index, 1.0, menu) == (FINE, 0)
        assert_array_equal(menu[:used], features.T[:used])
        assert_array_equal(menu[used:], 0.0)
        features[k:, 1] = fault
        features[k:, 2] = 0.9 if fault == 0.9 else features[k:, 2]
        code = TOO_LONG if np.isfinite(fault) else NOT_FINITE
        assert load_menu(features, index, 1.0, menu) == (code, k)


@pytest.mark.parametrize("fault", [np.nan, np.inf, -1e200, -0.9])
@pytest.mark.parametrize("used", [4, 3])
def test_menus_that_are_read_ahead_are_as_small_ones(fault: float, used: int) -> None:
    rng, index, menu = np.random.default_rng(0), np.arange(used), np.empty((4, 5_003))
    features = rng.uniform(-0.5, 0.5, (5_003, 4))
    assert load_menu(features, index, 1.0, menu) == (FINE, 0)
    assert_array_equal(menu[:used], features.T[:used])
    assert_array_equal(menu[used:], 0.0)
    for k in (5_002, 4_100, 1_024, 1_023, 0):
        features[k, 1:3] = fault
        code = TOO_LONG if np.isfinite(fault) else NOT_FINITE
        assert load_menu(features, index, 1.0, menu) == (code, k)
    features[:] = 0.0
    features[1_030, 0] = -1.0  # as long as the bound
    assert load_menu(features, index, 1.0, menu) == (FINE, 0)
    assert_array_equal(menu[:used], features.T[:used])
