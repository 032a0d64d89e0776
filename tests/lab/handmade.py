"""Results made by hand, and real ones made by the plain simulator."""

from __future__ import annotations

import warnings

import numpy as np

import guardband as gb
from guardband.algorithms import Baseline
from guardband.lab.panel import Run, RunOptions, RunResult
from guardband.problems import SyntheticA
from guardband.sim import BoundWarning, Series
from guardband.sim.trial import checkpoint_rounds

METRICS = (
    "regret",
    "regret_expected",
    "violations_expected",
    "violations_realised",
    "conservative",
    "reward",
    "baseline_reward",
)
# NaN: the actions of the lab's problems have neither values nor costs.
OF_VALUES = ("value", "baseline_value", "value_regret", "cost")


def result(label, *, rounds=100, name="disc-ucb", agents=1, curves=None, **totals):
    """Return a run with given totals: one number per trial, or (trials, agents)."""
    made = {}
    trials = max((len(values) for values in totals.values()), default=2)
    for metric in METRICS:
        values = np.array(totals.get(metric, np.zeros(trials)), float)
        made[metric] = np.tile(values[:, None], agents) if values.ndim == 1 else values
    checkpoints = checkpoint_rounds(rounds)
    lines = {
        m: values[:, None, :] * (checkpoints / rounds)[None, :, None] for m, values in made.items()
    }
    lines |= {m: np.asarray(v, float)[:, :, None] for m, v in (curves or {}).items()}
    series = Series(
        algorithm=name,
        label=label,
        settings={"alpha": 0.3},
        totals=made,
        curves=lines,
        sync_rounds=np.zeros(trials, np.int64),
        sync_curve=np.zeros((trials, checkpoints.size), np.int64),
        numbers_sent=np.zeros(trials, np.int64),
        messages_sent=np.zeros(trials, np.int64),
    )
    run = Run(
        label=label,
        problem=SyntheticA(agents=agents),
        algorithm=Baseline(),
        rounds=rounds,
        trials=trials,
        alpha=0.3,
    )
    return RunResult(run, series, checkpoints)


def gathered(runs):
    """Return results from one call of the simulator per run; the draws follow from the seed."""
    results = {}
    for run in runs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BoundWarning)  # printed bounds are wrong, and said so
            found = gb.simulate(
                run.problem,
                [run.algorithm],
                rounds=run.rounds,
                trials=run.trials,
                seed=run.seed,
                alpha=run.alpha,
                progress=False,
            )
        results[run.label] = RunResult(run, found.series[0], found.rounds)
    return results


def smoke(settings="printed", **more):
    return RunOptions(scale="smoke", settings=settings, **more)
