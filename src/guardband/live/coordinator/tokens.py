"""Access tokens: how they are created, rotated and revoked."""

from __future__ import annotations

import hashlib
import json
import secrets

from guardband.live.protocol.messages import Refused
from guardband.live.store import Store, TokenRow, Transaction

__all__ = ["create_token", "digest_of", "new_token", "revoke_token", "rotate_token"]


def digest_of(secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token(
    role: str, *, space: str | None = None, task: str | None = None, note: str = "", now: float
) -> tuple[TokenRow, str]:
    """Return a new token, and the text that its owner must keep: it is not stored anywhere."""
    if role == "agent" and (space is None or task is None):
        raise Refused("incomplete_scope", 422, "an agent's token needs a space and a task.")
    if role != "agent" and task is not None:
        raise Refused("incomplete_scope", 422, f"a token of role {role} is not bound to a task.")
    ident, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    row = TokenRow(ident, digest_of(secret), role, space, task, note, now, None)
    return row, f"gb_{ident}_{secret}"


def create_token(
    store: Store,
    role: str,
    *,
    space: str | None = None,
    task: str | None = None,
    note: str = "",
    who: str,
    now: float,
) -> tuple[TokenRow, str]:
    """Make a token; return it, and the text that its owner must keep.

    Its space must exist, except for an admin, who may be the one to make it.
    """
    row, text = new_token(role, space=space, task=task, note=note, now=now)
    with store.transaction(space or "") as t:
        if space is not None and role != "admin" and t.space(space) is None:
            raise Refused("unknown_space", 404, f"there is no space {space!r}: create it first.")
        _keep(t, row, "token created", who=who, now=now)
    return row, text


def rotate_token(
    store: Store, ident: str, *, within: str | None = None, who: str, now: float
) -> tuple[TokenRow, str]:
    """Make a token with the rights of another, which stays; `within`: see `revoke_token`."""
    home = _space_of(store, ident)
    with store.transaction(home) as t:
        old = _valid(t, ident, within)
        row, text = new_token(old.role, space=old.space, task=old.task, note=old.note, now=now)
        _keep(t, row, "token created", who=who, now=now)
    return row, text


def revoke_token(
    store: Store, ident: str, *, within: str | None = None, who: str, now: float
) -> None:
    """Revoke a token, unless it is the last admin's: then no more could be made.

    `within` is the space to which those who ask are bound: tokens elsewhere are unknown to them.
    """
    home = _space_of(store, ident)
    with store.transaction(home) as t:
        row = _valid(t, ident, within)
        admins = [
            each.token
            for each in t.tokens()
            if (each.role, each.space, each.revoked_at) == ("admin", None, None)
        ]
        if admins == [ident]:
            raise Refused(
                "last_admin", 409, "this is the last admin token: make another one first."
            )
        _keep(t, row._replace(revoked_at=now), "token revoked", who=who, now=now)


def _space_of(store: Store, ident: str) -> str:
    """Return the space whose transactions a token belongs to; it never changes."""
    with store.reading() as t:
        row = t.token(ident)
    return "" if row is None else row.space or ""


def _valid(t: Transaction, ident: str, within: str | None) -> TokenRow:
    row = t.token(ident)
    if row is None or row.revoked_at is not None or within not in (None, row.space):
        raise Refused(
            "unknown_token", 404, f"there is no token {ident!r}; see: guardband token list"
        )
    return row


def _keep(t: Transaction, row: TokenRow, what: str, *, who: str, now: float) -> None:
    t.put(row)
    detail = {"token": row.token, "role": row.role, "task": row.task}
    t.add_event(now, row.space or "", who, what, json.dumps(detail))
