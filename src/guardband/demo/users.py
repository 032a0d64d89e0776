"""Simulated users of the demo: their requests and their ratings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guardband.kernels.types import Floats
from guardband.live.protocol.space import RewardSettings, SpaceSettings, SyncSettings
from guardband.problems import MovieLens, World
from guardband.seeds import stream

__all__ = ["CHANGING", "CLIENTS", "FilmRequest", "Users", "film_space"]

CLIENTS = ("home", "search", "mail")  # the parts of the site that recommend films: a task each
CHANGING = "mail"  # whose users' tastes change after a while
SPACE = "films"
HOLDBACK = 0.1  # of the users get the baseline's film, to measure what the others' is worth
ALPHA = 0.1  # each client keeps at least 90 % of what its baseline earns
NOISE = 0.3  # the standard deviation of a rating, on a scale where the best film is worth 1
THINKING_S = (0.2, 0.8)
SEED = 0


class FilmRequest(NamedTuple):
    """A user who asks for a film, and the films on offer."""

    user: int
    films: Floats  # (K, d): the expected features of the films on offer
    baseline: int  # the film that the old recommender would show
    baseline_reward: float


def problem() -> MovieLens:
    """Return MovieLens with noisy ratings; true features vary around the expected ones."""
    return MovieLens(agents=len(CLIENTS), reward_std=NOISE, nature="fresh", seed=SEED)


def film_space(name: str = SPACE) -> SpaceSettings:
    """Return the space of the demo; its bounds are those that hold in the problem.

    Every request comes from a user of its own, so contexts are not shared. Rewards arrive after a
    delay that has nothing to do with them, and none is lost: they may count as soon as they come.
    """
    films = problem()
    stated = films.assumptions()
    return SpaceSettings(
        name=name,
        features=tuple(f"taste {u} × film {f}" for u in "123" for f in "123"),
        agents=len(CLIENTS),
        contexts="per-request",
        alpha=ALPHA,
        holdback=HOLDBACK,
        noise=stated["noise"],
        theta_bound=stated["theta_bound"],
        feature_bound=stated["feature_bound"],
        context_noise=films.context_noise,
        baseline="rank-40",
        sync=SyncSettings(live_s=15.0),
        # Expected rewards lie in [0, 1]; six deviations of the noise on either side.
        rewards=RewardSettings(low=-2.0, high=3.0, window_s=60.0, order="prompt"),
    )


class Users:
    """The users of one client.

    Parameters
    ----------
    client
        One of `CLIENTS`.
    seed
        Decides which users come and how they rate.
    """

    def __init__(self, client: str, seed: int = SEED) -> None:
        self._number = CLIENTS.index(client)
        films = problem()
        self._world: World = films.build(SEED)
        self._psi_noise = films.psi_noise
        self._theta = self._world.masked_theta[self._world.groups[1][self._number]]
        self._rng = stream(seed, "users", client)

    @property
    def uses(self) -> tuple[int, ...]:
        """The features that the client's task uses."""
        return self._world.tasks[self._number]

    def request(self) -> FilmRequest:
        """Return the next user's request."""
        user = int(self._rng.integers(self._world.psi.shape[0]))
        films, baseline = self._world.psi[user], int(self._world.baseline[self._number, user])
        return FilmRequest(user, films, baseline, float(films[baseline] @ self._theta))

    def rating(self, user: int, film: int) -> float:
        """Return how much a user likes a film: true features around the expected, and noise."""
        expected = self._world.psi[user, film]
        true = expected + self._psi_noise * self._rng.standard_normal(expected.size)
        return float(true @ self._theta + self._world.reward_noise.draw(self._rng, (1,))[0])

    def change_tastes(self) -> None:
        """Let users like other films from now on: every feature has its neighbour's weight.

        Nine tenths of it, so that expected ratings still lie between 0 and 1.
        """
        uses, theta = list(self.uses), self._theta.copy()
        theta[uses] = 0.9 * np.roll(theta[uses], 1)
        self._theta = theta

    def worth(self, user: int, film: int) -> float:
        """Return how much such users like a film on average, which no real system can know."""
        return float(self._world.psi[user, film] @ self._theta)

    def until_next(self, rate: float) -> float:
        """Return the seconds until the next user comes, at `rate` users per second."""
        return float(self._rng.exponential(1.0 / rate))

    def thinking(self) -> float:
        """Return the seconds until a user rates a film; they do not depend on the rating."""
        return float(self._rng.uniform(*THINKING_S))
