"""The coordinator: uploads by compare-and-set, news for agents, opening and closing epochs.

Pure logic over a store: no clock, no sockets, no threads. `now` is given by the caller, in seconds
since 1970; it orders nothing, only deadlines, intervals and displays depend on it.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple

from guardband.live.coordinator.budgets import PURPOSES, grant
from guardband.live.coordinator.delta_shares import delta_share_at
from guardband.live.coordinator.epochs import (
    answer,
    close_epoch,
    entries_without,
    news_for,
    next_number,
    open_epoch,
)
from guardband.live.coordinator.log_claims import claim_log
from guardband.live.coordinator.membership import (
    add_stream,
    retracted,
    revision_conflict,
    seal_stream,
)
from guardband.live.coordinator.operator_requests import OperatorRequests
from guardband.live.coordinator.report_store import keep_report
from guardband.live.coordinator.restores import RestoreClaims, check_epoch, note_restore
from guardband.live.coordinator.upload_checks import check_increment, check_rate
from guardband.live.protocol.messages import (
    NOTHING,
    Checkpoint,
    News,
    Refused,
    Register,
    Registered,
    Report,
    Revision,
    Upload,
    Uploaded,
)
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums
from guardband.live.store import (
    EpochRow,
    HeartbeatRow,
    SpaceRow,
    Store,
    StoreError,
    StreamRecord,
    StreamRow,
    TaskRow,
    Transaction,
)

__all__ = ["Coordinator"]

VERSION = re.compile(r"[0-9a-f]{32}")
TOUCH_AFTER = 0.1  # of live_s: how exactly it is known when a stream was last heard of
QUIET_S = 60.0  # between two notes about the same trouble with the same stream


class Known(NamedTuple):
    """What an agent knows when it asks for news."""

    epoch: int  # the newest closed epoch
    open: int  # the newest open one
    config_version: int


class Coordinator(OperatorRequests):
    """Serves the requests of agents, and those of operators; several may share one store.

    Parameters
    ----------
    store
        Where everything is kept. The coordinator itself remembers only since when it has known
        of an open epoch: after a restart, its deadline starts again.
    keeps_time
        Look at a space's epochs before each answer, because no timer calls `tick`.
    """

    def __init__(self, store: Store, *, keeps_time: bool = False) -> None:
        super().__init__(store)
        self._keeps_time = keeps_time
        self._claims = RestoreClaims()
        self._noted: dict[tuple[str, str], float] = {}  # by stream and problem: when

    def register(self, name: str, request: Register, *, now: float) -> Registered:
        """Make a stream known, and the log that it will learn; saying it again changes nothing."""
        with self.store.transaction(name) as t:
            row, space = self._space(t, name)
            task, position = add_stream(t, row, space, request, now=now)
            granted = [
                0.0 if account is None else grant(t, space, request.task, account, of)
                for of, account in zip(PURPOSES, (request.account, request.costs), strict=True)
            ]
            if request.log is not None:
                claim_log(t, name, request.stream, request.log)
        return Registered(
            stream=request.stream,
            task_index=task.place,
            delta_share=delta_share_at(space, position),
            agents=space.agents,
            config=space,
            config_version=row.config_version,
            epoch=row.epoch,
            granted=granted[0],
            granted_costs=granted[1],
        )

    def upload(self, stream: str, request: Upload, *, now: float) -> Uploaded:
        """Store a checkpoint durably, take it as an answer to the open epoch, open one where asked.

        Stored is what builds on what is stored (or on nothing, where nothing is); the same
        checkpoint again is accepted and changes nothing; everything else is refused, with what is
        stored.
        """
        refusal: Refused | None = None
        with self.store.transaction(self._space_of(stream)) as t:
            record = self._record(t, stream)
            before = record.space
            if self._is_due(before) and self._advance(t, before, now=now) != before:
                record = self._record(t, stream)
            space = self._settings(record.space)
            try:
                row, revision = self._apply_upload(t, record, space, request, now=now)
            except Refused as problem:
                refusal = problem  # raised after the event about it is stored
                self._note_refusal(t, record.stream, request, problem, now=now)
        if refusal is not None:
            raise refusal
        return Uploaded(
            revision=revision,
            epoch=row.epoch,
            open=self._opened(row, space, now=now),
            config_version=row.config_version,
        )

    def news(
        self,
        name: str,
        stream: str | None,
        *,
        after: int,
        open_after: int,
        config_version: int,
        now: float,
    ) -> News | None:
        """Return what is new for an agent that knows that much, or None; note its heartbeat.

        Without a stream, it is what is new in the space.
        """
        known = Known(after, open_after, config_version)
        if stream is None:
            return self._news_of_space(name, known, now=now)
        with self.store.reading_once() as t:
            record = self._record(t, stream, name, after)
            without = self._without(t, record, known)
        news = self._news_for(record.space, record.stream, record.closed, known, without, now=now)
        is_due, says_more = self._is_due(record.space), self._says_more(record, known, now=now)
        if not is_due and not says_more:
            return news
        with self.store.transaction(name) as t:
            record = self._record(t, stream, name, after)
            row = record.space
            if is_due:
                row = self._advance(t, row, now=now)
            if row.epoch > record.space.epoch:  # it was closed now, with an entry of the stream
                record = self._record(t, stream, name, after)
            if says_more:
                row = self._note_heartbeat(t, row, record.heartbeat, known, now=now)
            without = self._without(t, record, known)
            return self._news_for(row, record.stream, record.closed, known, without, now=now)

    def report(self, stream: str, report: Report, *, now: float) -> None:
        """Keep an agent's report, for the dashboard."""
        with self.store.transaction(self._space_of(stream)) as t:
            record = self._record(t, stream)
            keep_report(t, self._settings(record.space), record, report, now=now)

    def seal(self, stream: str, revision: Revision, *, now: float) -> None:
        """End a stream at `revision`, which must be what is stored."""
        with self.store.transaction(self._space_of(stream)) as t:
            record = self._record(t, stream)
            seal_stream(t, record.stream, revision, now=now)
            self._close_if_complete(t, record.space, self._settings(record.space), now=now)

    def tick(self, *, now: float) -> bool:
        """Close epochs past their deadline, open those asked for too soon; tell if any was.

        Where the sums of a space are damaged, that is raised when the other spaces are done.
        """
        changed, damaged = False, None
        with self.store.reading_once() as t:
            waiting = [row.name for row in t.spaces() if row.open or row.wanted_by]
        for name in waiting:
            try:
                with self.store.transaction(name) as t:
                    row, _ = self._space(t, name)
                    changed |= self._advance(t, row, now=now) != row
            except StoreError as error:
                damaged = error
        if damaged is not None:
            raise damaged
        return changed

    def _is_due(self, row: SpaceRow) -> bool:
        """Tell whether this coordinator must look at a space's epochs before it answers."""
        return self._keeps_time and bool(row.open or row.wanted_by)

    def _advance(self, t: Transaction, row: SpaceRow, *, now: float) -> SpaceRow:
        """Open the epoch that was asked for too soon; close the open one where it is time."""
        space = self._settings(row)
        if row.wanted_by and not row.open:
            seen = next_number(row) - 1
            row = open_epoch(t, row, space, by=row.wanted_by, seen=seen, now=now)
        opened = self._opened(row, space, now=now)
        if opened is None:
            return row
        if opened.deadline_ms == 0:
            return close_epoch(t, row, space, now=now)
        return self._close_if_complete(t, row, space, now=now)

    def _apply_upload(
        self,
        t: Transaction,
        record: StreamRecord,
        space: SpaceSettings,
        request: Upload,
        *,
        now: float,
    ) -> tuple[SpaceRow, Revision]:
        """Carry out an upload; return the space and what is stored now."""
        held, task, seen = record.stream, record.task, request.seen_epoch
        if task.status == "retracted":
            raise retracted(task)
        sent = request.checkpoint.sums.n
        keep_report(t, space, record, request.report, now=now, sent=sent)
        row = self._claims.note_epoch(t, record.space, space, seen, who=held.task, now=now)
        if request.for_epoch is not None:  # of an open epoch, or of the next
            check_epoch(row, space, "for_epoch", request.for_epoch - 1, now=now)
        stored = self._compare_and_set(space, task, held, request)
        if stored.n > held.n:
            check_rate(t, space, held, stored.n, now)
        if request.trigger and task.status == "active" and stored.n > stored.entry_n:
            by, own = held.stream, {held.task}
            row = open_epoch(t, row, space, by=by, seen=seen, now=now, contributors=own)
        if row.open and request.for_epoch == row.open and stored.answer_epoch < row.open:
            stored = answer(stored, row.open)
        if stored != held:
            t.put(stored)
        t.touch(held.stream, now, seen, None)
        return self._close_if_complete(t, row, space, now=now), stored.revision

    def _says_more(self, record: StreamRecord, known: Known, *, now: float) -> bool:
        """Tell whether a poll says something about its stream that is not yet stored."""
        row, heartbeat = record.space, record.heartbeat
        ahead = known.epoch >= next_number(row) or known.config_version > row.config_version
        fresh = TOUCH_AFTER * self._settings(row).sync.live_s
        stale = not 0.0 <= now - heartbeat.last_seen < fresh
        newer = heartbeat.config_version < min(known.config_version, row.config_version)
        return ahead or stale or newer

    def _note_heartbeat(
        self, t: Transaction, row: SpaceRow, heartbeat: HeartbeatRow, known: Known, *, now: float
    ) -> SpaceRow:
        """Write down that a stream asked for news, and what it knows."""
        who = heartbeat.task
        space = self._settings(row)
        row = self._claims.note_epoch(t, row, space, known.epoch, who=who, now=now)
        # A number from before a restore says nothing about the rules of today; and to ask with 0
        # is to ask for the settings again, not to have forgotten them.
        rules = known.config_version if known.config_version <= row.config_version else 0
        t.touch(heartbeat.stream, now, known.epoch, max(rules, heartbeat.config_version))
        return self._claims.note_rules(t, row, known.config_version, who=who, now=now)

    def _compare_and_set(
        self, space: SpaceSettings, task: TaskRow, held: StreamRow, request: Upload
    ) -> StreamRow:
        """Return the stream with the request's checkpoint; unchanged where it has that already."""
        new: Checkpoint = request.checkpoint
        revision = held.revision
        if revision == new.revision:
            return held
        if held.state == "sealed":
            raise _sealed(held)
        if revision not in (request.base, NOTHING) or not new.sums.n > held.n:
            raise revision_conflict(held)
        if not isinstance(new.version, str) or not VERSION.fullmatch(new.version):
            raise _invalid("version", "a version has 32 hexadecimal digits, in lower case.")
        if type(new.round) is not int or not held.round <= new.round <= 2**53:
            raise _invalid("round", f"round must be whole and at least {held.round}.")
        check_increment(
            space, _uses_of(task.uses), held.sums, new.sums, min_batch=space.sync.min_batch
        )
        return held._replace(
            n=new.sums.n,
            version=new.version,
            round=new.round if space.contexts == "shared" else 0,
            total=new.sums.as_bytes(),
        )

    def _news_of_space(self, name: str, known: Known, *, now: float) -> News | None:
        if self._keeps_time:
            self.tick(now=now)
        with self.store.reading() as t:
            row, _ = self._space(t, name)
            closed = t.epoch(name, row.epoch) if row.epoch > known.epoch else None
        return self._news_for(row, None, closed, known, None, now=now)

    def _news_for(
        self,
        row: SpaceRow,
        stream: StreamRow | None,
        closed: EpochRow | None,
        known: Known,
        without: tuple[Sums, ...] | None,
        *,
        now: float,
    ) -> News | None:
        """Return the news for an agent that knows so much, or None if there are none."""
        if stream is not None and stream.state == "sealed":
            # Its rest may be another stream's by now, and in the sum: no view may have both.
            raise _sealed(stream)
        space = self._settings(row)
        opened = self._opened(row, space, now=now)
        fresh = row.epoch > known.epoch or (opened is not None and opened.epoch > known.open)
        if not fresh and row.config_version == known.config_version:
            return None
        return news_for(
            row,
            space,
            stream,
            closed,
            config_version=known.config_version,
            opened=opened,
            without=without,
        )

    def _without(
        self, t: Transaction, record: StreamRecord, known: Known
    ) -> tuple[Sums, ...] | None:
        """Return the sums without each other task, of an epoch that is news for a stream."""
        if record.closed is None or record.space.epoch <= known.epoch:
            return None
        space = self._settings(record.space)
        return entries_without(t, record.space, space, record.stream.task)

    def _note_refusal(
        self, t: Transaction, held: StreamRow, request: Upload, problem: Refused, *, now: float
    ) -> None:
        """Write a conflict or a failed check down, once a minute per stream."""
        if problem.code not in ("revision_conflict", "invalid_increment"):
            return
        key = (held.stream, problem.code)
        if not 0.0 <= now - self._noted.get(key, -QUIET_S) < QUIET_S:
            self._noted[key] = now
            detail = {"detail": problem.detail, **problem.more, "stream": held.stream}
            what = problem.code.replace("_", " ")
            t.add_event(now, held.space, held.task, what, json.dumps(detail))
        if problem.code == "revision_conflict" and request.base.n > held.n:
            # The agent was told that it is stored, and it is not here.
            lost: dict[str, object] = {"n": held.n, "told": request.base.n}
            note_restore(t, held.space, lost, who=held.task, now=now)


@lru_cache(maxsize=1024)
def _uses_of(text: str) -> tuple[int, ...]:
    """Return the numbers of the features that a task uses, from its row."""
    return tuple(json.loads(text))


def _sealed(held: StreamRow) -> Refused:
    return Refused(
        "sealed",
        410,
        f"the stream was sealed at n = {held.n}: continue it with a new one.",
        stored={"n": held.n, "version": held.version},
        stream=held.stream,
    )


def _invalid(check: str, detail: str) -> Refused:
    return Refused("invalid_increment", 422, detail, check=check)
