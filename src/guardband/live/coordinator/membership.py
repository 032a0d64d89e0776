"""Spaces, their settings and pauses, their tasks and streams: made, changed and ended."""

from __future__ import annotations

import json
import re

from guardband.checks import as_index_set
from guardband.live.coordinator.delta_shares import next_position
from guardband.live.coordinator.departures import AWAY, pool_of, take_place
from guardband.live.coordinator.restores import note_restore
from guardband.live.protocol.messages import Refused, Register, Revision
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import empty_sums
from guardband.live.protocol.types import NAME
from guardband.live.store import HeartbeatRow, SpaceRow, StreamRow, TaskRow, Transaction

__all__ = [
    "add_stream",
    "change_space",
    "known_task",
    "new_space",
    "retracted",
    "revision_conflict",
    "seal_stream",
    "sealed",
    "set_paused",
    "set_status",
]

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOST_STREAMS = 1000  # open ones per task, and ...
MOST_EVER = 10_000  # ... those that have ended as well: each is a part of every epoch
STATUSES = {
    "quarantine": "quarantined",
    "retract": "retracted",
    "restore": "active",
    "readmit": "active",
}


def new_space(t: Transaction, space: SpaceSettings, *, who: str, now: float) -> None:
    """Make a new space."""
    if t.space(space.name) is not None:
        raise Refused(
            "space_exists",
            409,
            f"there is already a space {space.name!r}: `guardband space set` changes its settings, "
            "`guardband space revise` makes another with other features or bounds.",
        )
    t.put(SpaceRow(space.name, json.dumps(space.as_json()), created_at=now))
    t.add_event(now, space.name, who, "space created", json.dumps({"profile": space.profile}))


def change_space(
    t: Transaction, row: SpaceRow, old: SpaceSettings, new: SpaceSettings, *, who: str, now: float
) -> int:
    """Give a space other settings; return its new config_version."""
    if (new.name, new.schema_hash) != (old.name, old.schema_hash):
        differ = [k for k, v in new.as_json().items() if v != old.as_json()[k]]
        raise Refused(
            "schema_mismatch",
            409,
            f"data cannot be added up across this change ({', '.join(differ)}): make a new space, "
            f"with `guardband space revise {row.name} NEW SETTING=VALUE ...`.",
        )
    fixed = old.shares == "equal" and new.agents > old.agents
    if new.shares != old.shares or fixed:
        raise Refused(
            "shares_fixed",
            409,
            f"delta was split among {old.agents} tasks (shares={old.shares!r}), and parts of it "
            "are used up: with shares='registered', chosen when a space is made, tasks may join.",
        )
    if old.tolerate and new.agents > old.agents:
        raise Refused(
            "agents_fixed",
            409,
            f"with tolerate=1 delta was split among {old.agents} tasks of which one may lie: make "
            f"a new space for {new.agents}.",
        )
    tasks = len(t.tasks(row.name))
    if new.agents < tasks:
        raise Refused(
            "too_many_tasks", 409, f"agents={new.agents} is below the {tasks} tasks registered."
        )
    version = row.config_version + 1
    t.put(
        row._replace(
            config=json.dumps(new.as_json()),
            config_version=version,
            agents_version=version if new.agents > old.agents else row.agents_version,
        )
    )
    before, after = old.as_json(), new.as_json()
    changed = {k: [before[k], after[k]] for k in after if after[k] != before[k]}
    t.add_event(now, row.name, who, "config changed", json.dumps(changed))
    return version


def set_paused(t: Transaction, row: SpaceRow, reason: str | None, *, who: str, now: float) -> None:
    """Pause learning, or resume it; a new config_version wakes all agents that wait for news."""
    if row.paused == reason:
        return
    t.put(row._replace(paused=reason, config_version=row.config_version + 1))
    what = "resumed" if reason is None else "paused"
    t.add_event(now, row.name, who, what, json.dumps({"reason": reason or ""}))


def set_status(
    t: Transaction, space: str, task: str, verb: str, reason: str, *, who: str, now: float
) -> bool:
    """Let a task's data out of the sums or in again, from the next epoch on; tell if it changes."""
    row = known_task(t, space, task)
    status = STATUSES[verb]
    if verb == "readmit" and row.status not in AWAY:
        raise Refused("not_apart", 409, f"task {task!r} has not left the pool: it is {row.status}.")
    if verb != "readmit" and row.status in AWAY:
        detail = (
            f"task {task!r} has left the pool: nobody computes with its data. Readmit it first."
        )
        raise Refused("apart", 409, detail)
    if row.status == status:
        return False
    t.put(row._replace(status=status, reason=reason, since=now))
    t.add_event(now, space, who, verb, json.dumps({"task": task, "reason": reason}))
    return True


def known_task(t: Transaction, space: str, task: str) -> TaskRow:
    """Return a task, or refuse one that is not there."""
    row = t.task(space, task)
    if row is None:
        known = ", ".join(each.task for each in t.tasks(space)) or "none"
        raise Refused("unknown_task", 404, f"space {space!r} has no task {task!r}, only {known}.")
    return row


def add_stream(
    t: Transaction, row: SpaceRow, space: SpaceSettings, request: Register, *, now: float
) -> tuple[TaskRow, StreamRow, SpaceRow]:
    """Register a stream, and its task where it is the first; return both, and the space."""
    if not UUID.fullmatch(request.stream):
        raise Refused("invalid_stream", 422, "a stream's name is a UUID, in lower case.")
    if not re.fullmatch(NAME, request.task):
        raise Refused("invalid_task", 422, "a task's name has letters, digits and ._- only.")
    if request.schema_hash != space.schema_hash:
        raise Refused(
            "schema_mismatch",
            409,
            "features, bounds or the baseline differ from the space's: compare them with "
            "GET /v1/spaces/{space}, or make a new space.",
            schema_hash=space.schema_hash,
        )
    task = _task(t, row, space, request, now=now)
    known = t.stream(request.stream)
    if known is not None and (known.space, known.task) != (row.name, request.task):
        raise Refused("stream_taken", 409, "this stream belongs to another task.")
    if request.continue_of is not None:
        _hand_over(t, row, space, request, now=now)
    if known is not None:
        # Which rules it knows, it says when it asks for news: this answer may get lost.
        t.touch(request.stream, now, None, None)
        return task, known, row
    place = None
    if request.replaces:
        replaced = [_former(t, row, space, request, name, now=now) for name in request.replaces]
        place = take_place(t, row, replaced, request)
    _check_number(t, row, space, request.task)
    if space.contexts == "shared":
        _end_former_streams(t, row, space, request.task, now=now)
    row, pool = pool_of(t, row, space, task, request, now)
    new = _stream_row(t, request.stream, row.name, request, space.dim, place, now=now)
    new = new._replace(pool=pool)
    t.put(new)
    t.put(_heartbeat_row(request.stream, row, request.task, now=now))
    return task, new, row


def _check_number(t: Transaction, row: SpaceRow, space: SpaceSettings, task: str) -> None:
    """Refuse a stream beyond the limits per task."""
    open_, ever = t.count_streams(row.name, task)
    if open_ >= MOST_STREAMS or ever >= MOST_EVER:
        raise Refused(
            "too_many_streams",
            409,
            f"task {task!r} has {open_} open streams, and had {ever}: seal those that ended, and "
            "keep state folders, because each of them is a stream.",
        )
    declared = space.uploads.max_streams
    if declared is not None and ever >= declared:
        raise Refused(
            "too_many_streams",
            409,
            f"task {task!r} has had {ever} state folders, and uploads.max_streams={declared}: keep "
            "using one of them, or let an operator declare more.",
        )
    if space.shares == "equal" and ever:
        raise Refused(
            "too_many_streams",
            409,
            f"task {task!r} had a stream before, and where delta is split equally there is no part "
            "of it for a second one: keep one state folder, or use shares='registered'.",
        )


def _end_former_streams(
    t: Transaction, row: SpaceRow, space: SpaceSettings, task: str, *, now: float
) -> None:
    """End a task's former streams, or refuse a new one beside one that is alive.

    Where contexts are shared, weights count on one observation per task and round.
    """
    mine = {s.stream: s for s in t.streams(row.name) if (s.task, s.state) == (task, "open")}
    alive = [
        heartbeat
        for heartbeat in t.heartbeats(row.name)
        if heartbeat.stream in mine and 0.0 <= now - heartbeat.last_seen < space.sync.live_s
    ]
    if alive:
        raise Refused(
            "task_busy",
            409,
            f"task {task!r} decides in another state folder, heard of "
            f"{now - alive[0].last_seen:.0f} s ago: tasks that share contexts have one each. If "
            f"that one has ended, wait until it was silent for {space.sync.live_s:g} s.",
        )
    for former in mine.values():
        seal_stream(t, former, former.revision, now=now)


def _task(
    t: Transaction, row: SpaceRow, space: SpaceSettings, request: Register, *, now: float
) -> TaskRow:
    """Return the request's task; the first stream of a task registers it."""
    try:
        uses = as_index_set("uses", request.uses, space.dim)
    except (TypeError, ValueError) as error:
        raise Refused("invalid_uses", 422, str(error)) from None
    task = t.task(row.name, request.task)
    if task is not None:
        if task.status == "retracted":
            raise retracted(task)
        if tuple(json.loads(task.uses)) != uses:
            raise Refused(
                "uses_mismatch",
                409,
                f"task {task.task!r} uses the features {task.uses}, not {list(uses)}: give the "
                "other features to a task with another name.",
            )
        return task
    place = len(t.tasks(row.name)) + 1
    if place > space.agents:
        raise Refused(
            "too_many_tasks",
            409,
            f"space {row.name!r} was declared for {space.agents} tasks, and all are taken: raise "
            "agents in its configuration.",
        )
    if space.contexts == "shared":
        # Weights depend on how many tasks share a context: all must know before one more does.
        streams = {s.stream: s.state for s in t.streams(row.name)}
        behind = [
            heartbeat.task
            for heartbeat in t.heartbeats(row.name)
            if streams[heartbeat.stream] == "open" and heartbeat.config_version < row.agents_version
        ]
        if behind:
            raise Refused(
                "agents_unseen",
                409,
                f"tasks {sorted(set(behind))} have not yet heard that there may be {space.agents}: "
                "wait until they have, or seal their streams.",
            )
    task = TaskRow(row.name, request.task, place, json.dumps(list(uses)), "active", "", now)
    t.put(task)
    t.add_event(now, row.name, request.task, "task joined", json.dumps({"position": place}))
    return task


def _former(
    t: Transaction, row: SpaceRow, space: SpaceSettings, request: Register, name: str, *, now: float
) -> StreamRow:
    """Return the stream that a new one follows; one that a restored coordinator lacks is made.

    It must be known that somebody follows it: a copy of its folder may still go on with it.
    """
    old = t.stream(name)
    if old is None:
        old = _stream_row(t, name, row.name, request, space.dim, now=now)
        t.put(old)
        t.put(_heartbeat_row(name, row, request.task, now=now))
    return old


def _hand_over(
    t: Transaction, row: SpaceRow, space: SpaceSettings, request: Register, *, now: float
) -> None:
    """Seal an old stream in favour of this one, once.

    What the new stream holds begins after the revision given, so it is disjoint from any stream
    that ends there or earlier: also where this coordinator was restored and knows less of the old
    stream.
    """
    assert request.continue_of is not None
    name, revision = request.continue_of
    old = _former(t, row, space, request, name, now=now)
    if (old.space, old.task) != (row.name, request.task):
        raise Refused("stream_taken", 409, "the stream to continue belongs to another task.")
    if old.continued_by == request.stream:
        return
    if old.continued_by is not None or (old.revision != revision and not old.n < revision.n):
        # Another agent took the rest, or went on with the old stream and may have it there.
        raise Refused(
            "already_continued", 409, "the rest may be counted elsewhere: begin with nothing."
        )
    if old.revision != revision:
        note_restore(t, row.name, {"stream": name}, who=request.task, now=now)
    t.put(old._replace(state="sealed", continued_by=request.stream))


def seal_stream(t: Transaction, row: StreamRow, revision: Revision, *, now: float) -> None:
    """End a stream at what it has stored; the next epoch takes it from there."""
    if row.revision != revision:
        raise revision_conflict(row)
    if row.state != "sealed":
        t.put(row._replace(state="sealed"))
        detail = json.dumps({"stream": row.stream, "n": row.n})
        t.add_event(now, row.space, row.task, "stream sealed", detail)


def revision_conflict(row: StreamRow) -> Refused:
    """Return the answer to an upload that builds on what is not stored."""
    return Refused(
        "revision_conflict",
        409,
        f"the stream stands at n = {row.n}: build on that, or begin a new stream.",
        stored={"n": row.n, "version": row.version},
        stream=row.stream,
    )


def sealed(row: StreamRow) -> Refused:
    """Return the answer to whoever goes on with a stream that has ended."""
    return Refused(
        "sealed",
        410,
        f"the stream was sealed at n = {row.n}: continue it with a new one.",
        stored={"n": row.n, "version": row.version},
        stream=row.stream,
    )


def retracted(task: TaskRow) -> Refused:
    """Return the answer to a task whose data were withdrawn."""
    return Refused(
        "retracted", 403, f"task {task.task!r} was retracted ({task.reason}): nothing is taken."
    )


def _stream_row(
    t: Transaction,
    stream: str,
    space: str,
    request: Register,
    dim: int,
    place: int | None = None,
    *,
    now: float,
) -> StreamRow:
    zero = empty_sums(dim).as_bytes()
    return StreamRow(
        stream,
        space,
        request.task,
        "open",
        None,
        registered_at=now,
        library=request.library[:64],
        total=zero,
        answer_total=zero,
        entry_total=zero,
        place=next_position(t, space) if place is None else place,
    )


def _heartbeat_row(stream: str, row: SpaceRow, task: str, *, now: float) -> HeartbeatRow:
    return HeartbeatRow(stream, row.name, task, now, 0, row.config_version, "{}", None, None)
