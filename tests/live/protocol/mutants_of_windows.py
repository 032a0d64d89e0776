"""Seeded bugs in what forgets by rounds: see `mutants`."""

from __future__ import annotations

from live.protocol.mutants import Patch, mutant
from live.protocol.mutants_of_liars import MUTANTS

from guardband.live.client.stream_state import StreamState
from guardband.live.protocol import sums
from guardband.live.protocol.sums import Sums

__all__ = ["MUTANTS"]


@mutant
def nothing_is_forgotten(patch: Patch) -> None:
    """A new half window begins beside all that was there before."""

    def forget(given: Sums, half: int) -> Sums:
        if given.recent is None or given.half >= half:
            return given
        nothing = sums.empty_recent(given.dim, half)
        return given._replace(recent=nothing._replace(kept=given.kept))

    patch.setattr(sums, "forget", forget)


@mutant
def all_is_forgotten(patch: Patch) -> None:
    """A new half window begins with nothing."""
    right = sums.forget
    patch.setattr(sums, "forget", lambda given, half: right(right(given, half), half + 1))


@mutant
def long_silence_keeps_the_old(patch: Patch) -> None:
    """Who was away for several half windows comes back with what was new when it left."""
    right = sums.forget

    def forget(given: Sums, half: int) -> Sums:
        if given.recent is None or given.half >= half:
            return given
        return right(given._replace(recent=given.recent._replace(half=half - 1)), half)

    patch.setattr(sums, "forget", forget)


@mutant
def the_older_half_stays_new(patch: Patch) -> None:
    """What was new is counted as new in the next half window, too."""
    right = sums.forget

    def forget(given: Sums, half: int) -> Sums:
        found = right(given, half)
        if found is given or given.recent is None or given.half + 1 < half:
            return found
        return found._replace(recent=given.recent._replace(half=half, kept=found.kept))

    patch.setattr(sums, "forget", forget)


@mutant
def forgets_what_the_next_checkpoint_needs(patch: Patch) -> None:
    """A checkpoint holds what was counted since the one before, if a half window began."""
    right = StreamState.total

    def total(self: StreamState) -> Sums:
        began = 0 < self.newest.sums.half < self.open.half
        return self.open._replace(n=self.newest.sums.n + self.open.n) if began else right.fget(self)

    patch.setattr(StreamState, "total", property(total))
