"""Which rows of logs were learned before, by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.errors import InvalidTypeError, InvalidValueError

__all__ = ["NONE", "Digests", "RowIds", "digests_of"]

Digests = NDArray[np.uint64]
NONE = np.zeros(0, np.uint64)


class RowIds:
    """The ids of all rows that a group of agents has learned: 8 bytes each, of a hash.

    Of a million ids, two have the same hash with a chance of 3 in 10^8; the second would be
    refused.

    Parameters
    ----------
    digests
        Rising hashes of ids that were learned.
    """

    def __init__(self, digests: Digests = NONE) -> None:
        if digests.dtype != NONE.dtype or (digests[1:] <= digests[:-1]).any():
            raise InvalidValueError("the ids of rows do not fit")
        self.digests = digests

    def with_new(self, ids: Sequence[Any]) -> RowIds:
        """Return these ids and others that must all be new, each given once."""
        found = digests_of(ids)
        order = np.argsort(found, kind="stable")
        ranked = found[order]
        again = np.flatnonzero(ranked[1:] == ranked[:-1])
        if again.size:
            one, other = sorted(order[again[0] : again[0] + 2].tolist())
            raise InvalidValueError(f"id {ids[other]!r} is given twice: of rows {one} and {other}.")
        known = np.isin(found, self.digests)
        if known.any():
            row = int(np.argmax(known))
            raise InvalidValueError(
                f"id {ids[row]!r}, of row {row}, was learned before: a row counts once, whichever "
                "task learns it. Leave out rows that were learned; if these are others, give them "
                "ids of their own, such as the task's name and a number."
            )
        return RowIds(np.union1d(self.digests, found))


def digests_of(ids: Sequence[Any]) -> Digests:
    """Return a hash of every id, a text or a whole number."""
    for row, each in enumerate(ids):
        if not isinstance(each, (str, int, np.integer)) or isinstance(each, bool):
            raise InvalidTypeError(
                f"ids must be texts or whole numbers; that of row {row} is {each!r}."
            )
    texts = (str(each).encode(errors="surrogatepass") for each in ids)
    whole = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(whole, np.uint64)
