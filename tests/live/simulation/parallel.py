"""Worlds in several processes: each is drawn from its seed alone, wherever it runs."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator
from functools import partial

from live.simulation.simulation import Outcome, simulate


def outcomes(seeds: range, events: int, workers: int) -> Iterator[tuple[Outcome, float]]:
    """Yield how each world went, in the order of their seeds, and how long a processor took.

    Worlds run in processes of their own, which are ended where nobody wants more of them.
    """
    work = partial(timed, events=events)
    if workers == 1 or len(seeds) == 1:
        yield from map(work, seeds)
        return
    # Ctrl-C is for this process: those that simulate would print where they were.
    with multiprocessing.get_context("spawn").Pool(workers, ignore_interrupts) as pool:
        yield from pool.imap(work, seeds)


def timed(seed: int, events: int) -> tuple[Outcome, float]:
    """Run one world; return how it went, and how many seconds a processor took."""
    began = time.process_time()
    return simulate(seed, events), time.process_time() - began


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
