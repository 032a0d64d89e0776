"""MovieLens and Last.fm: users are contexts, items are actions, factors make the features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from guardband.checks import check_whole
from guardband.data import Factors, factors
from guardband.errors import InvalidValueError
from guardband.kernels.types import Floats
from guardband.problems.base import FigureSettings, NoisyFeatures
from guardband.seeds import stream

__all__ = ["LastFm", "MovieLens"]

ALL = tuple(range(9))
EVEN = 1.0 / math.sqrt(3.0)


def without(feature: int) -> tuple[int, ...]:
    """Return all features but one."""
    return tuple(i for i in ALL if i != feature)


@dataclass(frozen=True, kw_only=True)
class Ratings(NoisyFeatures):
    """Nine features vec(outer(user, item)); theta'phi is the rating that the factors predict.

    Parameters
    ----------
    agents
        M; tasks cycle over all features, without the last, without the 5th, without the 1st.
    baseline, psi_noise, reward_std, seed, nature
        As for every problem with noisy features.
    contexts, actions
        How many users and items are drawn.
    order
        "shuffled": items in another order for every user; "ranked": every user's best first;
        "items": action k is the same item for all users.
    noise_first
        True adds psi's noise before features are divided by the largest reward, as some of the
        authors' notebooks do: its standard deviation is then psi_noise / the largest reward.
    """

    agents: int = 3
    contexts: int = 1
    actions: int = 1
    noise_first: bool = False

    users: ClassVar[int]
    items: ClassVar[int]
    least_top: ClassVar[float]  # no world's largest reward, before features are scaled, is less
    theta: ClassVar[tuple[float, ...]] = (EVEN, 0, 0, 0, EVEN, 0, 0, 0, EVEN)
    masks: ClassVar[tuple[tuple[int, ...], ...]] = (ALL, without(8), without(4), without(0))
    orders: ClassVar[tuple[str, ...]] = ("shuffled", "ranked", "items")

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, count, most in (
            ("contexts", self.contexts, self.users),
            ("actions", self.actions, self.items),
        ):
            if check_whole(what, count) > most:
                raise InvalidValueError(
                    f"{what} is {count}, but {self.name} has {most}: give at most that."
                )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""
        return self.contexts, self.actions, 9

    def _features(self, seed: int) -> Floats:
        some, others = self._drawn(seed)
        features = (some[:, None, :, None] * others[None, :, None, :]).reshape(self.shape)
        rewards = features @ np.array(self.theta)
        features /= rewards.max()
        if self.order == "ranked":
            best_first = np.argsort(-rewards, axis=1, kind="stable")
            features = np.take_along_axis(features, best_first[:, :, None], axis=1)
        return features

    def _drawn(self, seed: int) -> tuple[Floats, Floats]:
        """Return the factors of the users and items of a world, (C, 3) and (K, 3)."""
        users, items, _ = _loaded(self.name)
        rng = stream(seed, "features")
        some = users[np.sort(rng.permutation(self.users)[: self.contexts])]
        return some, items[np.sort(rng.permutation(self.items)[: self.actions])]

    def _psi_std(self, seed: int) -> float:
        if not self.noise_first:
            return self.psi_noise
        users, items = self._drawn(seed)
        return self.psi_noise / (EVEN * float((users @ items.T).max()))

    @property
    def _largest_psi_std(self) -> float:
        return self.psi_noise / self.least_top if self.noise_first else self.psi_noise


@dataclass(frozen=True, kw_only=True)
class MovieLens(Ratings):
    """MovieLens-100K: users rate movies (Figs. 2d, 2e, 2f, 3b).

    The factors of completed ratings ship with the package; a world draws users and movies from
    them, and features are scaled so that the largest reward is 1.

    Parameters
    ----------
    agents
        M; tasks cycle over all features, without the last, without the 5th, without the 1st.
    baseline
        The rank of the baseline's movie, 1 = best.
    psi_noise
        The standard deviation of every coordinate of psi - phi.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or a noise model.
    contexts, actions
        How many of the 943 users and 1,682 movies are drawn.
    seed
        Fixes the world for all trials; None draws a new one in each trial.
    nature
        "frozen": psi = phi + noise, drawn once; "fresh": phi = psi + noise in each round.
    order
        "shuffled": movies in another order for every user; "ranked": every user's best first;
        "items": action k is the same movie for all users.
    noise_first
        True adds psi's noise before features are scaled, as the authors' notebooks do; its
        standard deviation grows by a factor of 1.3 to 1.8, 1.57 on average.
    """

    baseline: int = 40
    psi_noise: float = 0.1
    contexts: int = 100
    actions: int = 50

    name: ClassVar[str] = "movielens"
    about: ClassVar[str] = "users rate movies, MovieLens-100K (Figs. 2d, 2e, 2f, 3b)"
    users: ClassVar[int] = 943
    items: ClassVar[int] = 1682
    figure = FigureSettings(ridge=1.0, noise=0.1, alpha=0.5, rounds=600_000)
    feature_length: ClassVar[float] = 2.3  # 2.2 was the longest in 3,000 worlds
    least_top: ClassVar[float] = 0.5  # 0.55 was the least in 3,000 worlds


@dataclass(frozen=True, kw_only=True)
class LastFm(Ratings):
    """HetRec 2011 Last.fm: users listen to artists (Figs. 2g, 2h, 2i).

    The factors of the 741 x 538 matrix ship with the package; features are scaled so that the
    largest reward is 1. A masked baseline is worth 0 for some users: see `World.facts`.

    Parameters
    ----------
    agents, baseline, psi_noise, reward_std, seed, nature, order
        As for `MovieLens`, and so is noise_first; with all artists the factor is 1.18.
    contexts, actions
        How many of the 741 users and 538 artists are drawn: all by default. The paper's text has
        50 actions, its authors' simulations 538.
    """

    baseline: int = 5
    psi_noise: float = 1e-3
    contexts: int = 741
    actions: int = 538

    name: ClassVar[str] = "lastfm"
    about: ClassVar[str] = "users listen to artists, HetRec 2011 Last.fm (Figs. 2g, 2h, 2i)"
    users: ClassVar[int] = 741
    items: ClassVar[int] = 538
    figure = FigureSettings(ridge=0.05, noise=0.05, alpha=0.7, rounds=10_000_000)
    feature_length: ClassVar[float] = 2.3  # 1.82 with all artists, 2.15 in 300 draws of 50
    least_top: ClassVar[float] = 0.2  # 0.85 with all artists, 0.24 in 3,000 draws of 50


@cache
def _loaded(name: str) -> Factors:
    return factors(name)
