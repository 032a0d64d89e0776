"""One trial: every algorithm of a comparison on one world under the same draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from guardband.algorithms import Algorithm
from guardband.kernels.types import Floats, Ints
from guardband.problems import World
from guardband.sim.draws import Replay, TrialDraws
from guardband.sim.runners import Trace, TrialResult, make_runner

__all__ = ["Trace", "TrialResult", "checkpoints", "run_trial"]

CURVE_POINTS = 200


def run_trial(
    world: World,
    algorithms: Sequence[Algorithm],
    *,
    rounds: int,
    seed: int,
    judged: Floats,
    trace: bool = False,
    replay: Replay | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> list[TrialResult]:
    """Run all algorithms on one world under the same draws; one record for each.

    `judged` is the alpha, per agent, by which violations are counted; `advance` is called with the
    number of rounds done and may raise to stop the trial.
    """
    facts, marks = world.facts(rounds), checkpoints(rounds)
    room = rounds if trace else 0
    runners = [make_runner(world, a.plan(facts), judged, marks, room) for a in algorithms]
    needed = frozenset().union(*(runner.needs for runner in runners))
    draws = TrialDraws(
        world,
        rounds,
        seed,
        directions="zeta" in needed,
        coins="coin" in needed,
        normals="normal" in needed,
        orders="order" in needed,
        replay=replay,
    )
    for chunk in draws.chunks():
        for runner in runners:
            runner.play(chunk)
            advance(chunk.contexts.size)
    return [runner.record() for runner in runners]


def checkpoints(rounds: int) -> Ints:
    """Return the rounds at which curves are kept: evenly spaced, the last one included."""
    points = min(rounds, CURVE_POINTS)
    return np.unique(np.ceil(np.linspace(rounds / points, rounds, points)).astype(np.int64))
