"""What a coordinator's store holds, for tests to look at."""

from __future__ import annotations

from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.store import EventRow, HeartbeatRow, SpaceRow


def row_of(coordinator: Coordinator, name: str = "home") -> SpaceRow:
    """Return a space's row."""
    with coordinator.store.reading() as t:
        row = t.space(name)
    assert row is not None
    return row


def events_of(coordinator: Coordinator, name: str = "home", *, most: int = 50) -> list[EventRow]:
    """Return what happened in a space, newest first."""
    with coordinator.store.reading() as t:
        return t.events(name, most)


def heartbeat_of(coordinator: Coordinator, stream: str) -> HeartbeatRow:
    """Return the last sign of life of a stream."""
    with coordinator.store.reading() as t:
        heartbeat = t.heartbeat(stream)
    assert heartbeat is not None
    return heartbeat
