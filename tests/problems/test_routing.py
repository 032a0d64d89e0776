"""The problem `routing`: its qualities, its prices, and what is the best that is good enough."""

from __future__ import annotations

import numpy as np
import pytest

import guardband as gb
from guardband.problems import Routing

WORLD = Routing().build(0)
H = np.sqrt(2.0) * WORLD.phi[:, 0, 4]  # the difficulty of every prompt


def test_difficulties_are_uniform() -> None:
    assert np.histogram(H, 4, (0.0, 1.0))[0] == pytest.approx(2_500, abs=220)  # five deviations


def test_a_model_has_an_intercept_and_a_slope_of_its_own() -> None:
    for k, table in enumerate(WORLD.psi.transpose(1, 0, 2)):
        own = np.zeros((H.size, 8))
        own[:, k], own[:, 4 + k] = 1.0, H
        assert table == pytest.approx(own / np.sqrt(2.0))


def test_qualities_and_values_are_those_stated() -> None:
    stated = [0.92 - 0.05 * H, 0.91 - 0.10 * H, 0.88 - 0.25 * H, 0.80 - 0.45 * H]
    qualities = WORLD.expected[:, 0, :].T
    assert qualities == pytest.approx(np.array(stated))
    assert WORLD.values is not None
    assert (WORLD.values == [-1.0, -0.3, -0.1, -0.02]).all()
    assert (WORLD.baseline == 0).all()
    assert WORLD.context_noise == 0.0


def test_the_best_that_is_good_enough_costs_half() -> None:
    """By algebra: model 2 clears the floor up to h = .036/.0525, model 3 up to .006/.2025."""
    assert WORLD.values is not None
    quality = WORLD.expected[:, 0, :]
    good = quality >= 0.95 * quality[:, :1]
    ideal = np.where(good, -WORLD.values, np.inf).min(axis=1).mean()
    second, third = 0.036 / 0.0525, 0.006 / 0.2025
    exact = 0.1 * third + 0.3 * (second - third) + (1 - second)
    assert exact == pytest.approx(0.514, abs=0.001)
    assert ideal == pytest.approx(exact, abs=5 * 0.35 / np.sqrt(H.size))


def test_what_is_declared_is_true_and_no_more() -> None:
    told = Routing().assumptions()
    assert (told["noise"], told["theta_bound"], told["alpha"]) == (0.0462, 2.6, 0.05)
    assert Routing().reward_noise.std <= 0.0462
    assert 2.59 < np.linalg.norm(WORLD.theta) <= 2.6
    assert Routing().context_noise == 0.0


def test_rewards_stay_in_zero_to_one() -> None:
    rng = np.random.default_rng(0)
    best = WORLD.expected.max() + Routing().reward_noise.draw(rng, (100_000,))
    assert best.max() <= 1.0


def test_a_wrong_rank_is_named() -> None:
    with pytest.raises(gb.InvalidValueError, match="only 4 actions"):
        Routing(rank=5)
