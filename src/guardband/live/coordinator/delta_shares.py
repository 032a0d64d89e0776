"""Who may use up which part of delta: places in the order of registration, each given once."""

from __future__ import annotations

from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import Transaction

__all__ = ["delta_share_at", "next_position", "skip_positions"]

SKIPPED = 64  # places that a coordinator leaves free after it was restored from a backup


def next_position(t: Transaction, space: str) -> int:
    """Return the place of the next stream to register; no place is given twice."""
    place = _given(t, space) + 1
    t.put_meta(_key(space), str(place))
    return place


def skip_positions(t: Transaction, space: str) -> None:
    """Leave out places that may have been given away by a coordinator that is forgotten."""
    t.put_meta(_key(space), str(_given(t, space) + SKIPPED))


def delta_share_at(space: SpaceSettings, place: int) -> float:
    """Return the part of delta that belongs to the stream which registered in this place.

    Every stream computes with a set of data of its own, also the second one of a task. "equal" is
    for one stream per task, as in `gb.Fleet`.
    """
    return 1.0 / space.agents if space.shares == "equal" else 1.0 / (place * (place + 1))


def _given(t: Transaction, space: str) -> int:
    noted = t.meta(_key(space))
    return len(t.streams(space)) if noted is None else int(noted)


def _key(space: str) -> str:
    return f"places of {space}"
