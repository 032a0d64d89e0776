"""The coordinator, in threads of its own: as many pieces of work at once as its store allows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from guardband.live.coordinator.coordinator import Coordinator

__all__ = ["StoreExecutor"]

P = ParamSpec("P")
T = TypeVar("T")


class StoreExecutor:
    """Runs what needs the store: SQLite has one connection in one thread, PostgreSQL some.

    Parameters
    ----------
    coordinator
        The protocol, over its store.
    on_commit
        Told of the seconds that each piece of work with a commit took.
    """

    def __init__(self, coordinator: Coordinator, on_commit: Callable[[float], None]) -> None:
        self.coordinator, self.on_commit = coordinator, on_commit
        threads = getattr(coordinator.store, "workers", 1)
        self._thread = ThreadPoolExecutor(threads, thread_name_prefix="guardband-store")
        # Wall time at the start, and from there on a clock that nobody sets.
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Return the coordinator's time, in seconds."""
        return self._offset + time.monotonic()

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` returns, run in a thread of the store's."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(work, *args, **kwargs))

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same with work that ends with a commit, which is timed."""
        return await self.do(self._timed, partial(work, *args, **kwargs))

    def close(self) -> None:
        """Finish the work at hand."""
        self._thread.shutdown(wait=True)

    def _timed(self, work: Callable[[], T]) -> T:
        started = time.perf_counter()
        done = work()
        self.on_commit(time.perf_counter() - started)
        return done
