"""Bounds against values computed by hand."""

from __future__ import annotations

import math

import pytest

from guardband import theory


def test_shares_sum_to_delta() -> None:
    assert theory.confidence_share(0.1, 2, 3, 1) == pytest.approx(0.6 / (math.pi**2 * 18))
    assert theory.confidence_share(0.1, 2, 3) == pytest.approx(0.3 / (math.pi**2 * 18))


def test_information_and_weight() -> None:
    assert theory.guard_least_weight(0.1, 5) == pytest.approx(1 / 1.26)
    assert theory.guard_information(2, 100, 0.5, 4.0) == pytest.approx(4 * math.log(51))


def test_uncertified_rounds_and_regret() -> None:
    # step = 0.8 * 0.25 / (4 * 4) = 0.0125; (1.6 / .2) (10 / .0125 + log 20)
    rounds = theory.guard_uncertified_rounds(
        alpha=0.2,
        margin=0.5,
        beta=2.0,
        information=10.0,
        least_weight=0.8,
        agents=2,
        delta=0.1,
        regret_widths=2.0,
    )
    assert rounds == pytest.approx(8 * (800 + math.log(20)))
    regret = theory.guard_policy_regret(
        horizon=1000,
        beta=2.0,
        information=10.0,
        least_weight=0.8,
        uncertified=rounds,
        regret_widths=2.0,
    )
    assert regret == pytest.approx(4 * math.sqrt(12_500) + 10 + rounds)


def test_strict_escape() -> None:
    # 2 * 4 * 9 * 4 * (1 + 10 / 2) / (10 * .25)
    told = {"beta": 3.0, "span": 2.0, "weight": 10.0, "ridge": 2.0, "margin": 0.5}
    assert theory.guard_strict_escape(**told, regret_widths=2.0) == pytest.approx(
        2 * 4 * 9 * 4 * 6 / 2.5
    )
    assert theory.guard_strict_escape(**told) == pytest.approx(2 * 400 * 9 * 4 * 6 / 2.5)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_bad_values_are_named(value: float) -> None:
    with pytest.raises(ValueError, match="noise"):
        theory.guard_least_weight(value, 1.0)
