"""The paper's synthetic problems: two features, actions drawn from bands of reward."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from guardband.kernels.types import Floats
from guardband.problems.base import FigureSettings, NoisyFeatures
from guardband.seeds import stream

__all__ = ["Bands", "SyntheticA", "SyntheticB", "SyntheticC"]

BATCH = 1 << 14  # vectors drawn at a time until a band is full


class Bands(NamedTuple):
    """Bands of reward [top - width - step j, top - step j], for j = 0, 1, ..."""

    number: int
    each: int  # actions in a band
    width: float
    step: float
    top: float = 1.0

    @property
    def highs(self) -> Floats:
        """(actions,): the upper end of every action's band, best first."""
        ends = self.top - self.step * np.arange(self.number)
        return np.repeat(ends, self.each)


@dataclass(frozen=True, kw_only=True)
class Banded(NoisyFeatures):
    """Two features; tasks use both, the first, the second.

    Parameters
    ----------
    agents, baseline, psi_noise, reward_std, seed, nature, order
        As for every problem with noisy features; the order "ranked" is the bands', best first.
    contexts
        C.
    """

    contexts: int = 100

    bands: ClassVar[Bands]
    masks: ClassVar[tuple[tuple[int, ...], ...]] = ((0, 1), (0,), (1,))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""
        return self.contexts, self.bands.number * self.bands.each, 2

    def _features(self, seed: int) -> Floats:
        highs, rng = self.bands.highs, stream(seed, "features")
        return self._draw(rng, highs - self.bands.width, highs)

    @abstractmethod
    def _draw(self, rng: Generator, lows: Floats, highs: Floats) -> Floats:
        """Return (C, K, d): features whose reward lies in their action's band."""


@dataclass(frozen=True, kw_only=True)
class SyntheticA(Banded):
    """Unit vectors in the plane, one action per reward band of width .025 (Figs. 1a, 1b, 2a).

    Parameters
    ----------
    agents
        M; tasks cycle over both features, the first, the second. With one feature only, some
        actions have negative rewards.
    baseline
        The rank of the baseline's action, 1 = best.
    psi_noise
        The standard deviation of every coordinate of psi - phi.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or a noise model.
    contexts
        C.
    seed
        Fixes the world for all trials; None draws a new one in each trial.
    nature
        "frozen": psi = phi + noise, drawn once; "fresh": phi = psi + noise in each round.
    order
        "shuffled": actions in another order in every context; "ranked": the best band first.
    """

    baseline: int = 10
    psi_noise: float = 2.5e-3

    name: ClassVar[str] = "synthetic-a"
    about: ClassVar[str] = "unit vectors in the plane, one per reward band of .025 (Figs. 1a, 2a)"
    theta: ClassVar[tuple[float, ...]] = (0.9, 0.4)
    bands: ClassVar[Bands] = Bands(number=40, each=1, width=0.025, step=0.025)
    figure = FigureSettings(ridge=1.0, noise=1.0, alpha=0.3, rounds=20_000)

    def _draw(self, rng: Generator, lows: Floats, highs: Floats) -> Floats:
        """Draw a uniform direction among those whose reward lies in the action's band."""
        length = math.hypot(*self.theta)
        near = np.arccos(np.minimum(highs / length, 1.0))
        far = np.arccos(lows / length)
        shape = self.shape[:2]
        turn = (near + (far - near) * rng.random(shape)) * rng.choice([-1.0, 1.0], shape)
        angle = math.atan2(self.theta[1], self.theta[0]) + turn
        return np.stack([np.cos(angle), np.sin(angle)], axis=2)


@dataclass(frozen=True, kw_only=True)
class NonNegative(Banded):
    """Absolute values of normal vectors, given that their reward lies in the band."""

    agents: int = 3

    def _draw(self, rng: Generator, lows: Floats, highs: Floats) -> Floats:
        theta, each = np.array(self.theta), self.bands.each
        columns = []
        for low, high in zip(lows[::each], highs[::each], strict=True):
            vectors = _drawn_between(rng, theta, low, high, self.contexts * each)
            columns.append(vectors.reshape(self.contexts, each, 2))
        return np.concatenate(columns, axis=1)


@dataclass(frozen=True, kw_only=True)
class SyntheticB(NonNegative):
    """Non-negative normal vectors, one action per reward band of width .1 (Figs. 1c, 1d).

    The paper's generator is not public; this one fills the bands [.9 - .09 k, 1 - .09 k].

    Parameters
    ----------
    agents, baseline, psi_noise, reward_std, contexts, seed, nature, order
        As for `SyntheticA`.
    """

    baseline: int = 2
    psi_noise: float = 0.1

    name: ClassVar[str] = "synthetic-b"
    about: ClassVar[str] = "non-negative vectors, ten bands of reward, strong noise (Figs. 1c, 1d)"
    theta: ClassVar[tuple[float, ...]] = (0.9, 0.4)
    bands: ClassVar[Bands] = Bands(number=10, each=1, width=0.1, step=0.09)
    figure = FigureSettings(ridge=0.1, noise=0.1, alpha=0.25, rounds=20_000)
    feature_length: ClassVar[float] = 2.5  # (0, 2.5) has reward 1


@dataclass(frozen=True, kw_only=True)
class SyntheticC(NonNegative):
    """Non-negative normal vectors, ten actions per reward band of width .2 (Figs. 2b, 2c, 3a).

    The defaults are those of Fig. 2b. Fig. 2c has baseline=30 and psi_noise=0.1, Fig. 3a agents=1
    and psi_noise=0.1.

    Parameters
    ----------
    agents, baseline, psi_noise, reward_std, contexts, seed, nature, order
        As for `SyntheticA`; actions of one band have no order.
    """

    baseline: int = 80
    psi_noise: float = 0.01

    name: ClassVar[str] = "synthetic-c"
    about: ClassVar[str] = "non-negative vectors, ten per band of reward (Figs. 2b, 2c, 3a)"
    theta: ClassVar[tuple[float, ...]] = (1.0, 1.0)
    bands: ClassVar[Bands] = Bands(number=9, each=10, width=0.2, step=0.1)
    figure = FigureSettings(ridge=1.0, noise=0.1, alpha=0.3, rounds=55_000)
    theta_length: ClassVar[float] = math.sqrt(2.0)


def _drawn_between(rng: Generator, theta: Floats, low: float, high: float, count: int) -> Floats:
    """Return `count` absolute normal vectors whose reward lies between `low` and `high`."""
    kept: list[Floats] = []
    missing = count
    while missing > 0:
        vectors = np.abs(rng.standard_normal((BATCH, theta.size)))
        rewards = vectors @ theta
        kept.append(vectors[(low <= rewards) & (rewards <= high)][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept)
