"""What happens to live agents when their process forks, as web servers do, and when it ends.

SQLite's locks and connections must not cross a fork, so before one every open agent is locked and
its files are closed. The parent goes on; the child opens everything anew when it is first used.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import Protocol

from guardband.live.client.agent_store import AgentStore
from guardband.live.client.sync_worker import SyncWorker
from guardband.live.link import Link

__all__ = ["ForkGuard", "close_at_exit"]


class Closable(Protocol):
    """What is closed when the process ends."""

    def close(self) -> None:
        """Close all files and connections."""


GUARDS: weakref.WeakSet[ForkGuard] = weakref.WeakSet()
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
        GUARDS.add(self)

    def release(self) -> None:
        """Take this agent, which was closed, out of the fork hooks."""
        GUARDS.discard(self)

    def before(self) -> None:
        """Take the lock, and close the files."""
        self._store.lock.acquire()
        self._link.hold()
        self._store.journal.rest()

    def in_parent(self) -> None:
        """Go on."""
        self._link.let_go()
        self._store.lock.release()

    def in_child(self) -> None:
        """Leave the parent's locks and connections alone."""
        self.forked = True
        self._worker.leave()
        self._link.after_fork()
        self._store.lock = threading.RLock()  # the thread that holds it is not here

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


_held: list[ForkGuard] = []


def _before() -> None:
    _held[:] = list(GUARDS)
    for guard in _held:
        guard.before()


def _in_parent() -> None:
    for guard in _held:
        guard.in_parent()
    _held.clear()


def _in_child() -> None:
    for guard in _held:
        guard.in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
atexit.register(_close_all)
