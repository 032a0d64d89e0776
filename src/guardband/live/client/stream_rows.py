"""Streams and epochs in a journal: a row for each checkpoint and epoch, a line with the rest.

Writing a whole stream after every step would grow with its past; a step writes what it changed.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, NamedTuple

from guardband.live.client.journal import Journal
from guardband.live.client.stream_state import KEPT_REVISIONS, StreamState
from guardband.live.protocol.messages import NOTHING, Checkpoint, Revision
from guardband.live.protocol.sums import Sums, pack_sums, unpack_sums

__all__ = [
    "KeptEpoch",
    "add_epoch",
    "add_stream",
    "adopt_epoch",
    "drop_epochs",
    "excluded_from",
    "load_stream",
    "rest_of",
    "save_stream",
    "waiting_epochs",
]


RARE = ("starts", "told", "pool", "left", "doubt")  # written where they say anything


class KeptEpoch(NamedTuple):
    """What a journal keeps of an epoch until it can be adopted; `News` has the same."""

    epoch: int
    sums: Sums | None  # None: nothing that one can compute with
    own: Revision | None  # this stream's entry in it; None: it has none
    round: int  # the latest round that it contains, where tasks share contexts
    excluded: int = 0  # tasks that operators left out of it
    without: tuple[Sums, ...] | None = ()  # the sums without each other task, where one may lie


def add_stream(
    journal: Journal,
    number: int,
    stream: StreamState,
    before: int | None,
    now: float,
    why: str = "",
) -> None:
    """Write a new stream, with the epoch that it goes on with; `before` is the one it follows.

    `why` says what ended the start before it: "alarm" or "pool".
    """
    moved = (None, None) if stream.moved is None else (before, stream.moved[1].n)
    journal.query(
        "INSERT INTO main.stream VALUES (?, ?, ?, NULL, NULL, ?, ?, '', ?)",
        (number, stream.stream, now, *moved, why),
    )
    if stream.epoch:
        journal.query(
            "INSERT INTO main.epoch SELECT epoch, ?, ?, 0, '', round, excluded, heard_at, ?, ? "
            "FROM epoch WHERE epoch = ? AND stream = ?",
            (
                number,
                _as_bytes(stream.pooled),
                now,
                pack_sums(stream.without),
                stream.epoch,
                before,
            ),
        )
    save_stream(journal, number, None, stream)


def add_epoch(journal: Journal, number: int, epoch: KeptEpoch, now: float) -> None:
    """Write an epoch that was heard of."""
    journal.query(
        "INSERT OR REPLACE INTO main.epoch VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
        (
            epoch.epoch,
            number,
            _as_bytes(epoch.sums),
            *(epoch.own or NOTHING),
            epoch.round,
            epoch.excluded,
            now,
            pack_sums(epoch.without or ()),
        ),
    )


def adopt_epoch(journal: Journal, number: int, epoch: KeptEpoch, own: Revision, now: float) -> None:
    """Note that an epoch which was waiting is in use, or what of it is."""
    journal.query(
        "UPDATE main.epoch SET adopted_at = ?, own_n = ?, own_version = ?, "
        "total = iif(?, total, NULL), others = iif(?, others, NULL) "
        "WHERE epoch = ? AND stream = ?",
        (now, *own, epoch.sums is not None, bool(epoch.without), epoch.epoch, number),
    )


def drop_epochs(journal: Journal, number: int, first: int, last: int) -> None:
    """Forget epochs that were waiting and will not be used."""
    journal.query(
        "DELETE FROM main.epoch WHERE stream = ? AND adopted_at IS NULL AND epoch BETWEEN ? AND ?",
        (number, first, last),
    )


def waiting_epochs(journal: Journal, number: int) -> list[KeptEpoch]:
    """Return the epochs of a stream that were heard of and not adopted yet, oldest first."""
    rows = journal.query(
        "SELECT epoch, total, own_n, own_version, round, excluded, others FROM epoch "
        "WHERE stream = ? AND adopted_at IS NULL ORDER BY epoch",
        (number,),
    )
    return [
        KeptEpoch(
            epoch,
            _as_sums(total),
            Revision(n, version) if n else None,
            round_,
            excluded,
            unpack_sums(others),
        )
        for epoch, total, n, version, round_, excluded, others in rows
    ]


def excluded_from(journal: Journal, number: int, epoch: int) -> int:
    """Return how many tasks operators left out of an epoch."""
    row = journal.one("SELECT excluded FROM epoch WHERE epoch = ? AND stream = ?", (epoch, number))
    return 0 if row is None else int(row[0])


def save_stream(
    journal: Journal, number: int, before: StreamState | None, after: StreamState
) -> None:
    """Write what a step changed; without `before`, all of it. `number` is the stream's."""
    rows: list[tuple[Any, ...]] = []
    if before is None or before.parts is not after.parts:
        had, has = ({} if before is None else _rows(before)), _rows(after)
        for revision, (kept, part) in has.items():
            if revision not in had or had[revision][1] is not part:
                rows.append((number, *revision, kept.round, _as_bytes(part), kept.sums.as_bytes()))
        for revision, (kept, _) in had.items():
            if revision not in has:
                rows.append((number, *revision, kept.round, None, None))
    if rows:
        places = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(rows))
        journal.query(f"INSERT OR REPLACE INTO main.cut VALUES {places}", list(chain(*rows)))
    if len(after.older) >= KEPT_REVISIONS:
        journal.query(
            "DELETE FROM main.cut WHERE stream = ? AND total IS NULL AND n < ?",
            (number, after.older[0].n),
        )
    rest = _rest(after)
    if before is None or rest != _rest(before):
        journal.query("UPDATE main.stream SET chain = ? WHERE id = ?", (json.dumps(rest), number))


def load_stream(journal: Journal, number: int, open: Sums) -> StreamState:
    """Return a stream; `open` is what was counted since its last checkpoint."""
    ((name, text),) = journal.query("SELECT name, chain FROM stream WHERE id = ?", (number,))
    rows = journal.query(
        "SELECT n, version, round, part, total FROM cut WHERE stream = ? ORDER BY n", (number,)
    )
    checkpoints = [Checkpoint(v, Sums.from_bytes(t), r) for _, v, r, _, t in rows if t is not None]
    parts = [Sums.from_bytes(p) for *_, p, t in rows if t is not None and p is not None]
    older = [Revision(n, v) for n, v, *_, t in rows if t is None]
    rest = json.loads(text)
    pooled = journal.one(
        "SELECT total, others FROM epoch WHERE epoch = ? AND stream = ? AND adopted_at IS NOT NULL",
        (rest["epoch"], number),
    )
    since, moved = rest["since"], rest["moved"]
    return StreamState(
        stream=name,
        checkpoints=tuple(checkpoints),
        parts=tuple(parts),
        open=open,
        older=tuple(revision for revision in older if revision != NOTHING),
        base=Revision(*rest["base"]),
        answered=rest["answered"],
        seen=rest["seen"],
        epoch=rest["epoch"],
        pooled=None if pooled is None else _as_sums(pooled[0]),
        without=() if pooled is None else unpack_sums(pooled[1]),
        since=None if since is None else Revision(*since),
        moved=None if moved is None else (moved[0], Revision(*moved[1])),
        conflicts=rest["conflicts"],
        former=tuple(rest.get("former", ())),
        replaces=tuple(rest.get("replaces", ())),
        **{name: rest[name] for name in RARE if name in rest},
    )


def _rows(stream: StreamState) -> dict[tuple[int, str], tuple[Checkpoint, Sums | None]]:
    """Return every checkpoint, by its revision, with the part that it added to the one before."""
    rows: dict[tuple[int, str], tuple[Checkpoint, Sums | None]] = {}
    for kept, part in zip(stream.checkpoints, (None, *stream.parts), strict=True):
        rows[kept.sums.n, kept.version] = kept, part
    return rows


def rest_of(stream: StreamState) -> str:
    """Return the line with what a stream is beside its checkpoints."""
    return json.dumps(_rest(stream))


def _rest(stream: StreamState) -> dict[str, Any]:
    rest = {
        "base": list(stream.base),
        "answered": stream.answered,
        "seen": stream.seen,
        "epoch": stream.epoch,
        "since": None if stream.since is None else list(stream.since),
        "moved": None if stream.moved is None else [stream.moved[0], list(stream.moved[1])],
        "conflicts": stream.conflicts,
    }
    for name in ("former", "replaces", *RARE):
        if value := getattr(stream, name):
            rest[name] = value
    return rest


def _as_bytes(sums: Sums | None) -> bytes | None:
    return None if sums is None else sums.as_bytes()


def _as_sums(raw: bytes | None) -> Sums | None:
    return None if raw is None else Sums.from_bytes(raw)
