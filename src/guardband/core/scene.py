"""What the simulator's loop reads and writes besides the agents: the world, the draws, the books."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.core.types import Floats, Ints

__all__ = ["Books", "Clock", "Draws", "Metric", "Scene", "Squad", "Trail", "new_clock"]


class Metric(IntEnum):
    """The columns of the books: running sums per agent."""

    REGRET = 0
    REGRET_EXPECTED = 1
    VIOLATIONS_EXPECTED = 2
    VIOLATIONS_REALISED = 3
    CONSERVATIVE = 4
    REWARD = 5
    BASELINE_REWARD = 6


class Squad(NamedTuple):
    """The tasks of all agents."""

    index: Ints  # (M, d) coordinates in use, padded
    size: Ints  # (M,) how many of them count
    alpha: Floats  # (M,)
    rho: Floats  # (M,)
    judged: Floats  # (M,) the alpha by which violations are counted; NaN: they are not


class Scene(NamedTuple):
    """The world of one trial, tabulated; rewards per distinct task, features once for all."""

    menu: Floats  # (C, d, K) expected features psi
    expected: Floats  # (G, C, K) psi'theta, masked by task group
    realised: Floats  # (G, C, K) phi'theta, masked by task group
    best: Ints  # (G, C) argmax psi'theta
    group: Ints  # (M,) an agent's task group
    baseline: Ints  # (M, C)
    gap: Floats  # (M, C) for the gap gate; zeros where it is not told
    theta: Floats  # (d,)
    desk: Floats  # (3, K) scratch for the means and bounds of a menu


class Draws(NamedTuple):
    """All randomness of a stretch of n rounds, drawn beforehand and shared by all algorithms."""

    contexts: Ints  # (n,)
    noise: Floats  # (n, M) reward noise
    zeta: Floats  # (n, M, d) unit vectors, or (n, 1, d): the same for all agents
    coin: Floats  # (n, M) uniform
    rho: Floats  # (n,) overrides every task's rho, or (0,)


class Clock(NamedTuple):
    """What the fleet as a whole remembers from round to round."""

    ints: Ints  # (4,) rounds played, round of the last pooling, poolings, checkpoints passed
    logdet: Floats  # (1,) log det(V / ridge) at the last pooling


class Books(NamedTuple):
    """Running sums, and copies of them at the checkpoints."""

    totals: Floats  # (M, metrics)
    checkpoints: Ints  # (P,) rounds, rising
    curves: Floats  # (P, M, metrics)
    syncs: Ints  # (P,)


class Trail(NamedTuple):
    """Every round, where it was asked for; arrays of no rounds otherwise."""

    actions: Ints  # (T, M)
    conservative: NDArray[np.bool_]  # (T, M)
    rewards: Floats  # (T, M) noise-free
    synced: NDArray[np.bool_]  # (T,)


def new_clock() -> Clock:
    """Return the clock of a fleet before its first round."""
    return Clock(np.zeros(4, np.int64), np.zeros(1))
