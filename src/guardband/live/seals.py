"""Seals: every row that is kept has a checksum of itself, which is verified when it is read.

Page checksums guard files, and not what is on its way into them: SQLite reads the log of a file
that somebody has open unchecked, and PostgreSQL may have none. A seal covers the key, too: a row
that is found in another's place fails. Sums have a checksum of their own, and are not covered: a
row outlives the loss of its sums.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["SEAL", "covered", "is_sound", "seal_of"]

SEAL = "seal"  # the column
# Not covered: sums, and a count that is right where it matters (`SpaceRow.outstanding`).
UNCOVERED = {
    SEAL, "own", "part", "total", "others", "answer_total", "entry_total", "outstanding"
}  # fmt: skip
WRITING = 2  # the version of marshal's format in which equal values always have equal bytes


def seal_of(*values: Any) -> int:
    """Return the seal over values as a database returns them: texts, bytes, numbers and None."""
    return zlib.crc32(marshal.dumps(values, WRITING))


def covered(columns: Iterable[str]) -> list[str]:
    """Return the columns that a seal covers, in their order."""
    return [name for name in columns if name not in UNCOVERED]


def is_sound(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is what was written; one without a seal says nothing."""
    seal = row.get(SEAL)
    return seal is None or seal == seal_of(*(row[name] for name in covered(row)))
