"""What monitors had noticed when a decision was made, as audits and exports show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guardband.live.client.journal import Journal

__all__ = ["NotedAlarm", "alarms_of", "news_at", "raised_before"]


class NotedAlarm(NamedTuple):
    """An alarm as it was written down."""

    kind: str
    round: int  # after how many decisions
    evidence: float
    at: float
    looked_at: float | None  # when a person did


def alarms_of(journal: Journal) -> list[NotedAlarm]:
    """Return all alarms of a journal, the oldest first."""
    rows = journal.query("SELECT kind, round, evidence, at, looked_at FROM alarm ORDER BY number")
    return [NotedAlarm(*row) for row in rows]


def raised_before(alarms: Sequence[NotedAlarm], seq: int) -> list[NotedAlarm]:
    """Return the alarms that were raised before a decision."""
    return [each for each in alarms if each.round < seq]


def news_at(alarms: Sequence[NotedAlarm], seq: int, at: float) -> list[NotedAlarm]:
    """Return those of them at which nobody had looked when it was made."""
    known = raised_before(alarms, seq)
    return [each for each in known if each.looked_at is None or each.looked_at > at]
