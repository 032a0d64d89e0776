"""Runs of an agent in a possible world: when it leaves the baseline, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.agent import Engine, Past, Request, run_ahead
from guardband.algorithms import GuardUCB
from guardband.facts import Facts
from guardband.kernels.state import view, view_of
from guardband.kernels.types import Floats, State
from guardband.problems import World
from guardband.seeds import stream
from guardband.sim import CommonRunner, TrialDraws
from guardband.studies.possible import PossibleWorld, PossibleWorlds

__all__ = ["WINDOW", "AgentRun", "LogsLearned", "learn_logs", "look_further", "run_agent"]

WINDOW = 100  # rounds of which half must be learned plays
FIRST_BLOCK, LAST_BLOCK = 500, 20_000  # rounds that are played before looking
ROWS = 100_000  # of logs that are learned at a time
AHEAD = 128  # menus by which a run is looked at beyond its end
SETTLED = 0.05  # of the rounds: if no more ask for caution at the end, nothing is out of reach
NO_CURVES = np.zeros(0, np.int64)


class AgentRun(NamedTuple):
    """How an agent fared."""

    first: float  # round of its first learned play; inf: none
    half: float  # round of a learned play that begins WINDOW plays of which half are; inf: none
    cost: float  # the most by which its expected rewards, summed, were behind the baseline's
    settled: bool  # in the end the baseline itself was what it found best
    numbers: Floats  # what it knew in the end, see `kernels.state`
    played: int  # rounds

    def state(self, dim: int) -> State:
        """Return what it knew in the end, by name."""
        return view_of(view(self.numbers, dim), 0)


class LogsLearned(NamedTuple):
    """What an agent knows of logs."""

    numbers: Floats  # see `kernels.state`
    rows: int


def learn_logs(
    worlds: PossibleWorlds, world: World, algorithm: GuardUCB, count: int, seed: int
) -> LogsLearned | None:
    """Return what an agent knows of `count` rows like those that were logged; None of no rows."""
    if not count:
        return None
    engine, rng = _engine(world, algorithm), stream(seed, "logs")
    for past in range(0, count, ROWS):
        rows, rewards = worlds.logged(world, min(ROWS, count - past), rng)
        engine.learn_rows(0, rows, rewards, 1, 0.0, past, past)
    return LogsLearned(engine.numbers, count)


def run_agent(
    possible: PossibleWorld,
    algorithm: GuardUCB,
    rounds: int,
    seed: int,
    learned: LogsLearned | None = None,
    *,
    whole: bool = True,
) -> AgentRun:
    """Let an agent play a world until half of its plays are learned ones, or the rounds end.

    Parameters
    ----------
    possible
        Where it plays.
    algorithm
        What it runs.
    rounds
        How many at most.
    seed
        Of the rounds.
    learned
        What it knows of logs; None: it starts anew.
    whole
        Whether to look beyond its first learned play.
    """
    (world, expected), judged = possible, np.array([np.nan])
    plan = algorithm.plan(_facts(world))
    runner = CommonRunner(world, plan, judged, NO_CURVES, rounds)
    if learned is not None:
        runner.numbers[...], runner.clock.ints[4] = learned
    worth = np.ascontiguousarray(expected[:, None, :])
    runner.env = runner.env._replace(expected=worth, realised=worth, best=worth.argmax(axis=2))
    trace, baseline = runner.trace, world.baseline[0]
    usual = expected[np.arange(len(expected)), baseline]
    found, behind, now = np.zeros(rounds, np.bool_), np.zeros(rounds), 0
    half = math.inf
    for size in _blocks(rounds):
        draws = TrialDraws(world, size, int(stream(seed, now).integers(1 << 62)), directions=False)
        for chunk in draws.chunks():
            runner.play(chunk)
            part = slice(now, now + chunk.contexts.size)
            actions, explored = trace.actions[part, 0], trace.explored[part, 0]
            found[part] = (actions != baseline[chunk.contexts]) & ~explored
            behind[part] = usual[chunk.contexts] - trace.rewards[part, 0]
            now = part.stop
        found[0] &= learned is not None  # without data nothing is learned
        half = _half_learned(found[:now], rounds)
        if half < math.inf or (found[:now].any() and not whole):
            break
    first = float(found.argmax() + 1) if found.any() else math.inf
    cost = max(0.0, float(np.cumsum(behind[:now]).max()))
    careful = trace.conservative[max(0, now - LAST_BLOCK) : now, 0].mean()
    return AgentRun(first, half, cost, bool(careful <= SETTLED), runner.numbers, now)


def look_further(
    run: AgentRun, worlds: PossibleWorlds, world: World, algorithm: GuardUCB, past: int, rounds: int
) -> AgentRun:
    """Return a run whose first learned play is looked for beyond it, in leaps; see `run_ahead`.

    `past` rows of logs were learned before it, and nothing counts beyond so many rounds.
    """
    engine = _engine(world, algorithm)
    engine.numbers[...] = run.numbers
    nothing, none = np.zeros((0, 0, 0)), np.zeros(0)
    menus = islice(worlds.menus(), AHEAD)
    seen = [Request(menu, baseline, None, nothing, none, nothing) for menu, baseline in menus]
    start = Past(engine, 0, 1, past + run.played, [seen])
    first = run.played + run_ahead(start, world.theta, np.random.default_rng(0)).rounds
    return run._replace(first=first if first <= rounds else math.inf)


def _facts(world: World) -> Facts:
    """Return what is known of a world, which is what `gb.Agent` knows."""
    return Facts(world.tasks, world.dim)


def _engine(world: World, algorithm: GuardUCB) -> Engine:
    """Return the numbers of an agent by itself, and what agents call to change them."""
    return Engine(algorithm, _facts(world), [np.arange(world.dim)])


def _blocks(rounds: int) -> Iterator[int]:
    """Yield sizes that grow, and sum to all rounds."""
    done, size = 0, FIRST_BLOCK
    while done < rounds:
        size = min(size, rounds - done)
        yield size
        done += size
        size = min(2 * size, LAST_BLOCK)


def _half_learned(found: NDArray[np.bool_], rounds: int) -> float:
    """Return the first learned play that begins WINDOW plays of which half are learned ones.

    `found` tells which of the plays so far are; where all `rounds` are fewer than WINDOW, half of
    them.
    """
    window = min(WINDOW, rounds)
    if len(found) < window:
        return math.inf
    sums = np.concatenate(([0], np.cumsum(found)))
    enough = found[: 1 - window or None] & (2 * (sums[window:] - sums[:-window]) >= window)
    return float(enough.argmax() + 1) if enough.any() else math.inf
