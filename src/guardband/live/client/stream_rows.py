"""A chain in a journal: one row for each cut, and a line with the rest.

Writing a whole chain after every step would grow with its past; a step writes what it changed.
"""

from __future__ import annotations

import json
from dataclasses import replace

from guardband.live.client.journal import Journal
from guardband.live.client.stream_state import KEPT_MARKS, StreamState
from guardband.live.protocol.messages import NOTHING, Checkpoint, Revision
from guardband.live.protocol.sums import Sums, empty_sums

__all__ = ["handed_in", "load_stream", "save_stream"]


def save_stream(
    journal: Journal, number: int, before: StreamState | None, after: StreamState
) -> None:
    """Write what a step changed; without `before`, all of it. `number` is the stream's."""
    had = {} if before is None else _rows(before)
    has = _rows(after)
    for mark, (cut, part) in has.items():
        if mark not in had or had[mark][1] is not part:
            journal.query(
                "INSERT OR REPLACE INTO cut VALUES (?, ?, ?, ?, ?, ?)",
                (
                    number,
                    *mark,
                    cut.round,
                    None if part is None else part.as_bytes(),
                    cut.sums.as_bytes(),
                ),
            )
    for mark in had.keys() - has.keys():
        journal.query(
            "UPDATE cut SET part = NULL, total = NULL WHERE stream = ? AND n = ? AND version = ?",
            (number, *mark),
        )
    if len(after.marks) >= KEPT_MARKS:
        journal.query(
            "DELETE FROM cut WHERE stream = ? AND total IS NULL AND n < ?",
            (number, after.marks[0].n),
        )
    journal.query("UPDATE stream SET chain = ? WHERE id = ?", (_rest(after), number))


def load_stream(journal: Journal, number: int, open: Sums) -> StreamState:
    """Return the chain of a stream; `open` is what was counted since its last cut."""
    ((name, text),) = journal.query("SELECT name, chain FROM stream WHERE id = ?", (number,))
    rows = journal.query(
        "SELECT n, version, round, part, total FROM cut WHERE stream = ? ORDER BY n", (number,)
    )
    cuts = [Checkpoint(v, Sums.from_bytes(t), r) for _, v, r, _, t in rows if t is not None]
    parts = [Sums.from_bytes(p) for *_, p, t in rows if t is not None and p is not None]
    marks = [Revision(n, v) for n, v, *_, t in rows if t is None]
    rest = json.loads(text)
    pooled = journal.one(
        "SELECT total FROM epoch WHERE epoch = ? AND stream = ? AND adopted_at IS NOT NULL",
        (rest["epoch"], number),
    )
    since, moved = rest["since"], rest["moved"]
    return StreamState(
        stream=name,
        cuts=tuple(cuts),
        parts=tuple(parts),
        open=open,
        marks=tuple(mark for mark in marks if mark != NOTHING),
        base=Revision(*rest["base"]),
        answered=rest["answered"],
        seen=rest["seen"],
        epoch=rest["epoch"],
        pooled=None if pooled is None or pooled[0] is None else Sums.from_bytes(pooled[0]),
        since=None if since is None else Revision(*since),
        moved=None if moved is None else (moved[0], Revision(*moved[1])),
        conflicts=rest["conflicts"],
    )


def handed_in(chain: StreamState) -> Sums:
    """Return what the stream has cut off, beyond its entry in the adopted sum."""
    return replace(chain, open=empty_sums(chain.dim)).own


def _rows(chain: StreamState) -> dict[Revision, tuple[Checkpoint, Sums | None]]:
    """Return every cut with the part that it added to the one before."""
    parts = (None, *chain.parts)
    return {cut.revision: (cut, part) for cut, part in zip(chain.cuts, parts, strict=True)}


def _rest(chain: StreamState) -> str:
    return json.dumps(
        {
            "base": list(chain.base),
            "answered": chain.answered,
            "seen": chain.seen,
            "epoch": chain.epoch,
            "since": None if chain.since is None else list(chain.since),
            "moved": None if chain.moved is None else [chain.moved[0], list(chain.moved[1])],
            "conflicts": chain.conflicts,
        }
    )
