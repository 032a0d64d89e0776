"""Violations in conservative rounds, counted again from every round of the plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sim.test_against_reference import CASES, run

STRICT = 0.01  # a floor so near the baseline that conservative rounds fall below it


@pytest.mark.parametrize("name", CASES)
def test_conservative_rounds_are_counted_apart(name: str) -> None:
    case, alpha = CASES[name], STRICT
    ref = case.reference()
    contexts = case.draws["contexts"]
    floor = np.zeros(ref.rewards.shape)
    for m, task in enumerate(case.tasks):
        features = case.phi[contexts, np.asarray(case.baseline)[m][contexts]][:, list(task)]
        floor[:, m] = (1.0 - alpha) * (features @ case.theta[list(task)])
    low = ref.rewards < floor - 1e-12
    (series,) = run(case, alpha).series
    assert_array_equal(series.totals["violations_realised"][0], low.sum(axis=0))
    wanted = (low & ref.conservative).sum(axis=0)
    assert_array_equal(series.totals["violations_conservative"][0], wanted)
    if not ref.conservative.any():
        assert not series.totals["violations_conservative_expected"].any()
    if ref.conservative.all():
        expected = series.totals["violations_expected"]
        assert_array_equal(series.totals["violations_conservative_expected"], expected)
    if (case.phi == case.psi).all():
        assert_array_equal(series.totals["violations_conservative_expected"][0], wanted)


def test_both_kinds_of_rounds_fall_below_such_a_floor() -> None:
    found = [run(case, STRICT).series[0].totals for case in CASES.values()]
    split = [(t["violations_conservative"], t["violations_realised"]) for t in found]
    assert any((home > 0).any() and (home < whole).any() for home, whole in split)
    means = [(t["violations_conservative_expected"], t["violations_expected"]) for t in found]
    assert any((home > 0).any() and (home < whole).any() for home, whole in means)
