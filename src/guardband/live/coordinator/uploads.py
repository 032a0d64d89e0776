"""Uploads: checkpoints by compare-and-set, any number of them in one durable commit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from guardband.live.coordinator.epochs import answer, open_epoch
from guardband.live.coordinator.membership import retracted, revision_conflict, sealed
from guardband.live.coordinator.operator_requests import OperatorRequests, unknown_stream
from guardband.live.coordinator.report_store import keep_report
from guardband.live.coordinator.restores import RestoreClaims, check_epoch, note_restore
from guardband.live.coordinator.sound_rows import mended
from guardband.live.coordinator.upload_checks import check_increment, check_rate, check_window
from guardband.live.protocol.messages import (
    NOTHING,
    Checkpoint,
    Refused,
    Revision,
    Upload,
    Uploaded,
)
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import (
    SpaceRow,
    Store,
    StoreError,
    StreamRecord,
    StreamRow,
    TaskRow,
    Transaction,
)

__all__ = ["Taken", "UploadRequests"]

VERSION = re.compile(r"[0-9a-f]{32}")
QUIET_S = 60.0  # between two notes about the same trouble with the same stream


class Taken(NamedTuple):
    """An upload that is stored durably."""

    said: Uploaded
    again: bool  # it had been stored before


class Stored(NamedTuple):
    """An upload that is stored when its transaction ends."""

    revision: Revision
    again: bool


class UploadRequests(OperatorRequests):
    """The part of a coordinator that takes uploads.

    Parameters
    ----------
    store
        Where everything is kept.
    keeps_time
        Look at a space's epochs before each answer, because no timer calls `tick`.
    """

    def __init__(self, store: Store, *, keeps_time: bool = False) -> None:
        super().__init__(store, keeps_time=keeps_time)
        self._claims = RestoreClaims()
        self._noted: dict[tuple[str, str], float] = {}  # by stream and problem: when

    def upload(self, stream: str, request: Upload, *, now: float) -> Uploaded:
        """Store a checkpoint durably, take it as an answer to the open epoch, open one where asked.

        Stored is what builds on what is stored (or on nothing, where nothing is); the same
        checkpoint again is accepted and changes nothing; everything else is refused, with what is
        stored.
        """
        (done,) = self.uploads(self._space_of(stream), [(stream, request)], now=now)
        if isinstance(done, Exception):
            raise done
        return done.said

    def uploads(
        self, name: str, requests: Sequence[tuple[str, Upload]], *, now: float
    ) -> list[Taken | Exception]:
        """Carry out uploads to one space, in this order; all of them are durable when it returns.

        Each is answered for itself, and one that is refused changes nothing about its neighbours.
        Where one makes the whole group fail (what is stored of its stream is damaged, say), the
        group is undone and carried out again without it.
        """
        done: list[Stored | Refused] = []
        try:
            row, space = self._in_one_commit(name, requests, done, now=now)
        except Refused:
            raise  # by the store, which does not answer: of no upload it is known to be stored
        except Exception as error:
            place = len(done)
            if place == len(requests):
                raise  # all of them could be carried out, and none could be stored
            others = [*requests[:place], *requests[place + 1 :]]
            rest = self.uploads(name, others, now=now) if others else []
            return [*rest[:place], error, *rest[place:]]
        opened = self._opened(row, space, now=now)

        def answer_to(each: Stored | Refused) -> Taken | Exception:
            if isinstance(each, Refused):
                return each
            said = Uploaded(
                revision=each.revision,
                epoch=row.epoch,
                open=opened,
                config_version=row.config_version,
            )
            return Taken(said, each.again)

        return [answer_to(each) for each in done]

    def _in_one_commit(
        self,
        name: str,
        requests: Sequence[tuple[str, Upload]],
        done: list[Stored | Refused],
        *,
        now: float,
    ) -> tuple[SpaceRow, SpaceSettings]:
        """Carry out uploads in one transaction; `done` tells how each went; return the space."""
        with self.store.transaction(name) as t:
            row, records = self._records(t, name, [stream for stream, _ in requests], now=now)
            space, answers = self._settings(row), 0
            for stream, request in requests:
                if stream not in records:
                    done.append(unknown_stream(stream))
                    continue
                record = records[stream]._replace(space=row)
                held = record.stream
                try:
                    row, stored = self._apply_upload(t, record, space, request, now=now)
                except Refused as problem:
                    if problem.by_store:
                        raise
                    self._note_refusal(t, held, request, problem, now=now)
                    row, _ = self._space(t, name)  # part of it may have been believed
                    done.append(problem)
                    continue
                if row.open != record.space.open:
                    answers = 0  # all were counted when it was opened
                answers += held.answer_epoch < row.open == stored.answer_epoch
                records[stream] = record._replace(stream=stored)
                done.append(Stored(stored.revision, again=held.revision == stored.revision))
            if answers:
                row = self._count_answers(t, row, space, answers, now=now)
        return row, space

    def _records(
        self, t: Transaction, name: str, streams: Sequence[str], *, now: float
    ) -> tuple[SpaceRow, dict[str, StreamRecord]]:
        """Return a space, and those of the streams that it has; time is kept before."""
        records = t.records(streams)
        spaces = [each.space for each in records.values() if each.space.name == name]
        row = spaces[0] if spaces else self._space(t, name)[0]
        if self._is_due(row):
            after = self._advance(t, row, now=now)
            if after != row:
                row, records = after, t.records(streams)
        return row, {key: each for key, each in records.items() if each.space.name == name}

    def _apply_upload(
        self,
        t: Transaction,
        record: StreamRecord,
        space: SpaceSettings,
        request: Upload,
        *,
        now: float,
    ) -> tuple[SpaceRow, StreamRow]:
        """Carry out an upload; return the space and the stream as they are now."""
        held, task, seen = record.stream, record.task, request.seen_epoch
        if task.status == "retracted":
            raise retracted(task)
        sent = request.checkpoint.sums.n
        keep_report(t, space, record, request.report, now=now, sent=sent)
        row = self._claims.note_epoch(t, record.space, space, seen, who=held.task, now=now)
        if request.for_epoch is not None:  # of an open epoch, or of the next
            check_epoch(row, space, "for_epoch", request.for_epoch - 1, now=now)
        try:
            stored = self._compare_and_set(space, task, held, request)
        except StoreError:  # what is stored of it is damaged: it sends all of it again
            held = mended(t, held, space.dim, now=now)
            stored = self._compare_and_set(space, task, held, request)
        if stored.n > held.n:
            check_rate(t, space, held, stored.n, now)
        t.touch(held.stream, now, seen, None)
        if request.trigger and task.status == "active" and stored.n > stored.entry_n:
            by, own = held.stream, {held.task}
            row = open_epoch(t, row, space, by=by, seen=seen, now=now, contributors=own)
        if row.open and request.for_epoch == row.open and stored.answer_epoch < row.open:
            stored = answer(stored, row.open)
        if stored != held:
            t.put(stored)
        return row, stored

    def _count_answers(
        self, t: Transaction, row: SpaceRow, space: SpaceSettings, answers: int, *, now: float
    ) -> SpaceRow:
        """Take note of so many answers to the open epoch; close it if they were the last.

        The counter says when to look at all streams, so that not every answer does. It may be too
        low where streams came, and the look corrects it; or too high where streams fell silent,
        and then the next `tick` looks.
        """
        left = row.outstanding - answers
        if left <= 0:
            return self._close_if_complete(t, row, space, now=now)
        t.set_outstanding(row.name, left)
        return row._replace(outstanding=left)

    def _compare_and_set(
        self, space: SpaceSettings, task: TaskRow, held: StreamRow, request: Upload
    ) -> StreamRow:
        """Return the stream with the request's checkpoint; unchanged where it has that already."""
        new: Checkpoint = request.checkpoint
        revision = held.revision
        if revision == new.revision:
            return held
        if held.state == "sealed":
            raise sealed(held)
        if revision not in (request.base, NOTHING) or not new.sums.n > held.n:
            raise revision_conflict(held)
        if not isinstance(new.version, str) or not VERSION.fullmatch(new.version):
            raise _invalid("version", "a version has 32 hexadecimal digits, in lower case.")
        if type(new.round) is not int or not held.round <= new.round <= 2**53:
            raise _invalid("round", f"round must be whole and at least {held.round}.")
        given = (space, _uses_of(task.uses), held.sums, new.sums)
        if space.window is None:
            check_increment(*given, min_batch=space.sync.min_batch)
        else:
            check_window(*given, round=new.round)
        return held._replace(
            n=new.sums.n,
            version=new.version,
            round=new.round if space.timed else 0,
            total=new.sums.as_bytes(),
        )

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


def _invalid(check: str, detail: str) -> Refused:
    return Refused("invalid_increment", 422, detail, check=check)
