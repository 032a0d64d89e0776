"""The coordinator: streams that register, news for agents, epochs past their deadline.

Pure logic over a store: no clock, no sockets, no threads. `now` is given by the caller, in seconds
since 1970; it orders nothing, only deadlines, intervals and displays depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guardband.live.coordinator.budgets import PURPOSES, grant
from guardband.live.coordinator.delta_shares import delta_share_at
from guardband.live.coordinator.departures import AWAY, begin_of, keep_alarm
from guardband.live.coordinator.epochs import entries_without, news_for, next_number
from guardband.live.coordinator.log_claims import claim_log
from guardband.live.coordinator.membership import add_stream, known_task, seal_stream, sealed
from guardband.live.coordinator.operator_requests import unknown_stream
from guardband.live.coordinator.report_store import keep_report
from guardband.live.coordinator.sound_rows import sound_epoch
from guardband.live.coordinator.uploads import UploadRequests
from guardband.live.protocol.messages import (
    Alarmed,
    AlarmKept,
    News,
    Refused,
    Register,
    Registered,
    Report,
    Revision,
)
from guardband.live.protocol.space_rules import is_comparable
from guardband.live.protocol.sums import Sums
from guardband.live.store import (
    EpochRow,
    HeartbeatRow,
    SpaceRow,
    StoreError,
    StreamRecord,
    Transaction,
)

__all__ = ["Coordinator", "Known"]

TOUCH_AFTER = 0.1  # of live_s: how exactly it is known when a stream was last heard of


class Known(NamedTuple):
    """What an agent knows when it asks for news."""

    epoch: int  # the newest closed epoch of which it asks nothing
    open: int  # the newest open one
    config_version: int
    compares: bool = False  # whether it has the next one as well, and asks which task is odd there


class NewsBoard(NamedTuple):
    """What streams that ask for news may hear."""

    row: SpaceRow
    records: dict[str, StreamRecord]  # of the streams that the space has
    closed: EpochRow | None  # its newest epoch, where one of them does not know it
    without: dict[str, tuple[Sums, ...] | None]  # by stream: the sums without each other task


class Coordinator(UploadRequests):
    """Serves the requests of agents, and those of operators; several may share one store.

    Parameters
    ----------
    store
        Where everything is kept. The coordinator itself remembers only since when it has known
        of an open epoch: after a restart, its deadline starts again.
    keeps_time
        Look at a space's epochs before each answer, because no timer calls `tick`.
    """

    def register(self, name: str, request: Register, *, now: float) -> Registered:
        """Make a stream known, and the log that it will learn; saying it again changes nothing."""
        with self.store.transaction(name) as t:
            row, space = self._space(t, name)
            task, stream, row = add_stream(t, row, space, request, now=now)
            apart = known_task(t, name, request.task).status in AWAY  # it may have left just now
            granted = [
                0.0 if account is None else grant(t, space, request.task, account, of)
                for of, account in zip(PURPOSES, (request.account, request.costs), strict=True)
            ]
            if request.log is not None:
                claim_log(t, name, request.stream, request.log)
            row = self._close_if_complete(t, row, space, now=now)  # others may owe no answer now
        return Registered(
            stream=request.stream,
            task_index=task.place,
            delta_share=delta_share_at(space, stream.place),
            agents=space.agents,
            config=space,
            config_version=row.config_version,
            epoch=row.epoch,
            granted=granted[0],
            granted_costs=granted[1],
            pool=row.pool,
            begin=begin_of(row, stream),
            apart=apart,
        )

    def news(
        self,
        name: str,
        stream: str | None,
        *,
        after: int,
        open_after: int,
        config_version: int,
        compares: bool = False,
        now: float,
    ) -> News | None:
        """Return what is new for an agent that knows that much, or None; note its heartbeat.

        Without a stream, it is what is new in the space.
        """
        known = Known(after, open_after, config_version, compares)
        if stream is None:
            return self.news_of_space(name, known, now=now)
        (said,) = self.news_of(name, [(stream, known)], now=now)
        if isinstance(said, Exception):
            raise said
        return said

    def news_of(
        self, name: str, asks: Sequence[tuple[str, Known]], *, now: float
    ) -> list[News | Exception | None]:
        """Return the same for several streams of a space, which are read and noted together."""
        one = len(asks) == 1
        with self.store.reading_once() if one else self.store.reading() as t:
            board = self._see(t, name, asks)
        refused: dict[tuple[str, Known], Refused] = {}
        is_due = self._is_due(board.row)
        telling = []
        for stream, known in asks:
            record = board.records.get(stream)
            if record is not None and self._says_more(record, known, now=now):
                telling.append((stream, known))
        if is_due or telling:
            with self.store.transaction(name) as t:
                board = self._see(t, name, asks)
                row = self._advance(t, board.row, now=now) if is_due else board.row
                if row.epoch > board.row.epoch:  # it was closed now, with entries of the streams
                    board = self._see(t, name, asks)
                for stream, known in telling:
                    try:
                        heartbeat = board.records[stream].heartbeat
                        row = self._note_heartbeat(t, row, heartbeat, known, now=now)
                    except Refused as problem:
                        if problem.by_store:
                            raise
                        refused[stream, known] = problem
                board = board._replace(row=row)
        told: list[News | Exception | None] = []
        for ask in asks:
            told.append(refused.get(ask) or self._told(board, *ask, now=now))
        return told

    def news_of_space(self, name: str, known: Known, *, now: float) -> News | None:
        """Return what is new in a space for somebody who knows that much."""
        if self._keeps_time:
            self.tick(now=now)
        with self.store.reading() as t:
            row, _ = self._space(t, name)
            closed = t.epoch(name, row.epoch) if row.epoch > known.epoch else None
        return self._news_for(row, None, closed, known, None, now=now)

    def _see(self, t: Transaction, name: str, asks: Sequence[tuple[str, Known]]) -> NewsBoard:
        """Read what is asked for: by one query where one stream asks, by two where several do."""
        if len(asks) == 1:
            ((stream, known),) = asks
            found = t.record(stream, known.epoch)
            if found is None or found.space.name != name:
                return NewsBoard(self._space(t, name)[0], {}, None, {})
            row, records, closed = found.space, {stream: found}, found.closed
        else:
            records = t.records([stream for stream, _ in asks])
            records = {key: each for key, each in records.items() if each.space.name == name}
            row = next((each.space for each in records.values()), None) or self._space(t, name)[0]
            oldest = min(known.epoch for _, known in asks)
            closed = t.epoch(name, row.epoch) if row.epoch > oldest else None
        without: dict[str, tuple[Sums, ...] | None] = {}
        for stream, known in asks:
            if closed is None or stream not in records or row.epoch <= known.epoch:
                continue
            space = self._settings(row)
            if space.tolerate or (known.compares and is_comparable(space)):
                without[stream] = entries_without(t, row, space, records[stream].stream.task)
        return NewsBoard(row, records, closed, without)

    def _told(
        self, board: NewsBoard, stream: str, known: Known, *, now: float
    ) -> News | Exception | None:
        """Return the news for one of the streams, or why it gets none."""
        record = board.records.get(stream)
        if record is None:
            return unknown_stream(stream)
        closed = board.closed if board.row.epoch > known.epoch else None
        without = board.without.get(stream)
        try:
            return self._news_for(board.row, record, closed, known, without, now=now)
        except Refused as problem:
            return problem
        except StoreError:  # its sum is damaged
            assert closed is not None
            with self.store.reading() as t:
                closed = sound_epoch(t, closed, self._settings(board.row))
            return self._news_for(board.row, record, closed, known, without, now=now)

    def report(self, stream: str, report: Report, *, now: float) -> None:
        """Keep an agent's report, for the dashboard."""
        with self.store.transaction(self._space_of(stream)) as t:
            record = self._record(t, stream)
            keep_report(t, self._settings(record.space), record, report, now=now)

    def alarm(self, stream: str, alarm: Alarmed, *, now: float) -> AlarmKept:
        """Keep what an agent's monitors noticed; say whether a person has looked at it."""
        with self.store.transaction(self._space_of(stream)) as t:
            kept = keep_alarm(t, self._record(t, stream).stream, alarm, now=now)
        return AlarmKept(looked_at=kept.looked_at is not None)

    def seal(self, stream: str, revision: Revision, *, now: float) -> None:
        """End a stream at `revision`, which must be what is stored."""
        with self.store.transaction(self._space_of(stream)) as t:
            record = self._record(t, stream)
            seal_stream(t, record.stream, revision, now=now)
            self._close_if_complete(t, record.space, self._settings(record.space), now=now)

    def tick(self, *, now: float) -> bool:
        """Close epochs past their deadline, open those asked for too soon; tell if any was.

        Where a space's part of the store cannot be used, that is raised when the others are done.
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

    def _says_more(self, record: StreamRecord, known: Known, *, now: float) -> bool:
        """Tell whether a poll says something about its stream that is not yet stored."""
        row, heartbeat = record.space, record.heartbeat
        ahead = (
            known.epoch + known.compares >= next_number(row)
            or known.config_version > row.config_version
        )
        fresh = TOUCH_AFTER * self._settings(row).sync.live_s
        stale = not 0.0 <= now - heartbeat.last_seen < fresh
        newer = heartbeat.config_version < min(known.config_version, row.config_version)
        return ahead or stale or newer

    def _note_heartbeat(
        self, t: Transaction, row: SpaceRow, heartbeat: HeartbeatRow, known: Known, *, now: float
    ) -> SpaceRow:
        """Write down that a stream asked for news, and what it knows."""
        who, newest = heartbeat.task, known.epoch + known.compares
        space = self._settings(row)
        row = self._claims.note_epoch(t, row, space, newest, who=who, now=now)
        # A number from before a restore says nothing about the rules of today; and to ask with 0
        # is to ask for the settings again, not to have forgotten them.
        rules = known.config_version if known.config_version <= row.config_version else 0
        t.touch(heartbeat.stream, now, newest, max(rules, heartbeat.config_version))
        return self._claims.note_rules(t, row, known.config_version, who=who, now=now)

    def _news_for(
        self,
        row: SpaceRow,
        record: StreamRecord | None,
        closed: EpochRow | None,
        known: Known,
        without: tuple[Sums, ...] | None,
        *,
        now: float,
    ) -> News | None:
        """Return the news for an agent that knows so much, or None if there are none."""
        stream = None if record is None else record.stream
        if stream is not None and stream.state == "sealed":
            # Its rest may be another stream's by now, and in the sum: no view may have both.
            raise sealed(stream)
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
            begin=begin_of(row, stream),
            apart=record is not None and record.task.status in AWAY,
        )
