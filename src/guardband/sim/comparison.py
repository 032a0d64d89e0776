"""`gb.simulate`: run algorithms against each other, under the same draws, on all cores."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from guardband.algorithms import ALGORITHMS
from guardband.checks import (
    as_alpha,
    as_path,
    check_choice,
    check_not_negative,
    check_seed,
    check_whole,
)
from guardband.engines import ComputeEngine, ResultCache, open_engine
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.problems import AnyWorld, FormalWorld, Problem, World
from guardband.problems import problem as named_problem
from guardband.progress import ProgressBar
from guardband.seeds import trial_seed
from guardband.sim.draws import Replay
from guardband.sim.history import as_history, check_history
from guardband.sim.provenance import commit, versions
from guardband.sim.python_policy import Competitor, is_python_policy
from guardband.sim.results import Results
from guardband.sim.scheduler import TrialScheduler, cache_folder
from guardband.sim.trial import Trial, TrialResult, make_trials

__all__ = ["BoundWarning", "simulate"]


class BoundWarning(UserWarning):
    """A problem is outside the bounds that an algorithm was told."""


def simulate(
    problem: Problem | str,
    algorithms: Competitor | str | Sequence[Competitor | str],
    *,
    rounds: float | None = None,
    trials: int = 1,
    seed: int = 0,
    alpha: Any = None,
    replay: Replay | None = None,
    history: Any = None,
    budget: float | None = None,
    trace: bool = False,
    workers: int | None = None,
    engine: str | ComputeEngine = "local",
    cache: bool | str | os.PathLike[str] = False,
    progress: bool | None = None,
) -> Results:
    """Run every algorithm on the problem, all under the same draws.

    Parameters
    ----------
    problem
        What to solve, such as `gb.Tabular(...)`, or the name of a problem.
    algorithms
        One algorithm or several. One that is given by its name is told what the problem declares
        about itself, as on the command line, and `alpha`, if that is given. An object of your own
        with a name, `choose` and `update` is run in plain Python, see `PythonPolicy`.
    rounds
        The horizon T, a whole number (1e4 is one); may be left out with `replay`.
    trials
        Independent repetitions; trial i does not depend on how many there are.
    seed
        The same seed gives the same numbers, whatever the engine and the number of workers.
    alpha
        By which alpha violations are counted, one number or one per agent; by default that of
        the first constrained algorithm. With neither, they are not counted and are NaN.
    replay
        Takes every random draw from arrays.
    history
        What every agent learns from before round 1, the same for all algorithms: n rounds of the
        baseline's own rule, or (n, "uniform"), in which each action on offer is equally probable.
    budget
        What the plays of each agent may cost in all, for a problem with costs. Guard-UCB never
        exceeds it; other algorithms do not know it, and their costs are counted.
    trace
        Keeps every round of one trial of one algorithm in `results.trace`.
    workers
        How many trials run at a time; by default one per core.
    engine
        "local" runs trials on this machine's cores, "ray" on a Ray cluster on this machine; or an
        engine, such as `guardband.engines.RayEngine("auto")`.
    cache
        Whether to look up finished trials, and keep them: True in the folder GUARDBAND_TRIALS or
        the user's cache folder, or in a folder that is named.
    progress
        Shows a progress bar; by default only on a terminal, and lines in a log.

    Returns
    -------
    Results
        Tables, curves and everything needed to run it again.

    Examples
    --------
    >>> import guardband as gb
    >>> results = gb.simulate("forecast", ["guard-ucb", "dis-lin-ucb"], rounds=2_000)
    >>> print(results.summary()[["label", "violations_expected"]])  # rounds below the floor
             label  violations_expected
    0    guard-ucb                  0.0
    1  dis-lin-ucb                  2.4
    """
    started = time.perf_counter()
    if isinstance(problem, str):
        problem = named_problem(problem)
    if not hasattr(problem, "build"):
        raise InvalidTypeError(
            f"{problem!r} is not a problem: make one with gb.problem(name) or gb.Tabular(...)."
        )
    made = _algorithms(algorithms, problem, alpha)
    rounds = _rounds(rounds, replay)
    trials, seed = check_whole("trials", trials), check_seed(seed)
    if trace and (trials > 1 or len(made) > 1):
        raise InvalidValueError(
            f"trace=True keeps every round of one trial and one algorithm, not of {trials} trials "
            f"and {len(made)} algorithms."
        )
    if replay is not None and not isinstance(replay, Replay):
        raise InvalidTypeError(f"replay must be a gb.Replay, not {replay!r}.")
    if replay is not None and trials > 1:
        raise InvalidValueError(f"a replay is one trial, not {trials}.")
    past = as_history(history)
    if past is not None and replay is not None:
        raise InvalidValueError("a replay holds no history: leave one of them out.")
    if cache is not False and (trace or replay is not None):
        raise InvalidValueError("the cache keeps neither traces nor replays: leave cache out.")
    first = problem.build(trial_seed(seed, 0))
    check_history(past, made, first, rounds)
    if budget is not None:
        budget = _check_budget(budget, first, rounds)
    judged = _judge(made, alpha, len(first.tasks))
    outside = _outside_bounds(first, made, rounds)
    _warn_of_bounds(outside)
    # Algorithms of one trial share its draws; in the cache each has an entry of its own.
    groups = [made] if cache is False else [[algorithm] for algorithm in made]
    planned = {
        str(i): make_trials(
            problem,
            group,
            rounds=rounds,
            trials=trials,
            seed=seed,
            alpha=judged,
            replay=replay,
            history=past,
            budget=budget,
            trace=trace,
            by_content=cache is not False,
            first=first,
        )
        for i, group in enumerate(groups)
    }
    results = _run(planned, engine, workers, cache, progress)
    return Results.collect(
        problem=problem,
        algorithms=made,
        results=results,
        uncovered=["; ".join(short for _, short in found) for found in outside],
        settings={
            "rounds": rounds,
            "trials": trials,
            "seed": seed,
            "alpha": judged,
            "replayed": replay is not None,
            "history": None if past is None else tuple(past),
            "budget": budget,
            "seconds": time.perf_counter() - started,
            "versions": versions(),
            "commit": commit(),
        },
    )


def _algorithms(
    algorithms: Competitor | str | Sequence[Competitor | str], problem: Any, alpha: Any
) -> list[Competitor]:
    """Return the algorithms, those given by name informed about the problem."""
    one = isinstance(algorithms, str) or not isinstance(algorithms, Sequence)
    asked: list[Any] = [algorithms] if one else list(algorithms)  # type: ignore[arg-type]
    if not asked:
        raise InvalidValueError(
            "algorithms is empty: give at least one, such as gb.DiscUCB(alpha=0.1)."
        )
    declared = dict(problem.assumptions()) if hasattr(problem, "assumptions") else {}
    declared.pop("rounds", None)
    declared["context_noise"] = getattr(problem, "context_noise", None)
    given = {} if alpha is None else {"alpha": alpha}
    for i, each in enumerate(asked):
        if isinstance(each, str):
            name = check_choice("algorithm", each, tuple(ALGORITHMS))
            asked[i] = ALGORITHMS[name].informed(declared, **given)
        elif isinstance(each, type) or not (hasattr(each, "plan") or is_python_policy(each)):
            raise InvalidTypeError(
                f"{each!r} is not an algorithm: give one such as gb.GuardUCB(0.1), or an object "
                "with a name and the methods choose and update."
            )
    return asked


def _check_budget(budget: float, world: AnyWorld, rounds: int) -> float:
    """Return a budget from which the baseline can be paid in all rounds."""
    total = check_not_negative("budget", budget)
    if not isinstance(world, World | FormalWorld) or world.costs is None:
        raise InvalidValueError(
            "a budget needs a problem whose actions have costs, such as gb.Tabular(..., costs=...)."
        )
    dearest = world.dearest_baseline(rounds)
    if dearest * rounds > total:
        raise InvalidValueError(
            f"a budget of {total:g} is below what the baseline may cost: up to {dearest:g} in each "
            f"of {rounds:,} rounds. Give {dearest * rounds:g} or more, or a cheaper baseline."
        )
    return total


def _rounds(rounds: float | None, replay: Replay | None) -> int:
    if rounds is None:
        if replay is None:
            raise InvalidValueError("rounds is missing: say how many rounds to play.")
        rounds = len(replay.contexts)
    whole: Any = int(rounds) if isinstance(rounds, float) and rounds.is_integer() else rounds
    return check_whole("rounds", whole)


def _run(
    planned: Mapping[str, Sequence[Trial]],
    engine: str | ComputeEngine,
    workers: int | None,
    cache: bool | str | os.PathLike[str],
    progress: bool | None,
) -> list[list[TrialResult]]:
    """Run the trials; return for each algorithm the results of all of them, in order."""
    if workers is not None:
        check_whole("workers", workers)
    kept = None
    if cache is not False:
        kept = ResultCache(cache_folder() if cache is True else as_path("cache", cache))
    with (
        open_engine(engine, workers=workers) as runner,
        ProgressBar("simulating", progress) as bar,
    ):
        groups = dict(TrialScheduler(planned).results(engine=runner, cache=kept, bar=bar))
    return [list(results) for name in planned for results in zip(*groups[name], strict=True)]


def _judge(algorithms: Sequence[Competitor], alpha: Any, agents: int) -> list[float] | None:
    """Return the alpha of each agent by which violations are counted, if there is one."""
    if alpha is None:
        bound = (a for a in algorithms if getattr(a, "constrained", False))
        alpha = next((getattr(a, "alpha", None) for a in bound), None)
    return None if alpha is None else [float(each) for each in as_alpha(alpha, agents)]


def _outside_bounds(
    world: AnyWorld, algorithms: Sequence[Competitor], rounds: int
) -> list[list[tuple[str, str]]]:
    """Return for every algorithm which of its bounds the problem exceeds, at length and in short.

    Its promise assumes them.
    """
    longest, low, high = world.reached(rounds)
    length = float(np.linalg.norm(world.theta))
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
        if getattr(algorithm, "needs_model", False) and (low < -1e-9 or high > 1 + 1e-9):
            text = (
                f"{algorithm.name} assumes rewards in [0, 1], but they reach from {_signed(low)} "
                f"to {_signed(high)}"
            )
            own.append((text, f"rewards reach {_signed(beyond)}"))
        if not world.binary and getattr(algorithm, "noise", 0.0) is None:
            text = (
                f"{algorithm.name} assumes that every reward lies in [0, 1], but this problem adds "
                "noise to them: state noise=..."
            )
            own.append((text, "no noise is stated"))
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
