"""Wakes the polls and event streams that wait for a space to change."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable

__all__ = ["Broadcaster"]

PAUSE_S = 0.25  # an event stream sends at most so often; changes in between are sent once


class Broadcaster:
    """The waiting polls and event streams of one process; all of it runs in the event loop."""

    def __init__(self) -> None:
        self.stopping = False
        self._changes: dict[str, int] = defaultdict(int)
        self._waiting: dict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self._watchers: set[_Watcher] = set()

    def changes(self, space: str) -> int:
        """Return how often the space has changed; ask before you look at it, then wait."""
        return self._changes.get(space, 0)

    async def wait(self, space: str, seen: int, seconds: float) -> None:
        """Return when the space has changed since `seen`, or after so many seconds."""
        if self.stopping or self.changes(space) != seen:
            return
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[space].add(change)
        try:
            async with asyncio.timeout(seconds):
                await change
        except TimeoutError:
            pass
        finally:
            self._waiting[space].discard(change)
            if not self._waiting[space]:
                del self._waiting[space]

    def wake(self, space: str, what: str) -> None:
        """Wake the polls that wait for the space, and notify its event streams."""
        self._changes[space] += 1
        self._release(space)
        self.notify(space, what)

    def notify(self, space: str, what: str) -> None:
        """Notify event streams that something about the space has changed."""
        for watcher in self._watchers:
            watcher.tell(space, what)

    async def watch(
        self, sees: Callable[[str], bool], beat_s: float
    ) -> AsyncIterator[tuple[str, str] | None]:
        """Yield (space, what) as things happen, and None every `beat_s` quiet seconds."""
        watcher = _Watcher(sees)
        self._watchers.add(watcher)
        try:
            while not self.stopping:
                try:
                    async with asyncio.timeout(beat_s):
                        await watcher.news.wait()
                except TimeoutError:
                    yield None
                    continue
                for each in watcher.take():
                    yield each
                await asyncio.sleep(PAUSE_S)
        finally:
            self._watchers.discard(watcher)

    def stop(self) -> None:
        """End all polls and event streams."""
        self.stopping = True
        for space in list(self._waiting):
            self._release(space)
        for watcher in self._watchers:
            watcher.news.set()

    def _release(self, space: str) -> None:
        for change in self._waiting.get(space, ()):
            if not change.done():
                change.set_result(None)


class _Watcher:
    """What one event stream has not sent yet, each change once: it cannot grow without end."""

    def __init__(self, sees: Callable[[str], bool]) -> None:
        self.sees, self.news = sees, asyncio.Event()
        self.waiting: dict[tuple[str, str], None] = {}

    def tell(self, space: str, what: str) -> None:
        if self.sees(space):
            self.waiting[space, what] = None
            self.news.set()

    def take(self) -> list[tuple[str, str]]:
        waiting, self.waiting = list(self.waiting), {}
        self.news.clear()
        return waiting
