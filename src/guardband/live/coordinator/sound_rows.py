"""Streams and epochs without what is damaged of them.

Sums carry a checksum. What fails it is taken for what never came, as after a restore: agents send
their checkpoints again, and the next epoch is the sum of what is sound then.
"""

from __future__ import annotations

import json
import logging

from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import add_sums
from guardband.live.store import EpochRow, StoreError, StreamRow, Transaction

__all__ = ["added_up", "mended", "sound_epoch"]

log = logging.getLogger("guardband.live")


def mended(t: Transaction, row: StreamRow, dim: int, *, now: float) -> StreamRow:
    """Return a stream without what is damaged of it, written down; its agent sends it again."""
    after = row.sound(dim)
    if after is not row:
        t.put(after)
        detail = {"stream": row.stream, "n": row.n, "left": after.n}
        t.add_event(now, row.space, row.task, "damaged stream", json.dumps(detail))
        log.error("guardband: stream %s was damaged: %s", row.stream, json.dumps(detail))
    return after


def sound_epoch(t: Transaction, row: EpochRow, space: SpaceSettings) -> EpochRow:
    """Return a closed epoch whose sum can be used, added up again from its entries if need be."""
    try:
        if row.sums.n >= 0:
            return row
    except StoreError as error:
        log.error("guardband: %s", error)
    again = added_up(t, row, space)
    if again.sha256 == row.sha256:
        return again
    return row._replace(tasks=0, total=b"")  # nobody is told a sum


def added_up(t: Transaction, row: EpochRow, space: SpaceSettings) -> EpochRow:
    """Return an epoch with the sum of its entries; with none where one of them is missing."""
    manifest = {each.stream: (each.n, each.version) for each in t.entries(row.space, row.epoch)}
    held = [each.sound(space.dim) for each in t.streams(row.space) if each.stream in manifest]
    entries = [s for s in held if (s.entry_n, s.entry_version) == manifest[s.stream]]
    whole = len(entries) == len(manifest)
    total = add_sums(space.dim, (each.entry_sums for each in entries if whole))
    return row._replace(
        streams=len(manifest),
        tasks=len({each.task for each in entries}) if whole else 0,
        n=total.kept,
        round=max((each.entry_round for each in entries), default=0),
        total=total.as_bytes(),
        sha256=total.sha256,
    )
