"""What happens to live agents when their process forks, as web servers do, and when it ends.

SQLite's locks and connections must not cross a fork, so before one every open agent is locked and
its files are closed. The parent goes on; the child opens everything anew when it is first used.
"""

from __future__ import annotations

import atexit
import weakref
from typing import Protocol

from guardband.forks import heed_forks
from guardband.live import system
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.sync_worker import SyncWorker
from guardband.live.link import Link

__all__ = ["ForkGuard", "close_at_exit"]


class Closable(Protocol):
    """What is closed when the process ends."""

    def close(self) -> None:
        """Close all files and connections."""


OPEN: weakref.WeakSet[Closable] = weakref.WeakSet()


class ForkGuard:
    """The parts of one agent that a fork concerns.

    Parameters
    ----------
    store, link, worker
        The agent's.
    background
        Whether the worker has threads; a fork leaves them behind.
    """

    def __init__(
        self, store: AgentStore, link: Link, worker: SyncWorker, *, background: bool
    ) -> None:
        self._store, self._link, self._worker = store, link, worker
        self._background = background
        self.forked = False  # a child's copy that was not used yet
        self._open = True
        heed_forks(self, 0)

    def release(self) -> None:
        """Let forks not concern this agent any more, which was closed."""
        self._open = False

    def before_fork(self) -> None:
        """Take the lock, and close the files."""
        if not self._open:
            return
        self._store.lock.acquire()
        self._link.hold()
        self._store.journal.rest()

    def after_fork(self) -> None:
        """Go on."""
        if not self._open:
            return
        self._link.let_go()
        self._store.lock.release()

    def in_child(self) -> None:
        """Leave the parent's locks and connections alone."""
        if not self._open:
            return
        self.forked = True
        self._worker.leave()
        self._link.after_fork()
        self._store.lock = system.RLock()  # the thread that holds it is not here

    def open_again(self) -> None:
        """Open everything in this child, when it is used for the first time."""
        self.forked = False
        self._store.reopen()
        self._worker.reset()
        if self._background:
            self._worker.start()


def close_at_exit(agent: Closable) -> None:
    """Close an agent when the process ends, unless it was closed before."""
    OPEN.add(agent)


def _close_all() -> None:
    for agent in list(OPEN):
        agent.close()


atexit.register(_close_all)
