"""Who is in the pool: tasks that leave it after an alarm, and what that means for all streams.

A pool has a number, and only streams that began for it are in its epochs. When a task leaves, the
number grows: what the others have counted has weights that rest on sums with its data, so each
begins another stream, with all data of its start at declared weights; and so do all when a person
lets a task back. Once more tasks have started anew than are left, all of them begin with nothing,
and pool again. As many are not enough: nobody alone makes others start anew, not even one of two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set

from guardband.live.coordinator.acknowledgements import lapse
from guardband.live.coordinator.restores import LARGEST_STEP, note_restore
from guardband.live.protocol.messages import Alarmed, Begin, Refused, Register
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import AlarmRow, SpaceRow, StreamRow, TaskRow, Transaction

__all__ = [
    "AWAY",
    "begin_of",
    "keep_alarm",
    "leave_pool",
    "let_back",
    "look_at_alarms",
    "pool_of",
    "take_place",
]

LEFT = {"anew": "anew", "fit": "apart"}  # the task's status, by why it left
AWAY = frozenset(LEFT.values())  # tasks that neither give to the pool nor take from it
REPLACED = -1  # the pool of a stream whose place another has taken


def begin_of(row: SpaceRow, stream: StreamRow | None) -> Begin:
    """Return how a stream's agent must go on for the pool as it is now."""
    if stream is None or stream.pool == row.pool:
        return ""
    return "nothing" if stream.pool < row.fresh else "declared"


def take_place(
    t: Transaction, row: SpaceRow, replaced: Sequence[StreamRow], request: Register
) -> int:
    """Give a start's place, and its part of delta, to the stream that takes over from its streams.

    What these have counted is in no later epoch. All are named, since a restored coordinator may
    not know that they continued each other. Returns the place, which the last of them has.
    """
    names = {each.stream for each in replaced}
    for old, follower in zip(replaced, [*request.replaces[1:], request.stream], strict=True):
        if (old.space, old.task) != (row.name, request.task):
            raise Refused("stream_taken", 409, "the stream to replace belongs to another task.")
        if old.continued_by not in (None, request.stream, *names):
            raise Refused("already_continued", 409, "another has its place: begin with nothing.")
        by = old.continued_by or follower
        t.put(old._replace(state="sealed", continued_by=by, pool=REPLACED))
    return replaced[-1].place


def pool_of(
    t: Transaction,
    row: SpaceRow,
    space: SpaceSettings,
    task: TaskRow,
    request: Register,
    now: float,
) -> tuple[SpaceRow, int]:
    """Let a task leave the pool if its new stream says so; return the pool that the stream is of.

    An agent that knows a later pool than its coordinator proves that this one was restored, and
    does not know who has left: all begin with nothing.

    Whoever did not fit a pool that is no more, because another has left it first, looks again at
    the one that is: of two that contradict each other one leaves.
    """
    known = row.pool if request.pool is None else request.pool
    settled = request.left == "fit" and known < row.pool
    if row.pool < known <= row.pool + LARGEST_STEP:
        note_restore(t, row.name, {"pool": row.pool, "seen": known}, who=request.task, now=now)
        row = _with_pool(t, row, known + 1, fresh=True)
    current = known == row.pool
    if request.left and not settled:
        row = leave_pool(t, row, space, task, request.left, now=now)
    return row, row.pool if current else known


def leave_pool(
    t: Transaction, row: SpaceRow, space: SpaceSettings, task: TaskRow, why: str, *, now: float
) -> SpaceRow:
    """Let a task go on apart from the pool, which is made anew without it.

    One in quarantine leaves, too, or it would be told sums with what it counted before. As a person
    has put it aside, it does not come back by itself.
    """
    if space.agents == 1 or task.status in AWAY:
        return row
    status = LEFT[why] if task.status == "active" else "apart"
    left = task._replace(status=status, reason="alarm", since=now)
    t.put(left)
    t.add_event(now, row.name, task.task, "left pool", json.dumps({"why": why}))
    tasks = t.tasks(row.name)
    anew = [each for each in tasks if each.status == "anew"]
    rest = [each.task for each in tasks if each.status not in AWAY]  # quarantined ones follow, too
    fresh = len(anew) > len(rest)
    stay = AWAY - {"anew"} if fresh else AWAY
    _take_along(t, row, {each.task for each in tasks if each.status in stay} - {task.task})
    if not fresh:
        return _with_pool(t, row, row.pool + 1)
    for each in anew:
        t.put(each._replace(status="active", reason="", since=now))
    detail = json.dumps({"tasks": len(anew), "followed": rest})
    t.add_event(now, row.name, task.task, "pool began anew", detail)
    return _with_pool(t, row, row.pool + 1, fresh=True)


def let_back(t: Transaction, row: SpaceRow) -> SpaceRow:
    """Make the pool anew with a task that was let back, which is active already.

    All begin again, though weights that rest on fewer tasks would stay true: a coordinator that is
    restored from before this must not know their streams, or it would take what they count with
    the task's data for what they counted without.
    """
    away = {each.task for each in t.tasks(row.name) if each.status in AWAY}
    _take_along(t, row, away)
    return _with_pool(t, row, row.pool + 1)


def _take_along(t: Transaction, row: SpaceRow, tasks: Set[str]) -> None:
    """Let the streams of tasks that are apart go on: what they have counted rests on no pool."""
    for stream in t.streams(row.name):
        if stream.pool == row.pool and stream.task in tasks:
            t.put(stream._replace(pool=row.pool + 1))


def _with_pool(t: Transaction, row: SpaceRow, pool: int, *, fresh: bool = False) -> SpaceRow:
    """Give the pool a number; a new config_version wakes all agents that wait for news."""
    row = row._replace(
        pool=pool,
        fresh=pool if fresh else row.fresh,
        config_version=row.config_version + 1,
    )
    t.put(row)
    return row


def keep_alarm(t: Transaction, stream: StreamRow, alarm: Alarmed, *, now: float) -> AlarmRow:
    """Keep what an agent has noticed, once; return it with whether somebody has looked at it.

    Of a stream the last of each kind is kept: a later one is news, whatever became of the one
    before, and so is its alert, which nobody has acknowledged.
    """
    known = t.alarm(alarm.raised_in, alarm.kind)
    if known is not None and (known.space, known.task) != (stream.space, stream.task):
        raise Refused("stream_taken", 409, "the stream of the alarm belongs to another task.")
    if known is None or known.round < alarm.round:
        known = AlarmRow(
            *(alarm.raised_in, alarm.kind, stream.space, stream.task),
            *(alarm.round, alarm.evidence, now),
        )
        t.put(known)
        told = {"kind": alarm.kind, "round": alarm.round, "evidence": round(alarm.evidence, 2)}
        t.add_event(now, stream.space, stream.task, "alarm", json.dumps(told))
        lapse(t, stream.space, (alarm.kind, stream.task))
    if alarm.looked_at and known.looked_at is None and known.round == alarm.round:
        known = known._replace(looked_at=now, looked_by=stream.task)
        t.put(known)
    return known


def look_at_alarms(t: Transaction, row: SpaceRow, task: str, *, who: str, now: float) -> int:
    """Note that a person has looked at a task's alarms, and wake its agents; return how many."""
    found = [each for each in t.alarms(row.name) if each.task == task and each.looked_at is None]
    for each in found:
        t.put(each._replace(looked_at=now, looked_by=who))
    if found:
        t.put(row._replace(config_version=row.config_version + 1))
        detail = json.dumps({"task": task, "alarms": len(found)})
        t.add_event(now, row.name, who, "alarms looked at", detail)
    return len(found)
