"""Epochs: one stream opens one, all streams answer, and it is closed for good with their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

import numpy as np

from guardband.live.coordinator.rounds import AHEAD, FirstEpoch, Standing, far_ahead
from guardband.live.coordinator.sound_rows import mended
from guardband.live.protocol.messages import Begin, News, OpenEpoch, Revision
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, add_sums, matrix_of, sums_without
from guardband.live.store import EntryRow, EpochRow, SpaceRow, StoreError, StreamRow, Transaction

__all__ = [
    "answer",
    "close_epoch",
    "entries_without",
    "news_for",
    "next_number",
    "open_epoch",
]


def next_number(row: SpaceRow) -> int:
    """Return the number of the next epoch to open: one that no agent has seen."""
    return max(row.epoch, row.floor) + 1


def open_epoch(
    t: Transaction,
    row: SpaceRow,
    space: SpaceSettings,
    *,
    by: str,
    seen: int,
    now: float,
    contributors: Set[str] = frozenset(),
    at_once: bool = False,
) -> SpaceRow:
    """Open an epoch for a stream that asks, unless one is open or the request is out of date.

    A request is out of date where the stream has not seen the newest closed epoch: that one may
    have fulfilled it. It need not have seen numbers that were merely skipped, because another
    agent knew them from before a restore: those epochs are lost.

    `contributors` are active tasks of which observations are about to be stored. `at_once` is for
    operators, who wait for no interval; and where they leave too few tasks for a sum, agents must
    hear that the one they have is not to be used any more.
    """
    number = next_number(row)
    if row.open or not row.epoch <= seen < number:
        return row
    since = math.inf if row.closed_at is None else now - row.closed_at
    early = 0.0 <= since < space.sync.min_interval_s and not at_once
    if early and row.wanted_by:  # one who asked is enough; looking for each would cost M^2
        return row
    fewest = 0 if at_once else space.sync.min_streams
    if len(contributors) < fewest and len(contributors | t.contributors(row.name)) < fewest:
        return row
    if early:
        row = row._replace(wanted_by=by)
    else:
        t.put(EpochRow(row.name, number, "open", opened_by=by, opened_at=now))
        owed = t.unanswered(row.name, number, now - space.sync.live_s)
        row = row._replace(open=number, wanted_by=None, outstanding=owed)
    t.put(row)
    return row


def answer(stream: StreamRow, epoch: int) -> StreamRow:
    """Return the stream with what it has stored as its answer to the open epoch."""
    return stream._replace(
        answer_epoch=epoch,
        answer_n=stream.n,
        answer_version=stream.version,
        answer_round=stream.round,
        answer_total=stream.total,
    )


def close_epoch(t: Transaction, row: SpaceRow, space: SpaceSettings, *, now: float) -> SpaceRow:
    """Close the open epoch: fix who is in it with what, and add that up, in the streams' order.

    A stream that did not answer in time enters with its entry in the epoch before, never with
    whatever it has stored since: its owner chose when to store that by looking at its own data,
    and the confidence set holds for checkpoints taken when the epoch was heard of. Where tasks
    number rounds, those that number otherwise than the others are left out: see `far_ahead`.
    What is damaged is left out, too, and its agents are asked for it again.
    """
    try:
        return _close_epoch(t, row, space, now=now)
    except StoreError:
        for each in t.streams(row.name):
            mended(t, each, space.dim, now=now)
        return _close_epoch(t, row, space, now=now)


def _close_epoch(t: Transaction, row: SpaceRow, space: SpaceSettings, *, now: float) -> SpaceRow:
    tasks = t.tasks(row.name)
    active = {task.task for task in tasks if task.status == "active"}
    every = [each for each in t.streams(row.name) if each.pool == row.pool]
    streams = [_enter(each, row.open) for each in every if each.task in active]
    entries = [s for s in streams if s.entry_n > 0]
    if space.timed:
        out = {task.task for task in tasks if task.reason == AHEAD}
        told = [s for s in every if s.task in active]
        ahead = _far_ahead(t, row, space, told, out, now=now)
        entries = [each for each in entries if each.task not in ahead]
        for task in tasks:
            if task.task in active and (task.task in ahead) != (task.reason == AHEAD):
                t.put(task._replace(reason=AHEAD if task.task in ahead else ""))
    total = add_sums(space.dim, (each.entry_sums for each in entries))
    for each in entries:
        t.put(each)
        line = (each.stream, each.task, each.entry_n, each.entry_version)
        t.put(EntryRow(row.name, row.open, *line))
    answered = [s for s in streams if s.answer_epoch == row.open]
    late = [s for s in streams if s.answer_epoch != row.open and s.state == "open"]
    opened = t.epoch(row.name, row.open)
    assert opened is not None
    t.put(
        opened._replace(
            state="closed",
            closed_at=now,
            streams=len(entries),
            streams_in=len(answered),
            streams_late=len(late),
            tasks=len({each.task for each in entries}),
            n=total.kept,
            round=max((each.entry_round for each in entries), default=0),
            total=total.as_bytes(),
            sha256=total.sha256,
            logdet=_logdet(space, total),
            excluded=len(tasks) - len(active),
            pool=row.pool,
        )
    )
    row = row._replace(epoch=row.open, open=0, closed_at=now, outstanding=0)
    t.put(row)
    return row


def news_for(
    row: SpaceRow,
    space: SpaceSettings,
    stream: StreamRow | None,
    closed: EpochRow | None,
    *,
    config_version: int,
    opened: OpenEpoch | None,
    without: tuple[Sums, ...] | None = None,
    begin: Begin = "",
    apart: bool = False,
) -> News:
    """Return what is new for an agent that knows this config_version and no epoch `closed`.

    Sums of a pool that is no more are not told, nor any to those who must begin again for this one,
    or are apart.
    """
    current = closed is not None and closed.pool == row.pool and not begin and not apart
    served = current and closed is not None and closed.tasks >= space.sync.min_streams
    own = None
    if not apart and stream is not None and stream.entry_n > 0 and stream.entry_epoch == row.epoch:
        own = Revision(stream.entry_n, stream.entry_version)
    return News(
        epoch=row.epoch,
        sums=closed.sums if closed is not None and served else None,
        own=own,
        round=0 if closed is None else closed.round,
        streams=0 if closed is None else closed.streams,
        agents=space.agents,
        open=opened,
        config_version=row.config_version,
        config=None if config_version == row.config_version else space,
        explore_for_s=space.lease_s,
        paused=row.paused,
        excluded=0 if closed is None else closed.excluded,
        without=without if served else None,
        pool=row.pool,
        begin=begin,
        apart=apart,
    )


def entries_without(
    t: Transaction, row: SpaceRow, space: SpaceSettings, task: str
) -> tuple[Sums, ...]:
    """Return the newest epoch's sums without each task but `task`."""
    parts: dict[str, list[Sums]] = {}
    for each in t.streams(row.name):
        if each.entry_epoch == row.epoch and each.sound(space.dim).entry_n > 0:
            parts.setdefault(each.task, []).append(each.entry_sums)
    names = sorted(parts)
    every = sums_without(space.dim, [add_sums(space.dim, parts[name]) for name in names])
    return tuple(sums for name, sums in zip(names, every, strict=True) if name != task)


def _far_ahead(
    t: Transaction,
    row: SpaceRow,
    space: SpaceSettings,
    streams: Sequence[StreamRow],
    out: Set[str],
    *,
    now: float,
) -> set[str]:
    """Return which tasks the open epoch is closed without, as they number rounds otherwise.

    `out` are those that the epoch before was closed without. A stream has counted its latest round
    since its entry before was made, where that has another.
    """
    first = t.first_epoch(row.name) if row.epoch else None
    opened: dict[int, float] = {0: -math.inf}
    standings: dict[str, Standing] = {}
    for each in streams:
        entered = _enter(each, row.open)
        if not entered.entry_n:
            continue
        own = Standing(entered.entry_round)
        if each.answer_epoch == row.open:
            if each.entry_epoch not in opened:
                before = t.epoch(row.name, each.entry_epoch)
                opened[each.entry_epoch] = -math.inf if before is None else before.opened_at
            since = max(each.registered_at, opened[each.entry_epoch])
            fresh = each.answer_round > each.entry_round
            own = own._replace(within_s=max(0.0, now - since), fresh=fresh)
        standings[each.task] = max(own, standings.get(each.task, own), key=lambda s: s.round)
    clock = FirstEpoch(0.0, 0)
    if first is not None and first.closed_at is not None:
        clock = FirstEpoch(now - first.closed_at, first.round)
    return far_ahead(standings, clock, space.rewards.window_s, out)


def _enter(stream: StreamRow, epoch: int) -> StreamRow:
    """Return the stream with its entry: its answer, its end where it was sealed, or its last."""
    answered = stream.answer_epoch == epoch
    if not answered and stream.state != "sealed":
        return stream._replace(entry_epoch=epoch)
    given = stream if answered else answer(stream, epoch)
    return stream._replace(
        entry_epoch=epoch,
        entry_n=given.answer_n,
        entry_version=given.answer_version,
        entry_round=given.answer_round,
        entry_total=given.answer_total,
    )


def _logdet(space: SpaceSettings, total: Sums) -> float | None:
    """Return log det(V / ridge) of a sum, for the dashboard; None where it has none."""
    matrix = np.eye(space.dim) + matrix_of(total)[:-1, :-1] / space.penalty
    sign, value = np.linalg.slogdet(matrix)
    return float(value) if sign > 0 and math.isfinite(value) else None
