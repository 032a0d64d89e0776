"""What the ledger is made of, and how a broken promise is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from guardband.kernels.types import Floats
from guardband.live.protocol.messages import Revision
from guardband.live.protocol.sums import Sums

__all__ = ["Acknowledged", "EpochRecord", "Link", "Play", "SimulationError", "expect"]


class SimulationError(AssertionError):
    """A promise was broken."""


def expect(kept: bool, promise: str, *about: Any) -> None:
    """Raise where a promise is not kept."""
    if not kept:
        raise SimulationError(f"{promise}: {' '.join(map(str, about))}")


@dataclass(slots=True)
class Play:
    """An action that was played, or may have been, where the process died."""

    machine: str
    at: float
    told: bool = False  # its reward was given to the agent, which may have taken it
    heard: float | None = None  # when the agent said that it has


@dataclass(slots=True)
class Link:
    """The k-th observation of a stream, and what the first k add up to."""

    k: int
    x: bytes
    reward: float
    before: Link | None
    gram: Floats
    surprise: float
    weight: float

    def within(self, other: Link) -> bool:
        """Tell whether the other goes on from this one."""
        found: Link | None = other
        while found is not None and found.k > self.k:
            found = found.before
        return found is self


@dataclass(slots=True)
class Acknowledged:
    """What the coordinator has said that it holds of a stream."""

    link: Link
    machine: str  # whose journal has it; "": it went back in time since
    waived: bool  # the store was damaged since: agents may have to send it again


@dataclass
class EpochRecord:
    """A closed epoch: what each stream has in it, and the sum."""

    entries: dict[str, Revision]
    total: Sums
