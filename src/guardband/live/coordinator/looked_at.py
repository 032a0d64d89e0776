"""Records of rows of logs that were looked at; a coordinator keeps them for spaces that name them.

What is in them only agents read: here they are bytes with a SHA-256.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256

from guardband.live.protocol.messages import LONGEST_RECORD, Refused
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import Transaction

__all__ = ["check_record", "keep_record", "record_of"]


def keep_record(t: Transaction, raw: bytes) -> str:
    """Keep a record; return its SHA-256."""
    if not 0 < len(raw) <= LONGEST_RECORD:
        raise Refused(
            "invalid_record",
            422,
            f"a record of rows that were looked at has 1 to {LONGEST_RECORD:,} bytes, not "
            f"{len(raw):,}.",
        )
    digest = sha256(raw).hexdigest()
    t.put_meta(_key(digest), b64encode(raw).decode())
    return digest


def record_of(t: Transaction, space: SpaceSettings) -> bytes:
    """Return the record that a space names."""
    text = None if space.looked_at is None else t.meta(_key(space.looked_at))
    if text is None:
        raise Refused("unknown_record", 404, f"space {space.name!r} has no rows looked at.")
    return b64decode(text)


def check_record(t: Transaction, space: SpaceSettings) -> None:
    """Refuse settings that name a record which is not kept here."""
    if space.looked_at is not None and t.meta(_key(space.looked_at)) is None:
        raise Refused(
            "unknown_record",
            422,
            f"the record of rows that were looked at, {space.looked_at}, is not here: "
            "`guardband space create --from agent.toml` brings it along.",
        )


def _key(digest: str) -> str:
    return f"looked at {digest}"
