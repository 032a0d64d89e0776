"""The interface of engines, which run the same work on many items."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Protocol, TypeVar

__all__ = ["Advance", "ComputeEngine", "OnProgress", "StoppedError", "Work", "ignore_progress"]

Item = TypeVar("Item")
Result = TypeVar("Result")

Advance = Callable[[float], None]  # "I have done this share more of my item"; raises StoppedError
OnProgress = Callable[[int, float], None]  # "item number i has advanced by this share"
Work = Callable[[Item, Advance], Result]


class StoppedError(Exception):
    """The caller has stopped this work."""


class ComputeEngine(Protocol):
    """Something that does the same work on many items."""

    def map(
        self, work: Work[Item, Result], items: Iterable[Item], tick: OnProgress = ...
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield the number of each item and its result, as they finish.

        Parameters
        ----------
        work
            Called as work(item, step). It may run twice, so it must give the same result again,
            and it should call step(share) now and then: that is where it can be stopped.
        items
            Taken as there is room for them, in the order given: the longest first is best.
        tick
            Told of the progress of every item; shares add up to 1.

        Closing the iterator stops what still runs and leaves nothing behind.
        """


def ignore_progress(index: int, share: float) -> None:
    """Do nothing."""
