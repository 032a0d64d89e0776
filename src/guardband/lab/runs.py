"""The runs of panels: from runs to trials, which are scheduled together, and back to results."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from guardband.engines import ComputeEngine, ResultCache
from guardband.errors import InvalidValueError
from guardband.lab.costs import agent_rounds
from guardband.lab.panel import Panel, Run, RunOptions, RunResult, RunResults
from guardband.lab.panel_result import PanelResult
from guardband.progress import ProgressBar
from guardband.sim import Trial, TrialResult, TrialScheduler, checkpoint_rounds, make_trials, stack

__all__ = ["core_seconds", "judge_panel", "run_all", "schedule", "stack_runs", "trials_of"]


def trials_of(run: Run) -> list[Trial]:
    """Return the trials of a run; its curves are means over the agents."""
    return make_trials(
        run.problem,
        [run.algorithm],
        rounds=run.rounds,
        trials=run.trials,
        seed=run.seed,
        alpha=run.alpha,
        agent_curves=False,
    )


def schedule(groups: Mapping[str, Sequence[Run]]) -> TrialScheduler:
    """Return a scheduler of the trials of all runs; labels must differ within a group."""
    for name, runs in groups.items():
        labels = [run.label for run in runs]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if twice is not None:
            raise InvalidValueError(
                f"{name or 'the group'} has two runs labelled {twice!r}: rename one of them."
            )
    return TrialScheduler(
        {name: [t for run in runs for t in trials_of(run)] for name, runs in groups.items()}
    )


def stack_runs(runs: Sequence[Run], trials: Iterable[tuple[TrialResult, ...]]) -> RunResults:
    """Return what the runs of a group gave, by label, from the results of its trials in order."""
    left, results = iter(trials), {}
    for run in runs:
        own = [next(left)[0] for _ in range(run.trials)]
        series = stack(run.algorithm, run.label, own, judged=run.alpha is not None)
        results[run.label] = RunResult(run, series, checkpoint_rounds(run.rounds))
    return results


def judge_panel(
    panel: Panel,
    options: RunOptions,
    runs: Sequence[Run],
    trials: Sequence[tuple[TrialResult, ...]],
) -> PanelResult:
    """Return a panel's verdicts, from the results of the trials of its runs."""
    started, results = time.thread_time(), stack_runs(runs, trials)
    claims = tuple(panel.claims(options, results))
    return PanelResult(
        panel=panel,
        options=options,
        results=results,
        claims=claims,
        seconds=core_seconds(trials) + time.thread_time() - started,
        agent_rounds=sum(agent_rounds(run) for run in runs),
    )


def core_seconds(trials: Iterable[tuple[TrialResult, ...]]) -> float:
    """Return the seconds of one core that trials took; one that several runs share counts once."""
    distinct = {id(results): results for results in trials}
    return sum(result.seconds for results in distinct.values() for result in results)


def run_all(
    runs: Sequence[Run],
    *,
    engine: ComputeEngine,
    cache: ResultCache | None = None,
    bar: ProgressBar | None = None,
) -> RunResults:
    """Return what the runs give, by label.

    Parameters
    ----------
    runs
        Their labels must differ.
    engine
        Where trials run; it changes no number.
    cache
        Where finished trials are looked up and kept; None keeps nothing.
    bar
        Shows the progress.
    """
    ((_, trials),) = schedule({"": runs}).results(engine=engine, cache=cache, bar=bar)
    return stack_runs(runs, trials)
