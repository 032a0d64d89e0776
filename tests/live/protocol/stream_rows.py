"""Stream states in a real journal, written step by step as agents write them, and read back."""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from guardband.live.client.journal import Journal
from guardband.live.client.learner import unpack
from guardband.live.client.stream_rows import load_stream, save_stream
from guardband.live.client.stream_state import StreamState
from guardband.live.protocol.sums import pack_sums


class StreamRows:
    """The rows of one agent's stream, in a journal that all agents of a run share."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._number = 0
        self._kept: StreamState | None = None

    def keep(self, after: StreamState) -> None:
        """Write the next state; a stream that is new, or was set back, gets rows of its own."""
        before = self._kept
        if before is None or before.stream != after.stream:
            before, self._number = None, next(NUMBERS)
            self.journal.query(
                "INSERT INTO main.stream VALUES (?, ?, 0, NULL, NULL, NULL, NULL, '', '')",
                (self._number, f"{self._number} {after.stream}"),  # copies have the same name
            )
            for revision in after.older:  # a copied file has the names of old checkpoints in it
                self.journal.query(
                    "INSERT INTO main.cut VALUES (?, ?, ?, 0, NULL, NULL)",
                    (self._number, *revision),
                )
        if after.epoch and (before is None or after.epoch != before.epoch):
            total = None if after.pooled is None else after.pooled.as_bytes()
            self.journal.query(
                "INSERT OR REPLACE INTO main.epoch VALUES (?, ?, ?, 0, '', 0, 0, 0, 0, ?)",
                (after.epoch, self._number, total, pack_sums(after.without)),
            )
        save_stream(self.journal, self._number, before, after)
        self._kept = after

    def forget(self) -> None:
        """The disk is another now: what is written next goes into rows of its own."""
        self._kept = None

    def read(self, state: StreamState) -> StreamState:
        """Return the state as a process finds it that starts now."""
        if self._kept is None:
            self.keep(state)
        own = unpack(state.open.as_bytes(), state.dim)
        found = load_stream(self.journal, self._number, own)
        self._kept = replace(found, stream=state.stream)
        return self._kept


NUMBERS = itertools.count(1)


@cache
def scratch() -> Journal:
    """Return a journal in a folder that goes away with the process."""
    folder = Path(tempfile.mkdtemp(prefix="guardband-model-"))
    journal = Journal(folder / "journal.db")

    def end() -> None:
        journal.close()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return journal


def clean() -> Journal:
    """Return the journal without what the run before wrote: that is never committed."""
    journal = scratch()
    journal.undo(AssertionError("the run is over"))
    journal.begin()
    return journal


def facts(state: StreamState) -> dict[str, Any]:
    """Return all that is in a state, to the last bit, for comparing two of them."""
    return {
        "stream": state.stream,
        "checkpoints": [(c.version, c.round, c.sums.as_bytes()) for c in state.checkpoints],
        "parts": [part.as_bytes() for part in state.parts],
        "open": state.open.as_bytes(),
        "revisions": sorted(state.older),
        "base": state.base,
        "answered": state.answered,
        "seen": state.seen,
        "epoch": state.epoch,
        "pooled": None if state.pooled is None else state.pooled.as_bytes(),
        "without": pack_sums(state.without),
        "since": state.since,
        "moved": state.moved,
        "conflicts": state.conflicts,
        "starts": state.starts,
        "former": state.former,
        "replaces": state.replaces,
        "pool": state.pool,
        "left": state.left,
    }
