"""One trial of one run: what it is, how it is kept, how it is run on any machine."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from guardband.algorithms import Algorithm
from guardband.algorithms.plan import Traffic
from guardband.checks import as_alpha
from guardband.engines import Advance, CacheEntry
from guardband.lab.panel import Run
from guardband.problems import Problem, World
from guardband.seeds import trial_seed
from guardband.sim.keys import content, origin, text_of
from guardband.sim.trial import TrialResult, run_trial

__all__ = ["Job", "Trial", "jobs_of", "packed", "run_job", "unpacked"]

WORLDS_KEPT = 4  # a large one takes a hundred megabytes


@dataclass(frozen=True, eq=False)
class Job:
    """One trial of one algorithm on one problem.

    Attributes
    ----------
    seed
        The trial's own; world and draws follow from it, and not from the algorithm.
    alpha
        By which violations are counted; None: they are not.
    world
        The content key of the world.
    key
        The content key of the trial.
    origin
        The code that the key speaks of, and what runs it.
    """

    problem: Problem
    algorithm: Algorithm
    rounds: int
    seed: int
    alpha: float | None
    world: str
    key: str
    origin: str


class Trial(NamedTuple):
    """What a job gave, and what it cost.

    Totals are those of every agent; curves are their mean over the agents, one curve for all of
    them: a thousand agents' own would take a hundred times the memory of everything else.
    """

    record: TrialResult
    seconds: float  # of one core


def jobs_of(run: Run) -> list[Job]:
    """Return the trials of a run."""
    where = {"problem": content(run.problem)}
    what = {"algorithm": content(run.algorithm), "rounds": run.rounds, "alpha": run.alpha}
    jobs = []
    for trial in range(run.trials):
        seed = trial_seed(run.seed, trial)
        world, key = text_of(**where, seed=seed), text_of(**where, **what, seed=seed)
        jobs.append(
            Job(run.problem, run.algorithm, run.rounds, seed, run.alpha, world, key, origin())
        )
    return jobs


def run_job(job: Job, step: Advance) -> Trial:
    """Run one trial; `step` is told the share that is done."""
    if job.origin != origin():
        raise RuntimeError(
            "this worker runs another version of guardband, Python, numpy or numba than the "
            "command, or on another kind of processor: its numbers could differ in the last "
            "digits. Install the same versions on every node, and give the command from a machine "
            "of the workers' kind to a cluster of one kind."
        )
    started = time.thread_time()
    try:
        world = _worlds.get(job)
        agents = len(world.tasks)
        judged = np.full(agents, np.nan) if job.alpha is None else as_alpha(job.alpha, agents)
        (record,) = run_trial(
            world,
            [job.algorithm],
            rounds=job.rounds,
            seed=job.seed,
            judged=np.array(judged),
            advance=lambda rounds: step(rounds / job.rounds),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{job.algorithm.name} on {job.problem.name}: {error}") from error
    lean = record._replace(curves=record.curves.mean(axis=1, keepdims=True))
    return Trial(lean, time.thread_time() - started)


def packed(trial: Trial) -> CacheEntry:
    """Return a trial as it is kept."""
    record, seconds = trial
    arrays = {"totals": record.totals, "curves": record.curves, "syncs": record.syncs}
    return CacheEntry(arrays, {"traffic": list(record.traffic), "seconds": seconds})


def unpacked(entry: CacheEntry) -> Trial:
    """Return a trial from what was kept of it."""
    arrays, notes = entry
    record = TrialResult(**arrays, trace=None, traffic=Traffic(*notes["traffic"]))
    return Trial(record, notes["seconds"])


class _Slot:
    """A world, once somebody has built it."""

    def __init__(self) -> None:
        self.building = threading.Lock()
        self.world: World | None = None


class _Worlds:
    """The worlds built last; threads that need the same one wait for one of them to build it."""

    def __init__(self) -> None:
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, job: Job) -> World:
        with self._lock:
            slot = self._slots.setdefault(job.world, _Slot())
            self._slots.move_to_end(job.world)
            while len(self._slots) > WORLDS_KEPT:
                self._slots.popitem(last=False)
        with slot.building:
            if slot.world is None:
                slot.world = job.problem.build(job.seed)
            return slot.world


_worlds = _Worlds()
