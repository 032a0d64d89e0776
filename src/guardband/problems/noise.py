"""Models of the reward noise, each standardised to mean 0 and a given standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from guardband.checks import check_fraction, check_not_negative, check_positive
from guardband.core.types import Floats

__all__ = ["GaussianNoise", "RewardNoise", "StudentNoise", "TwoPointNoise"]


class RewardNoise(Protocol):
    """What a problem asks of its noise."""

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
        object.__setattr__(self, "std", check_not_negative("noise", self.std))

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
        object.__setattr__(self, "std", check_not_negative("noise", self.std))
        if not (math.isfinite(self.df) and self.df > 2):
            raise ValueError(f"df must be above 2 for the variance to exist, not {self.df!r}.")

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
        object.__setattr__(self, "std", check_not_negative("noise", self.std))
        check_positive("gamma", self.gamma)
        check_fraction("gamma", self.gamma)

    def draw(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return independent draws."""
        gamma = self.gamma
        mean = gamma**3  # -gamma (1 - gamma^2) + gamma
        variance = 1.0 + gamma**2 - gamma**4 - gamma**6
        values = np.where(rng.random(shape) < gamma**2, 1.0 / gamma, -gamma)
        draws: Floats = (values - mean) * (self.std / math.sqrt(variance))
        return draws
