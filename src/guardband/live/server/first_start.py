"""The first start: a data folder with a store, and tokens to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from guardband.files import plain_errors, write_atomically
from guardband.live.coordinator.tokens import new_token
from guardband.live.filelock import FileLock
from guardband.live.store import Store

__all__ = ["DATABASE", "first_tokens", "only_server", "read_token", "token_file"]

DATABASE = "coordinator.db"
ROLES = ("admin", "viewer")


def token_file(data: Path, role: str) -> Path:
    """Return where the first token of a role is written to."""
    return data / f"{role}.token"


def read_token(data: Path, role: str = "admin") -> str | None:
    """Return the token that the first start left in a data folder, if it is still there."""
    try:
        return token_file(data, role).read_text().strip() or None
    except OSError:
        return None


@contextmanager
def only_server(data: Path) -> Iterator[None]:
    """Hold the lock of a data folder during the block, so that no second server runs on it.

    Two servers on one file would count nothing twice, but neither would wake the polls that wait
    at the other.
    """
    with plain_errors(data, "no data can be kept there; choose another folder with --data"):
        data.mkdir(parents=True, exist_ok=True)
        lock = FileLock(data / "serve.lock")
        taken = lock.take()
    if not taken:
        raise OSError(
            f"a server already runs with the data in {data}: stop it first, or give another "
            "folder with --data. Several servers need PostgreSQL: --store postgresql://..."
        )
    try:
        yield
    finally:
        lock.leave()


def first_tokens(store: Store, data: Path, *, now: float) -> bool:
    """Make an admin's and a viewer's token where the store has no admin yet; tell whether.

    They are written to files that only the owner can read; the store keeps digests.
    """
    made = {}
    with store.transaction("") as t:
        if any(row.role == "admin" and row.revoked_at is None for row in t.tokens()):
            return False
        for role in ROLES:
            row, made[role] = new_token(role, note="first start", now=now)
            t.put(row)
        data.mkdir(parents=True, exist_ok=True)
        for role, text in made.items():
            _write_secret(token_file(data, role), text)
    return True


def _write_secret(path: Path, text: str) -> None:
    with write_atomically(path, private=True) as file:
        file.write(f"{text}\n".encode())
