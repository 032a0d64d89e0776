"""A space at one moment, read from the store once; summary, metrics and alerts are made of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple

from guardband.live.coordinator.acknowledgements import Acknowledged, AlertKey, acknowledged
from guardband.live.coordinator.delta_shares import delta_share_at
from guardband.live.coordinator.rounds import AHEAD
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, add_sums
from guardband.live.server.alarms import Noticed
from guardband.live.server.alerts import RECENT_S, SpaceFacts, TaskFacts
from guardband.live.server.estimates import ThetaEstimate, estimate_of, heterogeneity
from guardband.live.server.recent import DAY_S, HOUR_S, HOURLY, Span, counted, span_of
from guardband.live.store import (
    AlarmRow,
    EpochRow,
    EventRow,
    HeartbeatRow,
    SampleRow,
    SpaceRow,
    Store,
    StreamRow,
    TaskRow,
)
from guardband.reasons import first_code
from guardband.uplift import GainSums, Uplift, reach_of, uplift_of

__all__ = ["Snapshot", "TaskSnapshot", "delta_spent", "take"]

EPOCHS = 100
EVENTS = 50
RECENT_EVENTS = 500  # looked at for conflicts, refusals and restores
CONSERVATIVE = 0.5  # an agent that plays the baseline more often than this is called conservative


class TaskSnapshot(NamedTuple):
    """A task: counters and sums over its streams, gauges of the open one last heard of."""

    row: TaskRow
    uses: list[int]
    alpha: float
    streams: int  # that are open
    n: int
    round: int  # the latest in its data, where tasks number rounds
    last_seen_s: float | None  # None where all streams are sealed, or none ever spoke
    heard_s: float | None  # the same over all its streams, also those that ended
    epoch: int | None
    counters: dict[str, int]
    sums: dict[str, float]
    gauges: dict[str, float]
    current: bool  # whether the gauges are those of an open stream
    reasons: dict[str, int]
    state: dict[str, Any]
    conflicts: int
    invalid: int
    gains: GainSums  # what its holdback measured
    alarms: tuple[AlarmRow, ...] = ()  # what its monitors noticed, the oldest first
    hour: Span | None = None  # what it counted lately; None: all of it
    day: Span | None = None

    @property
    def task(self) -> str:
        """Its name."""
        return self.row.task


@dataclass(frozen=True)
class Snapshot:
    """A space at one moment."""

    now: float
    space: SpaceSettings
    row: SpaceRow
    tasks: Sequence[TaskSnapshot]
    open: EpochRow | None
    epochs: Sequence[EpochRow]  # closed ones, oldest first
    events: Sequence[EventRow]  # newest first
    restores: int
    recent_restores: int
    streams: dict[str, list[str]]  # the names of each task's
    places: list[int]  # of all of them: one that started anew has that of the one before it
    totals: dict[str, Sums]  # what of each task is in the newest epoch
    acknowledged: Mapping[AlertKey, Acknowledged]  # alerts that somebody has seen

    @cached_property
    def estimate(self) -> ThetaEstimate | None:
        """Theta from the newest epoch, where its sum may be served."""
        served = sum(total.n > 0 for total in self.totals.values())
        if served < max(1, self.space.sync.min_streams):
            return None
        return estimate_of(self.space, add_sums(self.space.dim, self.totals.values()))

    @cached_property
    def heterogeneity(self) -> dict[str, float]:
        """How far each task's theta is from the others'; above 1: they differ."""
        return heterogeneity(self.space, self.totals)

    def uplift(self, tasks: Sequence[TaskSnapshot]) -> Uplift | None:
        """Return what choices of some tasks earn over the baseline; None: it is not measured."""
        sums = reduce(lambda one, each: one.plus(*each.gains), tasks, GainSums())
        if not (self.space.holdback and sums.rounds):
            return None
        found = uplift_of(sums, reach_of(self.space.holdback, self.space.noise))
        return found if math.isfinite(found.mean) else None

    def conclude(self) -> None:
        """Compute what takes a while, once."""
        _ = self.estimate, self.heterogeneity

    def facts(self) -> SpaceFacts:
        """Return what alerts are made of."""
        return SpaceFacts(
            space=self.space,
            agents=[
                TaskFacts(
                    task=each.task,
                    active=each.row.status not in ("quarantined", "retracted"),
                    hour=each.hour,
                    day=each.day,
                    alarms=_noticed(each.alarms, self.now),
                    held=first_code(each.state.get("reason", "")) == "alarmed",
                    apart=each.row.status == "apart",
                    counters=each.counters,
                    sums=each.sums,
                    gauges=each.gauges if each.current else {},
                    last_seen_s=each.last_seen_s,
                    heterogeneity=self.heterogeneity.get(each.task),
                    conflicts=each.conflicts,
                    invalid=each.invalid,
                    round=each.round,
                    ahead=each.row.reason == AHEAD,
                )
                for each in self.tasks
            ],
            open_for_s=None if self.open is None else self.now - self.open.opened_at,
            restores=self.recent_restores,
        )

    def lease_of(self, each: TaskSnapshot) -> float | None:
        """Return for how long a task may explore without getting through; None: no limit."""
        if self.space.lease_s is None or each.last_seen_s is None:
            return None
        return max(0.0, self.space.lease_s - each.last_seen_s)

    def state_of(self, each: TaskSnapshot) -> str:
        """Return a task's state in one word."""
        mode = each.state.get("mode", "running")
        recent = each.gauges.get("baseline_recent", 0.0)
        if each.row.status != "active":
            return each.row.status
        if self.row.paused is not None:
            return "paused"
        if each.last_seen_s is None:
            return "ended" if each.streams == 0 else "stale"
        if each.last_seen_s > self.space.sync.live_s:
            return "stale"
        if mode in ("shadow", "paused"):
            return str(mode)
        return "conservative" if mode != "running" or recent > CONSERVATIVE else "ok"


def take(store: Store, name: str, now: float) -> Snapshot | None:
    """Return a snapshot of a space, or None where there is no such space."""
    with store.reading() as t:
        row = t.space(name)
        if row is None:
            return None
        space = SpaceSettings.from_json(json.loads(row.config))
        streams, heartbeats, tasks = t.streams(name), t.heartbeats(name), t.tasks(name)
        recent = t.events(name, RECENT_EVENTS)
        epochs = t.epochs(name, EPOCHS + 1)
        open_ = t.epoch(name, row.open) if row.open else None
        alarms = t.alarms(name)
        seen = acknowledged(t, name)
        samples = t.samples(name, HOURLY, now - DAY_S - 2.0 * HOUR_S)
    fresh = [event for event in recent if event.at > now - RECENT_S]
    streams_of: dict[str, list[StreamRow]] = {task.task: [] for task in tasks}
    heartbeats_of: dict[str, list[HeartbeatRow]] = {task.task: [] for task in tasks}
    for stream in streams:
        streams_of[stream.task].append(stream)
    for heartbeat in heartbeats:
        heartbeats_of[heartbeat.task].append(heartbeat)
    parts: dict[str, list[Sums]] = {task.task: [] for task in tasks if task.status == "active"}
    for stream in streams:
        if stream.task in parts and stream.entry_epoch == row.epoch and row.epoch > 0:
            parts[stream.task].append(stream.sound(space.dim).entry_sums)
    return Snapshot(
        now=now,
        space=space,
        row=row,
        tasks=[
            _lately(
                _task(
                    space, task, streams_of[task.task], heartbeats_of[task.task], fresh, now
                )._replace(alarms=tuple(alarm for alarm in alarms if alarm.task == task.task)),
                streams_of[task.task],
                heartbeats_of[task.task],
                [sample for sample in samples if sample.task == task.task],
                now,
            )
            for task in tasks
        ],
        open=open_,
        epochs=[each for each in reversed(epochs) if each.state == "closed"][-EPOCHS:],
        events=recent[:EVENTS],
        restores=sum(event.what == "server restore" for event in recent),
        recent_restores=sum(event.what == "server restore" for event in fresh),
        streams={task: [stream.stream for stream in own] for task, own in streams_of.items()},
        places=[stream.place for stream in streams],
        totals={task: add_sums(space.dim, each) for task, each in parts.items() if each},
        acknowledged=seen,
    )


def delta_spent(space: SpaceSettings, places: Sequence[int], epoch: int) -> float:
    """Return how much of delta the streams, their starts and the epochs so far have used.

    The streams of a place have used one set of data for every epoch, and one for every start.
    """
    if space.shares == "paper":
        return space.delta
    used = 0.0
    for place, starts in Counter(places).items():
        last = epoch + starts
        part = _of_equal_sets(last) if space.shares == "equal" else 1.0 - 1.0 / (last + 1)
        used += delta_share_at(space, place) * part
    return space.delta * min(1.0, used)


@lru_cache(maxsize=64)
def _of_equal_sets(last: int) -> float:
    """Return the part of delta that belongs to the first sets of data, with shares="equal"."""
    return 6.0 / math.pi**2 * sum(1.0 / p**2 for p in range(1, min(last, 100_000) + 1))


def _task(
    space: SpaceSettings,
    row: TaskRow,
    streams: Sequence[StreamRow],
    heartbeats: Sequence[HeartbeatRow],
    fresh: Sequence[EventRow],
    now: float,
) -> TaskSnapshot:
    own = {stream.stream: stream for stream in streams}
    heard = sorted(heartbeats, key=lambda heartbeat: heartbeat.last_seen)
    alive = [heartbeat for heartbeat in heard if own[heartbeat.stream].state == "open"]
    said = [(p, json.loads(p.report)) for p in heard if p.reported_at is not None]
    reports = [report for _, report in said]
    current = [report for heartbeat, report in said if heartbeat in alive]
    newest = (current or reports or [{}])[-1]
    gauges = dict(newest.get("gauges", {}))
    margins = [each["gauges"]["margin_min"] for each in current if "margin_min" in each["gauges"]]
    if margins:
        gauges["margin_min"] = min(margins)
    for name in ("budget_left", "cost_left"):
        left = [each["gauges"][name] for each in current if name in each["gauges"]]
        if left:
            gauges[name] = sum(left)
    counters = _sum(reports, "counters")
    troubles = [event.what for event in fresh if event.who == row.task]
    return TaskSnapshot(
        row=row,
        uses=json.loads(row.uses),
        alpha=space.alpha_of(row.task),
        streams=sum(stream.state == "open" for stream in own.values()),
        n=sum(stream.n for stream in own.values() if stream.pool >= 0),  # others replaced the rest
        round=max((stream.round for stream in own.values()), default=0),
        last_seen_s=max(0.0, now - alive[-1].last_seen) if alive else None,
        heard_s=max(0.0, now - heard[-1].last_seen) if heard else None,
        epoch=alive[-1].seen_epoch if alive else None,
        counters=counters,
        sums=_sum(reports, "sums") | {"counted": sum(map(counted, reports))},
        gauges=gauges,
        current=bool(current),
        reasons=_sum(reports, "reasons"),
        state=newest.get("state", {}),
        # An agent that is merely ahead of a restored store meets a refusal, too, and goes on.
        conflicts=counters.get("conflicts", 0) if "revision conflict" in troubles else 0,
        invalid=troubles.count("invalid increment"),
        gains=_gains({p.stream: report for p, report in said}, own, space.holdback),
    )


def _lately(
    each: TaskSnapshot,
    streams: Sequence[StreamRow],
    heartbeats: Sequence[HeartbeatRow],
    samples: Sequence[SampleRow],
    now: float,
) -> TaskSnapshot:
    """Return a task with what it counted in the last hour, and in the last day."""
    reports = {p.stream: json.loads(p.report) for p in heartbeats if p.reported_at is not None}
    joined = min((stream.registered_at for stream in streams), default=now)
    hour = span_of(reports, samples, now - HOUR_S, joined)
    return each._replace(hour=hour, day=span_of(reports, samples, now - DAY_S, joined))


def _noticed(alarms: Sequence[AlarmRow], now: float) -> dict[str, Noticed]:
    """Return what nobody has looked at yet, by kind."""
    news: dict[str, list[AlarmRow]] = {}
    for alarm in alarms:
        if alarm.looked_at is None:
            news.setdefault(alarm.kind, []).append(alarm)
    return {
        kind: Noticed(len(found), found[-1].round, max(0.0, now - found[-1].since))
        for kind, found in news.items()
    }


def _gains(
    reports: Mapping[str, dict[str, Any]], streams: Mapping[str, StreamRow], holdback: float | None
) -> GainSums:
    """Return what state folders measured with the holdback of now; others have another reach.

    A stream that goes on from another reports what that one measured, too.
    """
    measured = {
        name: report["sums"]
        for name, report in reports.items()
        if holdback
        and report.get("gauges", {}).get("holdback") == holdback
        and "uplift_gain" in report.get("sums", {})
    }
    total = GainSums()
    for name, sums in measured.items():
        later = streams[name].continued_by
        while later is not None and later in streams and later not in measured:
            later = streams[later].continued_by
        if later not in measured:
            total = total.plus(*(sums[f"uplift_{part}"] for part in GainSums._fields))
    return total


def _sum(reports: Sequence[dict[str, Any]], part: str) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for report in reports:
        for key, value in report.get(part, {}).items():
            total[key] = total.get(key, 0) + value
    return {key: value for key, value in total.items() if math.isfinite(value)}
