"""How long a trial will take, roughly: to order work and to show the time left.

Constants are microseconds of one core of an ordinary server, measured once; they are meant to be
right within a factor of three.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from guardband.algorithms import (
    SCLTS,
    SCLUCB,
    SEGE,
    Baseline,
    DiscUCB,
    DiscUCBUnknown,
    DisLSB,
    FedPE,
    FedPECD,
    GuardUCB,
    Oracle,
)
from guardband.problems import Problem, World

__all__ = ["Size", "seconds_of", "size_of", "size_of_world"]

TRIAL = 1_500.0  # per trial, however short
SETUP = 0.05  # per number in the table of features
FRESH = 0.015  # per feature that is drawn in a round
FORECAST = 0.003  # per feature that is averaged in a round


class Rate(NamedTuple):
    """What an agent's round costs: a + b d + c K d; and a trial, per number and feature: e."""

    start: float
    feature: float
    scan: float
    design: float = 0.0


OPTIMISTIC = Rate(0.15, 0.0, 0.0016)
PYTHON = Rate(100.0, 0.0, 0.0)  # a policy in plain Python
RATES: dict[type, Rate] = {
    Baseline: Rate(0.06, 0.0, 0.0),
    Oracle: Rate(0.06, 0.0, 0.0),
    # Between a gate that stays closed and one that opens: which of them is not known beforehand.
    DiscUCB: Rate(0.15, 0.02, 0.0004),
    DiscUCBUnknown: Rate(0.15, 0.02, 0.0004),
    GuardUCB: Rate(0.2, 0.0, 0.0022),
    SCLTS: Rate(0.25, 0.02, 0.001),
    SCLUCB: Rate(0.25, 0.02, 0.001),
    SEGE: Rate(0.25, 0.02, 0.001),
    DisLSB: Rate(0.2, 0.0, 0.0016, 0.1),
    FedPE: Rate(0.3, 0.0, 0.003, 0.15),
    FedPECD: Rate(0.4, 0.0, 0.005, 0.2),
}


class Size(NamedTuple):
    """How large a problem is."""

    agents: int
    contexts: int
    actions: int
    features: int


def size_of(problem: Problem) -> Size:
    """Return a problem's size; one that does not say it is built to be measured."""
    told = getattr(problem, "sizes", None)
    return size_of_world(problem.build(0)) if told is None else Size(**told)


def size_of_world(world: World) -> Size:
    """Return how large a world is."""
    return Size(len(world.tasks), *world.phi.shape)


def seconds_of(problem: Problem, algorithm: Any, rounds: int, size: Size | None = None) -> float:
    """Return what one trial of an algorithm costs one core."""
    agents, contexts, actions, features = size_of(problem) if size is None else size
    usual = PYTHON if hasattr(algorithm, "choose") else OPTIMISTIC
    rate = RATES.get(type(algorithm), usual)
    table = contexts * actions * features
    trial = TRIAL + table * (SETUP + rate.design * features)
    shared = 0.0
    if getattr(problem, "nature", None) == "fresh":
        shared = FRESH * actions * features
    elif hasattr(problem, "support"):
        shared = FORECAST * problem.support * actions * features
    each = rate.start + features * (rate.feature + rate.scan * actions)
    return 1e-6 * (trial + rounds * (shared + agents * each))
