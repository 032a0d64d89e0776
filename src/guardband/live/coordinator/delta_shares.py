"""The part of delta that each stream may use: by its position in the order of registration."""

from __future__ import annotations

from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import Transaction

__all__ = ["delta_share_at", "next_position", "skip_positions"]

SKIPPED = 64  # positions that a coordinator leaves out after it was restored from a backup


def next_position(t: Transaction, space: str) -> int:
    """Return the position of the next stream to register; none is given twice."""
    position = _given(t, space) + 1
    t.put_meta(_key(space), str(position))
    return position


def skip_positions(t: Transaction, space: str) -> None:
    """Leave out positions that may have been given to streams that the backup does not hold."""
    t.put_meta(_key(space), str(_given(t, space) + SKIPPED))


def delta_share_at(space: SpaceSettings, position: int) -> float:
    """Return the part of delta that belongs to the stream that registered at this position.

    Every stream computes with a set of data of its own, also the second one of a task. "equal" is
    for one stream per task, as in `gb.Fleet`; "paper" does not split delta.
    """
    if space.shares == "paper":
        return 1.0
    return 1.0 / space.agents if space.shares == "equal" else 1.0 / (position * (position + 1))


def _given(t: Transaction, space: str) -> int:
    noted = t.meta(_key(space))
    return len(t.streams(space)) if noted is None else int(noted)


def _key(space: str) -> str:
    return f"places of {space}"  # as the first version wrote it
