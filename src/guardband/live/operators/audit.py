"""Any decision, explained from its agent's journal and made again.

The statistics behind a decision are rebuilt from (epoch, own n, config_version): the adopted
epoch's sum, and the own observations that counted between the agent's entry in it and n. The same
kernels decide again, plain linear algebra weighs every action beside them, and what was handed in
is compared with what the journal's observations add up to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np

from guardband.fleet.engine import Verdict
from guardband.live.agent.desk import STAMP, WHY, stamp
from guardband.live.agent.journal import Journal, JournalError
from guardband.live.agent.learner import KEYS
from guardband.live.agent.windows import End
from guardband.live.operators.explanation import Choice, weigh
from guardband.live.operators.replay import Rebuilt, rebuild
from guardband.live.operators.sums_check import changed_sums

__all__ = ["Finding", "Place", "audit", "find_decision"]

TOLERANCE = 1e-9
EXACT = ("action", "kind", "promise", "certificate")
CLOSE = ("propensity", "margin", "floor", "mean", "width")
BLOBS = ("x", "features", "extras")
SENTENCES = {key: sentence for sentence, key in KEYS.items()} | WHY
KEY = 8  # of a stream's name, in the ids of its decisions


class Place(NamedTuple):
    """Where a decision is written down."""

    journal: Path
    seq: int


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a journal says about a decision.

    Attributes
    ----------
    id, journal, task, space
        What was asked for, and where it was found.
    decision
        The decision as it was written down, without its features.
    because
        Why it was made, in a sentence.
    outcome
        How it ended: {"ended", "reward", "at", "late"}; None while it waits.
    names, features
        The features' names and values, one row per action.
    alpha
        The share of the baseline's reward that may be lost.
    beta
        The radius of the confidence set; None where nothing could be made again.
    own
        (first, last): the numbers of the own observations that were used beside the epoch's sum.
    choices
        Every action, with its bounds, its slack and why it was not taken.
    result
        "same": it comes out again; "differs": it does not; "impossible": something is missing.
    differences
        What does not agree, in sentences.
    missing
        What is missing, where it could not be made again.
    """

    id: str
    journal: str
    task: str
    space: str
    decision: dict[str, Any]
    because: str
    outcome: dict[str, Any] | None
    names: tuple[str, ...]
    features: list[list[float]]
    alpha: float | None
    beta: float | None
    own: tuple[int, int] | None
    choices: tuple[Choice, ...]
    result: str
    differences: tuple[str, ...]
    missing: str | None

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data; what is not a number is null."""
        plain = asdict(self) | {"choices": [choice._asdict() for choice in self.choices]}
        cleaned: dict[str, Any] = _without_nan(plain)
        return cleaned


def find_decision(ident: str, places: list[Path]) -> Place:
    """Return where a decision is; state folders, or folders that hold some, are searched.

    An id is TASK-XXXXXXXXYYYY-NUMBER: the first part of its stream's name, and a stamp.
    """
    head, _, number = ident.rpartition("-")
    task, _, key = head.rpartition("-")
    if not (task and len(key) == KEY + STAMP and number.isdecimal() and len(number) < 19):
        raise ValueError(f"{ident!r} is no decision's id: they look like movies-1f0c9a3e52b7-17.")
    searched, matching = 0, None
    for path in _journals(places):
        searched += 1
        journal = Journal(path)
        try:
            found = journal.query(
                "SELECT 1 FROM stream, meta WHERE substr(name, 1, ?) = ? AND key = 'task' "
                "AND value = ?",
                (KEY, key[:KEY], json.dumps(task)),
            )
            row = journal.one("SELECT at FROM decision WHERE seq = ?", (int(number),))
        except apsw.Error as error:
            raise JournalError(f"{path} is damaged: {error}.") from error
        finally:
            journal.close()
        if found and row is not None and stamp(row[0]) == key[KEY:]:
            return Place(path, int(number))
        if found:  # a copy, perhaps: another may have the decision itself
            matching = matching or Place(path, int(number))
    if matching is not None:
        return matching
    where = " and ".join(str(place) for place in places)
    raise LookupError(
        f"no journal of {ident!r} among the {searched} under {where}: name the agent's state "
        "folder with --state."
    )


def audit(ident: str, place: Place) -> Finding:
    """Explain a decision and make it again.

    Parameters
    ----------
    ident
        The decision's id.
    place
        Where it is, from `find_decision`.
    """
    journal = Journal(place.journal)
    try:
        journal.query("BEGIN")  # one moment of it, whatever its agent does meanwhile
        return _audit(ident, journal, place.seq)
    except (apsw.Error, ValueError) as error:
        raise JournalError(f"{place.journal} is damaged or was changed: {error}.") from error
    finally:
        journal.close()


def _audit(ident: str, journal: Journal, seq: int) -> Finding:
    about, row = _about(journal), _row(journal, seq)
    made_by = journal.query("SELECT name FROM stream WHERE id = ?", (row["stream"],))
    key = ident.split("-")[-2]
    if not made_by or made_by[0][0][:KEY] + stamp(row["at"]) != key:
        raise LookupError(f"decision {seq} in {journal.path} is not the one with {key} in its id")
    names = tuple(about["features"])
    table = np.frombuffer(row["features"]).reshape(len(names), -1).T
    differences, missing = changed_sums(journal, row["stream"], len(names)), None
    choices: tuple[Choice, ...] = ()
    alpha = beta = own = None
    try:
        rebuilt = rebuild(journal, seq)
        verdict = rebuilt.decide()
        alpha = rebuilt.space.alphas.get(about["task"], rebuilt.space.alpha)
        beta = rebuilt.learner.radius()
        own = (_entry(journal, row) + 1, row["n"])
        choices = weigh(rebuilt, verdict)
        differences += _compare(rebuilt, verdict, choices)
    except LookupError as error:
        missing = str(error)
    return Finding(
        id=ident,
        journal=str(journal.path),
        task=about["task"],
        space=about["space"],
        decision={name: value for name, value in row.items() if name not in BLOBS},
        because=SENTENCES.get(row["reason"], row["reason"]),
        outcome=_outcome(journal, seq),
        names=names,
        features=table.tolist(),
        alpha=alpha,
        beta=beta,
        own=own,
        choices=choices,
        result="differs" if differences else "same" if missing is None else "impossible",
        differences=tuple(differences),
        missing=missing,
    )


def _journals(places: list[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_file():
            yield place
        elif (place / "journal.db").is_file():
            yield place / "journal.db"
        elif place.is_dir():
            yield from sorted(place.rglob("journal.db"))


def _about(journal: Journal) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in journal.query("SELECT * FROM meta")}


def _row(journal: Journal, seq: int) -> dict[str, Any]:
    names = [column[1] for column in journal.query("PRAGMA table_info(decision)")]
    found = journal.one("SELECT * FROM decision WHERE seq = ?", (seq,))
    if found is not None:
        return dict(zip(names, found, strict=True))
    ((first, last),) = journal.query("SELECT min(seq), max(seq) FROM decision")
    if first is not None and seq < first:
        raise LookupError(
            f"decision {seq} was pruned from {journal.path}, which keeps {first} to {last}: raise "
            "keep_decisions to keep more."
        )
    if last is not None and seq < last:
        raise LookupError(
            f"decision {seq} is missing from {journal.path} although {first} to {last} are kept: "
            "the journal was changed."
        )
    raise LookupError(f"decision {seq} has not been made: {journal.path} ends at {last or 0}.")


def _entry(journal: Journal, row: dict[str, Any]) -> int:
    """Return how many own observations are in the epoch's sum."""
    found = journal.one(
        "SELECT own_n FROM epoch WHERE epoch = ? AND stream = ?", (row["epoch"], row["stream"])
    )
    return 0 if found is None else int(found[0])


def _outcome(journal: Journal, seq: int) -> dict[str, Any] | None:
    found = journal.one("SELECT ended, reward, at, late FROM outcome WHERE seq = ?", (seq,))
    if found is None:
        return None
    ended, reward, at, late = found
    return {"ended": End(ended).name.lower(), "reward": reward, "at": at, "late": late}


def _compare(rebuilt: Rebuilt, verdict: Verdict, choices: tuple[Choice, ...]) -> list[str]:
    """Return what is not as it was written down."""
    row, found = rebuilt.row, []
    for name in EXACT:
        if getattr(verdict, name) != row[name]:
            found.append(f"{name} comes out as {getattr(verdict, name)}, not {row[name]}.")
    for name in CLOSE:
        again, then = getattr(verdict, name), row[name]
        if not _close(again, math.nan if then is None else then):
            found.append(f"{name} comes out as {again:.12g}, not {then}.")
    if verdict.awaited.x.tobytes() != row["x"]:
        found.append("the features of the action played are not those that were offered.")
    if verdict.kept.size == len(choices) and row["reason"] not in ("paused", "lease", "no-config"):
        for choice, kept in zip(choices, verdict.kept.tolist(), strict=True):
            near = abs(choice.slack) <= TOLERANCE
            if choice.certified != kept and not near:
                found.append(f"action {choice.action} is weighed differently by the kernels.")
    return found


def _close(again: float, then: float) -> bool:
    if math.isnan(again) or math.isnan(then):
        return math.isnan(again) and math.isnan(then)
    return again == then or abs(again - then) <= TOLERANCE * max(1.0, abs(then))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
