from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.kernels.environment import Draws
from guardband.problems import (
    Forecast,
    ForecastFormal,
    ForecastFormal2,
    ForecastLarge,
    World,
    round_of,
)
from guardband.sim.draws import TrialDraws


def chunk(world: World, rounds: int, seed: int = 0) -> Draws:
    """Return the draws of some rounds as one chunk."""
    pieces = zip(*(draws[:-1] for draws in TrialDraws(world, rounds, seed).chunks()), strict=True)
    return Draws(*(np.concatenate(arrays) for arrays in pieces))


def test_defaults_of_the_variants() -> None:
    assert ForecastFormal().build(0).nature == Forecast(support=20, sharpness=1.0, rank=10)
    assert ForecastFormal().sizes == {"agents": 5, "contexts": 100, "actions": 20, "features": 5}
    large = ForecastLarge()
    assert large.sizes == {"agents": 10, "contexts": 100, "actions": 100, "features": 20}
    assert large.baseline == 50
    assert ForecastFormal2().sizes == ForecastFormal().sizes
    assert ForecastFormal2().assumptions()["alpha"] == 0.1


def test_contexts_dim_every_action_alike_in_the_formal_model_only() -> None:
    for kind, low, alike in ((ForecastFormal, 0.4, True), (ForecastFormal2, 0.3, False)):
        phi = kind().build(1).phi
        light = phi / phi.max(axis=0)
        assert light.min() > low - 1e-9
        relative = phi[0] / phi[1]
        assert np.allclose(relative, relative[:1]) == alike
        assert np.linalg.norm(phi, axis=2).max() <= 1


def test_psi_is_the_exact_expectation() -> None:
    world = ForecastFormal2(contexts=12, support=4).build(2)
    draws = chunk(world, 50)
    for s in range(50):
        now = round_of(world, draws, s)
        mean = sum(
            weight * world.phi[c] for c, weight in zip(now.support, now.weights, strict=True)
        )
        assert_allclose(now.psi, mean, atol=1e-15)
        assert now.weights.sum() == pytest.approx(1.0)
        assert len(set(now.support.tolist())) == 4  # without replacement
        assert now.context in now.support
        assert_array_equal(now.phi, world.phi[now.context])
        for m, task in enumerate(world.tasks):
            rewards = now.psi[:, list(task)] @ world.theta[list(task)]
            assert_allclose(now.expected[m], rewards, atol=1e-15)
            assert (rewards > rewards[now.baseline[m]]).sum() == 10 - 1
            assert now.baseline_reward[m] == pytest.approx(rewards[now.baseline[m]])


def test_contexts_follow_the_announced_distributions() -> None:
    """Chi-square over places in the announcement, sorted by probability."""
    rounds, support = 40_000, 6
    world = ForecastFormal(contexts=15, support=support).build(3)
    draws = chunk(world, rounds)
    order = np.argsort(-draws.weights, axis=1)
    weights = np.take_along_axis(draws.weights, order, axis=1)
    places = np.take_along_axis(draws.support, order, axis=1) == draws.contexts[:, None]
    assert (places.sum(axis=1) == 1).all()
    # The counts of a place are a sum of independent coins, whose variance is known.
    centred = (places - weights).sum(axis=0)[:-1]
    covariance = np.diag(weights.sum(axis=0)) - weights.T @ weights
    statistic = centred @ np.linalg.solve(covariance[:-1, :-1], centred)
    assert statistic < 20.5  # the 99.9 % point for 5 degrees of freedom
    # Every context is possible equally often.
    counts = np.bincount(draws.support.ravel(), minlength=15)
    assert_allclose(counts / rounds, support / 15, rtol=0.03)


def test_sharpness_lets_one_context_stand_out() -> None:
    top = {
        sharpness: chunk(ForecastFormal(sharpness=sharpness).build(4), 500)
        .weights.max(axis=1)
        .mean()
        for sharpness in (0.05, 1.0, 100.0)
    }
    assert top[0.05] > 0.6
    assert 0.1 < top[1.0] < 0.3
    assert 1 / 20 <= top[100.0] < 0.1


def test_the_told_range_holds_for_every_round() -> None:
    world = ForecastFormal2(agents=4).build(5)
    facts, draws = world.facts(300), chunk(world, 300)
    told = np.array([round_of(world, draws, s).baseline_reward for s in range(300)])
    assert facts.reward_low is not None
    assert facts.reward_high is not None
    assert 0 < facts.reward_low <= told.min()
    assert told.max() <= facts.reward_high


def test_spread_bounds_what_the_hidden_context_may_do() -> None:
    world = ForecastFormal2(agents=3).build(6)
    draws = chunk(world, 20)
    for s in range(20):
        now = round_of(world, draws, s)
        for m, task in enumerate(world.tasks):
            index = list(task)
            rewards = world.phi[now.support][:, :, index] @ world.theta[index]
            half = world.half_range(m, now.support)
            assert (np.ptp(rewards, axis=0) / 2 <= half + 1e-12).all()
            assert half.max() < 0.5
    pair = np.array([3, 4])
    assert_allclose(world.half_range(0, pair, 2.0), 2 * world.half_range(0, pair))


def test_realised_and_expected_violations_differ() -> None:
    made = ForecastFormal2(seed=7)
    settings = dict(made.assumptions())
    rounds, alpha = int(settings.pop("rounds")), settings.pop("alpha")
    results = gb.simulate(
        made,
        [gb.DisLinUCB(**settings), gb.algorithms.Baseline()],
        rounds=rounds,
        alpha=alpha,
        progress=False,
    )
    free, safe = results.series
    # An action that is best in expectation still breaks the promise under some hidden contexts.
    assert free.violations_realised.mean() > free.violations_expected.mean() + 100
    assert safe.violations_expected.sum() == safe.violations_realised.sum() == 0


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"support": 101}, ValueError, "support is 101, but there are only 100 contexts"),
        ({"support": 0}, ValueError, "support must be at least 1, not 0"),
        ({"sharpness": 0.01}, ValueError, "sharpness must be at least 0.05, not 0.01"),
        ({"features": 0}, ValueError, "features must be at least 1, not 0"),
        ({"actions": 5}, ValueError, "baseline is rank 10, but there are only 5 actions"),
        ({"psi_noise": 0.1}, TypeError, "psi_noise"),
    ],
)
def test_wrong_settings_are_named(
    settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ForecastFormal(**settings)


def test_one_feature_leaves_nothing_to_lose() -> None:
    assert ForecastFormal(features=1, agents=3).build(0).tasks == ((0,), (0,), (0,))
