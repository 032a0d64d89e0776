"""Whether the observations in a journal add up to what its agent has handed in, and counted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from guardband.live.agent.journal import Journal
from guardband.live.operators.replay import counted_sums
from guardband.live.total import Total, difference, total_of

__all__ = ["changed_sums"]

TOLERANCE = 1e-9


def changed_sums(journal: Journal, stream: int, dim: int) -> list[str]:
    """Return where observations do not add up to what was handed in, as far as both are kept."""
    head = journal.head()
    cuts = journal.query(
        "SELECT n, part, total FROM cut WHERE stream = ? AND total IS NOT NULL ORDER BY n",
        (stream,),
    )
    found = []
    for (before, _, earlier), (upto, part, later) in pairwise(cuts):
        # The part is a sum of its own; a difference of large totals has their rounding.
        told = (
            difference(Total.from_bytes(later), Total.from_bytes(earlier))
            if part is None
            else Total.from_bytes(part)
        )
        if not _adds_up(journal, stream, before, upto, told):
            found.append(_tampered(before, upto))
    if head is not None and head.stream == stream and cuts and cuts[-1][0] < head.n:
        own = np.frombuffer(head.own)
        gram, moment = own[: dim * dim].reshape(dim, dim), own[dim * dim : dim * dim + dim]
        matrix = np.block([[gram, moment[:, None]], [moment[None, :], own[-3:-2][None, :]]])
        since = Total(int(own[-4]), matrix[np.triu_indices(dim + 1)], own[-2], own[-1])
        if not _adds_up(journal, stream, cuts[-1][0], head.n, since):
            found.append(_tampered(cuts[-1][0], head.n))
    return found


def _adds_up(journal: Journal, stream: int, before: int, upto: int, told: Total) -> bool:
    if told.n != upto - before:
        return True  # a stream that took over from another begins in the middle
    try:
        sums = total_of(counted_sums(journal, stream, before, upto, told.dim))
    except LookupError:
        return True  # pruned: nothing to compare
    scale = TOLERANCE * max(1.0, float(np.abs(told.gram).max()), abs(told.surprise))
    return bool(np.abs(sums.gram - told.gram).max() <= scale) and bool(
        abs(sums.surprise - told.surprise) <= scale
    )


def _tampered(before: int, upto: int) -> str:
    return (
        f"the observations {before + 1} to {upto} do not add up to what the agent counted: the "
        "journal was changed."
    )
