"""A coordinator in the agent's own process, over a file that all processes of a host share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from guardband.files import in_words
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.coordinator.mending import open_store
from guardband.live.link.base import Unreachable
from guardband.live.protocol.messages import (
    Alarmed,
    AlarmKept,
    News,
    Refused,
    Register,
    Registered,
    Report,
    Revision,
    Upload,
    Uploaded,
)
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import StoreError

__all__ = ["LOCAL_FILE", "LocalLink"]

LOCAL_FILE = "coordinator.db"  # `guardband serve --data FOLDER` has the same
NAP_S = 0.05  # between two looks at what others wrote
Answer = TypeVar("Answer")


class LocalLink:
    """No server: each caller does the coordinator's work itself.

    Parameters
    ----------
    folder
        Where the file is, or will be.
    clock
        Seconds since 1970; for tests.
    """

    def __init__(self, folder: str | Path, clock: Callable[[], float] = time.time) -> None:
        self.folder, self._clock = Path(folder), clock
        self.after_fork()

    def hold(self) -> None:
        """Close the file until it is needed again: none may be open while the process forks."""
        self._lock.acquire()
        self._close_file()

    def let_go(self) -> None:
        """Go on, in the parent."""
        self._lock.release()

    def after_fork(self) -> None:
        """Open the file in this process, when it is needed."""
        self._coordinator: Coordinator | None = None
        self._lock = threading.RLock()
        self._closed = threading.Event()

    def _do(self, work: Callable[[Coordinator, float], Answer]) -> Answer:
        with self._lock:
            if self._closed.is_set():
                raise Unreachable("the link was closed.")
            try:
                if self._coordinator is None:
                    store = open_store(self.folder / LOCAL_FILE)
                    self._coordinator = Coordinator(store, keeps_time=True)
                return work(self._coordinator, self._clock())
            except (OSError, StoreError, apsw.Error) as error:
                raise Unreachable(f"{self.folder / LOCAL_FILE}: {in_words(error)}") from error
            except Refused as problem:
                if problem.status != 503:
                    raise
                raise Unreachable(f"{self.folder / LOCAL_FILE}: {problem.detail}") from problem

    def space(self, name: str) -> tuple[SpaceSettings, int]:
        """Return a space and its config_version; to look for one makes no file."""
        if not (self.folder / LOCAL_FILE).exists():
            raise Refused("unknown_space", 404, f"there is no space {name!r}.")
        return self._do(lambda c, now: c.space(name))

    def create_space(self, space: SpaceSettings) -> int:
        """Make a space; return its config_version."""
        return self._do(lambda c, now: c.create_space(space, who="local", now=now))

    def looked_at(self, name: str) -> bytes:
        """Return a space's record of rows of logs that were looked at."""
        return self._do(lambda c, now: c.looked_at(name))

    def register(self, name: str, request: Register) -> Registered:
        """Make a stream known."""
        return self._do(lambda c, now: c.register(name, request, now=now))

    def upload(self, stream: str, request: Upload) -> Uploaded:
        """Hand in a checkpoint; it is stored durably when this returns."""
        return self._do(lambda c, now: c.upload(stream, request, now=now))

    def news(
        self,
        name: str,
        stream: str | None,
        *,
        after: int,
        open_after: int,
        config_version: int,
        wait_s: float,
        compares: bool = False,
    ) -> News | None:
        """Return what is new, looking again and again for at most so long; None: nothing is."""
        end = time.monotonic() + wait_s
        while True:
            news = self._do(
                lambda c, now: c.news(
                    name,
                    stream,
                    after=after,
                    open_after=open_after,
                    config_version=config_version,
                    compares=compares,
                    now=now,
                )
            )
            left = end - time.monotonic()
            if news is not None or left <= 0.0:
                return news
            if self._closed.wait(min(NAP_S, left)):
                return None

    def report(self, stream: str, report: Report) -> None:
        """Send the agent's report."""
        self._do(lambda c, now: c.report(stream, report, now=now))

    def alarm(self, stream: str, alarm: Alarmed) -> AlarmKept:
        """Tell what the agent's monitors noticed; hear whether a person has looked at it."""
        return self._do(lambda c, now: c.alarm(stream, alarm, now=now))

    def seal(self, stream: str, revision: Revision) -> None:
        """End the stream at what is stored of it."""
        self._do(lambda c, now: c.seal(stream, revision, now=now))

    def close(self) -> None:
        """Close the file."""
        self._closed.set()
        with self._lock:
            self._close_file()

    def _close_file(self) -> None:
        if self._coordinator is not None:
            self._coordinator.store.close()
            self._coordinator = None
