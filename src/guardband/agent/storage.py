"""A group of agents in one file: arrays as npz and the rest as JSON, without pickle."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from guardband.agent.alarms import note_raised
from guardband.agent.budget import Budget
from guardband.agent.group import AgentGroup
from guardband.agent.health import Alarm, AlarmLog
from guardband.agent.looked_at import LookedAt
from guardband.agent.outlook import STUCK_AFTER, Watch
from guardband.agent.records import Awaited
from guardband.agent.row_ids import RowIds
from guardband.agent.saved_parts import read_parts
from guardband.agent.soundness import check_group
from guardband.algorithms import ALGORITHMS
from guardband.checks import as_path
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.features import Features
from guardband.files import in_words, plain_errors, write_atomically
from guardband.kernels.monitors import Note
from guardband.uplift import GainSums, Stake

__all__ = ["load_group", "save_group"]

FORMAT = "guardband fleet"
# Format 1 had no count of weights by variance, format 2 none of rows that had been looked at,
# format 3 no budgets, format 4 no monitors.
VERSION = 5
KINDS: dict[str, Any] = {
    entry.kind.__name__: entry.kind for entry in ALGORITHMS.values() if "agent" in entry.kind.runs
}
LATER = ("work", "spent", "watch")  # not in older files
FIRST_NAMES = {name.replace("UCB", "Ucb"): kind for name, kind in KINDS.items()}  # of format 1


def save_group(group: AgentGroup, path: str | Path) -> Path:
    """Write the group to `path`, all or nothing."""
    target = as_path("path", path)
    kind = type(group.algorithm).__name__
    if KINDS.get(kind) is not type(group.algorithm):
        raise InvalidTypeError(
            f"{kind} cannot be saved; the algorithms that can are {', '.join(KINDS)}."
        )
    with group.lock:
        about = {
            "format": FORMAT,
            "version": VERSION,
            "tasks": dict(zip(group.names, group.tasks, strict=True)),
            "dim": group.dim,
            "algorithm": {"kind": type(group.algorithm).__name__, **_plain(group.algorithm)},
            "feature_bound": group.feature_bound,
            "horizon": group.horizon,
            "reward_floor": group.reward_floor,
            "seed": group.seed,
            "features": None if group.features is None else group.features.to_dict(),
            "rounds": group.rounds,
            "rows": group.rows,
            "rounds_pooled": group.rounds_pooled,
            "logdet_pooled": group.logdet_pooled,
            "poolings": group.poolings,
            "due_round": group.due_round,
            "calls": group.calls,
            "starts": group.starts,
            "looks": group.looks,
            "alarms": [[each.looked_at, each.alarms] for each in group.alarms],
            "followed": [each.followed for each in group.alarms],
            "next_coin": group.next_coin,
            "coins": [_plain_state(coins.state) for coins in group.coins],
            "next_hold": group.next_hold,
            "holds": [_plain_state(coins.state) for coins in group.holds],
            "gains": group.gains,
            "pending": [list(waiting) for waiting in group.pending],
            "budget": None if group.budget is None else asdict(group.budget),
            "purses": [
                None if purse is None else [purse.numbers.tolist(), purse.charged]
                for purse in group.purses
            ],
        }
        waiting = [entry for entries in group.pending for entry in entries.values()]
        # Copies and text are made under the lock: what is written belongs to one moment.
        arrays: dict[str, Any] = {
            name: array.copy() for name, array in group.engine.arrays().items()
        } | {
            "pending_x": np.array([each.x for each in waiting]).reshape(-1, group.dim),
            "pending_rest": np.array([each[1:4] for each in waiting], float).reshape(-1, 3),
            "pending_stake": np.array([_stake(each) for each in waiting]).reshape(-1, 3),
            "pending_watch": np.array([each[5:8] for each in waiting], float).reshape(-1, 3),
            "row_ids": group.row_ids.digests,
        }
        if group.looked_at is not None:
            arrays["looked_at"] = np.frombuffer(group.looked_at.to_bytes(), np.uint8)
        text = json.dumps({**about, "parts": sorted(arrays)})
    with (
        plain_errors(target, "it cannot be saved"),
        write_atomically(target, private=True) as file,
    ):
        np.savez(file, about=np.array(text), **arrays)
    return target


def load_group(path: str | Path) -> AgentGroup:
    """Return the group that was written to `path`."""
    source = as_path("path", path)
    if source.is_dir():
        raise InvalidValueError(f"{source} is a folder: give the file that save has written.")
    try:
        with source.open("rb") as file:
            arrays = read_parts(file)
        about = json.loads(str(arrays.pop("about")))
        if not arrays.keys() >= set(about.get("parts", ())):  # older files do not say
            raise InvalidValueError("parts of it are missing")
        if about["format"] != FORMAT:
            raise InvalidValueError(f"its format is {about['format']!r}")
        if int(about["version"]) <= VERSION:
            return _restored(about, arrays)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no {source}: check the path; agents and fleets are written by save."
        ) from None
    except Exception as error:  # anything may be in it, and nothing was changed
        raise InvalidValueError(
            f"{source} is not a saved agent or fleet, or it is damaged ({in_words(error)[:200]})."
        ) from error
    raise InvalidValueError(
        f"{source} has format version {about['version']}, newer than the {VERSION} this version of "
        "guardband reads: upgrade guardband."
    )


def _restored(about: dict[str, Any], arrays: dict[str, Any]) -> AgentGroup:
    """Return the group that a file describes; anything that does not fit raises."""
    settings = dict(about["algorithm"])
    _check_sizes(about, arrays)
    _check_truths(settings)
    if "spread" in settings:  # its name in the first files
        settings["context_noise"] = settings.pop("spread")
    if settings["kind"] == "GuardUcb":  # of format 1: neither the range of rewards nor pooled sets
        settings["on_refuted"] = "ellipsoid"
        settings["pooled_set"] = False
    group = AgentGroup(
        about["tasks"],
        dim=about["dim"],
        algorithm=(KINDS | FIRST_NAMES)[settings.pop("kind")](**settings),
        feature_bound=about["feature_bound"],
        horizon=about["horizon"],
        reward_floor=about["reward_floor"],
        seed=about["seed"],
        features=Features.from_dict(about["features"]) if about.get("features") else None,
        budget=Budget(**about["budget"]) if about.get("budget") else None,
    )
    for purse, saved in zip(group.purses, about.get("purses", []), strict=False):  # not in older
        if purse is not None:
            numbers, purse.charged = saved
            purse.fill(numbers)
    for name, array in group.engine.arrays().items():
        saved = array if name in LATER and name not in arrays else arrays[name]
        new = array.shape[-1] - saved.shape[-1]
        if about["version"] < VERSION and name.endswith("_scalars") and new > 0:
            saved = np.concatenate([saved, np.zeros((*saved.shape[:-1], new))], axis=-1)
        fits = saved.shape == array.shape and saved.dtype == array.dtype
        if not fits or not np.isfinite(saved).all():
            raise InvalidValueError(f"{name} does not fit")
        array[...] = saved
    for name in ("rounds", "rounds_pooled", "logdet_pooled", "poolings", "due_round", "next_coin"):
        setattr(group, name, about[name])
    group.rows = about.get("rows", group.rows)  # not in older files
    if (
        not len(group.rounds)
        == len(group.rows)
        == len(group.rounds_pooled)
        == len(group.next_coin)
        == len(group.names)
    ):
        raise InvalidValueError("the counters do not fit")
    _restore_rows(group, arrays)
    for coins, state in zip(group.coins, about["coins"], strict=True):
        coins.state = _numpy_state(state)
    if "holds" in about:  # not in older files
        _restore_holdback(group, about)
    _restore_alarms(group, about)
    _restore_pending(group, about["pending"], arrays)
    check_group(group)
    group.watches = [Watch(group.engine.terms, n + STUCK_AFTER + 1) for n in group.rounds]
    if group.poolings:
        group.engine.restore_pooled()
    return group


def _check_sizes(about: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Refuse what is said to be larger than it is, before memory is taken for it."""
    agents, dim = len(about["tasks"]), about["dim"]
    sizes: dict[str, tuple[Any, ...]] = {"own_gram": (agents, dim, dim)}
    if about["algorithm"].get("tolerate"):
        sizes["without_estimate_inverse"] = (agents, agents, dim, dim)
    for name, shape in sizes.items():
        if arrays[name].shape != shape:
            raise InvalidValueError(f"{name} does not fit")


def _check_truths(settings: dict[str, Any]) -> None:
    """Refuse a setting that is neither true nor false where it must be one of them."""
    for each in fields((KINDS | FIRST_NAMES)[settings["kind"]]):
        if isinstance(each.default, bool) and type(settings.get(each.name, True)) is not bool:
            raise InvalidValueError(f"{each.name} is neither true nor false")


def _restore_alarms(group: AgentGroup, about: dict[str, Any]) -> None:
    """Let a group know again what its monitors noticed; older files had none."""
    group.calls = about.get("calls", group.due_round is not None)
    group.starts = int(about.get("starts", 0))
    nothing: list[Any] = [[] for _ in group.names]
    logs, followed = about.get("alarms", [[0, []] for _ in nothing]), about.get("followed", nothing)
    looks = about.get("looks", group.looks)
    if not len(logs) == len(followed) == len(looks) == len(group.names):
        raise InvalidValueError("the alarms do not fit")
    if any(type(each) is not bool for each in (group.calls, *looks)):
        raise InvalidValueError("calls and looks are neither true nor false")
    group.looks = looks
    for m, ((looked_at, alarms), rounds) in enumerate(zip(logs, followed, strict=True)):
        told = [Alarm(str(kind), int(n), float(e)) for kind, n, e in alarms]
        log = group.alarms[m] = AlarmLog(told, int(looked_at), [int(n) for n in rounds])
        if "looks" in about:  # older files have no alarm before it is heeded
            log.unheeded = bool(group.states[m].watch[Note.PENDING])
        elif group.watched:
            note_raised(group, m)


def _restore_rows(group: AgentGroup, arrays: dict[str, Any]) -> None:
    """Let a group know again which rows of logs it has learned, and which were looked at."""
    if "row_ids" in arrays:  # not in older files
        group.row_ids = RowIds(arrays["row_ids"])
    if "looked_at" in arrays:
        group.looked_at = LookedAt.from_bytes(arrays["looked_at"].tobytes())


def _restore_holdback(group: AgentGroup, about: dict[str, Any]) -> None:
    group.next_hold, group.gains = about["next_hold"], [GainSums(*g) for g in about["gains"]]
    numbers = np.array([group.next_hold, *zip(*group.gains, strict=True)])
    if numbers.shape != (4, len(group.names)) or not np.isfinite(numbers).all():
        raise InvalidValueError("the numbers of the holdback do not fit")
    for coins, state in zip(group.holds, about["holds"], strict=True):
        coins.state = _numpy_state(state)


def _restore_pending(group: AgentGroup, pending: Any, arrays: dict[str, Any]) -> None:
    rest = arrays["pending_rest"].tolist()
    # Older files have neither stakes nor what monitors need: they do not watch such a reward.
    stakes = arrays.get("pending_stake", np.full((len(rest), 3), np.nan)).tolist()
    unwatched = np.tile([0.0, np.nan, 0.0], (len(rest), 1))
    watched = arrays.get("pending_watch", unwatched).tolist()
    count, x = sum(len(names) for names in pending), arrays["pending_x"]
    beside = {np.shape(each) for each in (rest, stakes, watched) if count}
    if x.shape != (count, group.dim) or x.dtype != float or beside - {(count, 3)}:
        raise InvalidValueError("what is remembered of decisions fits to no decisions")
    waiting = zip(x, rest, stakes, watched, strict=True)
    for entries, names in zip(group.pending, pending, strict=True):
        for name in names:
            x, (guess, weight, conservative), stake, (declared, lower, start) = next(waiting)
            staked = None if np.isnan(stake).any() else Stake(*stake)
            own = (guess, weight, bool(conservative), staked, declared, lower, int(start))
            entries[name] = Awaited(x.copy(), *own)


def _plain(algorithm: Any) -> dict[str, Any]:
    settings = asdict(algorithm)
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in settings.items()}


def _stake(awaited: Awaited) -> tuple[float, ...]:
    return (np.nan,) * 3 if awaited.stake is None else awaited.stake


def _plain_state(state: Any) -> dict[str, Any]:
    return {**state, "state": {k: np.asarray(v).tolist() for k, v in state["state"].items()}}


def _numpy_state(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "state": {k: np.array(v, np.uint64) for k, v in state["state"].items()}}
