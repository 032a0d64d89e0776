"""Runs the coordinator in threads: as many calls at once as its store allows."""

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
    """Runs calls that need the store: in one thread for SQLite, in several for PostgreSQL.

    Parameters
    ----------
    coordinator
        The protocol, over its store.
    on_commit
        Called with the seconds that each call with a commit took.
    """

    def __init__(self, coordinator: Coordinator, on_commit: Callable[[float], None]) -> None:
        self.coordinator, self.on_commit = coordinator, on_commit
        threads = getattr(coordinator.store, "workers", 1)
        self._thread = ThreadPoolExecutor(threads, thread_name_prefix="guardband-store")
        # Wall time at the start, monotonic from there on: setting the clock changes nothing.
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Return the coordinator's time, in seconds."""
        return self._offset + time.monotonic()

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in a thread of the store; return what it returns."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(work, *args, **kwargs))

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same for work that ends with a commit, and time it."""
        return await self.do(self._timed, partial(work, *args, **kwargs))

    def close(self) -> None:
        """Finish the calls that run."""
        self._thread.shutdown(wait=True)

    def _timed(self, work: Callable[[], T]) -> T:
        started = time.perf_counter()
        done = work()
        self.on_commit(time.perf_counter() - started)
        return done
