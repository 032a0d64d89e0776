"""Shares and exponents against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardband.lab.counts import growth, misfit, share_interval


def test_none_and_all_have_closed_forms():
    assert share_interval(0, 50) == (0.0, pytest.approx(1 - 0.025 ** (1 / 50)))
    assert share_interval(50, 50) == (pytest.approx(0.025 ** (1 / 50)), 1.0)


def test_a_value_from_the_tables():
    # Clopper and Pearson, 10 of 20: 0.2720 to 0.7280
    assert share_interval(10, 20) == (
        pytest.approx(0.2720, abs=5e-5),
        pytest.approx(0.7280, abs=5e-5),
    )


@given(st.integers(0, 60), st.integers(1, 60))
def test_misses_mirror_hits(hits, trials):
    hits = min(hits, trials)
    low, high = share_interval(hits, trials)
    other_low, other_high = share_interval(trials - hits, trials)
    assert (low, high) == (pytest.approx(1 - other_high), pytest.approx(1 - other_low))
    assert low <= hits / trials <= high


def test_a_power_has_its_exponent():
    sizes = np.array([2.0, 4.0, 10.0, 50.0])
    samples = np.array([3.0, 5.0, 7.0])[:, None] * sizes**1.5
    assert growth(sizes, samples) == pytest.approx((1.5, 1.5, 1.5))


def test_the_interval_is_over_trials():
    sizes = np.array([1.0, 10.0])
    mean, low, high = growth(sizes, np.array([[1.0, 10.0], [1.0, 100.0]]))  # exponents 1 and 2
    assert mean == pytest.approx(1.5)
    assert high - low == pytest.approx(12.706205)  # t_1 * sqrt(1/2) / sqrt(2), twice


def test_a_bent_curve_is_off_its_line():
    """Logarithms 0, 1, 0 at 0, 1, 2: the line is flat at 1/3, and the middle is 2/3 above it."""
    sizes, e = np.exp([0.0, 1.0, 2.0]), np.e
    assert misfit(sizes, np.array([[1.0, e, 1.0]])) == pytest.approx(np.expm1(2 / 3))
    assert misfit(sizes, np.array([[1.0, e, e**2], [2.0, 2 * e, 2 * e**2]])) == pytest.approx(0.0)
