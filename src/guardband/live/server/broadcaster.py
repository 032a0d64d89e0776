"""Who waits for what: wakes polls and event streams when a space changes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable

__all__ = ["Broadcaster"]

PAUSE_S = 0.25  # a watcher hears at most so often; what happens meanwhile is told once


class Broadcaster:
    """The waiting of one process; everything here runs in its event loop."""

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
        """Tell polls of the space, and everybody who watches, that there is something to hear."""
        self._changes[space] += 1
        self._release(space)
        self.notify(space, what)

    def notify(self, space: str, what: str) -> None:
        """Tell those who watch that something about the space is new."""
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
        """Let everybody go who waits."""
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
    """What one event stream has not been told yet: a set, however slowly it listens."""

    def __init__(self, sees: Callable[[str], bool]) -> None:
        self.sees, self.news = sees, asyncio.Event()
        self.untold: dict[tuple[str, str], None] = {}

    def tell(self, space: str, what: str) -> None:
        if self.sees(space):
            self.untold[space, what] = None
            self.news.set()

    def take(self) -> list[tuple[str, str]]:
        told, self.untold = list(self.untold), {}
        self.news.clear()
        return told
