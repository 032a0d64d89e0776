"""When a decision counts, and with which reward; and the clock by which that is judged.

Every decision ends in one of four ways: observed, defaulted, void, or lost (with a stream that was
given up). They end in the order in which they were made: whether and when an observation counts
must not depend on what it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from guardband.live.space import Rewards

__all__ = ["Clock", "End", "Ending", "ending"]

JUMP_S = 1.0  # a wall clock that leaves ours by more has been set


def steady() -> float:
    """Return seconds that go on while the computer sleeps, where the system counts them."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class End(IntEnum):
    """How a decision's wait for its reward ended; these numbers are in journals."""

    HEARD = 0  # the reward is here, but it is not this decision's turn yet
    OBSERVED = 1
    DEFAULTED = 2
    VOID = 3
    LOST = 4


class Ending(NamedTuple):
    """A decision counts now, with this reward; a void one does not count."""

    end: End
    reward: float


def ending(
    rules: Rewards, decided_at: float, heard: float | None, void: bool, now: float
) -> Ending | None:
    """Return how the oldest open decision ends, or None: it has to wait.

    Parameters
    ----------
    rules
        The space's.
    decided_at, now
        Seconds, by the agent's clock.
    heard
        The reward that came within the window, if one did.
    void
        Whether the decision was excluded.
    """
    if void:
        return Ending(End.VOID, 0.0)
    if now < decided_at + rules.window_s and (heard is None or rules.order == "window"):
        return None
    return Ending(End.DEFAULTED, rules.default) if heard is None else Ending(End.OBSERVED, heard)


class Clock:
    """Seconds since 1970 that never run backwards, whatever is done to the computer's clock.

    The wall clock is read once; from then on a steady one goes on from there. What is in a
    journal may be later than the wall clock says: then time goes on from that.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady,
    ) -> None:
        self._wall, self._steady = wall, steady
        self._base, self._start = wall(), steady()
        self._apart = 0.0

    def now(self) -> float:
        """Return the time."""
        return self._base + (self._steady() - self._start)

    def not_before(self, moment: float) -> None:
        """Go on from `moment`, if it is later than now."""
        self._base += max(0.0, moment - self.now())

    def jump(self) -> float:
        """Return by how much the wall clock was set since the last time; 0 for small amounts."""
        apart = self._wall() - self.now()
        jumped = apart - self._apart
        if abs(jumped) < JUMP_S:
            return 0.0
        self._apart = apart
        return jumped
