"""Run algorithms against each other: the same draws for all, trials on all cores."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from guardband.algorithms import ALGORITHMS, Algorithm, GuardUCB
from guardband.checks import as_alpha, check_choice, check_whole
from guardband.kernels.types import Floats
from guardband.problems import Fresh, Problem, World
from guardband.problems import problem as named_problem
from guardband.seeds import trial_seed
from guardband.sim.draws import Replay
from guardband.sim.provenance import commit, versions
from guardband.sim.results import Results
from guardband.sim.trial import TrialResult, run_trial

__all__ = ["BoundWarning", "simulate"]


class BoundWarning(UserWarning):
    """A problem is outside the bounds that an algorithm was told."""


def simulate(
    problem: Problem | str,
    algorithms: Algorithm | str | Sequence[Algorithm | str],
    *,
    rounds: float | None = None,
    trials: int = 1,
    seed: int = 0,
    alpha: Any = None,
    replay: Replay | None = None,
    trace: bool = False,
    workers: int | None = None,
    progress: bool | None = None,
) -> Results:
    """Run every algorithm on the problem, all under the same draws.

    Parameters
    ----------
    problem
        What to solve, such as `gb.Tabular(...)`, or the name of a problem.
    algorithms
        One algorithm or several. One that is given by its name is told what the problem declares
        about itself, as on the command line, and `alpha`, if that is given.
    rounds
        The horizon T, a whole number (1e4 is one); may be left out with `replay`.
    trials
        Independent repetitions; trial i does not depend on how many there are.
    seed
        The same seed gives the same numbers, whatever the number of workers.
    alpha
        By which alpha violations are counted, one number or one per agent; by default that of
        the first constrained algorithm. With neither, they are not counted and are NaN.
    replay
        Takes every random draw from arrays.
    trace
        Keeps every round of one trial of one algorithm in `results.trace`.
    workers
        How many trials run at a time; by default one per core.
    progress
        Shows a progress bar; by default only on a terminal.

    Returns
    -------
    Results
        Tables, curves and everything needed to run it again.
    """
    started = time.perf_counter()
    if isinstance(problem, str):
        problem = named_problem(problem)
    if not hasattr(problem, "build"):
        raise TypeError(
            f"{problem!r} is not a problem: make one with gb.problem(name) or gb.Tabular(...)."
        )
    entrants = _entrants(algorithms, problem, alpha)
    if rounds is None:
        if replay is None:
            raise ValueError("rounds is missing: say how many rounds to play.")
        rounds = len(replay.contexts)
    whole: Any = int(rounds) if isinstance(rounds, float) and rounds.is_integer() else rounds
    rounds, trials = check_whole("rounds", whole), check_whole("trials", trials)
    seed = check_whole("seed", seed, 0)
    if trace and (trials > 1 or len(entrants) > 1):
        raise ValueError(
            f"trace=True keeps every round of one trial and one algorithm, not of {trials} trials "
            f"and {len(entrants)} algorithms."
        )
    if replay is not None and trials > 1:
        raise ValueError(f"a replay is one trial, not {trials}.")
    seeds = [trial_seed(seed, trial) for trial in range(trials)]
    first = problem.build(seeds[0])
    judged = _judge(entrants, alpha, len(first.tasks))
    outside = _outside_bounds(first, entrants)
    _warn_of_bounds(outside)

    def run(trial: int, advance: Callable[[int], None]) -> list[TrialResult]:
        world = first if trial == 0 else problem.build(seeds[trial])
        return run_trial(
            world,
            entrants,
            rounds=rounds,
            seed=seeds[trial],
            judged=judged,
            trace=trace,
            replay=replay,
            advance=advance,
        )

    records = _run_all(run, trials, workers, progress, total=rounds * trials * len(entrants))
    return Results.collect(
        problem=problem,
        algorithms=entrants,
        records=records,
        world=first,
        uncovered=["; ".join(short for _, short in found) for found in outside],
        settings={
            "rounds": rounds,
            "trials": trials,
            "seed": seed,
            "alpha": None if np.isnan(judged).any() else [float(a) for a in judged],
            "replayed": replay is not None,
            "seconds": time.perf_counter() - started,
            "versions": versions(),
            "commit": commit(),
        },
    )


def _entrants(
    algorithms: Algorithm | str | Sequence[Algorithm | str], problem: Any, alpha: Any
) -> list[Algorithm]:
    """Return the algorithms, those given by name informed about the problem."""
    one = isinstance(algorithms, str) or not isinstance(algorithms, Sequence)
    asked: list[Any] = [algorithms] if one else list(algorithms)  # type: ignore[arg-type]
    if not asked:
        raise ValueError("algorithms is empty: give at least one, such as gb.DiscUCB(alpha=0.1).")
    declared = dict(problem.assumptions()) if hasattr(problem, "assumptions") else {}
    declared.pop("rounds", None)
    declared["context_noise"] = getattr(problem, "context_noise", None)
    given = {} if alpha is None else {"alpha": alpha}
    for i, entrant in enumerate(asked):
        if isinstance(entrant, str):
            name = check_choice("algorithm", entrant, tuple(ALGORITHMS))
            asked[i] = ALGORITHMS[name].informed(declared, **given)
        elif isinstance(entrant, type) or not hasattr(entrant, "plan"):
            raise TypeError(f"{entrant!r} is not an algorithm: give one such as gb.GuardUCB(0.1).")
    return asked


def _run_all(
    run: Callable[[int, Callable[[int], None]], list[TrialResult]],
    trials: int,
    workers: int | None,
    progress: bool | None,
    total: int,
) -> list[list[TrialResult]]:
    """Run the trials on threads (kernels hold no lock); results in the order of the trials."""
    threads = check_whole("workers", os.cpu_count() or 1 if workers is None else workers)
    stop = threading.Event()
    with _bar(progress, total) as advance:

        def step(rounds: int) -> None:
            if stop.is_set():
                raise KeyboardInterrupt
            advance(rounds)

        with ThreadPoolExecutor(min(threads, trials)) as pool:
            futures = [pool.submit(run, trial, step) for trial in range(trials)]
            try:
                return [future.result() for future in futures]
            except BaseException:
                stop.set()
                for future in futures:
                    future.cancel()
                raise


@contextmanager
def _bar(progress: bool | None, total: int) -> Iterator[Callable[[int], None]]:
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=total)
        yield lambda rounds: bar.advance(task, rounds)


def _judge(algorithms: Sequence[Algorithm], alpha: Any, agents: int) -> Floats:
    if alpha is None:
        alpha = next((getattr(a, "alpha", None) for a in algorithms if a.constrained), None)
    if alpha is None:
        return np.full(agents, np.nan)
    return np.array(as_alpha(alpha, agents))


def _outside_bounds(world: World, algorithms: Sequence[Algorithm]) -> list[list[tuple[str, str]]]:
    """Return for every algorithm which of its bounds the problem exceeds, at length and in short.

    Its promise assumes them.
    """
    longest = max(
        float(np.linalg.norm(world.psi[:, :, list(task)], axis=2).max()) for task in world.groups[0]
    )
    length = float(np.linalg.norm(world.theta))
    low, high = _reward_range(world)
    beyond = high if high > 1 + 1e-9 else low
    found: list[list[tuple[str, str]]] = []
    for algorithm in algorithms:
        own = []
        for value, what, setting in (
            (longest, "expected features", "feature_bound"),
            (length, "theta", "theta_bound"),
        ):
            bound = getattr(algorithm, setting, None)
            if bound is not None and value > bound * (1 + 1e-9):
                text = f"{algorithm.name} assumes {setting}={bound:g}, but {what} reach {value:.4g}"
                own.append((text, f"{what} reach {value:.4g}, {setting} is {bound:g}"))
        if isinstance(algorithm, GuardUCB) and (low < -1e-9 or high > 1 + 1e-9):
            text = (
                f"{algorithm.name} assumes rewards in [0, 1], but they reach from {_signed(low)} "
                f"to {_signed(high)}"
            )
            own.append((text, f"rewards reach {_signed(beyond)}"))
        found.append(own)
    return found


def _signed(value: float) -> str:
    """Return a number with a minus, not a hyphen, as tables and summaries have it."""
    return f"{value:.3g}".replace("-", "\u2212")


def _warn_of_bounds(outside: Sequence[Sequence[tuple[str, str]]]) -> None:
    """Say once which bounds the problem exceeds."""
    message = "; ".join(dict.fromkeys(text for found in outside for text, _ in found))
    if message:
        warnings.warn(f"{message}. Its promise does not cover that.", BoundWarning, stacklevel=3)


def _reward_range(world: World) -> tuple[float, float]:
    """Return the smallest and largest reward; where phi is drawn around psi, of the expected."""
    rewards = world.expected if isinstance(world.nature, Fresh) else world.realised
    return float(rewards.min()), float(rewards.max())
