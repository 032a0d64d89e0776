"""Authentication: bearer tokens `gb_<id>_<secret>`, of which only a digest is stored."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass

from guardband.live.coordinator.tokens import digest_of
from guardband.live.protocol.messages import Refused
from guardband.live.store import TokenRow

__all__ = ["ROLES", "Caller", "Tokens"]

ROLES = ("admin", "agent", "viewer")
SHAPE = re.compile(r"gb_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
NOBODY = "0" * 64  # compared with where the id is unknown, so that both cases take as long


@dataclass(frozen=True)
class Caller:
    """The holder of a valid token."""

    token: TokenRow

    @property
    def who(self) -> str:
        """How the audit names them."""
        return f"{self.token.role}:{self.token.token}"

    def sees(self, space: str) -> bool:
        """Whether they may know of a space."""
        return self.token.space in (None, space)

    def must_be(self, *roles: str) -> Caller:
        """Refuse (403) callers of other roles."""
        if self.token.role not in roles:
            raise Refused(
                "wrong_role",
                403,
                f"this needs a token of role {' or '.join(roles)}, not {self.token.role}.",
            )
        return self

    def must_see(self, space: str) -> Caller:
        """Refuse (403) those whose token is for another space."""
        if not self.sees(space):
            named = f"space {self.token.space!r}, not {space!r}"
            raise Refused("wrong_space", 403, f"this token is for {named}: say which (space=...).")
        return self

    def must_own(self, space: str, task: str) -> Caller:
        """Refuse (403) all but the admin of the space and the agent of that task."""
        self.must_be("admin", "agent").must_see(space)
        if self.token.role == "agent" and self.token.task != task:
            raise Refused(
                "wrong_task", 403, f"this token is for the task {self.token.task!r}, not {task!r}."
            )
        return self


class Tokens:
    """The tokens of a server, in memory: a request that is not allowed never reaches the store."""

    def __init__(self) -> None:
        self._by_id: dict[str, TokenRow] = {}

    def replace(self, rows: Iterable[TokenRow]) -> None:
        """Replace all tokens by these; revoked ones are left out."""
        self._by_id = {row.token: row for row in rows if row.revoked_at is None}

    def caller(self, header: bytes | None) -> Caller | None:
        """Return the caller that an Authorization header names; None if its token is not valid."""
        scheme, _, value = (header or b"").decode("latin-1").partition(" ")
        match = SHAPE.fullmatch(value.strip())
        if scheme.lower() != "bearer" or match is None:
            return None
        ident, secret = match.groups()
        row = self._by_id.get(ident)
        same = hmac.compare_digest(digest_of(secret), NOBODY if row is None else row.sha256)
        return Caller(row) if row is not None and same else None

    @staticmethod
    def fits(header: bytes | None) -> bool:
        """Whether an Authorization header has the shape of one with a token."""
        scheme, _, value = (header or b"").decode("latin-1").partition(" ")
        return scheme.lower() == "bearer" and SHAPE.fullmatch(value.strip()) is not None

    def get(self, ident: str) -> TokenRow | None:
        """Return a token that is valid now."""
        return self._by_id.get(ident)

    def all(self) -> list[TokenRow]:
        """Return them, the oldest first."""
        return sorted(self._by_id.values(), key=lambda row: (row.created_at, row.token))
