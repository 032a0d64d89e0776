"""One trial: what it is, how it is run on any machine, and how its results are cached."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardband.algorithms import Traffic
from guardband.checks import as_alpha
from guardband.engines import Advance, CacheEntry
from guardband.errors import InvalidValueError, OtherVersionError
from guardband.facts import Facts
from guardband.kernels.types import Floats, Ints
from guardband.problems import AnyWorld, Problem
from guardband.seeds import trial_seed
from guardband.sim.costs import seconds_of, size_of, size_of_world
from guardband.sim.draws import Replay, TrialDraws
from guardband.sim.history import History, learn_history
from guardband.sim.keys import content, origin, text_of
from guardband.sim.python_policy import Competitor, PythonRunner, is_python_policy
from guardband.sim.runners import CommonRunner, Trace, TrialResult, make_runner

__all__ = ["Trace", "Trial", "TrialResult", "build_world", "checkpoint_rounds", "forget_worlds"]
__all__ += ["from_cache", "make_trials", "run_trial", "to_cache"]

CURVE_POINTS = 200
WORLDS_KEPT = 4  # a large one takes a hundred megabytes


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial:
    """One repetition: some algorithms on one world, all under the same draws.

    Attributes
    ----------
    seed
        The trial's own; world and draws follow from it, and not from the algorithms.
    alpha
        By which violations are counted, one number or one per agent; None: they are not.
    replay
        Takes every random draw from arrays.
    history
        What agents learn before the first round.
    budget
        What the plays of each agent may cost in all; None: there is no budget.
    trace
        Whether every round is kept.
    agent_curves
        Whether every agent has its own curves; else they are means over the agents, because a
        thousand agents' own would take a hundred times the memory of everything else.
    key, world
        The keys of the trial and of its world; equal keys mean equal numbers.
    origin
        The code that the keys are about, and what runs it.
    cost
        The estimated seconds of one core.
    """

    problem: Problem
    algorithms: tuple[Competitor, ...]
    rounds: int
    seed: int
    alpha: Any
    replay: Replay | None
    history: History | None
    budget: float | None
    trace: bool
    agent_curves: bool
    key: str
    world: str
    origin: str
    cost: float


def make_trials(
    problem: Problem,
    algorithms: Sequence[Competitor],
    *,
    rounds: int,
    trials: int,
    seed: int = 0,
    alpha: Any = None,
    replay: Replay | None = None,
    history: History | None = None,
    budget: float | None = None,
    trace: bool = False,
    agent_curves: bool = True,
    by_content: bool = True,
    first: AnyWorld | None = None,
) -> list[Trial]:
    """Return the trials of some algorithms that run together.

    Parameters
    ----------
    by_content
        Whether keys describe the content, so that results can be cached and shared; else they
        are random, and problem and algorithms may be anything.
    first
        The world of the first trial, if it was built already.
    others
        See `Trial`.
    """
    where, what = {"problem": secrets.token_hex(8)}, {}
    if by_content:
        where = {"problem": content(problem)}
        what = {"algorithms": content(list(algorithms)), "rounds": rounds, "alpha": alpha}
        what["agent_curves"] = agent_curves
        if history is not None:
            what["history"] = list(history)
        if budget is not None:
            what["budget"] = budget
    size = size_of(problem) if first is None else size_of_world(first)
    played = rounds + (0 if history is None else history.rounds)
    cost = sum(seconds_of(problem, algorithm, played, size) for algorithm in algorithms)
    seeds = [trial_seed(seed, trial) for trial in range(trials)]
    made = [
        Trial(
            problem=problem,
            algorithms=tuple(algorithms),
            rounds=rounds,
            seed=own,
            alpha=alpha,
            replay=replay,
            history=history,
            budget=budget,
            trace=trace,
            agent_curves=agent_curves,
            key=text_of(**where, **what, seed=own),
            world=text_of(**where, seed=own),
            origin=origin(),
            cost=cost,
        )
        for own in seeds
    ]
    if first is not None:
        build_world(made[0], first)
    return made


def run_trial(trial: Trial, advance: Advance) -> tuple[TrialResult, ...]:
    """Run one trial; `advance` is called with each share that is done, and may raise to stop it."""
    if trial.origin != origin():
        raise OtherVersionError(
            "this worker runs another version of guardband, Python, numpy or numba than the "
            "command, or on another kind of processor: its numbers could differ in the last "
            "digits. Install the same versions on every node, and give the command from a machine "
            "of the workers' kind to a cluster of one kind."
        )
    started = time.thread_time()
    world = build_world(trial)
    facts, checkpoints = world.facts(trial.rounds), checkpoint_rounds(trial.rounds)
    agents, kept = len(world.tasks), trial.rounds if trial.trace else 0
    judged = np.full(agents, np.nan) if trial.alpha is None else as_alpha(trial.alpha, agents)
    runners = [
        _runner(algorithm, trial.problem, world, facts, np.array(judged), checkpoints, kept)
        for algorithm in trial.algorithms
    ]
    for runner in runners:
        if trial.budget is not None and isinstance(runner, CommonRunner):
            runner.allow(trial.budget, trial.rounds)
    needed = frozenset().union(*(runner.needs for runner in runners))
    draws = TrialDraws(
        world,
        trial.rounds,
        trial.seed,
        directions="zeta" in needed,
        coins="coin" in needed,
        normals="normal" in needed,
        orders="order" in needed,
        holds="hold" in needed,
        replay=trial.replay,
    )
    left = 1.0
    if trial.history is not None:
        left = trial.rounds / (trial.rounds + trial.history.rounds)
        learn_history(trial.history, world, trial.seed, runners, advance, 1.0 - left)
    for chunk in draws.chunks():
        for runner in runners:
            runner.play(chunk)
            advance(left * chunk.contexts.size / trial.rounds / len(runners))
    results = [runner.record() for runner in runners]
    seconds = (time.thread_time() - started) / len(results)
    if not trial.agent_curves:
        results = [r._replace(curves=r.curves.mean(axis=1, keepdims=True)) for r in results]
    return tuple(result._replace(seconds=seconds) for result in results)


def _runner(
    algorithm: Any, problem: Problem, world: AnyWorld, facts: Facts, judged: Floats, *rest: Any
) -> Any:
    """Return what plays an algorithm in one trial; `rest` as a runner takes it."""
    try:
        if is_python_policy(algorithm):
            return PythonRunner(world, algorithm, judged, *rest)
        return make_runner(world, algorithm.plan(facts), judged, *rest)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"{algorithm.name} on {problem.name}: {error}") from error


def checkpoint_rounds(rounds: int) -> Ints:
    """Return the rounds at which curves are kept: evenly spaced, the last one included."""
    points = min(rounds, CURVE_POINTS)
    return np.unique(np.ceil(np.linspace(rounds / points, rounds, points)).astype(np.int64))


def to_cache(results: Sequence[TrialResult]) -> CacheEntry:
    """Return the results of a trial, without traces, as a cache keeps them."""
    arrays: dict[str, Floats | Ints] = {}
    for i, result in enumerate(results):
        arrays |= {f"totals{i}": result.totals, f"curves{i}": result.curves}
        arrays[f"syncs{i}"] = result.syncs
    notes = [{"traffic": list(result.traffic), "seconds": result.seconds} for result in results]
    return CacheEntry(arrays, {"results": notes})


def from_cache(entry: CacheEntry) -> tuple[TrialResult, ...]:
    """Return the results of a trial from a cache."""
    return tuple(
        TrialResult(
            totals=entry.arrays[f"totals{i}"],
            curves=entry.arrays[f"curves{i}"],
            syncs=entry.arrays[f"syncs{i}"],
            trace=None,
            traffic=Traffic(*notes["traffic"]),
            seconds=notes["seconds"],
        )
        for i, notes in enumerate(entry.notes["results"])
    )


class _BuiltOnce:
    """A world, and the lock under which the first thread that needs it builds it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.world: AnyWorld | None = None


_worlds: OrderedDict[str, _BuiltOnce] = OrderedDict()  # the ones used last, the newest at the end
_worlds_lock = threading.Lock()


def build_world(trial: Trial, built: AnyWorld | None = None) -> AnyWorld:
    """Return the trial's world; trials that share one build it once, or not if it is given."""
    with _worlds_lock:
        slot = _worlds.setdefault(trial.world, _BuiltOnce())
        _worlds.move_to_end(trial.world)
        while len(_worlds) > WORLDS_KEPT:
            _worlds.popitem(last=False)
    with slot.lock:
        if slot.world is None:
            slot.world = trial.problem.build(trial.seed) if built is None else built
        return slot.world


def forget_worlds() -> None:
    """Drop all worlds from memory; they may be large."""
    with _worlds_lock:
        _worlds.clear()
