"""The paper's toy example: expected features mislead about what is safe (Appendix A)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from guardband.checks import as_alpha
from guardband.problems.base import FigureSettings, NamedProblem, check_rank, cycled
from guardband.problems.world import World, rank_baseline

__all__ = ["SafeSets", "Toy", "toy_safe_sets"]

ACTIONS = ("x", "x'", "x''")
TRUE = ((1 / 3, 1 / 4), (1.0, 0.0), (1.0, -1 / 10))  # in the context c
EXPECTED = ((1 / 4, 1 / 3), (6 / 5, -1 / 5), (4 / 5, 1 / 10))  # in c'
THETA = (1.0, 2.0)
ROUNDING = 1e-12  # a reward this close below the floor keeps it


@dataclass(frozen=True, kw_only=True)
class Toy(NamedProblem):
    """Three actions in one context whose expected features differ from the true ones (Appendix A).

    Rewards, features and theta are the paper's, although it assumes lengths of at most 1.

    Parameters
    ----------
    agents
        M; tasks cycle over both features, the first, the second.
    baseline
        None: the action x of the paper; or a rank, 1 = best.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or a noise model.
    seed
        Changes nothing: there is one such world.
    """

    agents: int = 3
    baseline: int | None = None

    name: ClassVar[str] = "toy"
    about: ClassVar[str] = "three actions: an unsafe one looks safe, and the best unsafe (App. A)"
    figure = FigureSettings(ridge=1.0, noise=0.1, alpha=0.03, rounds=10_000)
    theta_length: ClassVar[float] = math.hypot(*THETA)
    feature_length: ClassVar[float] = math.hypot(*EXPECTED[1])
    masks: ClassVar[tuple[tuple[int, ...], ...]] = ((0, 1), (0,), (1,))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.baseline is not None:
            check_rank(self.baseline, len(ACTIONS))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Contexts, actions and features: C, K, d."""
        return 1, 3, 2

    def _world(self, seed: int) -> World:
        phi, psi, theta = np.array([TRUE]), np.array([EXPECTED]), np.array(THETA)
        tasks = cycled(self.masks, self.agents)
        if self.baseline is None:
            chosen = np.zeros((self.agents, 1), np.int64)
        else:
            chosen = rank_baseline(phi, theta, tasks, self.baseline)
        return World(phi, psi, theta, tasks, chosen, self.reward_noise)


class SafeSets(NamedTuple):
    """The safe actions under the true context c and under the expected one c'."""

    true: tuple[str, ...]
    expected: tuple[str, ...]


def toy_safe_sets(alpha: float) -> SafeSets:
    """Return which actions keep (1 - alpha) of the baseline's reward, for the toy's first agent.

    The paper's claims hold for small alpha: x'' is unsafe under c if alpha < 1/25, and x' is
    unsafe under c' if alpha < 7/55.

    Parameters
    ----------
    alpha
        The share of the baseline's reward that may be lost, in (0, 1].

    Examples
    --------
    >>> toy_safe_sets(0.03)
    SafeSets(true=('x', "x'"), expected=('x', "x''"))
    """
    (share,) = as_alpha([alpha])

    def safe(features: tuple[tuple[float, float], ...]) -> tuple[str, ...]:
        rewards = np.array(features) @ np.array(THETA)
        kept = rewards >= (1.0 - share) * rewards[0] - ROUNDING
        return tuple(action for action, keeps in zip(ACTIONS, kept, strict=True) if keeps)

    return SafeSets(safe(TRUE), safe(EXPECTED))
