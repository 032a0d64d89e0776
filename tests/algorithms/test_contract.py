"""What every algorithm of the list keeps: a new entry is tested by being there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.problems import PROBLEMS, SyntheticB

NAMES = list(ALGORITHMS)
WRAPPED = [
    gb.algorithms.Guarded(gb.DisLinUCB()),
    gb.algorithms.Guarded(gb.algorithms.LinUCB()),
    gb.algorithms.Guarded(gb.algorithms.FedLinUCB()),
]
OPTIONS = [
    gb.algorithms.DisLSB(option="B", pulls=0.1),
    gb.algorithms.DisLSB(pulls=None, noise=0.1),
    gb.algorithms.CLUCB(known_baseline=False),
    gb.algorithms.SCLTS(known_baseline=False),
    gb.algorithms.SCLTS(mix="action"),
    gb.algorithms.SEGE(mix="action"),
    gb.algorithms.SCLUCB(gate="gap"),
    gb.algorithms.LinUCB(context="observed-after"),
    gb.algorithms.FedPECD(context="observed"),
]
# Every round of these brings features that were not known before it.
ANEW = {name for name in PROBLEMS if name.startswith(("forecast", "drift-"))} | {"odd-task", "liar"}
EVERYTHING = [*(entry.make() for entry in ALGORITHMS.values()), *WRAPPED, *OPTIONS]


def label(algorithm: Any) -> str:
    return repr(algorithm).replace("guardband.algorithms.", "")[:60]


def tiny() -> SyntheticB:
    return SyntheticB(contexts=5, reward_std=0.1)


def told(algorithm: Any, given: Mapping[str, Any]) -> Any:
    """Return the algorithm with those of the given settings that it has; context_noise stays."""
    if isinstance(algorithm, gb.algorithms.Guarded):
        return replace(algorithm, rival=told(algorithm.rival, given))
    own = {f.name for f in fields(algorithm)} - {"context_noise"}
    return replace(algorithm, **{k: v for k, v in given.items() if k in own})


def run(*algorithms: Any, **more: Any) -> gb.Results:
    settings = {"rounds": 120, "trials": 2, "alpha": 0.3, "seed": 4, **more}
    unstated = {"noise": 1.0}  # the rewards are not bounded
    stated = [told(a, unstated) if getattr(a, "noise", 1.0) is None else a for a in algorithms]
    return gb.simulate(tiny(), [told(a, {"feature_bound": 3.5}) for a in stated], **settings)


@pytest.mark.parametrize("name", NAMES)
def test_the_list_tells_what_it_is(name: str) -> None:
    entry = ALGORITHMS[name]
    algorithm = entry.make()
    assert algorithm.name == name
    assert entry.constraint in ("none", "stage-wise", "cumulative")
    assert all((entry.about, entry.communication, entry.source))
    assert algorithm.constrained == (entry.constraint != "none") or name == "baseline"
    assert algorithm == entry.make()
    assert hash(algorithm) == hash(entry.make())
    for f in fields(algorithm):
        with pytest.raises(FrozenInstanceError):
            setattr(algorithm, f.name, None)


@pytest.mark.parametrize("algorithm", EVERYTHING, ids=label)
def test_same_seed_same_numbers_with_any_number_of_workers(algorithm: Any) -> None:
    one, two = (run(algorithm, workers=workers) for workers in (1, 2))
    for metric, values in one.series[0].totals.items():
        assert_array_equal(values, two.series[0].totals[metric], metric)
        assert_array_equal(one.series[0].curves[metric], two.series[0].curves[metric], metric)
    assert_array_equal(one.series[0].sync_curve, two.series[0].sync_curve)
    other = run(algorithm, seed=5)
    assert (one.series[0].totals["reward"] != other.series[0].totals["reward"]).all()


@pytest.mark.parametrize("algorithm", EVERYTHING, ids=label)
def test_the_books_are_consistent(algorithm: Any) -> None:
    results = run(algorithm, trials=1, trace=True)
    series, trace = results.series[0], results.trace
    totals, rounds = series.totals, 120
    assert trace.actions.shape == trace.rewards.shape == (rounds, 3)
    assert ((trace.actions >= 0) & (trace.actions < 10)).all()
    assert_array_equal(totals["conservative"][0], trace.conservative.sum(axis=0))
    assert_allclose(totals["reward"][0], trace.rewards.sum(axis=0), rtol=1e-12)
    for metric, curve in series.curves.items():
        assert_allclose(curve[:, -1], totals[metric], rtol=1e-12, err_msg=metric)
    for metric in ("conservative", "violations_expected", "violations_realised"):
        assert (np.diff(series.curves[metric], axis=1) >= 0).all()
        assert ((totals[metric] >= 0) & (totals[metric] <= rounds)).all()
    assert series.sync_rounds[0] >= len(trace.sync_rounds)
    assert series.sync_curve[0, -1] == series.sync_rounds[0]
    assert series.bytes_sent[0] == 8 * series.numbers_sent[0]
    assert (series.messages_sent[0] == 0) == (series.numbers_sent[0] == 0)
    assert_array_equal(
        np.flatnonzero(np.diff(series.sync_curve[0], prepend=0)) + 1, trace.sync_rounds
    )


@pytest.mark.parametrize("algorithm", EVERYTHING, ids=label)
def test_company_changes_nothing(algorithm: Any) -> None:
    """Draws that only some algorithms need come from streams of their own."""
    alone = run(algorithm)
    together = run(
        algorithm,
        gb.algorithms.SCLTS(),
        gb.algorithms.FedLinUCB(),
        gb.algorithms.SEGE(mix="action"),
        gb.algorithms.Oracle(),
    )
    for metric, values in alone.series[0].totals.items():
        assert_array_equal(values, together.series[0].totals[metric], metric)


@pytest.mark.parametrize("problem", [n for n in PROBLEMS if n not in ("lastfm", "movielens")])
@pytest.mark.filterwarnings("ignore:.*rewards in:guardband.BoundWarning")
def test_all_run_on_every_problem(problem: str) -> None:
    """Or say why not: designs need contexts that are known beforehand."""
    task: Any = PROBLEMS[problem]()
    for algorithm in [*(entry.make() for entry in ALGORITHMS.values()), *WRAPPED]:
        settled = told(algorithm, task.assumptions())
        if problem in ANEW and settled.name.startswith(("dis-lsb", "fed-pe")):
            with pytest.raises(ValueError, match=r"every round brings its own.*option='B'"):
                gb.simulate(task, settled, rounds=5, alpha=0.5)
            continue
        results = gb.simulate(task, settled, rounds=40, alpha=0.5)
        assert np.isfinite(results.series[0].regret).all()
    if problem in ANEW:
        assert gb.simulate(task, gb.algorithms.DisLSB(option="B"), rounds=40).series[0].regret.size


def test_the_oracle_and_the_baseline_are_the_yardsticks() -> None:
    oracle, baseline, learner = run(
        gb.algorithms.Oracle(), gb.algorithms.Baseline(), gb.algorithms.LinUCB()
    ).series
    assert (oracle.regret == 0.0).all()
    assert (oracle.conservative == 0).all()
    assert (baseline.conservative == 120).all()
    assert_array_equal(baseline.totals["reward"], baseline.totals["baseline_reward"])
    assert (learner.regret_expected[:, 0] > 0).all()
