"""How an agent and a space come together: what the user said, and what the coordinator has."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from platformdirs import user_state_path

from guardband.checks import as_index_set, check_whole, nearest
from guardband.errors import InvalidValueError
from guardband.live.client.journal import Journal
from guardband.live.link import Link, Unreachable
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.space import (
    ALGORITHMS,
    RewardSettings,
    SpaceSettings,
    SyncSettings,
)
from guardband.live.protocol.types import NAME

__all__ = ["Joined", "OtherSettingsError", "agree", "as_given", "join"]

SETTINGS = tuple(name for name in SpaceSettings.model_fields if name not in ("name", "features"))


class OtherSettingsError(InvalidValueError):
    """The user said something about the space that is not so."""


class Joined(NamedTuple):
    """What an agent needs to know before it can start."""

    folder: Path
    space: SpaceSettings | None  # None: the coordinator does not answer, but the journal knows
    uses: tuple[int, ...]
    trouble: str | None  # why the coordinator does not answer, if so


def join(
    link: Link,
    coordinator: str,
    name: str,
    task: str,
    uses: Sequence[Any] | None,
    state_dir: str | Path | None,
    said: Mapping[str, Any],
) -> Joined:
    """Find the space, or make it, and see that everything fits together."""
    default = _folder_for(coordinator, name, task)
    folder = default if state_dir is None else Path(state_dir)
    space, trouble = None, None
    try:
        space = _find_or_create(link, name, said, create=coordinator.startswith("local:"))
        agree(space, task, said)
    except Unreachable as problem:
        trouble = str(problem)
    kept = _kept_setup(folder)
    if space is None and not kept:
        space = _space_from(name, said)
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
        raise ConnectionError(
            f"{trouble} Nothing is known of space {name!r} without it: give dim=... and "
            "agents=..., and the baseline is played until it answers."
        )
    chosen = _used(kept.get("uses") if uses is None else uses, features)
    for what, value in {"space": name, "task": task, "uses": list(chosen)}.items():
        if kept and kept[what] != value:
            raise ValueError(
                f"{folder} belongs to {what} {kept[what]!r}, not {value!r}: give every agent a "
                "state_dir of its own."
            )
    return Joined(folder, space, chosen, trouble)


def as_given(alpha: float | None, algorithm: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the user said about the space, in the space's own words."""
    said = {k: v for k, v in given.items() if v is not None}
    known = (*SETTINGS, "dim", "features")
    for name, value in said.items():
        if name not in known:
            listed = ", ".join(known)
            raise TypeError(
                f"unknown setting {name!r}; a space has {listed}.{nearest(name, known)}"
            )
        if name in ("rewards", "sync") and not isinstance(
            value, Mapping | RewardSettings | SyncSettings
        ):
            example = "rewards={'order': 'prompt'}"
            raise TypeError(f"{name} has settings of its own, as in {example}, not {value!r}.")
    if alpha is not None:
        said["alpha"] = float(alpha)
    if algorithm is not None and not isinstance(algorithm, str):
        said = {**_of_algorithm(algorithm), **said}
    elif algorithm is not None:
        said["algorithm"] = algorithm
    if "features" in said:
        said["features"] = tuple(said["features"])
    return said


def _of_algorithm(algorithm: Any) -> dict[str, Any]:
    """Return what a description such as `gb.GuardUCB(noise=0.1)` says about the space."""
    names = {kind: name for name, kind in ALGORITHMS.items()}
    if type(algorithm) not in names:
        listed = ", ".join(ALGORITHMS)
        raise TypeError(f"live agents run {listed}, not {type(algorithm).__name__}.")
    said: dict[str, Any] = {"algorithm": names[type(algorithm)]}
    if getattr(algorithm, "anchors", False):
        raise ValueError(
            "anchors=True is not available to live agents: reported rewards are not sent to others."
        )
    for f in fields(algorithm):
        value = getattr(algorithm, f.name)
        if value == (None if f.default is MISSING else f.default):
            continue
        name = "context_noise" if f.name == "spread" else f.name
        if f.name == "shared_context":
            said["contexts"] = "shared" if value else "per-request"
        elif name in SETTINGS:
            said[name] = value
        else:
            raise ValueError(f"{f.name}={value!r} is not available to live agents.")
    return said


def _space_from(name: str, said: Mapping[str, Any]) -> SpaceSettings | None:
    """Return the space as the user describes it, if that is enough for one."""
    if not ("dim" in said or "features" in said) or "agents" not in said:
        return None
    described = {k: v for k, v in said.items() if k != "dim"}
    if "features" not in described:
        described["features"] = [f"x{i}" for i in range(check_whole("dim", said["dim"]))]
    elif "dim" in said and said["dim"] != len(described["features"]):
        raise ValueError(f"dim={said['dim']} but there are {len(described['features'])} features.")
    for part in ("sync", "rewards"):
        if part in described and not isinstance(described[part], Mapping):
            described[part] = dict(described[part])
    return SpaceSettings.from_json({"name": name, **described})


def agree(space: SpaceSettings, task: str, said: Mapping[str, Any]) -> None:
    """Raise `OtherSettingsError` if the user said something about the space that is not so."""
    actual = {**dict(space), "dim": space.dim}
    actual["alpha"] = space.alphas.get(task, space.alpha)
    for name, value in said.items():
        told, is_ = value, actual[name]
        if name in ("sync", "rewards"):
            told = dict(value)
            is_ = {key: getattr(actual[name], key, None) for key in told}
        if told != is_:
            raise OtherSettingsError(
                f"{name}={told!r} was given, but space {space.name!r} has {name}={is_!r}: leave it "
                "out, give what the space has, or use another space."
            )


def _find_or_create(
    link: Link, name: str, said: Mapping[str, Any], *, create: bool
) -> SpaceSettings:
    """Return the space that the coordinator has; a local one is made where it does not exist."""
    try:
        return link.space(name)[0]
    except Refused as problem:
        if problem.code != "unknown_space":
            raise
    described = _space_from(name, said)
    if not create:
        raise LookupError(
            f"the coordinator has no space {name!r}: create it there, with "
            f"`guardband space create {name} ...`."
        )
    if described is None:
        raise ValueError(
            f"there is no space {name!r} yet: to make it, say dim=... (or features=[...]) and "
            "agents=..., how many tasks may join."
        )
    try:
        link.create_space(described)
    except Refused as problem:  # another process was faster
        if problem.code != "space_exists":
            raise
    return link.space(name)[0]


def _used(uses: Sequence[Any] | None, features: Sequence[str]) -> tuple[int, ...]:
    """Return the features of a task, given by number or by name; None: all."""
    if uses is None:
        return tuple(range(len(features)))
    places = {name: i for i, name in enumerate(features)}
    chosen = []
    for each in uses:
        if isinstance(each, str) and each not in places:
            raise ValueError(f"no feature {each!r} in this space.{nearest(each, list(places))}")
        chosen.append(places[each] if isinstance(each, str) else each)
    return as_index_set("uses", chosen, len(features))


def _folder_for(coordinator: str, space: str, task: str) -> Path:
    """Return where an agent keeps its state if nobody says otherwise."""
    if not isinstance(task, str) or not re.fullmatch(NAME, task):
        raise ValueError(f"a task's name has letters, digits and ._- only, not {task!r}.")
    kind, _, place = coordinator.partition(":")
    if kind == "local":
        return Path(place) / "agents" / space / task
    host = urlsplit(coordinator).netloc.replace(":", "_")
    return user_state_path("guardband") / "agents" / host / space / task


def _kept_setup(folder: Path) -> dict[str, Any]:
    """Return what a state folder says about itself; empty where there is none yet."""
    path = folder / "journal.db"
    if not path.exists():
        return {}
    journal = Journal(path)
    try:
        kept = journal.about()
        known = journal.one("SELECT space FROM config ORDER BY version DESC LIMIT 1")
        if known is not None:
            kept["schema_hash"] = SpaceSettings.from_json(json.loads(known[0])).schema_hash
        return kept
    finally:
        journal.close()
