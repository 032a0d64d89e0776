"""Agents' reports for the dashboard: the newest of each, and samples for charts."""

from __future__ import annotations

import json
from typing import NamedTuple

from guardband.live.protocol.messages import Report
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import SampleRow, StreamRecord, Transaction

__all__ = ["LEVELS", "keep_report", "samples_since"]

EMPTY = Report()


class Level(NamedTuple):
    """One sample per slot, forgotten after a while."""

    slot_s: float
    keep_s: float


LEVELS = (
    Level(4.0, 600.0),  # the first minutes, as they happen
    Level(10.0, 3600.0),
    Level(120.0, 86_400.0),
    Level(3600.0, 400 * 86_400.0),
)


def keep_report(
    t: Transaction,
    space: SpaceSettings,
    record: StreamRecord,
    report: Report,
    *,
    now: float,
    sent: int = 0,
) -> None:
    """Keep a report; an empty one says nothing, and leaves the last in place.

    Where uploads have a smallest size, figures of any other moment than a checkpoint's are not
    kept: they would tell of single observations. `sent` is the checkpoint that comes with the
    report.
    """
    if report == EMPTY:
        return
    heartbeat, stream = record.heartbeat, record.stream.stream
    if space.sync.min_batch > 1 and report.counted not in (record.stream.n, sent):
        report = report.with_figures_of(EMPTY)
    text = report.model_dump_json()
    due = heartbeat.sampled_at is None or not 0.0 <= now - heartbeat.sampled_at < LEVELS[0].slot_s
    sampled = now if due else heartbeat.sampled_at
    t.put(
        heartbeat._replace(
            report=text,
            reported_at=now,
            last_seen=max(now, heartbeat.last_seen),
            sampled_at=sampled,
        )
    )
    if due:
        numbers = {"counters": report.counters, "sums": report.sums, "gauges": report.gauges}
        body = json.dumps(numbers, allow_nan=False)
        for level, (slot_s, keep_s) in enumerate(LEVELS):
            slot = int(now // slot_s)
            row = SampleRow(heartbeat.space, stream, level, slot, heartbeat.task, now, body)
            t.put(row)
            if heartbeat.sampled_at is None or slot != int(heartbeat.sampled_at // slot_s):
                t.delete_samples(heartbeat.space, level, now - keep_s)


def samples_since(t: Transaction, space: str, since: float, *, now: float) -> list[SampleRow]:
    """Return the samples of the finest level that reaches back so far."""
    for level, (_, keep_s) in enumerate(LEVELS):
        if now - since <= keep_s or level == len(LEVELS) - 1:
            return t.samples(space, level, since)
    raise AssertionError
