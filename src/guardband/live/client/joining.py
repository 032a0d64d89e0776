"""How an agent joins a space: the user's settings are compared with the coordinator's."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from platformdirs import user_state_path

from guardband.checks import as_index_set, nearest
from guardband.errors import InputError, InvalidTypeError, InvalidValueError
from guardband.features import Features
from guardband.files import plain_errors
from guardband.live.client.journal import Journal
from guardband.live.client.mending import undamaged
from guardband.live.link import Link, Unreachable
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.space_rules import GIVEN
from guardband.live.protocol.types import NAME

__all__ = ["Joined", "OtherSettingsError", "UnknownSpaceError", "agree", "default_folder", "join"]
__all__ += ["undo_of"]


class OtherSettingsError(InvalidValueError):
    """The user's settings differ from those of the space."""


class UnknownSpaceError(InputError, LookupError):
    """The coordinator has no space of this name."""


class Joined(NamedTuple):
    """What an agent needs to know before it can start."""

    space: SpaceSettings | None  # None: the coordinator does not answer, but the journal knows
    version: int  # of the space; 0: it is what the user says it is
    uses: tuple[int, ...]
    reward_floor: float | None  # of journals from before spaces had one
    trouble: str | None  # why the coordinator does not answer, if so


def join(
    link: Link,
    name: str,
    task: str,
    uses: Sequence[int | str] | None,
    folder: Path,
    settings: SpaceSettings | None,
    *,
    create: bool,
) -> Joined:
    """Find the space, or make it, and see that everything fits together."""
    if settings is not None and settings.name != name:
        raise InvalidValueError(f"space={name!r} was given, but settings of {settings.name!r}.")
    kept = _kept_setup(folder)
    space, version, trouble = None, 0, None
    try:
        found = _find(link, name, settings, create=create)
        if found is None and settings is not None:  # what is refused makes nothing
            _used(uses, settings.features, settings.named)
            _check_folder(folder)
            found = _create(link, settings)
        assert found is not None
        space, version = found
        agree(space, settings)
    except Unreachable as problem:
        trouble = str(problem)
        space = None if kept else settings
    if space is not None and kept.get("schema_hash", space.schema_hash) != space.schema_hash:
        raise Refused(
            "schema_mismatch",
            409,
            f"{folder} holds data with other features, bounds or baseline than space {name!r} has "
            "now: they cannot be added up. A new set of features is a new space (`guardband space "
            "revise`) with a state_dir of its own.",
            schema_hash=space.schema_hash,
        )
    features = kept.get("features") if space is None else space.features
    if features is None:
        raise Unreachable(
            f"{trouble} Nothing is known of space {name!r} without it: try again when it answers; "
            f"with {GIVEN} the baseline is played until then."
        )
    named = None if space is None else space.named
    chosen = _used(kept.get("uses") if uses is None else uses, features, named)
    for what, value in {"space": name, "task": task, "uses": list(chosen)}.items():
        if kept and kept[what] != value:
            raise InvalidValueError(
                f"{folder} belongs to {what} {kept[what]!r}, not {value!r}: give every agent a "
                "state_dir of its own."
            )
    return Joined(space, version, chosen, kept.get("reward_floor"), trouble)


def agree(space: SpaceSettings, settings: SpaceSettings | None) -> None:
    """Raise `OtherSettingsError` where the user gave another setting than the space has."""
    said = {} if settings is None else settings.model_dump(exclude_unset=True)
    actual = space.model_dump()
    for name, told in said.items():
        is_ = actual[name]
        if name in ("sync", "rewards"):
            is_ = {key: is_[key] for key in told}
        if told != is_:
            raise OtherSettingsError(
                f"{name}={told!r} was given, but space {space.name!r} has {name}={is_!r}: leave it "
                "out, give what the space has, or use another space."
            )


def default_folder(coordinator: str, space: str, task: str) -> Path:
    """Return where an agent keeps its state if the user does not say."""
    if task == "":
        raise InvalidValueError(
            "name the task of this agent, such as task='movies': agents of one space are told "
            "apart by it."
        )
    if not isinstance(task, str) or not re.fullmatch(NAME, task):
        raise InvalidValueError(f"a task's name has letters, digits and ._- only, not {task!r}.")
    kind, _, folder = coordinator.partition(":")
    if kind == "local":
        return Path(folder) / "agents" / space / task
    host = urlsplit(coordinator).netloc.replace(":", "_")
    return user_state_path("guardband") / "agents" / host / space / task


def undo_of(folder: Path) -> Callable[[], None]:
    """Return what takes a new state folder away again; one with a journal stays as it is."""
    if (folder / "journal.db").exists():
        return lambda: None
    new = [each for each in (folder, *folder.parents) if not each.exists()]

    def undo() -> None:
        for name in ("journal.db", "journal.db-wal", "journal.db-shm", "account", "sync.lock"):
            (folder / name).unlink(missing_ok=True)
        for each in new:
            with suppress(OSError):  # somebody keeps other things there by now
                each.rmdir()

    return undo


def _check_folder(folder: Path) -> None:
    """Raise where a folder for the journal cannot be made."""
    above = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    with plain_errors(folder, "no journal can be kept there; choose another folder"):
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory")
        if not os.access(above, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "Permission denied")


def _find(
    link: Link, name: str, settings: SpaceSettings | None, *, create: bool
) -> tuple[SpaceSettings, int] | None:
    """Return the space that the coordinator has, and its version; None: it can be made."""
    try:
        return link.space(name)
    except Refused as problem:
        if problem.code != "unknown_space":
            raise
    if not create:
        raise UnknownSpaceError(
            f"the coordinator has no space {name!r}: create it there, with "
            f"`guardband space create {name} ...`."
        )
    if settings is None:
        raise InvalidValueError(
            f"there is no space {name!r} yet: it is made with {GIVEN}, which names its features "
            "and agents, how many tasks may join."
        )
    return None


def _create(link: Link, settings: SpaceSettings) -> tuple[SpaceSettings, int]:
    """Make a space; return it, and its version."""
    try:
        link.create_space(settings)
    except Refused as problem:
        if problem.code == "order_refused":  # a mistake in what the user said
            raise InvalidValueError(problem.detail) from None
        if problem.code != "space_exists":  # another process was faster
            raise
    return link.space(settings.name)


def _used(
    uses: Sequence[Any] | None, features: Sequence[str], named: Features | None
) -> tuple[int, ...]:
    """Return the features of a task, given by number or by name; None: all."""
    if uses is None:
        return tuple(range(len(features)))
    if named is not None:
        return as_index_set("uses", named.indices(uses), len(features))
    if isinstance(uses, str) or not isinstance(uses, Iterable):
        raise InvalidTypeError(f"uses must be a list of features, such as [0, 1], not {uses!r}.")
    positions = {name: i for i, name in enumerate(features)}
    chosen = []
    for each in uses:
        if isinstance(each, str) and each not in positions:
            raise InvalidValueError(
                f"no feature {each!r} in this space.{nearest(each, list(positions))}"
            )
        chosen.append(positions[each] if isinstance(each, str) else each)
    return as_index_set("uses", chosen, len(features))


def _kept_setup(folder: Path) -> dict[str, Any]:
    """Return what a state folder says about itself; empty where there is none yet."""
    path = folder / "journal.db"
    return undamaged(path, lambda: _read_setup(path)) if path.exists() else {}


def _read_setup(path: Path) -> dict[str, Any]:
    journal = Journal(path)
    try:
        kept = journal.about()
        known = journal.one("SELECT space FROM config ORDER BY version DESC LIMIT 1")
        if known is not None:
            kept["schema_hash"] = SpaceSettings.from_json(json.loads(known[0])).schema_hash
        return kept
    finally:
        journal.close()
