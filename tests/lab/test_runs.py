"""Scheduling: the numbers of `gb.simulate`, each trial once, nothing lost by an interrupt."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.algorithms import Algorithm
from guardband.engines import Advance, LocalEngine, OnProgress, ResultCache
from guardband.engines.base import ignore_progress
from guardband.lab.costs import agent_rounds
from guardband.lab.panel import Run, RunResults
from guardband.lab.runs import core_seconds, run_all, schedule, stack_runs, trials_of
from guardband.problems import Problem
from guardband.progress import ProgressBar
from guardband.sim import Series
from guardband.sim.scheduler import cache_folder
from guardband.sim.trial import Trial, TrialResult, run_trial

PROBLEM = gb.problem("synthetic-b")
ALGORITHMS: list[Algorithm] = [
    gb.DiscUCB(alpha=0.25, noise=0.1),
    gb.GuardUCB(alpha=0.25, noise=0.1),
    gb.GuardUCB(alpha=0.25, noise=0.1, mode="policy"),
    gb.DisLinUCB(),
    gb.algorithms.SCLTS(alpha=0.25),
    gb.algorithms.FedLinUCB(),
    gb.algorithms.DisLSB(),
    gb.algorithms.Baseline(),
]


def run_of(algorithm: Algorithm, problem: Problem = PROBLEM, **changes: Any) -> Run:
    run = Run(
        label=algorithm.name,
        problem=problem,
        algorithm=algorithm,
        rounds=300,
        trials=3,
        seed=5,
        alpha=0.25,
    )
    return replace(run, **changes)


def assert_same(one: Series, other: Series) -> None:
    for kind in ("totals", "curves"):
        mine, yours = getattr(one, kind), getattr(other, kind)
        assert list(mine) == list(yours)
        for name in mine:
            np.testing.assert_array_equal(mine[name], yours[name], err_msg=name)
    for name in ("sync_rounds", "sync_curve", "numbers_sent", "messages_sent"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def as_kept(series: Series) -> Series:
    """Return what the lab keeps of a series: curves are means over the agents."""
    means = {name: curve.mean(axis=2, keepdims=True) for name, curve in series.curves.items()}
    return replace(series, curves=means)


def assert_same_results(one: RunResults, other: RunResults) -> None:
    assert list(one) == list(other)
    for label, result in one.items():
        assert_same(result.series, other[label].series)


class Counting(LocalEngine):
    """A local engine that counts what it is asked to do, and may be interrupted."""

    def __init__(self, workers: int = 2, stop_after: int | None = None) -> None:
        super().__init__(workers)
        self.asked: list[Trial] = []
        self.stop_after = stop_after

    def map(
        self, work: Any, items: Iterable[Any], tick: OnProgress = ignore_progress
    ) -> Generator[tuple[int, Any], None, None]:
        def seen() -> Iterable[Trial]:
            for item in items:
                self.asked.append(item)
                yield item

        for done, pair in enumerate(super().map(work, seen(), tick)):
            if done == self.stop_after:
                raise KeyboardInterrupt
            yield pair


@pytest.mark.filterwarnings("ignore::guardband.BoundWarning")
@pytest.mark.parametrize(
    "problem",
    [
        PROBLEM,
        gb.problem("movielens", contexts=10, actions=12, baseline=5),
        gb.problem("synthetic-b", nature="fresh"),
    ],
    ids=["frozen", "ratings", "fresh"],
)
def test_the_same_numbers_as_algorithms_simulated_together(problem: Problem) -> None:
    """Draws follow from the trial's seed alone: nobody's depend on who else is there."""
    together = gb.simulate(problem, ALGORITHMS, rounds=300, trials=3, seed=5, alpha=0.25)
    results = run_all([run_of(a, problem) for a in ALGORITHMS], engine=LocalEngine(2))
    assert list(results) == [a.name for a in ALGORITHMS]
    for algorithm, series in zip(ALGORITHMS, together.series, strict=True):
        assert_same(results[algorithm.name].series, as_kept(series))
        np.testing.assert_array_equal(results[algorithm.name].rounds, together.rounds)


@pytest.mark.filterwarnings("ignore::guardband.BoundWarning")
def test_the_same_numbers_where_nature_announces_a_forecast() -> None:
    problem = gb.problem("forecast", contexts=30, support=5)
    algorithms: list[Algorithm] = [gb.GuardUCB(alpha=0.2), gb.DisLinUCB(), gb.algorithms.LinUCB()]
    together = gb.simulate(problem, algorithms, rounds=200, trials=2, seed=1, alpha=0.2)
    runs = [run_of(a, problem, rounds=200, trials=2, seed=1, alpha=0.2) for a in algorithms]
    results = run_all(runs, engine=LocalEngine(2))
    for series in together.series:
        assert_same(results[series.label].series, as_kept(series))


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    runs = [run_of(a) for a in ALGORITHMS]
    assert_same_results(run_all(runs, engine=LocalEngine(1)), run_all(runs, engine=LocalEngine(3)))


def test_a_thousand_agents_take_no_more_room_than_their_totals(tmp_path: Path) -> None:
    """Their own curves would take two hundred times as much."""
    cache = ResultCache(tmp_path)
    problem = gb.problem("synthetic-b", agents=1000)
    run = run_of(gb.algorithms.LinUCB(), problem, trials=1, rounds=200)
    series = run_all([run], engine=LocalEngine(1), cache=cache)["lin-ucb"].series
    assert series.totals["regret"].shape == (1, 1000)
    assert series.curves["regret"].shape == (1, 200, 1)
    np.testing.assert_allclose(series.curves["regret"][0, -1, 0], series.regret.mean())
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.npz")) < 1_000_000


def test_labels_are_the_runs_own_and_must_differ() -> None:
    results = run_all([run_of(gb.DisLinUCB(), label="rival", trials=1)], engine=LocalEngine(1))
    assert results["rival"].series.label == "rival"
    assert results["rival"].series.algorithm == "dis-lin-ucb"
    with pytest.raises(ValueError, match="two runs labelled 'dis-lin-ucb'"):
        run_all([run_of(gb.DisLinUCB()), run_of(gb.DisLinUCB())], engine=LocalEngine(1))


def test_without_alpha_violations_are_not_counted() -> None:
    results = run_all([run_of(gb.DisLinUCB(), alpha=None)], engine=LocalEngine(1))
    series = results["dis-lin-ucb"].series
    assert np.isnan(series.violations_expected).all()
    assert np.isnan(series.violations_realised).all()
    assert np.isfinite(series.regret).all()


def test_a_trial_that_several_need_runs_once() -> None:
    """Across labels, and across panels; nine trials of the first run are ten of the other."""
    engine = Counting()
    short, long = run_of(gb.DisLinUCB(), trials=9), run_of(gb.DisLinUCB(), trials=10, label="long")
    groups = {"one": [short, long], "two": [long], "three": []}
    scheduler = schedule(groups)
    trials = dict(scheduler.results(engine=engine))
    assert list(trials) == ["one", "two", "three"]
    assert len(engine.asked) == len(scheduler.trials) == scheduler.ran == 10
    assert scheduler.rounds == 10 * 300 * 3
    assert agent_rounds(short) + agent_rounds(long) == 19 * 300 * 3
    assert core_seconds(trials["one"]) == pytest.approx(core_seconds(trials["two"]))
    results = {name: stack_runs(groups[name], trials[name]) for name in groups}
    assert dict(results["three"]) == {}
    first = results["one"]["dis-lin-ucb"].series.regret
    np.testing.assert_array_equal(first, results["two"]["long"].series.regret[:9])


def test_panels_come_as_soon_as_they_are_complete() -> None:
    engine = Counting(workers=1)
    groups = {str(i): [run_of(gb.DisLinUCB(), seed=i, trials=40)] for i in range(4)}
    results = schedule(groups).results(engine=engine)
    assert next(results)[0] == "0"
    assert len(engine.asked) < 100  # the last panel was not begun
    assert [name for name, _ in results] == ["1", "2", "3"]


def test_kept_trials_are_not_run_again(tmp_path: Path) -> None:
    runs = [run_of(a) for a in ALGORITHMS]
    cache, first, second = ResultCache(tmp_path), Counting(), Counting()
    before = run_all(runs, engine=first, cache=cache)
    after = run_all(runs, engine=second, cache=cache)
    assert len(first.asked) == 3 * len(ALGORITHMS)
    assert second.asked == []
    assert_same_results(before, after)


def test_an_interrupt_loses_no_finished_trial(tmp_path: Path) -> None:
    runs = [run_of(a) for a in ALGORITHMS]
    cache, scheduler = ResultCache(tmp_path), schedule({"": runs})
    with pytest.raises(KeyboardInterrupt):
        list(scheduler.results(engine=Counting(stop_after=7), cache=cache))
    assert scheduler.count_cached(cache) == 7
    rest = Counting()
    results = run_all(runs, engine=rest, cache=cache)
    assert len(rest.asked) == 3 * len(ALGORITHMS) - 7
    assert_same_results(results, run_all(runs, engine=LocalEngine(2)))


def test_damaged_trials_run_again(tmp_path: Path) -> None:
    runs = [run_of(gb.DisLinUCB(), trials=4)]
    cache = ResultCache(tmp_path)
    good = run_all(runs, engine=LocalEngine(2), cache=cache)
    paths = sorted(tmp_path.rglob("*.npz"))
    paths[0].write_bytes(paths[0].read_bytes()[:100])
    swapped = paths[2].read_bytes()
    paths[2].write_bytes(paths[1].read_bytes())
    paths[1].write_bytes(swapped)
    engine = Counting()
    again = run_all(runs, engine=engine, cache=cache)
    assert len(engine.asked) == cache.damaged == 3
    assert_same_results(good, again)
    engine = Counting()
    run_all(runs, engine=engine, cache=cache)
    assert engine.asked == []


def test_a_full_disk_is_no_reason_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: ResultCache, key: str, entry: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ResultCache, "put", full)
    scheduler = schedule({"": [run_of(gb.DisLinUCB())]})
    ((_, trials),) = scheduler.results(engine=LocalEngine(1), cache=ResultCache(tmp_path))
    assert [result.totals.shape[0] for (result,) in trials] == [3, 3, 3]
    assert "No space" in scheduler.not_cached


def test_a_mistake_names_the_run() -> None:
    run = run_of(gb.algorithms.FedPE(), gb.problem("forecast"))
    with pytest.raises(ValueError, match=r"^fed-pe on forecast: "):
        run_all([run], engine=LocalEngine(1))


# ---- the folder ----------------------------------------------------------------------------------


def test_the_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GUARDBAND_TRIALS", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv("GUARDBAND_TRIALS")
    assert cache_folder().name == "trials"


# ---- worlds ------------------------------------------------------------------------------------


def test_a_world_is_built_once_for_the_algorithms_that_share_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[int] = []
    kind = type(PROBLEM)
    build = kind.build

    def counted(self: Any, seed: int) -> Any:
        built.append(seed)
        return build(self, seed)

    monkeypatch.setattr(kind, "build", counted)
    run_all([run_of(a, trials=20) for a in ALGORITHMS], engine=LocalEngine(3))
    assert len(built) == len(set(built)) == 20


def test_a_worker_with_other_code_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    (trial,) = trials_of(run_of(gb.DisLinUCB(), trials=1))
    steps: list[float] = []
    step: Advance = steps.append
    (result,) = run_trial(trial, step)
    assert isinstance(result, TrialResult)
    assert sum(steps) == pytest.approx(1.0)
    with pytest.raises(RuntimeError, match=r"another version of guardband.*kind of processor"):
        run_trial(replace(trial, origin="another"), step)


def test_the_progress_adds_up() -> None:
    class Told(ProgressBar):
        def __init__(self) -> None:
            super().__init__(show=False)
            self.total = self.done = 0.0

        def expect(self, total: float) -> None:
            self.total = total

        def advance(self, amount: float) -> None:
            self.done += amount

    bar = Told()
    run_all([run_of(a) for a in ALGORITHMS], engine=LocalEngine(1), bar=bar)
    assert bar.done == pytest.approx(bar.total)
    assert bar.total > 0
