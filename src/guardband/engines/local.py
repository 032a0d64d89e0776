"""The cores of this machine, by threads: for work that holds no lock while it computes."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from guardband.engines.base import (
    Advance,
    Item,
    OnProgress,
    Result,
    StoppedError,
    Work,
    ignore_progress,
)
from guardband.errors import InvalidValueError

__all__ = ["LocalEngine", "count_cores"]

QUEUED_PER_WORKER = 4  # to stay busy while the caller looks at results, which may be large


class LocalEngine:
    """All cores of this machine; results do not depend on how many.

    Parameters
    ----------
    workers
        How many items are worked on at a time; None: one per core that this process may use.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = count_cores() if workers is None else workers
        if self.workers < 1:
            raise InvalidValueError(f"workers must be at least 1, not {workers!r}.")

    def map(
        self, work: Work[Item, Result], items: Iterable[Item], tick: OnProgress = ignore_progress
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield the number of each item and its result, as they finish."""
        stop = threading.Event()

        def step_of(index: int) -> Advance:
            def step(share: float) -> None:
                if stop.is_set():
                    raise StoppedError
                tick(index, share)

            return step

        waiting = iter(enumerate(items))
        running: dict[Future[Result], int] = {}

        def start(count: int) -> None:
            for index, item in islice(waiting, count):
                running[pool.submit(work, item, step_of(index))] = index

        with ThreadPoolExecutor(self.workers) as pool:
            try:
                start(self.workers * QUEUED_PER_WORKER)
                while running:
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    finished = [(running.pop(future), future) for future in done]
                    start(len(finished))
                    for index, future in sorted(finished, key=lambda pair: pair[0]):
                        yield index, future.result()
            finally:
                stop.set()
                for future in running:
                    future.cancel()


def count_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1
