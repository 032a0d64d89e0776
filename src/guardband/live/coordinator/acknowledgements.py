"""Which alerts somebody has seen: kept until the alert is gone, so that the next one is new.

Of a monitor's alert also until it raises another alarm: nobody has seen that one.
"""

from __future__ import annotations

import json
from collections.abc import Set
from typing import NamedTuple

from guardband.live.store import Transaction

__all__ = ["Acknowledged", "AlertKey", "acknowledge", "acknowledged", "keep_only", "lapse"]

AlertKey = tuple[str, str | None]  # an alert's id and task


class Acknowledged(NamedTuple):
    """Who has seen an alert, and when."""

    by: str
    at: float
    reason: str


def acknowledged(t: Transaction, space: str) -> dict[AlertKey, Acknowledged]:
    """Return the alerts of a space that somebody has seen."""
    lines = json.loads(t.meta(_key(space)) or "[]")
    return {(ident, task): Acknowledged(*rest) for ident, task, *rest in lines}


def acknowledge(
    t: Transaction, space: str, alert: str, task: str | None, reason: str, *, who: str, now: float
) -> None:
    """Note that somebody has seen an alert."""
    _write(t, space, acknowledged(t, space) | {(alert, task): Acknowledged(who, now, reason)})
    detail = json.dumps({"alert": alert, "task": task, "reason": reason})
    t.add_event(now, space, who, "alert acknowledged", detail)


def keep_only(t: Transaction, space: str, active: Set[AlertKey]) -> None:
    """Forget who has seen alerts that are gone."""
    known = acknowledged(t, space)
    kept = {key: seen for key, seen in known.items() if key in active}
    if kept != known:
        _write(t, space, kept)


def lapse(t: Transaction, space: str, alert: AlertKey) -> None:
    """Forget who has seen an alert, because there is news of it."""
    keep_only(t, space, acknowledged(t, space).keys() - {alert})


def _write(t: Transaction, space: str, seen: dict[AlertKey, Acknowledged]) -> None:
    t.put_meta(_key(space), json.dumps([[*key, *rest] for key, rest in seen.items()]))


def _key(space: str) -> str:
    return f"acknowledged alerts of {space}"
