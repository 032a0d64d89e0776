"""What happens to objects with locks when their process forks, as web servers do.

A child has one thread, the one that forked: a lock that another thread held would stay locked for
ever, around numbers that were half changed. So all locks are taken before a fork, and a child gets
new ones.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakValueDictionary

__all__ = ["ForkSafe", "Forking", "heed_forks"]


class Forking(Protocol):
    """What a fork concerns."""

    def before_fork(self) -> None:
        """Take the locks."""

    def after_fork(self) -> None:
        """Go on, in the parent."""

    def in_child(self) -> None:
        """Begin, in a child."""


# By how far inside a lock is taken: who holds an inner one waits for no outer one.
_parts: tuple[WeakValueDictionary[int, Forking], ...] = tuple(
    WeakValueDictionary() for _ in range(3)
)
_held: list[Forking] = []


def heed_forks(part: Forking, depth: int) -> None:
    """Let a fork wait for an object, and let it know.

    Parameters
    ----------
    part
        The object, for as long as it lives.
    depth
        How deep inside others its locks are taken: 0 live agents, 1 groups, 2 what groups use.
    """
    _parts[depth][id(part)] = part


class ForkSafe:
    """A lock that forks wait for; a child has a new one.

    Parameters
    ----------
    depth
        See `heed_forks`.
    """

    def __init__(self, depth: int) -> None:
        self.lock = threading.RLock()
        heed_forks(self, depth)

    def before_fork(self) -> None:
        """Let no other thread be in the middle of anything."""
        self.lock.acquire()

    def after_fork(self) -> None:
        """Go on."""
        self.lock.release()

    def in_child(self) -> None:
        """Have a lock that is free: the thread that holds the old one may not be here."""
        self.lock = threading.RLock()


def _before() -> None:
    _held[:] = [part for parts in _parts for part in list(parts.values())]
    for part in _held:
        part.before_fork()


def _in_parent() -> None:
    for part in reversed(_held):
        part.after_fork()
    _held.clear()


def _in_child() -> None:
    for part in _held:
        part.in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
