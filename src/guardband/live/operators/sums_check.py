"""Checks whether the observations in a journal add up to what its agent uploaded and counted."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from guardband.live.client.journal import Head, Journal
from guardband.live.client.learner import unpack
from guardband.live.client.replay import counted_sums
from guardband.live.client.stream_state import KEPT_REVISIONS
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, add_sums, empty_sums, forget, sums_of

__all__ = ["changed_sums"]

TOLERANCE = 1e-9


class _KeptCheckpoint(NamedTuple):
    """A checkpoint whose sums are kept."""

    n: int
    version: str
    part: Sums | None  # since the checkpoint before; None: that is not kept
    sums: Sums


def changed_sums(journal: Journal, dim: int) -> list[str]:
    """Return where checkpoints are missing, or observations do not add up to them, as far as kept.

    Only the oldest observations may be missing: whether others are is for `changed_rows` to say.
    """
    head = journal.head()
    found = []
    for stream, rest in journal.query("SELECT id, chain FROM stream ORDER BY id"):
        now = head if head is not None and head.stream == stream else None
        checkpoints = [
            _KeptCheckpoint(
                n, version, None if part is None else Sums.from_bytes(part), Sums.from_bytes(t)
            )
            for n, version, part, t in journal.query(
                "SELECT n, version, part, total FROM cut WHERE stream = ? AND total IS NOT NULL "
                "ORDER BY n",
                (stream,),
            )
        ]
        lacks = _lacking(journal, stream, json.loads(rest), checkpoints, now, dim)
        found += [lacks] if lacks else _tampered(journal, stream, checkpoints, now, dim)
    return found


def _lacking(
    journal: Journal,
    stream: int,
    rest: dict[str, list[object]],
    checkpoints: list[_KeptCheckpoint],
    head: Head | None,
    dim: int,
) -> str | None:
    """Return what is said of a stream whose checkpoints are missing, or do not follow."""
    revisions = set(journal.query("SELECT n, version FROM cut WHERE stream = ?", (stream,)))
    needed = {tuple(r) for r in (rest["base"], rest["since"]) if r and r[0]}
    if len(revisions) < KEPT_REVISIONS:  # beyond that, the oldest are forgotten
        needed |= set(
            journal.query(
                "SELECT own_n, own_version FROM epoch WHERE stream = ? AND own_n > 0 "
                "AND adopted_at IS NOT NULL",
                (stream,),
            )
        )
    gaps = [
        later.n
        for earlier, later in pairwise(checkpoints)
        if later.part is None or later.part.n != later.n - earlier.n
    ]
    wrong = [c.n for c in checkpoints if c.sums.n != c.n]
    open_ = 0 if head is None else unpack(head.own, dim).n
    missing = not checkpoints or needed - revisions or gaps or wrong
    if missing or (head and head.n - open_ != checkpoints[-1].n):
        return (
            f"checkpoints of stream {stream} are missing, or do not follow each other, although "
            "the agent goes on from them: the journal was changed."
        )
    return None


def _tampered(
    journal: Journal, stream: int, checkpoints: list[_KeptCheckpoint], head: Head | None, dim: int
) -> list[str]:
    """Return where the observations of a stream do not add up to its checkpoints."""
    told = [(0, checkpoints[0].n, checkpoints[0].sums)]
    found = []
    for earlier, later in pairwise(checkpoints):
        part = empty_sums(dim) if later.part is None else later.part
        told.append((earlier.n, later.n, part))
        if not _near(add_sums(dim, (earlier.sums, part)), later.sums):
            found.append(
                f"what stream {stream} handed in at {later.n} is not what it had handed in at "
                f"{earlier.n} and the part since: the journal was changed."
            )
    if head is not None:
        told.append((checkpoints[-1].n, head.n, unpack(head.own, dim)))
    space = _newest_rules(journal)
    for before, upto, total in told:
        # With a window: what counts, and what is of the newest half.
        kept = [(total.half - 1, total.counting)]
        kept += [] if total.recent is None else [(total.half, total.newest)]
        try:
            again = [
                sums_of(counted_sums(journal, stream, before, upto, dim, space.first_round(half)))
                if space is not None
                else empty_sums(dim)
                for half, _ in kept
            ]
        except LookupError:
            continue  # pruned: nothing to compare
        if not all(_near(one, other) for one, (_, other) in zip(again, kept, strict=True)):
            found.append(
                f"the observations {before + 1} to {upto} do not add up to what the agent "
                "counted: the journal was changed."
            )
    return found


def _newest_rules(journal: Journal) -> SpaceSettings | None:
    """Return the settings of the space; None: they were never told, and nothing counts."""
    row = journal.one("SELECT space FROM config ORDER BY version DESC")
    return None if row is None else SpaceSettings.from_json(json.loads(row[0]))


def _near(one: Sums, other: Sums) -> bool:
    if other.recent is not None and not _near(forget(one, other.half).newest, other.newest):
        return False
    scale = TOLERANCE * max(1.0, float(np.abs(other.gram).max()), abs(other.surprise))
    return bool(np.abs(one.gram - other.gram).max() <= scale) and bool(
        abs(one.surprise - other.surprise) <= scale
        and abs(one.weight - other.weight) <= scale
        and one.reused == other.reused
    )
