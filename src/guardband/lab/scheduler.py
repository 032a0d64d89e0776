"""From runs to findings: every trial once, from the cache if it is there, else from an engine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from guardband.engines import ComputeEngine, ResultCache
from guardband.lab.costs import agent_rounds, seconds_of
from guardband.lab.jobs import Job, Trial, jobs_of, packed, run_job, unpacked
from guardband.lab.panel import Run, RunResult, RunResults
from guardband.progress import ProgressBar
from guardband.sim.results import stack
from guardband.sim.trial import checkpoints

__all__ = ["GroupResult", "TrialScheduler", "cache_folder", "run_trials"]


def cache_folder() -> Path:
    """Return where finished trials are kept: `GUARDBAND_TRIALS`, or the platform's cache."""
    chosen = os.environ.get("GUARDBAND_TRIALS")
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("guardband", appauthor=False) / "trials"


def run_trials(
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
    ((_, group),) = TrialScheduler({"": runs}).results(engine=engine, cache=cache, bar=bar)
    return group.results


@dataclass(frozen=True)
class GroupResult:
    """What the runs of one group gave, and the seconds of one core that its trials took."""

    results: RunResults
    seconds: float
    agent_rounds: int


class TrialScheduler:
    """The runs of several groups, gathered together: a trial that many of them need runs once.

    Parameters
    ----------
    groups
        Name -> runs; labels differ within a group.

    Attributes
    ----------
    jobs
        Key -> trial, every one once.
    ran
        How many trials were run here, rather than found in the cache.
    rounds
        How many decisions these were.
    unkept
        Why a trial could not be put in the cache; "" if all could.
    """

    def __init__(self, groups: Mapping[str, Sequence[Run]]) -> None:
        self._groups: dict[str, list[tuple[Run, list[Job]]]] = {}
        for name, runs in groups.items():
            _check_labels(name, runs)
            self._groups[name] = [(run, jobs_of(run)) for run in runs]
        self.jobs = {job.key: job for name in self._groups for job in self._jobs(name)}
        self._weights = {
            key: seconds_of(job.problem, job.algorithm, job.rounds)
            for key, job in self.jobs.items()
        }
        self.ran, self.rounds, self.not_cached = 0, 0, ""
        self._there: dict[str, Trial] = {}

    def kept(self, cache: ResultCache) -> int:
        """Return how many of the trials are in the cache."""
        return sum(key in cache for key in self.jobs)

    def results(
        self,
        *,
        engine: ComputeEngine,
        cache: ResultCache | None = None,
        bar: ProgressBar | None = None,
    ) -> Generator[tuple[str, GroupResult], None, None]:
        """Yield each group's name and what it gave, in their order, as soon as it is complete.

        Closing the iterator, or an exception, stops what runs; what the engine has handed over
        until then is in the cache.
        """
        # Closing a generator early must stop the bar and the engine: hence the two contexts.
        with nullcontext(bar) if bar is not None else ProgressBar(show=False) as result:
            result.expect(sum(self._weights.values()))
            started: list[Job] = []

            def tick(index: int, share: float) -> None:
                result.advance(share * self._weights[started[index].key])

            unfinished = list(self._groups)
            missing = self._missing(cache, started, result)
            with closing(engine.map(run_job, missing, tick)) as results:
                for index, trial in results:
                    self._take(started[index], trial, cache)
                    while unfinished and self._complete(unfinished[0]):
                        name = unfinished.pop(0)
                        yield name, self._group_result(name, unfinished)
            for name in unfinished:
                yield name, self._group_result(name, unfinished[unfinished.index(name) + 1 :])

    def _missing(
        self, cache: ResultCache | None, started: list[Job], bar: ProgressBar
    ) -> Iterator[Job]:
        """Yield what is not in the cache: group by group, in each the world with most work first.

        Trials of one world stand side by side, because a world is built once for all of them.
        """
        seen: set[str] = set()
        for name in self._groups:
            jobs = {job.key: job for job in self._jobs(name) if job.key not in seen}
            seen.update(jobs)
            longest: dict[str, float] = {}
            for key, job in jobs.items():
                longest[job.world] = max(longest.get(job.world, 0.0), self._weights[key])
            for key in sorted(
                jobs, key=lambda k: (-longest[jobs[k].world], jobs[k].world, -self._weights[k])
            ):
                entry = None if cache is None else cache.get(key)
                if entry is None:
                    started.append(jobs[key])
                    yield jobs[key]
                else:
                    self._there[key] = unpacked(entry)
                    bar.advance(self._weights[key])

    def _take(self, job: Job, trial: Trial, cache: ResultCache | None) -> None:
        self._there[job.key] = trial
        self.ran += 1
        self.rounds += job.rounds * len(trial.record.totals)
        if cache is not None:
            try:
                cache.put(job.key, packed(trial))
            except OSError as error:  # a full disk is no reason to lose the whole run
                self.not_cached = str(error)

    def _complete(self, name: str) -> bool:
        return all(job.key in self._there for job in self._jobs(name))

    def _group_result(self, name: str, unfinished: Iterable[str]) -> GroupResult:
        """Stack the trials of a group; each is let go as soon as nobody else waits for it."""
        waits = Counter(job.key for other in unfinished for job in self._jobs(other))
        waits.update(job.key for job in self._jobs(name))
        seconds = {job.key: self._there[job.key].seconds for job in self._jobs(name)}
        results: dict[str, RunResult] = {}
        for run, jobs in self._groups[name]:
            records = [self._there[job.key].record for job in jobs]
            series = stack(run.algorithm, run.label, records, judged=run.alpha is not None)
            results[run.label] = RunResult(run, series, checkpoints(run.rounds))
            del records
            for job in jobs:
                waits[job.key] -= 1
                if not waits[job.key]:
                    del self._there[job.key]
        runs = [run for run, _ in self._groups[name]]
        return GroupResult(results, sum(seconds.values()), sum(agent_rounds(run) for run in runs))

    def _jobs(self, name: str) -> Iterator[Job]:
        return (job for _, jobs in self._groups[name] for job in jobs)


def _check_labels(name: str, runs: Sequence[Run]) -> None:
    labels = [run.label for run in runs]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(f"{name or 'a scheduler'} has two runs labelled {twice!r}: name one anew.")
