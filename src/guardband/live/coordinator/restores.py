"""How a coordinator notices that it was restored from a backup, and goes on under new numbers.

A backup is older than what agents have seen since. An agent that knows a later epoch, or later
rules, than its coordinator proves that: numbers that were used before are not used again.
"""

from __future__ import annotations

import json
import math

from guardband.live.coordinator.budgets import close_budgets
from guardband.live.coordinator.delta_shares import skip_positions
from guardband.live.coordinator.epochs import next_number
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import SpaceRow, Transaction

__all__ = ["LARGEST_STEP", "RestoreClaims", "check_epoch", "note_restore"]

# An agent is believed that it has seen an epoch up to a number that its space may have reached
# since the newest one here was closed: so many at once, and one a second, or as many as the space
# allows. The bound is on the number and not on the step, so that repeated claims gain nothing.
LARGEST_JUMP = 100
EPOCHS_PER_S = 1.0
LARGEST_STEP = 10_000  # changes of the rules, or departures, that one restore can have undone
# How often a task may prove that the coordinator was restored: so often at once, and then again
# after so many seconds. Each proof may give an open epoch a new number, which voids its answers.
CLAIMS, CLAIM_S = 10.0, 6.0
RESTORE_QUIET_S = 60.0  # between two events about a restore: all agents notice the same one
RESTORE_APART_S = 86_400.0  # more often than that no positions are skipped: claims may be false
LATEST_EVENTS = 100  # among which the last such event is looked for


class RestoreClaims:
    """What agents know that their coordinator does not, taken up a limited number of times.

    A claim beyond the limit is ignored for now. That harms no other agent: the one that makes it
    ignores epochs with numbers that it has seen, and asks again.
    """

    def __init__(self) -> None:
        self._left: dict[tuple[str, str], tuple[float, float]] = {}  # by task: claims left, when

    def note_epoch(
        self,
        t: Transaction,
        row: SpaceRow,
        space: SpaceSettings,
        seen: int,
        *,
        who: str,
        now: float,
    ) -> SpaceRow:
        """Let numbers go on after the newest epoch that an agent has seen; refuse impossible ones.

        An open epoch under a number that was used before is opened again under a new one.
        """
        newest = next_number(row) - 1
        check_epoch(row, space, "seen_epoch", seen, now=now)
        if seen <= newest or not self._allowed(row.name, who, now=now):
            return row
        note_restore(t, row.name, {"epoch": newest, "seen": seen}, who=who, now=now)
        opened = t.epoch(row.name, row.open) if row.open else None
        row = row._replace(floor=seen)
        if opened is not None and row.open <= seen:
            t.delete_epoch(row.name, row.open)
            owed = t.unanswered(row.name, seen + 1, now - space.sync.live_s)
            row = row._replace(open=seen + 1, outstanding=owed)
            t.put(opened._replace(epoch=seen + 1))
        t.put(row)
        return row

    def note_rules(
        self, t: Transaction, row: SpaceRow, known: int, *, who: str, now: float
    ) -> SpaceRow:
        """Give the rules a config_version that no agent knows, where one knows a later one.

        Under a number that agents know, they would never hear of a change.
        """
        if not row.config_version < known <= row.config_version + LARGEST_STEP:
            return row
        if not self._allowed(row.name, who, now=now):
            return row
        detail: dict[str, object] = {"config": row.config_version, "seen": known}
        note_restore(t, row.name, detail, who=who, now=now)
        row = row._replace(config_version=known + 1, agents_version=known + 1)
        t.put(row)
        return row

    def _allowed(self, space: str, who: str, *, now: float) -> bool:
        """Tell whether a task may make one more claim now."""
        left, at = self._left.get((space, who), (CLAIMS, now))
        left = min(CLAIMS, left + max(0.0, now - at) / CLAIM_S)
        if left >= 1.0:
            self._left[space, who] = (left - 1.0, now)
        return left >= 1.0


def check_epoch(row: SpaceRow, space: SpaceSettings, name: str, epoch: int, *, now: float) -> None:
    """Refuse the number of an epoch that cannot have been, even before a restore."""
    newest = next_number(row) - 1
    since = max(0.0, now - (row.created_at if row.closed_at is None else row.closed_at))
    apart = max(1.0 / EPOCHS_PER_S, space.sync.min_interval_s)
    possible = row.epoch + LARGEST_JUMP + int(since / apart)
    if not 0 <= epoch <= max(newest, possible):
        raise Refused(
            "invalid_epoch", 422, f"{name}={epoch} never was: this space's epoch is {newest}."
        )


def note_restore(
    t: Transaction, space: str, detail: dict[str, object], *, who: str, now: float
) -> None:
    """Write down that the coordinator was restored, once a minute per space."""
    events = t.events(space, LATEST_EVENTS)
    last = next((event.at for event in events if event.what == "server restore"), -math.inf)
    if not 0.0 <= now - last < RESTORE_QUIET_S:
        t.add_event(now, space, who, "server restore", json.dumps(detail))
    if not 0.0 <= now - last < RESTORE_APART_S:
        skip_positions(t, space)
    close_budgets(t, space)
