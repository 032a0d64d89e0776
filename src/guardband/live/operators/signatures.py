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
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from platformdirs import user_state_path

from guardband.errors import InvalidValueError
from guardband.files import write_atomically
from guardband.live.client.journal import Journal
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.types import NAME

__all__ = ["Signed", "check_audit", "check_file", "is_signed_by_default", "sign_audit", "sign_file"]

FOLDER = "GUARDBAND_KEYS"  # the variable that names another folder for keys
KEY = re.compile(r"[0-9a-f]{64}")
FORMAT = 1
SHOWN = 80  # characters of what cannot be


@dataclass(frozen=True)
class Signed:
    """What was found of signatures.

    Attributes
    ----------
    spaces
        Whose keys have signed; a file may have the signatures of several.
    wrong
        What is wrong, in sentences; nothing: it is as it was signed.
    """

    spaces: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


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


def check_file(path: Path) -> Signed:
    """Return whose keys have signed a file, and what is wrong with it."""
    beside = path.with_name(f"{path.name}.sig")
    if not beside.is_file():
        raise FileNotFoundError(f"{path} has no signature: there is no {beside}.")
    lines = _read(beside)
    if not isinstance(lines, list) or not lines or not all(isinstance(x, dict) for x in lines):
        raise InvalidValueError(f"{beside} holds no signatures.")
    found = Signed()
    for line in lines:
        _check(line, beside, found)
    digest = _sha256(path)
    if any(line.get("sha256") != digest for line in lines):
        found.wrong.append(f"{path} is not the file that was signed")
    return found


def sign_audit(finding: Mapping[str, Any], space: str) -> dict[str, Any]:
    """Return an audit with its signature."""
    return {**finding, "signature": _signed({"sha256": _digest(finding)}, space)}


def check_audit(path: Path) -> Signed:
    """Return whose key has signed an audit, and what is wrong with it."""
    finding = _read(path)
    if not isinstance(finding, dict) or not isinstance(finding.get("signature"), dict):
        raise InvalidValueError(f"{path} is no audit with a signature.")
    line = finding.pop("signature")
    found = Signed()
    _check(line, path, found)
    if line.get("sha256") != _digest(finding):
        found.wrong.append(f"{path} is not the audit that was signed")
    return found


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


def _check(line: Mapping[str, Any], path: Path, found: Signed) -> None:
    """Add to what was found whose key has made a signature, or what is wrong with it."""
    told = {name: value for name, value in line.items() if name != "hmac_sha256"}
    space, mac = told.get("space"), line.get("hmac_sha256")
    if not isinstance(space, str) or not isinstance(mac, str):
        found.wrong.append(f"{path} holds a signature that names no space")
    elif not re.fullmatch(NAME, space):  # a path would lead to a key of who made the file
        shown = repr(space[:SHOWN])
        found.wrong.append(f"{path} is not signed: no space can have the name {shown}")
    elif told.get("key") != _name_of(key := _key(space, make=False)):
        found.wrong.append(
            f"{path} was signed with another key than the one of space {space!r} here"
        )
    elif KEY.fullmatch(mac) and hmac.compare_digest(mac, _mac(told, key)):
        found.spaces.append(space)
    else:
        found.wrong.append(f"the signature in {path} is not right: it was changed")


def _key(space: str, *, make: bool) -> bytes:
    """Return the key of a space, which is made where it does not exist."""
    folder = Path(os.environ.get(FOLDER) or user_state_path("guardband") / "keys")
    path = folder / f"{space}.key"
    if make and not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Who is first makes it; another process that signs at the same time reads that one.
        with suppress(FileExistsError), write_atomically(path, private=True, once=True) as file:
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
    """Return what a file of JSON holds, if it can be written again to see what was signed."""
    try:
        found = json.loads(path.read_bytes(), object_pairs_hook=_once)
        _canonical(found)
    except RecursionError:
        raise InvalidValueError(f"{path} is nested too deeply to have been signed.") from None
    except ValueError:
        raise InvalidValueError(f"{path} is not JSON.") from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; of a name that is there twice, readers would see either."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found
