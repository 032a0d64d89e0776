"""What a coordinator's store holds, for tests to look at."""

from __future__ import annotations

from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.store.base import AuditRow, PulseRow, SpaceRow


def row_of(coordinator: Coordinator, name: str = "home") -> SpaceRow:
    """Return a space's row."""
    with coordinator.store.reading() as t:
        row = t.space(name)
    assert row is not None
    return row


def events_of(coordinator: Coordinator, name: str = "home", *, most: int = 50) -> list[AuditRow]:
    """Return what happened in a space, newest first."""
    with coordinator.store.reading() as t:
        return t.events(name, most)


def pulse_of(coordinator: Coordinator, stream: str) -> PulseRow:
    """Return the last sign of life of a stream."""
    with coordinator.store.reading() as t:
        pulse = t.pulse(stream)
    assert pulse is not None
    return pulse
