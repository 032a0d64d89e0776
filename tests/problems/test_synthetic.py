from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from guardband.problems import Fresh, SyntheticA, SyntheticB, SyntheticC
from guardband.sim.draws import TrialDraws

LOWS = {
    SyntheticA: 0.975 - 0.025 * np.arange(40),
    SyntheticB: 0.9 - 0.09 * np.arange(10),
    SyntheticC: np.repeat(0.8 - 0.1 * np.arange(9), 10),
}
WIDTHS = {SyntheticA: 0.025, SyntheticB: 0.1, SyntheticC: 0.2}


@pytest.mark.parametrize("kind", LOWS)
def test_every_action_lies_in_its_band(kind: Any) -> None:
    world = kind(order="ranked").build(1)
    rewards = world.phi @ world.theta
    assert (rewards >= LOWS[kind] - 1e-12).all()
    assert (rewards <= LOWS[kind] + WIDTHS[kind] + 1e-12).all()


@pytest.mark.parametrize("kind", LOWS)
def test_shuffling_permutes_the_actions_of_each_context(kind: Any) -> None:
    ranked, shuffled = kind(order="ranked").build(2), kind().build(2)
    assert_array_equal(np.sort(ranked.phi, axis=1), np.sort(shuffled.phi, axis=1))
    places = (shuffled.phi @ shuffled.theta).argmax(axis=1)
    actions = shuffled.phi.shape[1]
    assert len(set(places.tolist())) > min(actions, 40) / 2  # no index is the best everywhere
    fixed = (shuffled.phi @ shuffled.theta).mean(axis=0).max()
    assert fixed < (ranked.phi @ ranked.theta).mean(axis=0).max() - 0.2


def test_synthetic_a_draws_unit_vectors_on_both_sides_of_theta() -> None:
    world = SyntheticA().build(3)
    assert_allclose(np.linalg.norm(world.phi, axis=2), 1.0)
    side = world.phi @ np.array([-0.4, 0.9])
    assert 0.45 < (side > 0).mean() < 0.55


@pytest.mark.parametrize("kind", [SyntheticB, SyntheticC])
def test_non_negative_vectors(kind: Any) -> None:
    assert kind().build(4).phi.min() >= 0


@pytest.mark.parametrize("kind", LOWS)
def test_frozen_noise_is_drawn_once_with_the_given_deviation(kind: Any) -> None:
    world = kind(psi_noise=0.05).build(5)
    assert world.nature is None
    error = world.psi - world.phi
    assert error.std() == pytest.approx(0.05, rel=0.06)
    assert abs(error.mean()) < 4 * 0.05 / np.sqrt(error.size)


@pytest.mark.parametrize("kind", LOWS)
def test_fresh_keeps_psi_and_ranks_the_baseline_by_it(kind: Any) -> None:
    made = kind(psi_noise=0.05, nature="fresh")
    world = made.build(6)
    assert world.nature == Fresh(0.05)
    assert_array_equal(world.psi, kind(psi_noise=0.05).build(6).phi)
    rewards = world.psi @ world.theta
    chosen = np.take_along_axis(rewards, world.baseline[:1].T, axis=1)
    assert ((rewards > chosen).sum(axis=1) == made.baseline - 1).all()


def fitted(nature: str, seed: int, rounds: int = 2000) -> np.ndarray:
    """Return theta by least squares of the noise-free reward on psi, actions drawn uniformly."""
    world = SyntheticB(agents=1, nature=nature, psi_noise=0.1).build(seed)
    (draws,) = TrialDraws(world, rounds, seed).chunks()
    rows, actions = np.arange(rounds), np.random.default_rng(seed).integers(10, size=rounds)
    psi, phi = world.psi[draws.contexts, actions], world.phi[draws.contexts, actions]
    if nature == "fresh":
        phi = psi + 0.1 * draws.fresh[rows, actions]
    return np.asarray(np.linalg.lstsq(psi, phi @ world.theta, rcond=None)[0])


def test_frozen_noise_biases_least_squares_and_fresh_noise_does_not() -> None:
    worlds = range(60)
    frozen = np.array([fitted("frozen", seed) for seed in worlds])
    fresh = np.array([fitted("fresh", seed) for seed in worlds])
    theta = np.array([0.9, 0.4])
    error = fresh.std(axis=0, ddof=1) / np.sqrt(len(worlds))
    assert (np.abs(fresh.mean(axis=0) - theta) < 4 * error).all()
    assert error.max() < 0.001
    # Over 400 worlds: (0.847, 0.410) with standard errors of 0.0005; fresh (0.9000, 0.4001).
    assert_allclose(frozen.mean(axis=0), [0.847, 0.410], atol=0.006)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"psi_noise": -1}, ValueError, "psi_noise must be zero or a positive number, not -1"),
        ({"nature": "frosen"}, ValueError, "nature must be one of .* Did you mean 'frozen'"),
        ({"order": "sorted"}, ValueError, "order must be one of 'shuffled', 'ranked'"),
        ({"contexts": 0}, ValueError, "contexts must be at least 1, not 0"),
    ],
)
def test_wrong_settings_are_named(
    settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    for kind in LOWS:
        with pytest.raises(error, match=words):
            kind(**settings)
