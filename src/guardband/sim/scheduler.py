"""Running many trials: each once, from the cache if it is there, else on an engine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import platformdirs

from guardband.engines import ComputeEngine, ResultCache
from guardband.progress import ProgressBar
from guardband.sim.trial import (
    Trial,
    TrialResult,
    forget_worlds,
    from_cache,
    run_trial,
    to_cache,
)

__all__ = ["TrialScheduler", "cache_folder"]


def cache_folder() -> Path:
    """Return where finished trials are kept: `GUARDBAND_TRIALS`, or the platform's cache."""
    chosen = os.environ.get("GUARDBAND_TRIALS")
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("guardband", appauthor=False) / "trials"


class TrialScheduler:
    """Trials in groups, run together: a trial that several groups need runs once.

    Parameters
    ----------
    groups
        Name -> trials.

    Attributes
    ----------
    trials
        Key -> trial, every one once.
    ran
        How many trials were run here, rather than found in the cache.
    rounds
        How many decisions these were.
    not_cached
        Why a trial could not be put into the cache; "" if all could.
    """

    def __init__(self, groups: Mapping[str, Sequence[Trial]]) -> None:
        self._groups = groups
        self.trials = {trial.key: trial for trials in groups.values() for trial in trials}
        self.ran, self.rounds, self.not_cached = 0, 0, ""
        self._done: dict[str, tuple[TrialResult, ...]] = {}

    def count_cached(self, cache: ResultCache) -> int:
        """Return how many of the trials are in the cache."""
        return sum(key in cache for key in self.trials)

    def results(
        self,
        *,
        engine: ComputeEngine,
        cache: ResultCache | None = None,
        bar: ProgressBar | None = None,
    ) -> Generator[tuple[str, list[tuple[TrialResult, ...]]], None, None]:
        """Yield each group's name and its trials' results, in order, as soon as it is complete.

        Closing the iterator, or an exception, stops what runs; what the engine has handed over
        until then is in the cache.
        """
        bar = ProgressBar(show=False) if bar is None else bar
        bar.expect(sum(trial.cost for trial in self.trials.values()))
        started: list[Trial] = []

        def on_progress(index: int, share: float) -> None:
            bar.advance(share * started[index].cost)

        waiting = Counter(key for trials in self._groups.values() for key in _keys(trials))
        unfinished = list(self._groups)
        missing = self._missing(cache, started, bar)
        try:
            with closing(engine.map(run_trial, missing, on_progress)) as finished:
                for index, results in finished:
                    self._take(started[index], results, cache)
                    while unfinished and self._complete(unfinished[0]):
                        yield self._pop(unfinished.pop(0), waiting)
            while unfinished:
                yield self._pop(unfinished.pop(0), waiting)
        finally:
            forget_worlds()

    def _missing(
        self, cache: ResultCache | None, started: list[Trial], bar: ProgressBar
    ) -> Iterator[Trial]:
        """Yield what is not in the cache: group by group, in each the world with most work first.

        Trials of one world stand side by side, because a world is built once for all of them.
        """
        seen: set[str] = set()
        for group in self._groups.values():
            trials = [self.trials[key] for key in _keys(group) if key not in seen]
            seen.update(trial.key for trial in trials)
            longest: dict[str, float] = {}
            for trial in trials:
                longest[trial.world] = max(longest.get(trial.world, 0.0), trial.cost)
            for trial in sorted(trials, key=lambda t: (-longest[t.world], t.world, -t.cost)):
                entry = None if cache is None else cache.get(trial.key)
                if entry is None:
                    started.append(trial)
                    yield trial
                else:
                    self._done[trial.key] = from_cache(entry)
                    bar.advance(trial.cost)

    def _take(
        self, trial: Trial, results: tuple[TrialResult, ...], cache: ResultCache | None
    ) -> None:
        self._done[trial.key] = results
        self.ran += 1
        self.rounds += trial.rounds * sum(len(result.totals) for result in results)
        if cache is not None:
            try:
                cache.put(trial.key, to_cache(results))
            except OSError as error:  # a full disk is no reason to lose the whole run
                self.not_cached = str(error)

    def _complete(self, name: str) -> bool:
        return all(trial.key in self._done for trial in self._groups[name])

    def _pop(self, name: str, waiting: Counter[str]) -> tuple[str, list[tuple[TrialResult, ...]]]:
        """Return a group's results; those that no other group waits for are dropped."""
        results = [self._done[trial.key] for trial in self._groups[name]]
        waiting.subtract(_keys(self._groups[name]))
        for key in _keys(self._groups[name]):
            if not waiting[key]:
                del self._done[key]
        return name, results


def _keys(trials: Sequence[Trial]) -> list[str]:
    """Return the keys of the trials, each once."""
    return list(dict.fromkeys(trial.key for trial in trials))
