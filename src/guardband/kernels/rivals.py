"""Settings and state of single-task, asynchronous and phased methods; nothing compiled."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from guardband.kernels.types import Floats, Ints

__all__ = ["Method", "Mode", "PhasePlan", "Solo", "UploadRule", "new_phase_plan"]

MOST_TESTS = 64  # phases grow geometrically: no run has as many


class Method(IntEnum):
    """Whose rule an agent follows."""

    SAMPLE = 0  # SCLTS: the best certified action for a sampled parameter
    OPTIMISM = 1  # SCLUCB: the certified action with the largest upper bound
    GREEDY = 2  # SEGE: the certified action with the largest estimate; gate at pace sqrt(t)
    BUDGET = 3  # CLUCB: optimism, as long as the budget covers what it may cost
    ORACLE = 4  # the best action
    DIRECTION = 5  # ROFUL: towards the largest upper bound, as far as is sure to be safe
    GAPS = 6  # C-SquareCB: drawn by predicted gaps, as long as the budget covers it


class Solo(NamedTuple):
    """The settings of a single-task method beside the common terms."""

    method: int
    level: float  # log(1 / delta'), of the horizon form of the radius
    pace: float = 0.0  # SEGE's c; C-SquareCB's factor of the slack
    rate: float = 1.0  # C-SquareCB's factor of gamma


class UploadRule(NamedTuple):
    """The settings of asynchronous agents beside the common terms."""

    growth: float  # log(1 + a): uploads when log det has grown by more than this
    beta: float  # the radius, the same in all rounds


class Mode(IntEnum):
    """How a phase's plan is read."""

    SHARES = 0  # each context's visits are split among its actions in given proportions
    QUOTAS = 1  # each context's actions have quotas; when they are full, its leader is played
    TESTS = 2  # actions that pass all past tests are played where least is known


class PhasePlan(NamedTuple):
    """What agents do in a phase, and what they learn in it."""

    mode: int
    target: Floats  # (G, C, K) shares or quotas, by distinct task
    leader: Ints  # (G, C)
    counts: Floats  # (M, C, K) plays in this phase
    visits: Floats  # (M, C) rounds of this phase
    gram: Floats  # (M, d, d) sum of x x' over this phase
    moment: Floats  # (M, d) sum of y x
    inverse: Floats  # (M, d, d) of I + gram, for TESTS
    tests: Floats  # (n, d) past estimates
    slack: Floats  # (n,) how far behind the best an action may be by each of them
    passed: Ints  # (1,) number of tests so far
    work: Floats  # (4, d) scratch; row 3 stays zero


def new_phase_plan(mode: Mode, table: tuple[int, int, int], agents: int, dim: int) -> PhasePlan:
    """Return an empty plan; `table` are the numbers of tasks, contexts and actions."""
    groups, contexts, actions = table
    inverse = np.zeros((agents, dim, dim))
    inverse[:, range(dim), range(dim)] = 1.0
    return PhasePlan(
        mode=int(mode),
        target=np.zeros(table),
        leader=np.zeros((groups, contexts), np.int64),
        counts=np.zeros((agents, contexts, actions)),
        visits=np.zeros((agents, contexts)),
        gram=np.zeros((agents, dim, dim)),
        moment=np.zeros((agents, dim)),
        inverse=inverse,
        tests=np.zeros((MOST_TESTS, dim)),
        slack=np.zeros(MOST_TESTS),
        passed=np.zeros(1, np.int64),
        work=np.zeros((4, dim)),
    )
