"""Chains in a real journal, written step by step as agents write them, and read back."""

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
from guardband.live.protocol.sums import sums_of


class Shelf:
    """The rows of one agent's chain, in a journal that all agents of a run share."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._number = 0
        self._kept: StreamState | None = None

    def keep(self, after: StreamState) -> None:
        """Write the next chain; a stream that is new, or was set back, gets rows of its own."""
        before = self._kept
        if before is None or before.stream != after.stream:
            before, self._number = None, next(NUMBERS)
            self.journal.query(
                "INSERT INTO stream VALUES (?, ?, 0, NULL, NULL, NULL, NULL, '')",
                (self._number, f"{self._number} {after.stream}"),  # copies have the same name
            )
            for mark in after.older:  # a copied file has the names of old cuts in it
                self.journal.query(
                    "INSERT INTO cut VALUES (?, ?, ?, 0, NULL, NULL)", (self._number, *mark)
                )
        if after.epoch and (before is None or after.epoch != before.epoch):
            total = None if after.pooled is None else after.pooled.as_bytes()
            self.journal.query(
                "INSERT OR REPLACE INTO epoch VALUES (?, ?, ?, 0, '', 0, 0, 0, 0)",
                (after.epoch, self._number, total),
            )
        save_stream(self.journal, self._number, before, after)
        self._kept = after

    def forget(self) -> None:
        """The disk is another now: what is written next goes into rows of its own."""
        self._kept = None

    def read(self, chain: StreamState) -> StreamState:
        """Return the chain as a process finds it that starts now."""
        if self._kept is None:
            self.keep(chain)
        own = sums_of(unpack(chain.open.as_bytes(), chain.dim))
        found = load_stream(self.journal, self._number, own)
        self._kept = replace(found, stream=chain.stream)
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


def facts(chain: StreamState) -> dict[str, Any]:
    """Return all that a chain is, to the last bit, for comparing two of them."""
    return {
        "stream": chain.stream,
        "cuts": [(cut.version, cut.round, cut.sums.as_bytes()) for cut in chain.checkpoints],
        "parts": [part.as_bytes() for part in chain.parts],
        "open": chain.open.as_bytes(),
        "marks": sorted(chain.older),
        "base": chain.base,
        "answered": chain.answered,
        "seen": chain.seen,
        "epoch": chain.epoch,
        "pooled": None if chain.pooled is None else chain.pooled.as_bytes(),
        "since": chain.since,
        "moved": chain.moved,
        "conflicts": chain.conflicts,
    }
