"""Pages in which one bit has flipped: their checksums tell which it may have been.

The checksum is that of SQLite's checksum VFS, which also verifies every candidate.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from guardband.live.sqlite import RESERVED, apsw

__all__ = ["with_bits_back", "with_checksum"]

MOST_PAGES = 4  # more of them are no single bits, and each takes part of a second
MOST_BYTES = 2**30  # of all files that are to be compared


def with_bits_back(raw: bytes, size: int) -> Iterator[bytes]:
    """Yield what a file may have been, with one bit of each damaged page turned back.

    Several bits may have the same effect on a checksum, up to a few hundred: then there is a file
    for each of them, if that is so of one page alone. Pages that one bit does not explain stay as
    they are; nothing is yielded where that is all of them.

    Parameters
    ----------
    raw
        The whole file.
    size
        Of a page.
    """
    pages = [raw[at : at + size] for at in range(0, len(raw) - size + 1, size)]
    db = apsw.Connection(":memory:")
    try:
        damaged = [k for k, page in enumerate(pages) if not _is_sound(db, page)]
        if not 0 < len(damaged) <= MOST_PAGES:
            return
        found = {k: _candidates(db, pages[k]) for k in damaged}
    finally:
        db.close()
    for k in damaged:
        if len(found[k]) == 1:
            (pages[k],) = found[k]
    unsure = [k for k in damaged if len(found[k]) > 1]
    if len(unsure) == 1 and len(raw) * len(found[unsure[0]]) <= MOST_BYTES:
        (k,) = unsure
        for page in found[k]:
            yield b"".join((*pages[:k], page, *pages[k + 1 :]))
    elif any(len(each) == 1 for each in found.values()):
        yield b"".join(pages)


def with_checksum(page: bytes) -> bytes:
    """Return a page with the checksum that belongs to what it holds."""
    body = page[:-RESERVED]
    one = two = 0
    words = struct.unpack(f"<{len(body) // 4}I", body)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return body + struct.pack("<II", one, two)


def _candidates(db: apsw.Connection, page: bytes) -> list[bytes]:
    """Return what the page may have been."""
    found: list[bytes] = []
    changed = bytearray(page)
    for place in range(8 * len(page)):
        changed[place >> 3] ^= 1 << (place & 7)
        if _is_sound(db, changed):
            found.append(bytes(changed))
        changed[place >> 3] ^= 1 << (place & 7)
    return found


def _is_sound(db: apsw.Connection, page: bytes | bytearray) -> bool:
    return bool(db.execute("SELECT verify_checksum(?)", (page,)).get)
