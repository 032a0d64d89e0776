"""Requests of operators: spaces and their settings, pauses, the status of tasks, past epochs."""

from __future__ import annotations

import json
from collections.abc import Set

from guardband.live.coordinator.acknowledgements import AlertKey, acknowledge, keep_only
from guardband.live.coordinator.departures import let_back, look_at_alarms
from guardband.live.coordinator.epochs import close_epoch, next_number, open_epoch
from guardband.live.coordinator.looked_at import check_record, keep_record, record_of
from guardband.live.coordinator.membership import (
    change_space,
    known_task,
    new_space,
    seal_stream,
    set_paused,
    set_status,
)
from guardband.live.coordinator.mending import watch_over
from guardband.live.coordinator.report_store import samples_since
from guardband.live.coordinator.sound_rows import sound_epoch
from guardband.live.protocol.messages import EpochRecord, ManifestLine, OpenEpoch, Refused
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import (
    SampleRow,
    SpaceRow,
    Store,
    StreamRecord,
    Transaction,
)

__all__ = ["OperatorRequests", "unknown_stream"]


class OperatorRequests:
    """The part of a coordinator that serves operators; `Coordinator` adds what serves agents.

    Parameters
    ----------
    store
        Where everything is kept.
    keeps_time
        Look at a space's epochs before each answer, because no timer calls `tick`.
    """

    def __init__(self, store: Store, *, keeps_time: bool = False) -> None:
        self.store, self._keeps_time = store, keeps_time
        watch_over(store)
        self._spaces: dict[str, tuple[str, SpaceSettings]] = {}  # as parsed from the text
        self._space_names: dict[str, str] = {}  # the space of a stream, which never changes
        self._open_since: dict[str, tuple[int, float]] = {}  # by space: the open epoch, since when

    def create_space(self, space: SpaceSettings, *, who: str, now: float) -> int:
        """Make a space; return its config_version, which is 1."""
        with self.store.transaction(space.name) as t:
            check_record(t, space)
            check_order(space)
            new_space(t, space, who=who, now=now)
        return 1

    def configure(
        self, name: str, space: SpaceSettings, *, version: int | None = None, who: str, now: float
    ) -> int:
        """Give a space other settings; return the new config_version.

        `version` is the config_version with which the old settings were read: where it has moved,
        another operator's change would be undone, and the request is refused.
        """
        with self.store.transaction(name) as t:
            row, old = self._space(t, name)
            if version is not None and version != row.config_version:
                raise Refused(
                    "config_changed",
                    409,
                    f"the settings of {name!r} have changed since they were read (config_version "
                    f"{version}, now {row.config_version}): read them again, then change them.",
                    config_version=row.config_version,
                )
            check_record(t, space)
            if old.rewards.order != space.rewards.order:
                check_order(space)
            return change_space(t, row, old, space, who=who, now=now)

    def keep_looked_at(self, raw: bytes) -> str:
        """Keep a record of rows of logs that were looked at; return its SHA-256."""
        with self.store.transaction("") as t:
            return keep_record(t, raw)

    def looked_at(self, name: str) -> bytes:
        """Return the record of rows of logs that were looked at for a space."""
        with self.store.reading() as t:
            return record_of(t, self._space(t, name)[1])

    def space(self, name: str) -> tuple[SpaceSettings, int]:
        """Return a space and its config_version."""
        with self.store.reading() as t:
            row, space = self._space(t, name)
        return space, row.config_version

    def spaces(self) -> list[SpaceRow]:
        """Return all spaces."""
        with self.store.reading() as t:
            return t.spaces()

    def epoch(self, name: str, epoch: int) -> EpochRecord:
        """Return a closed epoch."""
        with self.store.reading() as t:
            _, space = self._space(t, name)
            row = t.epoch(name, epoch)
            if row is not None and row.total is not None:
                row = sound_epoch(t, row, space)
            entries = t.entries(name, epoch)
        if row is None or row.closed_at is None or row.total is None or row.sha256 is None:
            raise Refused("unknown_epoch", 404, f"space {name!r} has not closed epoch {epoch}.")
        served = row.tasks >= space.sync.min_streams
        return EpochRecord(
            epoch=epoch,
            manifest=tuple(ManifestLine(e.stream, e.task, e.n, e.version) for e in entries),
            n=row.n,
            sums=row.sums if served else None,
            sha256=row.sha256,
            streams_in=row.streams_in,
            streams_late=row.streams_late,
        )

    def pause(self, name: str, reason: str, *, who: str, now: float) -> None:
        """Let every agent of a space play the baseline, as soon as it asks for news."""
        with self.store.transaction(name) as t:
            row, _ = self._space(t, name)
            set_paused(t, row, reason or "paused", who=who, now=now)

    def resume(self, name: str, *, who: str, now: float) -> None:
        """End a pause."""
        with self.store.transaction(name) as t:
            row, _ = self._space(t, name)
            set_paused(t, row, None, who=who, now=now)

    def quarantine(self, name: str, task: str, reason: str, *, who: str, now: float) -> None:
        """Leave a task's data out of epochs, beginning with one now; they are still collected."""
        self._set_status(name, task, "quarantine", reason, who=who, now=now)

    def retract(self, name: str, task: str, reason: str, *, who: str, now: float) -> None:
        """Leave a task's data out of epochs, beginning with one now, and take no more of them."""
        self._set_status(name, task, "retract", reason, who=who, now=now)

    def restore(self, name: str, task: str, reason: str, *, who: str, now: float) -> None:
        """Take a task's data into epochs again, beginning with one now."""
        self._set_status(name, task, "restore", reason, who=who, now=now)

    def readmit(self, name: str, task: str, reason: str, *, who: str, now: float) -> None:
        """Let a task that has left the pool back, with what it has learned alone."""
        self._set_status(name, task, "readmit", reason, who=who, now=now)

    def resume_task(self, name: str, task: str, *, who: str, now: float) -> int:
        """Say that a person has looked at a task's alarms; return how many that were.

        Its agents hold to the baseline no longer, as soon as they ask for news.
        """
        with self.store.transaction(name) as t:
            row, _ = self._space(t, name)
            known_task(t, name, task)
            return look_at_alarms(t, row, task, who=who, now=now)

    def acknowledge(
        self, name: str, alert: str, task: str | None, reason: str, *, who: str, now: float
    ) -> None:
        """Note that somebody has seen an alert."""
        with self.store.transaction(name) as t:
            self._space(t, name)
            if task is not None:
                known_task(t, name, task)
            acknowledge(t, name, alert, task, reason, who=who, now=now)

    def keep_acknowledged(self, name: str, active: Set[AlertKey]) -> None:
        """Forget who has seen alerts that are not active any more."""
        with self.store.transaction(name) as t:
            keep_only(t, name, active)

    def end_task(self, name: str, task: str, *, who: str, now: float) -> int:
        """End all streams of a task at what is stored of them; return how many were open.

        Epochs no longer wait for them; what they counted stays in the sum.
        """
        with self.store.transaction(name) as t:
            row, space = self._space(t, name)
            known_task(t, name, task)
            open_ = [s for s in t.streams(name) if (s.task, s.state) == (task, "open")]
            for stream in open_:
                seal_stream(t, stream, stream.revision, now=now)
            if open_:
                detail = json.dumps({"task": task, "streams": len(open_)})
                t.add_event(now, name, who, "task ended", detail)
            self._close_if_complete(t, row, space, now=now)
        return len(open_)

    def samples(self, name: str, *, since: float, now: float) -> list[SampleRow]:
        """Return samples of the reports since then, as many as are kept, by time."""
        with self.store.reading() as t:
            return samples_since(t, name, since, now=now)

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

    def _close_if_complete(
        self, t: Transaction, row: SpaceRow, space: SpaceSettings, *, now: float
    ) -> SpaceRow:
        """Close the open epoch once every live stream has answered."""
        row = self._recount(t, row, space, now=now)
        return close_epoch(t, row, space, now=now) if row.open and not row.outstanding else row

    def _recount(
        self, t: Transaction, row: SpaceRow, space: SpaceSettings, *, now: float
    ) -> SpaceRow:
        """Return the space with the number of answers that its open epoch waits for; keep that."""
        if not row.open:
            return row
        left = t.unanswered(row.name, row.open, now - space.sync.live_s)
        if left and left != row.outstanding:
            t.set_outstanding(row.name, left)
        return row._replace(outstanding=left)

    def _opened(self, row: SpaceRow, space: SpaceSettings, *, now: float) -> OpenEpoch | None:
        """Return the open epoch and how long it waits, from when this coordinator knew of it."""
        if not row.open:
            self._open_since.pop(row.name, None)
            return None
        number, since = self._open_since.get(row.name, (0, now))
        if number != row.open or now < since:
            since = now
        self._open_since[row.name] = (row.open, since)
        return OpenEpoch(row.open, max(0, int(1000 * (since + space.sync.deadline_s - now))))

    def _set_status(
        self, name: str, task: str, verb: str, reason: str, *, who: str, now: float
    ) -> None:
        with self.store.transaction(name) as t:
            row, space = self._space(t, name)
            changes = set_status(t, name, task, verb, reason, who=who, now=now)
            if verb == "readmit":
                row = let_back(t, row)
            elif changes and row.epoch:
                seen = next_number(row) - 1
                row = open_epoch(t, row, space, by=who, seen=seen, now=now, at_once=True)
            self._close_if_complete(t, row, space, now=now)

    def _space(self, t: Transaction, name: str) -> tuple[SpaceRow, SpaceSettings]:
        row = t.space(name)
        if row is None:
            raise Refused("unknown_space", 404, f"there is no space {name!r}: create it first.")
        return row, self._settings(row)

    def _settings(self, row: SpaceRow) -> SpaceSettings:
        """Return the settings of a space; their text is parsed once."""
        text, settings = self._spaces.get(row.name, ("", None))
        if settings is None or text != row.config:
            settings = SpaceSettings.from_json(json.loads(row.config))
            self._spaces[row.name] = (row.config, settings)
        return settings

    def _record(self, t: Transaction, stream: str) -> StreamRecord:
        """Return a stream with what `Transaction.record` joins to it."""
        record = t.record(stream)
        if record is None:
            raise unknown_stream(stream)
        return record

    def _space_of(self, stream: str) -> str:
        """Return the name of a stream's space."""
        if stream not in self._space_names:
            with self.store.reading_once() as t:
                self._space_names[stream] = self._record(t, stream).space.name
        return self._space_names[stream]


def check_order(space: SpaceSettings) -> None:
    """Refuse to let rewards count as they come where contexts are shared.

    There they could only wait for all earlier ones, so that one decision without an answer holds
    up the others. Spaces that earlier versions made go on so: only what is new is refused.
    """
    if space.rewards.order == "prompt" and space.contexts == "shared":
        raise Refused(
            "order_refused",
            422,
            "rewards.order='prompt' and contexts='shared' do not go together: that rewards count "
            "as they come is proved only where every request has a hidden context of its own. Say "
            "order='window', or contexts='per-request' if that is so.",
        )


def unknown_stream(stream: str) -> Refused:
    """Return the answer to an agent whose stream nobody has registered here."""
    return Refused(
        "unknown_stream", 404, "the stream is not known here: register it.", stream=stream
    )
