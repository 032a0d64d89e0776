"""An agent to be: `agent.toml`, with its settings, its features and the rows that were looked at.

The file is for people to read and to change. Rows that were looked at are in a file beside it,
which is named there with its SHA-256: a million of them would hide everything else.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import tomli_w

from guardband.agent.looked_at import LookedAt
from guardband.agent.settings import DEFAULT
from guardband.algorithms import ALGORITHMS
from guardband.checks import as_path, check_choice, check_text, nearest
from guardband.errors import InputError, InvalidTypeError, InvalidValueError
from guardband.features import Features
from guardband.files import plain_errors, write_atomically

__all__ = ["AgentFile", "check_setting_names", "read_agent_file", "write_agent_file"]

FORMAT, VERSION = "guardband agent", 1
PARTS = ("format", "version", "settings", "columns", "features", "looked_at")
# What agents have beside the settings of their algorithm.
OF_AGENTS = ("algorithm", "dim", "feature_bound", "horizon", "reward_floor", "seed")
SUFFIX = ".looked-at.npz"


@dataclass(frozen=True)
class AgentFile:
    """What an `agent.toml` says.

    Attributes
    ----------
    settings
        Settings of `gb.Agent` by name, and of its algorithm, which is named; those that are left
        out have their own values.
    features
        The named features; None: settings has `dim`.
    columns
        Which columns of the logs are what, as the study was told: "reward", "action" and others.
    looked_at
        Rows of logs that were looked at, which `learn` refuses; None: none were.
    """

    settings: Mapping[str, Any]
    features: Features | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    looked_at: LookedAt | None = None

    def __post_init__(self) -> None:
        name = check_choice("algorithm", self.settings.get("algorithm", DEFAULT), _names())
        check_setting_names(self.settings, name)
        if (self.features is None) == ("dim" not in self.settings):
            raise InvalidValueError("give either the setting dim or named features.")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `gb.Agent`."""
        entry = ALGORITHMS[self.settings.get("algorithm", DEFAULT)]
        own = {k: v for k, v in self.settings.items() if k in entry.kind.settings()}
        rest = {k: v for k, v in self.settings.items() if k not in own}
        return {**rest, "algorithm": entry.make(**own), "features": self.features}


def check_setting_names(settings: Mapping[str, Any], algorithm: str = DEFAULT) -> None:
    """Refuse settings that agents with this algorithm do not have."""
    known = [*OF_AGENTS, *ALGORITHMS[algorithm].kind.settings()]
    for each in settings:
        if each not in known:
            raise InvalidValueError(
                f"agents with {algorithm} have no setting {each!r}.{nearest(each, known)}"
            )


def write_agent_file(path: str | Path, file: AgentFile, comment: str = "") -> Path:
    """Write an agent.toml, and the rows that were looked at to a file beside it.

    `comment` comes first, line by line.
    """
    target = Path(path)
    table: dict[str, Any] = {"format": FORMAT, "version": VERSION, "settings": dict(file.settings)}
    if file.columns:
        table["columns"] = dict(file.columns)
    if file.features is not None:
        table["features"] = file.features.to_dict()
    raw, beside = b"", target.with_suffix(SUFFIX)
    if file.looked_at is not None:
        raw = file.looked_at.to_bytes()
        table["looked_at"] = {
            "rows": file.looked_at.count,
            "split": file.looked_at.split,
            "file": beside.name,
            "sha256": sha256(raw).hexdigest(),
        }
    lines = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    text = lines + ("\n" if lines else "") + tomli_w.dumps(table)
    check_text("agent.toml", text)
    if raw:
        with write_atomically(beside) as out:
            out.write(raw)
    with write_atomically(target) as out:
        out.write(text.encode())
    return target


def read_agent_file(path: str | Path) -> AgentFile:
    """Return what an agent.toml says, or say what is wrong with it."""
    source = as_path("path", path)
    try:
        with plain_errors(source, "it cannot be read"):
            table = tomllib.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no {source}; `guardband study` writes an agent.toml."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"{source} is not valid TOML: {error}.") from None
    except RecursionError:
        raise InvalidValueError(f"{source} describes no agent: it is nested too deep.") from None
    try:
        return _read(table, source)
    except InputError as error:
        raise InvalidValueError(f"{source}: {error}") from None


def _read(table: dict[str, Any], source: Path) -> AgentFile:
    if table.get("format") != FORMAT:
        raise InvalidValueError(
            f"it describes no agent: an agent.toml has format = {FORMAT!r}, as `guardband study` "
            "writes it."
        )
    version = table.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise InvalidValueError(
            f"it has format version {version!r}, and this version of guardband reads {VERSION}: "
            "upgrade guardband."
        )
    for key in table:
        if key not in PARTS:
            raise InvalidValueError(f"unknown part {key!r}.{nearest(key, PARTS)}")
    parts = {name: table.get(name, {}) for name in PARTS[2:]}
    for name, part in parts.items():
        if not isinstance(part, dict):
            raise InvalidTypeError(f"{name} must be a table, [{name}], not {part!r}.")
    for name, given in parts["columns"].items():
        if not all(
            isinstance(each, str) for each in (given if isinstance(given, list) else [given])
        ):
            raise InvalidTypeError(f"columns.{name} must be names of columns, not {given!r}.")
    found = AgentFile(
        parts["settings"],
        Features.from_dict(parts["features"]) if "features" in table else None,
        parts["columns"],
        _looked_at(parts["looked_at"], source) if "looked_at" in table else None,
    )
    _ = found.arguments  # whatever the algorithm has against its settings
    return found


def _looked_at(part: dict[str, Any], source: Path) -> LookedAt:
    """Return the rows that were looked at, from the file beside the agent's."""
    name, digest = part.get("file"), part.get("sha256")
    texts = isinstance(name, str) and isinstance(digest, str)
    if not texts or not name or "\0" in name or Path(name).name != name:
        raise InvalidValueError(
            f"looked_at must name a file beside it and its sha256, not file={name!r} and "
            f"sha256={digest!r}."
        )
    beside = source.with_name(name)
    try:
        raw = beside.read_bytes()
    except OSError as error:
        raise InvalidValueError(
            f"the rows that were looked at are in {beside}, which cannot be read "
            f"({error.strerror}): without it they cannot be told from others. Copy both files."
        ) from None
    if sha256(raw).hexdigest() != digest:
        raise InvalidValueError(
            f"{beside} is another one than when this file was written: its SHA-256 differs. Copy "
            "both files, or run the study again."
        )
    return LookedAt.from_bytes(raw)


def _names() -> list[str]:
    return [name for name, entry in ALGORITHMS.items() if "agent" in entry.kind.runs]
