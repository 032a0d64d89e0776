"""The round numbers of tasks that share contexts: who counts otherwise than the others."""

from __future__ import annotations

from collections.abc import Mapping, Set
from operator import attrgetter
from typing import NamedTuple

__all__ = ["AHEAD", "FirstEpoch", "Standing", "far_ahead"]

AHEAD = "rounds ahead"  # the reason in the row of a task whose data are left out of epochs
QUICKEST = 1_000.0  # rounds per second: nobody numbers finer than by milliseconds
TIMES = 10.0  # how much quicker than on average rounds may pass for a while
SLACK = 1  # a round may have begun a moment ago


class Standing(NamedTuple):
    """How far a task is by its data."""

    round: int  # the latest in them; 0: there are none
    within_s: float | None = None  # since when it may have counted that; None: it is silent
    fresh: bool = False  # whether it is known to have counted it since then


class FirstEpoch(NamedTuple):
    """What the first epoch says about the pace of rounds."""

    age_s: float  # how long ago it was closed
    round: int  # the latest in it

    def pace(self, now: int, late_s: float) -> float:
        """Return at most how many rounds pass per second, by a task that is in round `now`.

        Its data may be `late_s` old. An epoch with a later round was counted otherwise, and
        says nothing about where rounds began.
        """
        begin = self.round if self.round <= now else 0
        known = self.age_s - late_s
        return QUICKEST if known <= 0.0 else min(QUICKEST, (now + SLACK - begin) / known)


def far_ahead(
    standings: Mapping[str, Standing],
    clock: FirstEpoch,
    window_s: float,
    out: Set[str] = frozenset(),
) -> set[str]:
    """Return the tasks that number rounds otherwise than the others, as seconds beyond minutes.

    An epoch with a reward of theirs is adopted by nobody else for long: its round lies in the
    others' future.

    Tasks that number alike are apart by no more rounds than pass between a decision and the moment
    that its reward is stored: its window, and the time since which it is known to be counted. So
    tasks that have counted nothing lately show nothing: they may have been idle. Those that are
    quick, decide often or get rewards at once are not left out: a round is the same for all, and
    what the others count is behind by that time only. Rounds may pass ten times as quickly as on
    average, and up to twice the others' round is never too far.

    Parameters
    ----------
    standings
        Task -> how far it is.
    clock
        What the first epoch says.
    window_s
        How long a decision waits for its reward.
    out
        Who was left out before: they stay out until they are in reach of those that answer,
        whether or not these have counted something since.
    """
    found = set()
    for task, own in standings.items():
        others = [
            each
            for name, each in standings.items()
            if name != task and each.round > 0
            if each.within_s is not None and (each.fresh or task in out)
        ]
        if not others:
            continue
        middle = sorted(others, key=attrgetter("round"))[len(others) // 2]
        late_s = window_s + (middle.within_s or 0.0)
        reach = TIMES * (clock.pace(own.round, late_s) * late_s + SLACK)
        if own.round > 2 * middle.round and own.round - middle.round > reach:
            found.add(task)
    return found
