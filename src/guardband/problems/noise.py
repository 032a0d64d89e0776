"""Models of the reward noise, of mean 0 and a given standard deviation; and rewards 0 or 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, cast

import numpy as np
from numpy.random import Generator

from guardband.checks import check_fraction, check_not_negative, check_positive
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.kernels.types import Floats

__all__ = [
    "NOISES",
    "BernoulliRewards",
    "GaussianNoise",
    "RewardNoise",
    "StudentNoise",
    "TwoPointNoise",
    "UniformNoise",
    "as_noise",
]


class RewardNoise(Protocol):
    """A model of reward noise: a standard deviation, and a way to draw."""

    @property
    def std(self) -> float:
        """The standard deviation."""

    def draw(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return independent draws; one long draw equals two short ones put together."""


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise.

    Parameters
    ----------
    std
        The standard deviation; 0 means no noise.
    """

    std: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", check_not_negative("std", self.std))

    def draw(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return independent draws."""
        if self.std == 0.0:
            return np.zeros(shape)
        draws = rng.standard_normal(shape)
        draws *= self.std
        return draws


@dataclass(frozen=True)
class StudentNoise:
    """Student's t, scaled to the given standard deviation.

    Parameters
    ----------
    std
        The standard deviation.
    df
        Degrees of freedom, above 2: below that there is no variance to scale to.
    """

    std: float = 1.0
    df: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", check_not_negative("std", self.std))
        object.__setattr__(self, "df", check_positive("df", self.df))
        if self.df <= 2:
            raise InvalidValueError(
                f"df is {self.df:g}, but Student's t has a variance above 2 degrees of freedom "
                "only; the smallest common choice is df=3."
            )

    def draw(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return independent draws."""
        scale = self.std * math.sqrt((self.df - 2.0) / self.df)
        draws: Floats = rng.standard_t(self.df, shape) * scale
        return draws


@dataclass(frozen=True)
class TwoPointNoise:
    """A rare large gain: -gamma with probability 1 - gamma^2, else 1/gamma; standardised.

    Parameters
    ----------
    std
        The standard deviation.
    gamma
        In (0, 1); the smaller, the heavier the tail.
    """

    std: float = 1.0
    gamma: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", check_not_negative("std", self.std))
        object.__setattr__(self, "gamma", check_fraction("gamma", self.gamma))

    def draw(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return independent draws."""
        gamma = self.gamma
        mean = gamma**3  # -gamma (1 - gamma^2) + gamma^2 / gamma
        variance = 1.0 + gamma**2 - gamma**4 - gamma**6  # gamma^2 (1 - gamma^2) + 1 - mean^2
        values = np.where(rng.random(shape) < gamma**2, 1.0 / gamma, -gamma)
        draws: Floats = (values - mean) * (self.std / math.sqrt(variance))
        return draws


@dataclass(frozen=True)
class UniformNoise:
    """Uniform noise: no reward is farther from its expectation than sqrt(3) standard deviations.

    Its standard deviation is also its sub-Gaussian constant.

    Parameters
    ----------
    std
        The standard deviation; 0 means no noise.
    """

    std: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", check_not_negative("std", self.std))

    def draw(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return independent draws."""
        draws = rng.random(shape)
        draws -= 0.5
        draws *= math.sqrt(12.0) * self.std
        return draws


@dataclass(frozen=True)
class BernoulliRewards:
    """Rewards 1 with the probability phi'theta, else 0: nothing is added to phi'theta."""

    @property
    def std(self) -> float:
        """The largest standard deviation, that of the probability 1/2."""
        return 0.5

    def draw(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return uniform draws on [0, 1); the reward is 1 where one lies below phi'theta."""
        return rng.random(shape)


NOISES: dict[str, type[GaussianNoise | StudentNoise | TwoPointNoise | UniformNoise]] = {
    "gaussian": GaussianNoise,
    "student": StudentNoise,
    "two-point": TwoPointNoise,
    "uniform": UniformNoise,
}


def as_noise(value: Any) -> RewardNoise:
    """Return a noise model: `value` itself, or Gaussian noise of that standard deviation."""
    if isinstance(value, Real):
        return GaussianNoise(check_not_negative("reward_std", cast(float, value)))
    if callable(getattr(value, "draw", None)) and hasattr(value, "std"):
        model: RewardNoise = value
        return model
    raise InvalidTypeError(
        f"reward_std must be a number or a noise model such as StudentNoise(std=0.1, df=3), "
        f"not {value!r}."
    )
