"""How long a trial will take, roughly: to order work and to show the time left.

Constants are microseconds of one core of an ordinary server, measured once; they are meant to be
right within a factor of three.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from guardband.algorithms import Rate
from guardband.problems import AnyWorld, Problem

__all__ = ["Size", "seconds_of", "size_of", "size_of_world"]

TRIAL = 1_500.0  # per trial, however short
SETUP = 0.05  # per number in the table of features
FRESH = 0.015  # per feature that is drawn in a round
FORECAST = 0.003  # per feature that is averaged in a round
PYTHON = Rate(100.0, 0.0, 0.0)  # a policy in plain Python


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


def size_of_world(world: AnyWorld) -> Size:
    """Return how large a world is."""
    return Size(len(world.tasks), *world.shape)


def seconds_of(problem: Problem, algorithm: Any, rounds: int, size: Size | None = None) -> float:
    """Return what one trial of an algorithm costs one core."""
    agents, contexts, actions, features = size_of(problem) if size is None else size
    rate: Rate = getattr(algorithm, "rate", PYTHON)
    table = contexts * actions * features
    trial = TRIAL + table * (SETUP + rate.design * features)
    shared = 0.0
    if getattr(problem, "nature", None) == "fresh":
        shared = FRESH * actions * features
    elif hasattr(problem, "support"):
        shared = FORECAST * problem.support * actions * features
    each = rate.start + features * (rate.feature + rate.scan * actions)
    return 1e-6 * (trial + rounds * (shared + agents * each))
