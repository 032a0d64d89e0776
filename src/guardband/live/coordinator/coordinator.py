"""The coordinator: streams by compare-and-set, immutable epochs, switches for people.

Pure logic over a store: no clock, no sockets, no threads. `now` is given by the caller, in seconds
since 1970; it orders nothing, only deadlines, intervals and people's displays depend on it.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from guardband.live.coordinator.delta_shares import delta_share_at
from guardband.live.coordinator.epochs import (
    answer,
    check_seen,
    close_epoch,
    news_for,
    next_number,
    note_restore,
    note_seen,
    open_epoch,
)
from guardband.live.coordinator.membership import (
    add_stream,
    chain_conflict,
    retracted,
    seal_stream,
)
from guardband.live.coordinator.operator_requests import OperatorRequests, unknown_stream
from guardband.live.coordinator.report_store import keep_report
from guardband.live.coordinator.upload_checks import check_increment
from guardband.live.protocol.messages import (
    Checkpoint,
    News,
    Refused,
    Register,
    Registered,
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
    StreamRecord,
    StreamRow,
    TaskRow,
    Transaction,
)

__all__ = ["Coordinator"]

VERSION = re.compile(r"[0-9a-f]{32}")
NOTHING = Revision(0, "")
TOUCH_AFTER = 0.1  # of live_s: how exactly it is known when a stream was last heard of
QUIET_S = 60.0  # between two notes about the same trouble with the same stream
# How often a task may prove that the coordinator was restored: so often at once, and then again
# after so many seconds. Each proof may give an open epoch a new number, which voids its answers.
CLAIMS, CLAIM_S = 10.0, 6.0
LARGEST_STEP = 10_000  # changes of the rules that one restore can have undone


class Coordinator(OperatorRequests):
    """All that a coordinator does; several may share one store. `store`: see `OperatorRequests`."""

    def register(self, name: str, request: Register, *, now: float) -> Registered:
        """Make a stream known; saying it again changes nothing."""
        with self.store.transaction(name) as t:
            row, space = self._space(t, name)
            task, place = add_stream(t, row, space, request, now=now)
        return Registered(
            stream=request.stream,
            task_index=task.place,
            delta_share=delta_share_at(space, place),
            agents=space.agents,
            config=space.as_json(),
            config_version=row.config_version,
            epoch=row.epoch,
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
            row, space = record.space, self._settings(record.space)
            if self._is_due(row):
                row = self._advance(t, row, space, now=now)
                record = self._record(t, stream)
            try:
                row, revision = self._apply_upload(t, record, space, request, now=now)
            except Refused as problem:
                refusal = problem  # raised when the note about it is safe
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
        """Return what is new for an agent that knows that much, or None; note its heartbeat."""
        asked = (after, open_after, config_version)
        read = self.store.reading if stream is None else self.store.reading_once
        with read() as t:
            row, record, closed = self._asked_about(t, name, stream, after)
        news = self._news_for(row, record, closed, asked, now=now)
        is_due = self._is_due(row)
        if not is_due and not self._is_notable(row, record, asked, now=now):
            return news
        with self.store.transaction(name) as t:
            row, record, closed = self._asked_about(t, name, stream, after)
            before = row
            if is_due:
                row = self._advance(t, row, self._settings(row), now=now)
            if record is not None and self._is_notable(row, record, asked, now=now):
                row = self._note_heartbeat(t, row, record.heartbeat, asked, now=now)
            if row.epoch != before.epoch:
                row, record, closed = self._asked_about(t, name, stream, after)
            return self._news_for(row, record, closed, asked, now=now)

    def seal(self, stream: str, revision: Revision, *, now: float) -> None:
        """End a stream at `revision`, which must be what is stored."""
        with self.store.transaction(self._space_of(stream)) as t:
            record = self._record(t, stream)
            seal_stream(t, record.stream, revision, now=now)
            self._close_if_complete(t, record.space, self._settings(record.space), now=now)

    def tick(self, *, now: float) -> bool:
        """Close epochs past their deadline, open those asked for too soon; tell if any was."""
        changed = False
        with self.store.reading_once() as t:
            waiting = [row.name for row in t.spaces() if row.open or row.wanted_by]
        for name in waiting:
            with self.store.transaction(name) as t:
                row, space = self._space(t, name)
                changed |= self._advance(t, row, space, now=now) != row
        return changed

    def _is_due(self, row: SpaceRow) -> bool:
        """Tell whether this coordinator must look at a space's epochs before it answers."""
        return self._keeps_time and bool(row.open or row.wanted_by)

    def _advance(
        self, t: Transaction, row: SpaceRow, space: SpaceSettings, *, now: float
    ) -> SpaceRow:
        """Open the epoch that was asked for too soon; close the open one where it is time."""
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
        sent = request.checkpoint.total.n
        keep_report(t, space, record, request.report, now=now, sent=sent)
        row = self._note_seen(t, record.space, seen, who=held.task, now=now)
        stored = self._compare_and_set(space, task, held, request)
        if request.trigger and task.status == "active" and stored.n > stored.entry_n:
            t.put(stored)  # it counts among those who have something to give
            row = open_epoch(t, row, space, by=held.stream, seen=seen, now=now)
        if row.open and request.for_epoch == row.open and stored.answer_epoch < row.open:
            stored = answer(stored, row.open)
        if stored != held:
            t.put(stored)
        t.touch(held.stream, now, seen, None)
        return self._close_if_complete(t, row, space, now=now), stored.revision

    def _is_notable(
        self,
        row: SpaceRow,
        record: StreamRecord | None,
        asked: tuple[int, int, int],
        *,
        now: float,
    ) -> bool:
        """Tell whether a poll says something that is not yet stored of its stream."""
        if record is None:
            return False
        after, _, config_version = asked
        heartbeat = record.heartbeat
        ahead = after >= next_number(row) or config_version > row.config_version
        exactly = TOUCH_AFTER * self._settings(row).sync.live_s
        stale = not 0.0 <= now - heartbeat.last_seen < exactly
        return ahead or stale or heartbeat.config_version < min(config_version, row.config_version)

    def _note_heartbeat(
        self,
        t: Transaction,
        row: SpaceRow,
        heartbeat: HeartbeatRow,
        asked: tuple[int, int, int],
        *,
        now: float,
    ) -> SpaceRow:
        """Write down that a stream asked for news, and what it knows."""
        after, _, config_version = asked
        row = self._note_seen(t, row, after, who=heartbeat.task, now=now)
        # A number from before a restore says nothing about the rules of today; and to ask with 0
        # is to ask for the settings again, not to have forgotten them.
        known = config_version if config_version <= row.config_version else 0
        t.touch(heartbeat.stream, now, after, max(known, heartbeat.config_version))
        return self._note_rules(t, row, config_version, who=heartbeat.task, now=now)

    def _note_seen(
        self, t: Transaction, row: SpaceRow, seen: int, *, who: str, now: float
    ) -> SpaceRow:
        """Take note of the newest epoch that a client knows, not too often.

        A claim beyond that is not heeded until later. That hurts nobody else: who makes it
        ignores epochs with numbers that it has seen, and asks again.
        """
        check_seen(row, seen, now=now)
        if seen < next_number(row) or not self._claim_allowed(row.name, who, now=now):
            return row
        return note_seen(t, row, seen, who=who, now=now)

    def _note_rules(
        self, t: Transaction, row: SpaceRow, known: int, *, who: str, now: float
    ) -> SpaceRow:
        """Take note of the newest config_version that a client knows, not too often.

        A later one than this coordinator's proves that it was restored. Its rules get a number
        that nobody has: under a number that agents know, they would never hear of a change.
        """
        possible = known <= row.config_version + LARGEST_STEP
        if (
            known <= row.config_version
            or not possible
            or not self._claim_allowed(row.name, who, now=now)
        ):
            return row
        note_restore(t, row.name, {"config": row.config_version, "seen": known}, who=who, now=now)
        row = row._replace(config_version=known + 1, agents_version=known + 1)
        t.put(row)
        return row

    def _claim_allowed(self, space: str, who: str, *, now: float) -> bool:
        """Tell whether one more claim of a task is heeded now."""
        left, at = self._claims.get((space, who), (CLAIMS, now))
        left = min(CLAIMS, left + max(0.0, now - at) / CLAIM_S)
        if left >= 1.0:
            self._claims[space, who] = (left - 1.0, now)
        return left >= 1.0

    def _compare_and_set(
        self, space: SpaceSettings, task: TaskRow, held: StreamRow, request: Upload
    ) -> StreamRow:
        """Return the stream with the request's cut, or with its own where they are the same."""
        cut: Checkpoint = request.checkpoint
        if held.revision == cut.revision:
            return held
        if held.state == "sealed":
            raise _sealed(held)
        if held.revision not in (request.base, NOTHING) or not cut.total.n > held.n:
            raise chain_conflict(held)
        if not isinstance(cut.version, str) or not VERSION.fullmatch(cut.version):
            raise _invalid("version", "a version has 32 hexadecimal digits, in lower case.")
        if type(cut.round) is not int or not held.round <= cut.round <= 2**53:
            raise _invalid("round", f"round must be whole and at least {held.round}.")
        earlier = Sums.from_bytes(held.total)
        check_increment(
            space, _uses_of(task.uses), earlier, cut.total, min_batch=space.sync.min_batch
        )
        return held._replace(
            n=cut.total.n,
            version=cut.version,
            round=cut.round if space.contexts == "shared" else 0,
            total=cut.total.as_bytes(),
        )

    def _asked_about(
        self, t: Transaction, name: str, stream: str | None, after: int
    ) -> tuple[SpaceRow, StreamRecord | None, EpochRow | None]:
        """Return a space, the stream that asks, and the newest epoch if it was closed after."""
        if stream is None:
            row, _ = self._space(t, name)
            return row, None, t.epoch(name, row.epoch) if row.epoch > after else None
        record = t.record(stream, after)
        if record is not None and record.space.name == name:
            return record.space, record, record.closed
        self._space(t, name)
        if record is None:
            raise unknown_stream(stream)
        raise Refused("unknown_stream", 404, f"space {name!r} has no such stream.")

    def _news_for(
        self,
        row: SpaceRow,
        record: StreamRecord | None,
        closed: EpochRow | None,
        asked: tuple[int, int, int],
        *,
        now: float,
    ) -> News | None:
        """Return the news for an agent that knows so much, or None if there are none."""
        after, open_after, config_version = asked
        stream = None if record is None else record.stream
        if stream is not None and stream.state == "sealed":
            # Its rest may be another stream's by now, and in the sum: no view may have both.
            raise _sealed(stream)
        space = self._settings(row)
        opened = self._opened(row, space, now=now)
        fresh = row.epoch > after or (opened is not None and opened.epoch > open_after)
        if not fresh and row.config_version == config_version:
            return None
        return news_for(row, space, stream, closed, config_version=config_version, opened=opened)

    def _note_refusal(
        self, t: Transaction, held: StreamRow, request: Upload, problem: Refused, *, now: float
    ) -> None:
        """Write a conflict or a failed check down, once a minute per stream."""
        if problem.code not in ("chain_conflict", "invalid_increment"):
            return
        key = (held.stream, problem.code)
        if not 0.0 <= now - self._noted.get(key, -QUIET_S) < QUIET_S:
            self._noted[key] = now
            detail = {"detail": problem.detail, **problem.more, "stream": held.stream}
            what = problem.code.replace("_", " ")
            t.add_event(now, held.space, held.task, what, json.dumps(detail))
        if problem.code == "chain_conflict" and request.base.n > held.n:
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
