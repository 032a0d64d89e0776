"""How long runs will take, roughly: to order work, to show the time left, and to list panels.

Constants are microseconds of one core of an ordinary server, measured once; they are meant to be
right within a factor of three.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from guardband.algorithms import (
    SCLTS,
    SCLUCB,
    SEGE,
    Algorithm,
    Baseline,
    DiscUCB,
    DiscUCBUnknown,
    DisLSB,
    FedPE,
    FedPECD,
    GuardUCB,
    Oracle,
)
from guardband.lab.panel import Run, RunResult
from guardband.problems import Problem

__all__ = ["Size", "agent_rounds", "authors_code", "seconds_of", "size_of"]

TRIAL = 1_500.0  # per trial, however short
SETUP = 0.05  # per number in the table of features
FRESH = 0.015  # per feature that is drawn in a round
FORECAST = 0.003  # per feature that is averaged in a round

# The authors' code, per round of one agent, at K = 40 and d = 2.
AUTHORS_OPTIMISTIC, AUTHORS_CONSERVATIVE = 92e-3, 0.25e-3
AUTHORS = ("disc-ucb", "disc-ucb-gap-oracle", "disc-ucb-unknown", "sclts", "dis-lin-ucb")


class Rate(NamedTuple):
    """What an agent's round costs: a + b d + c K d; and a trial, per number and feature: e."""

    start: float
    feature: float
    scan: float
    design: float = 0.0


OPTIMISTIC = Rate(0.15, 0.0, 0.0016)
RATES: dict[type, Rate] = {
    Baseline: Rate(0.06, 0.0, 0.0),
    Oracle: Rate(0.06, 0.0, 0.0),
    # Between a gate that stays closed and one that opens: nobody knows beforehand.
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
    if told is not None:
        return Size(**told)
    world = problem.build(0)
    return Size(len(world.tasks), *world.phi.shape)


def agent_rounds(run: Run) -> int:
    """Return how many decisions a run takes, in all its trials."""
    return run.rounds * run.trials * size_of(run.problem).agents


def seconds_of(problem: Problem, algorithm: Algorithm, rounds: int) -> float:
    """Return what one trial costs one core."""
    agents, contexts, actions, features = size_of(problem)
    rate = RATES.get(type(algorithm), OPTIMISTIC)
    table = contexts * actions * features
    trial = TRIAL + table * (SETUP + rate.design * features)
    shared = 0.0
    if getattr(problem, "nature", None) == "fresh":
        shared = FRESH * actions * features
    elif hasattr(problem, "support"):
        shared = FORECAST * problem.support * actions * features
    each = rate.start + features * (rate.feature + rate.scan * actions)
    return 1e-6 * (trial + rounds * (shared + agents * each))


def authors_code(result: Iterable[RunResult]) -> tuple[int, float]:
    """Return how many decisions are by algorithms of the authors' notebooks, and their time there.

    A round that is not conservative takes their code a numerical search per action.
    """
    decisions, seconds = 0, 0.0
    for each in result:
        if each.series.algorithm in AUTHORS:
            count = agent_rounds(each.run)
            share = float(each.series.conservative.mean()) / each.run.rounds
            decisions += count
            seconds += count * (share * AUTHORS_CONSERVATIVE + (1.0 - share) * AUTHORS_OPTIMISTIC)
    return decisions, seconds
