from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from guardband.problems import (
    NOISES,
    GaussianNoise,
    RewardNoise,
    StudentNoise,
    TwoPointNoise,
    UniformNoise,
    as_noise,
)
from guardband.seeds import stream

MODELS = [
    GaussianNoise(0.3),
    StudentNoise(std=0.3, df=9.0),
    TwoPointNoise(std=0.3, gamma=0.5),
    TwoPointNoise(std=0.3, gamma=0.2),
    UniformNoise(0.3),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_mean_is_zero_and_variance_as_given(model: RewardNoise) -> None:
    draws = model.draw(stream(1, "noise"), (400_000,))
    squares = draws**2
    assert abs(draws.mean()) < 4 * draws.std() / math.sqrt(draws.size)
    assert abs(squares.mean() - 0.3**2) < 4 * squares.std() / math.sqrt(draws.size)


def test_two_points_have_the_exact_mean_and_variance() -> None:
    for gamma in (0.1, 0.5, 0.9):
        values, counts = np.unique(
            TwoPointNoise(std=2.0, gamma=gamma).draw(stream(2, "noise"), (1000,)),
            return_counts=True,
        )
        assert values.size == 2
        assert counts.sum() == 1000
        chance = np.array([1 - gamma**2, gamma**2])
        assert chance @ values == pytest.approx(0, abs=1e-14)
        assert chance @ values**2 == pytest.approx(4.0)
        assert values[1] - values[0] == pytest.approx(
            2.0 * (1 / gamma + gamma) / math.sqrt(1 + gamma**2 - gamma**4 - gamma**6)
        )


def test_student_tails_are_heavier_than_normal_ones() -> None:
    far = {
        name: np.mean(np.abs(model.draw(stream(3, "noise"), (100_000,))) > 4)
        for name, model in {"t": StudentNoise(1.0, 3.0), "normal": GaussianNoise(1.0)}.items()
    }
    assert far["t"] > 0.003
    assert far["normal"] < 0.0003


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_one_long_draw_equals_two_short_ones(model: RewardNoise) -> None:
    long = model.draw(stream(4, "noise"), (50, 3))
    rng = stream(4, "noise")
    short = np.concatenate([model.draw(rng, (20, 3)), model.draw(rng, (30, 3))])
    np.testing.assert_array_equal(long, short)


def test_no_noise_is_none_at_all() -> None:
    for model in (GaussianNoise(0.0), UniformNoise(0.0)):
        assert not model.draw(stream(5, "noise"), (10,)).any()


def test_uniform_noise_ends_at_the_root_of_three_deviations() -> None:
    draws = UniformNoise(0.08 / math.sqrt(3.0)).draw(stream(6, "noise"), (100_000,))
    assert np.abs(draws).max() <= 0.08 * (1 + 1e-12)
    assert np.histogram(draws, 4, (-0.08, 0.08))[0] == pytest.approx(25_000, abs=700)


def test_a_number_is_gaussian_noise() -> None:
    assert as_noise(0.25) == GaussianNoise(0.25)
    assert as_noise(np.float32(0.5)) == GaussianNoise(0.5)
    assert as_noise(StudentNoise()) is not None
    assert set(NOISES) == {"gaussian", "student", "two-point", "uniform"}


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: GaussianNoise(-1.0), ValueError, "std must be zero or a positive number"),
        (lambda: UniformNoise(-1.0), ValueError, "std must be zero or a positive number"),
        (lambda: StudentNoise(df=2.0), ValueError, "df is 2, .* df=3"),
        (lambda: StudentNoise(df=math.inf), ValueError, "df must be a positive number, not inf"),
        (lambda: TwoPointNoise(gamma=1.0), ValueError, "gamma must lie strictly between 0 and 1"),
        (lambda: as_noise("loud"), TypeError, "not 'loud'"),
        (lambda: as_noise(True), TypeError, "not True"),
    ],
)
def test_wrong_noise_is_named(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
