"""Signatures of exports and audits, by a key per space (HMAC-SHA-256).

The key is made when something of a space is first signed, and is its owner's alone. Who has it can
tell whether a file is what was signed, and could sign as well: give it to those who check, and to
nobody else.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from platformdirs import user_state_path

from guardband.errors import InvalidValueError
from guardband.files import write_atomically
from guardband.live.client.journal import Journal
from guardband.live.protocol.space import SpaceSettings

__all__ = ["check_audit", "check_file", "is_signed_by_default", "sign_audit", "sign_file"]

FOLDER = "GUARDBAND_KEYS"  # the variable that names another folder for keys
KEY = re.compile(r"[0-9a-f]{64}")
FORMAT = 1


def is_signed_by_default(journals: Iterable[Path]) -> set[str]:
    """Return the spaces of journals whose exports and audits are signed unless one says no."""
    return {name for name, space in _spaces(journals).items() if space.profile == "hospital"}


def sign_file(path: Path, journals: Iterable[Path]) -> Path:
    """Sign a file with the keys of the journals' spaces; return the file with the signatures."""
    digest = _sha256(path)
    lines = [_signed({"file": path.name, "sha256": digest}, name) for name in _spaces(journals)]
    target = path.with_name(f"{path.name}.sig")
    with write_atomically(target, private=True) as file:
        file.write(json.dumps(lines, indent=2).encode())
    return target


def check_file(path: Path) -> list[str]:
    """Return what is wrong with a file that was signed, in sentences; nothing: it is as it was."""
    beside = path.with_name(f"{path.name}.sig")
    if not beside.is_file():
        raise FileNotFoundError(f"{path} has no signature: there is no {beside}.")
    lines = _read(beside)
    if not isinstance(lines, list) or not lines:
        raise InvalidValueError(f"{beside} holds no signatures.")
    digest = _sha256(path)
    wrong = [each for line in lines for each in _wrong(line, beside)]
    if any(line.get("sha256") != digest for line in lines):
        wrong.append(f"{path} is not the file that was signed")
    return wrong


def sign_audit(finding: Mapping[str, Any], space: str) -> dict[str, Any]:
    """Return an audit with its signature."""
    return {**finding, "signature": _signed({"sha256": _digest(finding)}, space)}


def check_audit(path: Path) -> list[str]:
    """Return what is wrong with an audit that was signed, in sentences."""
    found = _read(path)
    if not isinstance(found, dict) or not isinstance(found.get("signature"), dict):
        raise InvalidValueError(f"{path} is no audit with a signature.")
    line = found.pop("signature")
    wrong = _wrong(line, path)
    if line.get("sha256") != _digest(found):
        wrong.append(f"{path} is not the audit that was signed")
    return wrong


def _signed(about: Mapping[str, Any], space: str) -> dict[str, Any]:
    """Return facts with the time, and the signature of both."""
    key = _key(space, make=True)
    line = {
        "format": FORMAT,
        "space": space,
        "signed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "key": _name_of(key),
        **about,
    }
    return {**line, "hmac_sha256": _mac(line, key)}


def _wrong(line: Mapping[str, Any], path: Path) -> list[str]:
    """Return what is wrong with one signature."""
    told = {name: value for name, value in line.items() if name != "hmac_sha256"}
    space, mac = told.get("space"), line.get("hmac_sha256")
    if not isinstance(space, str) or not isinstance(mac, str):
        return [f"{path} holds a signature that names no space"]
    key = _key(space, make=False)
    if told.get("key") != _name_of(key):
        return [f"{path} was signed with another key than the one of space {space!r} here"]
    sound = hmac.compare_digest(mac.encode(), _mac(told, key).encode())
    return [] if sound else [f"the signature in {path} is not right: it was changed"]


def _key(space: str, *, make: bool) -> bytes:
    """Return the key of a space, which is made where it does not exist."""
    folder = Path(os.environ.get(FOLDER) or user_state_path("guardband") / "keys")
    path = folder / f"{space}.key"
    if make and not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with write_atomically(path, private=True) as file:
            file.write(secrets.token_hex(32).encode())
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no key of space {space!r}: put it where {path} is, or name its folder in "
            f"{FOLDER}."
        )
    text = path.read_text().strip()
    if not KEY.fullmatch(text):
        raise InvalidValueError(f"{path} is no key: it has 64 hexadecimal digits.")
    return bytes.fromhex(text)


def _spaces(journals: Iterable[Path]) -> dict[str, SpaceSettings]:
    """Return the spaces of journals, with their newest settings."""
    found = {}
    for path in journals:
        journal = Journal(path)
        try:
            row = journal.one("SELECT space FROM config ORDER BY version DESC LIMIT 1")
            row = row or journal.one("SELECT value FROM meta WHERE key = 'guess'")
        finally:
            journal.close()
        if row is not None:
            space = SpaceSettings.from_json(json.loads(row[0]))
            found[space.name] = space
    return found


def _name_of(key: bytes) -> str:
    """Return by what a key is recognised, and from which it cannot be computed."""
    return hashlib.sha256(b"guardband key" + key).hexdigest()[:16]


def _mac(line: Mapping[str, Any], key: bytes) -> str:
    return hmac.new(key, _canonical(line), hashlib.sha256).hexdigest()


def _digest(finding: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(finding)).hexdigest()


def _canonical(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        raise InvalidValueError(f"{path} is not JSON.") from None
