"""The kernels that only rivals use."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import guardband as gb
from guardband.facts import Facts
from guardband.kernels.linalg import cholesky, invert
from guardband.kernels.loop import UNGUARDED
from guardband.kernels.phased import simulate_phase
from guardband.kernels.ridge import copy_estimate, horizon_radius
from guardband.kernels.rivals import Mode, new_phase_plan
from guardband.kernels.solo import simulate_solo
from guardband.kernels.state import new_state


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_cholesky(d: int, rng: np.random.Generator) -> None:
    matrix = np.cov(rng.normal(size=(d, 4 * d))).reshape(d, d) + 0.1 * np.eye(d)
    factor, inverse = matrix.copy(), np.empty((d, d))
    logdet = cholesky(factor)
    assert_allclose(np.triu(factor), np.linalg.cholesky(matrix).T, rtol=1e-10, atol=1e-12)
    assert logdet == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-12)
    assert invert(matrix.copy(), inverse) == pytest.approx(logdet, abs=1e-14)


@pytest.mark.parametrize(("n", "d"), [(0, 1), (17, 2), (100_000, 9)])
def test_the_radius_in_its_horizon_form(n: int, d: int) -> None:
    made = gb.DisLinUCB(noise=0.3, context_noise=0.4, ridge=0.2, theta_bound=1.5, feature_bound=2.0)
    terms = made.plan(Facts((tuple(range(d)),), d)).terms
    got = horizon_radius(terms, d, float(n), math.log(1 / 0.01))
    expected = 0.5 * math.sqrt(d * math.log((1 + n * 4.0 / 0.2) / 0.01)) + math.sqrt(0.2) * 1.5
    assert got == pytest.approx(expected, rel=1e-12)


def test_a_copied_estimate_is_another_array(rng: np.random.Generator) -> None:
    one, two = new_state(3, 1.0).estimate, new_state(3, 1.0).estimate
    for array in one:
        array[...] = rng.normal(size=array.shape)
    copy_estimate(one, two)
    for a, b in zip(one, two, strict=True):
        assert_allclose(a, b, rtol=0)
        assert a is not b


def test_a_sheet_is_empty_at_first() -> None:
    phase = new_phase_plan(Mode.QUOTAS, (2, 4, 5), 3, 2)
    assert phase.target.shape == (2, 4, 5)
    assert phase.counts.shape == (3, 4, 5)
    assert phase.passed[0] == 0
    assert_allclose(phase.inverse, np.tile(np.eye(2), (3, 1, 1)))


def test_all_problems_share_one_compiled_loop() -> None:
    """Another layout or type of an array would compile a second kernel, seconds each time."""
    rng = np.random.default_rng(0)
    for dim, tasks in ((2, [[0, 1], [0]]), (3, [[0, 2], [1]])):
        phi = rng.uniform(0.1, 0.5, (3, 4, dim))
        problem = gb.Tabular(phi, phi, np.full(dim, 0.4), tasks=tasks, baseline=2)
        rivals = [gb.algorithms.SCLTS(), gb.algorithms.FedPE(), gb.algorithms.SEGE(mix="action")]
        gb.simulate(problem, [gb.DisLinUCB(), *rivals], rounds=20)
    for kernel in (UNGUARDED, simulate_solo, simulate_phase):
        assert len(kernel.compiled.signatures) <= 1
