from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

import guardband as gb
from guardband.problems import Toy, toy_safe_sets

ALL = ("x", "x'", "x''")


def test_matrices_of_the_paper() -> None:
    world = Toy().build(0)
    assert_allclose(world.phi[0].T, [[1 / 3, 1, 1], [1 / 4, 0, -1 / 10]])
    assert_allclose(world.psi[0].T, [[1 / 4, 6 / 5, 4 / 5], [1 / 3, -1 / 5, 1 / 10]])
    assert_allclose(world.theta, [1, 2])
    assert world.tasks == ((0, 1), (0,), (1,))
    assert world.baseline.tolist() == [[0], [0], [0]]
    assert_allclose(world.baseline_rewards, [[5 / 6, 1 / 3, 1 / 2]])
    assert world.realised[0, 0].argmax() == 1  # x' is optimal under c
    assert world.best[0, 0] == 2  # and x'' under c'


def test_the_claims_hold_for_small_alpha_only() -> None:
    true, expected = Fraction(1, 25), Fraction(7, 55)  # exactly; 0.04 and about 0.127
    assert toy_safe_sets(0.0399) == (("x", "x'"), ("x", "x''"))
    assert toy_safe_sets(float(true)) == (ALL, ("x", "x''"))
    assert toy_safe_sets(0.127) == (ALL, ("x", "x''"))
    assert toy_safe_sets(float(expected)) == (ALL, ALL)
    assert toy_safe_sets(1.0) == (ALL, ALL)


@pytest.mark.parametrize("alpha", [0.0, 1.5, np.nan])
def test_alpha_must_be_a_share(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must lie in"):
        toy_safe_sets(alpha)


def test_the_action_that_looks_safe_violates_under_the_true_context() -> None:
    """An unconstrained learner ends on x'', the best by expectation; it is unsafe under c."""
    made = Toy(agents=1)
    settings = dict(made.assumptions())
    rounds, alpha = int(settings.pop("rounds")), settings.pop("alpha")
    results = gb.simulate(
        made, gb.DisLinUCB(**settings), rounds=rounds, alpha=alpha, trace=True, progress=False
    )
    last = results.trace.actions[-100:, 0]
    series = results["dis-lin-ucb"]
    assert series.violations_realised.sum() == (results.trace.actions == 2).sum()
    assert series.violations_expected.sum() == (results.trace.actions == 1).sum()
    assert set(last.tolist()) <= {1, 2}


def test_a_rank_may_replace_the_action() -> None:
    assert Toy(baseline=1).build(0).baseline.tolist() == [[1], [1], [0]]
    with pytest.raises(ValueError, match="baseline is rank 4, but there are only 3 actions"):
        Toy(baseline=4)
