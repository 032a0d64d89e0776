"""Possible worlds of a study: what the logs allow, as problems that the simulator can play.

Menus are drawn from the rows that were looked at. What features are worth is drawn from the
posterior of a linear model of their rewards: a normal prior whose width the rewards themselves
choose (the largest evidence), moved to where every action on these menus has an expected reward
that promises make sense for. Rewards are clicks where the logged ones are, else the model's
residuals are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from guardband.kernels.types import Floats, Ints
from guardband.problems import BernoulliRewards, RewardNoise, World
from guardband.studies.logs import StudyLogs

__all__ = ["PossibleWorlds", "ResampledNoise", "possible_worlds"]

MENUS = 2_000  # that stand for all
LEAST = 50  # of them; menus that are too large for so many lose some of their actions
NUMBERS = 2_000_000  # in all of them, 16 MB; the simulator makes some copies
BLOCK = 100_000  # actions whose features are made at a time
ITERATIONS = 100
CLOSE = 1e-4
LEAST_NOISE = 1e-8  # variance: no model is sure
BINS, IN_BIN = 20, 25  # bins of values, and rows in each at least
SURE = 4.0  # standard deviations of chi-squared


@dataclass(frozen=True)
class ResampledNoise:
    """Reward noise drawn from residuals that were seen, less their mean.

    Parameters
    ----------
    residuals
        (n,): from which to draw.
    """

    residuals: Floats

    @cached_property
    def _centred(self) -> Floats:
        centred: Floats = self.residuals - self.residuals.mean()
        return centred

    @property
    def std(self) -> float:
        """The standard deviation."""
        return float(self._centred.std())

    def draw(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return independent draws."""
        centred = self._centred
        drawn: Floats = centred[rng.integers(len(centred), size=shape)]
        return drawn


class EvidenceFit(NamedTuple):
    """The posterior of a linear model: theta is normal."""

    mean: Floats  # (d,)
    root: Floats  # (d, d), root @ root.T is the covariance
    variance: float  # of the noise

    @property
    def covariance(self) -> Floats:
        """(d, d): the covariance of theta."""
        covariance: Floats = self.root @ self.root.T
        return covariance


def fit(rows: Floats, rewards: Floats) -> EvidenceFit:
    """Fit rewards (n,) by rows (n, d), by a prior and a noise of the largest evidence.

    MacKay's fixed point: with gamma the number of directions that the rows determine, the prior's
    precision is gamma / |theta|^2 and the variance |residuals|^2 / (n - gamma).
    """
    n, dim = rows.shape
    values, vectors = np.linalg.eigh(rows.T @ rows)
    values = np.maximum(values, 0.0)  # rounding makes some negative
    moment, squares = vectors.T @ (rows.T @ rewards), float(rewards @ rewards)
    variance, precision = max(float(rewards.var()), LEAST_NOISE), float(dim)
    for _ in range(ITERATIONS):
        scale = values / variance + precision
        mean = moment / variance / scale
        gamma = float((values / variance / scale).sum())
        left = squares - 2.0 * float(mean @ moment) + float(mean**2 @ values)
        last = precision
        variance = max(left / max(n - gamma, 1.0), LEAST_NOISE)
        precision = gamma / max(float(mean @ mean), LEAST_NOISE)
        if abs(precision - last) <= CLOSE * last:
            break
    scale = values / variance + precision
    return EvidenceFit(vectors @ (moment / variance / scale), vectors / np.sqrt(scale), variance)


class Bend(NamedTuple):
    """What a linear model's values stand for: a line through some points, flat beyond them."""

    values: Floats  # (n,) rising
    rewards: Floats  # (n,)

    def __call__(self, values: Floats) -> Floats:
        """Return the rewards that stand for values."""
        rewards: Floats = np.interp(values, self.values, self.rewards)
        return rewards


def link(values: Floats, rewards: Floats, ceiling: float) -> Bend:
    """Return what a model's values (n,) stand for, by the rewards (n,) that were seen with them.

    They stand for themselves, between 0 and the ceiling. But where the mean rewards of some bins
    of values differ from that by more than chance, they stand for these means: rewards that bend,
    such as those of a choice that is nearly sure either way, are less noisy than a line has them.
    """
    plain = Bend(np.array([0.0, ceiling]), np.array([0.0, ceiling]))
    bins = min(BINS, len(values) // IN_BIN)
    if bins < 2:
        return plain
    parts = np.array_split(np.argsort(values, kind="stable"), bins)
    middles = np.array([values[part].mean() for part in parts])
    means = np.array([rewards[part].mean() for part in parts])
    if not (np.diff(middles) > 0.0).all():
        return plain
    off = np.array([(rewards[part] - plain(values[part])).sum() for part in parts])
    noise = np.array([((rewards[part] - plain(values[part])) ** 2).sum() for part in parts])
    square = float((off**2 / np.maximum(noise, LEAST_NOISE)).sum())  # chi-squared, about
    if square <= bins + SURE * math.sqrt(2.0 * bins):
        return plain
    return Bend(middles, means)


@dataclass(frozen=True)
class PossibleWorlds:
    """Menus of the logs, and what the features on them may be worth.

    Attributes
    ----------
    tables
        (C, K, d): menus of the logs; shorter ones repeat their last action, which changes nothing.
    sizes
        (C,): how many actions each menu has.
    baselines
        (C,): the baseline's action on each.
    rows
        (n, d): what was played in the rows that were looked at.
    model
        What rewards are linear in, but for the link.
    link
        What the model's values stand for.
    noise
        How rewards lie around their expectation.
    cut
        Whether menus lost some of their actions, because they were too large.
    """

    tables: Floats
    sizes: Ints
    baselines: Ints
    rows: Floats
    model: EvidenceFit
    link: Bend
    noise: RewardNoise
    cut: bool

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return int(self.tables.shape[2])

    def draw(self, rng: Generator) -> PossibleWorld:
        """Draw a world that fits what was logged."""
        return self.world(self.model.mean + self.model.root @ rng.standard_normal(self.dim))

    def world(self, theta: Floats) -> PossibleWorld:
        """Return the world of a parameter (d,)."""
        tasks, chosen = (tuple(range(self.dim)),), self.baselines[None]
        world = World(self.tables, self.tables, theta, tasks, chosen, self.noise)
        return PossibleWorld(world, self.link(self.tables @ theta))

    def menus(self) -> Iterator[tuple[Floats, int]]:
        """Yield the menus as (d, K), without what is repeated, and the baseline of each."""
        for table, size, baseline in zip(self.tables, self.sizes, self.baselines, strict=True):
            yield np.ascontiguousarray(table[:size].T), int(baseline)

    def logged(self, world: World, count: int, rng: Generator) -> tuple[Floats, Floats]:
        """Return rows like those that were played, (count, d), and what they earn in a world."""
        rows = self.rows[rng.integers(len(self.rows), size=count)]
        noise, worth = self.noise.draw(rng, (count,)), self.link(rows @ world.theta)
        return rows, (noise < worth).astype(float) if world.binary else worth + noise


class PossibleWorld(NamedTuple):
    """A world for the simulator, and what its actions are worth."""

    world: World
    expected: Floats  # (C, K)


def possible_worlds(logs: StudyLogs, ceiling: float, rng: Generator) -> PossibleWorlds:
    """Return the worlds that logs allow; `rng` draws the menus that stand for all."""
    model = fit(logs.played, logs.rewards)
    values = logs.played @ model.mean
    bend = link(values, logs.rewards, ceiling)
    noise: RewardNoise = BernoulliRewards()
    if not np.isin(logs.rewards, (0.0, 1.0)).all():
        noise = ResampledNoise(logs.rewards - bend(values))
    sizes = logs.menus.sizes(len(logs))
    most = max(NUMBERS // (LEAST * logs.dim), 2)
    largest = min(int(sizes.max()), most)
    count = min(MENUS, len(logs), max(NUMBERS // (largest * logs.dim), LEAST))
    chosen = np.sort(rng.choice(len(logs), count, replace=False))
    tables, baselines = np.empty((count, largest, logs.dim)), np.empty(count, np.int64)
    step = max(1, BLOCK // int(sizes.max()))
    for start in range(0, count, step):
        offers = logs.offers(chosen[start : start + step])
        for i, baseline in enumerate(offers.baselines, start):
            low, high = offers.starts[i - start], offers.starts[i - start + 1]
            places = np.arange(low, high)
            if places.size > most:
                others = rng.permutation(places[places != baseline])[: most - 1]
                places = np.sort(np.append(others, baseline))
            tables[i, : places.size] = offers.features[places]
            tables[i, places.size :] = offers.features[places[-1]]
            baselines[i] = int(np.searchsorted(places, baseline))
    kept = np.minimum(sizes[chosen], most)
    cut = bool((sizes > most).any())
    return PossibleWorlds(tables, kept, baselines, logs.played, model, bend, noise, cut)
