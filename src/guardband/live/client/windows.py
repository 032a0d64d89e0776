"""Reward windows: when a decision counts, with which reward, and the clock that decides it.

Every decision ends in one of five ways: observed, defaulted, discarded, lost (with a stream that
was given up) or outdated (by a new start after an alarm). They end in the order in which they were
made: whether and when an observation counts must not depend on what it was. Where delays say
nothing about rewards (order "prompt") and every request has a context of its own, rewards count in
the order in which they come.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from guardband.live.protocol.space import RewardSettings

__all__ = ["Clock", "End", "Ending", "ending"]

JUMP_S = 1.0  # a wall clock that leaves ours by more has been set
BOOT = Path("/proc/sys/kernel/random/boot_id")
TIMES = Path("/proc/self/ns/time")


# Seconds that go on while the computer sleeps, where the system counts them.
seconds_since_boot: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)


def this_boot() -> str | None:
    """Return the name of this boot; None where the system does not say, or has no such clock.

    Processes with the same answer count the same seconds; a container may have its own clock.
    """
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    try:
        boot = BOOT.read_text().strip()
        return f"{boot} {TIMES.readlink()}" if TIMES.exists() else boot
    except OSError:
        return None


class End(IntEnum):
    """How a decision's wait for its reward ended; these numbers are in journals."""

    HEARD = 0  # the reward is here, but it is not this decision's turn yet
    OBSERVED = 1
    DEFAULTED = 2
    DISCARDED = 3
    LOST = 4
    OUTDATED = 5  # of a start that is over: its reward does not count


class Ending(NamedTuple):
    """A decision counts now, with this reward; a discarded one does not count."""

    end: End
    reward: float


def ending(
    rules: RewardSettings, decided_at: float, heard: float | None, discarded: bool, now: float
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
    discarded
        Whether the decision was excluded.
    """
    if discarded:
        return Ending(End.DISCARDED, 0.0)
    if now < decided_at + rules.window_s and (heard is None or rules.order == "window"):
        return None
    return Ending(End.DEFAULTED, rules.default) if heard is None else Ending(End.OBSERVED, heard)


class Clock:
    """Seconds since 1970 that go on steadily, whatever is done to the computer's clock.

    Time is what a steady clock counts, and a base that is read from the wall clock once. Processes
    with one journal share the base until the computer starts again, so that a window ends at the
    same moment for all of them. What is in a journal may be later than the wall clock says: then
    time goes on from that.

    Parameters
    ----------
    wall, steady
        For tests.
    boot
        Since when `steady` counts. None: other processes cannot know, so no base is shared; where
        no clocks are given, the system is asked.
    """

    def __init__(
        self,
        wall: Callable[[], float] | None = None,
        steady: Callable[[], float] | None = None,
        boot: str | None = None,
    ) -> None:
        self.boot = this_boot() if wall is None and steady is None else boot
        self._wall = time.time if wall is None else wall
        self._steady = seconds_since_boot if steady is None else steady
        self._base = self._wall_base()
        self._apart = 0.0

    def _wall_base(self) -> float:
        return self._wall() - self._steady()

    def now(self) -> float:
        """Return the time."""
        return self._base + self._steady()

    def not_before(self, moment: float) -> None:
        """Go on from `moment`, if it is later than now."""
        if moment > self.now():
            self._base = moment - self._steady()

    def follow(self, base: float) -> None:
        """Go by the base that is shared."""
        self._base = base
        if abs(self._wall() - self.now()) < JUMP_S:
            self._apart = 0.0

    def share(self, base: float | None, newest: float, *, idle: bool) -> float:
        """Go by the base that is shared, if there is one; return the one to share from now on.

        The wall clock may be wrong when the base is taken. Once it was set, a new base is taken as
        soon as nothing waits for a window (`idle`). Time does not go back before `newest`.
        """
        right = max(self._wall_base(), newest - self._steady())
        if base is None or (idle and abs(right - base) >= JUMP_S):
            base = right
        self.follow(base)
        self.not_before(newest)
        return self._base

    def jump(self) -> float:
        """Return by how much the wall clock was set since the last time; 0 for small amounts."""
        apart = self._wall() - self.now()
        jumped = apart - self._apart
        if abs(jumped) < JUMP_S:
            return 0.0
        self._apart = apart
        return jumped
