"""The problem `categories`: its rates, its bounds, and what one action says about another."""

from __future__ import annotations

import numpy as np
import pytest

from guardband.problems import Categories


@pytest.mark.parametrize("seed", range(5))
def test_rates_are_evenly_spaced_and_the_baseline_is_the_fifth_best(seed: int) -> None:
    world = Categories().build(seed)
    rates = world.expected[0, 0]
    assert np.sort(rates) == pytest.approx(np.linspace(0.02, 0.08, 9))
    assert rates[world.baseline[0, 0]] == pytest.approx(0.05)
    assert rates.max() / rates[world.baseline[0, 0]] == pytest.approx(1.6)
    assert np.linalg.norm(world.phi, axis=2) == pytest.approx(1.0)


def test_rates_are_in_random_order() -> None:
    assert len({int(Categories().build(seed).baseline[0, 0]) for seed in range(20)}) > 3


@pytest.mark.parametrize("settings", [{}, {"low": 0.3, "high": 0.9}, {"actions": 30, "rank": 30}])
def test_the_stated_bounds_hold(settings: dict[str, float]) -> None:
    made = Categories(**settings)  # type: ignore[arg-type]
    assert np.linalg.norm(made.build(1).theta) <= made.assumptions()["theta_bound"]
    assert made.assumptions()["alpha"] == 0.1
    assert made.sizes["features"] == made.actions + 1


def test_actions_share_the_intercept_alone() -> None:
    (table,) = Categories().build(0).phi
    assert table @ table.T == pytest.approx(0.5 + 0.5 * np.eye(9))


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ValueError, match="high must lie strictly between 0 and 1"):
        Categories(high=1.0)
    with pytest.raises(ValueError, match="only 9 actions"):
        Categories(rank=10)
