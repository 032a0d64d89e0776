"""Audits: a decision is explained from its agent's journal and made again.

The statistics behind a decision are rebuilt from (epoch, own n, config_version): the adopted
epoch's sum, and the own observations that counted between the agent's entry in it and n. The same
kernels decide again, plain linear algebra weighs every action beside them, and what was handed in
is compared with what the journal's observations add up to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np

from guardband.agent import Alarm, AlarmLog, Verdict
from guardband.errors import InvalidValueError
from guardband.live.client.before import read_before
from guardband.live.client.decision_id import DecisionId, mark_of, parse_id
from guardband.live.client.decisions import worth_of
from guardband.live.client.journal import Journal, JournalError
from guardband.live.client.replay import Rebuilt, rebuild
from guardband.live.client.windows import End
from guardband.live.operators.explanation import Choice, weigh
from guardband.live.operators.export import journals_under
from guardband.live.operators.health_then import NotedAlarm, alarms_of, news_at, raised_before
from guardband.live.operators.monitors_check import changed_monitors
from guardband.live.operators.rows_check import changed_rows
from guardband.live.operators.sums_check import changed_sums
from guardband.live.protocol.sums import Sums
from guardband.reasons import HELD_BACK, sentence

__all__ = ["DecisionEntry", "Finding", "audit", "compared", "find_decision"]

TOLERANCE = 1e-9
EXACT = ("action", "kind", "promise", "certificate")
# Rows of the first version say "learned" of a baseline that is most promising, or without data.
FIRST_REASONS = ("certified", "learned", "free", "careful")
CLOSE = ("propensity", "margin", "floor", "mean", "width", "charge")
STAKED = {"lead": "lead", "share": "share", "predicted": "guess"}  # columns of a stake
BY_LEVEL = ("margin", "floor", "width", "charge")  # what depends on the confidence
WEIGHED = ("mean", "lower", "upper", "slack", "score")  # by which actions are chosen
BLOBS = ("x", "features", "extras", "costs", "purse")


class DecisionEntry(NamedTuple):
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
        Why it was made, in a sentence, and what monitors had noticed.
    health
        The same as `gb.Health` has it, then: {"ok", "alarms", "watched"}.
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
    sum_sha256
        The digest of the epoch's sum, by which the coordinator's can be compared; None: no sum.
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
    health: dict[str, Any]
    outcome: dict[str, Any] | None
    names: tuple[str, ...]
    features: list[list[float]]
    alpha: float | None
    beta: float | None
    own: tuple[int, int] | None
    sum_sha256: str | None
    choices: tuple[Choice, ...]
    result: str
    differences: tuple[str, ...]
    missing: str | None

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data; what is not a number is null."""
        plain = asdict(self) | {"choices": [choice._asdict() for choice in self.choices]}
        cleaned: dict[str, Any] = _without_nan(plain)
        return cleaned


def compared(finding: Finding, sha256: str | None) -> Finding:
    """Return a finding compared with the coordinator's sum of the same epoch, by its digest.

    Parameters
    ----------
    finding
        From `audit`, with a sum.
    sha256
        The coordinator's; None: it does not tell.
    """
    if sha256 == finding.sum_sha256:
        return finding
    epoch = finding.decision["epoch"]
    if sha256 is None:
        words = f"the coordinator does not tell the sum of epoch {epoch}: nothing to compare with."
        same = finding.result == "same"
        return replace(finding, result="impossible", missing=words) if same else finding
    words = f"the coordinator has another sum of epoch {epoch} than the journal."
    return replace(finding, result="differs", differences=(*finding.differences, words))


def find_decision(ident: str, paths: list[Path]) -> DecisionEntry:
    """Return where a decision is; state folders, or folders that hold some, are searched."""
    asked = _parsed(ident)
    searched, matching = 0, None
    for path in journals_under(paths):
        searched += 1
        journal = Journal(path)
        try:
            found = journal.about().get("task") == asked.task and any(
                asked.made_in(name) for (name,) in journal.query("SELECT name FROM stream")
            )
            row = journal.one("SELECT mark, at FROM decision WHERE seq = ?", (asked.seq,))
        except apsw.Error as error:
            raise JournalError(f"{path} is damaged: {error}.") from error
        finally:
            journal.close()
        if found and row is not None and mark_of(*row) == asked.mark:
            return DecisionEntry(path, asked.seq)
        if found:  # a copy, perhaps: another may have the decision itself
            matching = matching or DecisionEntry(path, asked.seq)
    if matching is not None:
        return matching
    where = " and ".join(str(each) for each in paths)
    raise LookupError(
        f"no journal of {ident!r} among the {searched} under {where}: name the agent's state "
        "folder with --state."
    )


def audit(ident: str, entry: DecisionEntry) -> Finding:
    """Explain a decision and make it again.

    Parameters
    ----------
    ident
        The decision's id.
    entry
        Where it is, from `find_decision`.
    """
    journal = Journal(entry.journal)
    try:
        journal.query("BEGIN")  # one moment of it, whatever its agent does meanwhile
        return _audit(ident, journal, entry.seq)
    except (apsw.Error, ValueError) as error:
        raise JournalError(f"{entry.journal} is damaged or was changed: {error}.") from error
    finally:
        journal.close()


def _parsed(ident: str) -> DecisionId:
    asked = parse_id(ident)
    if asked is None:
        raise InvalidValueError(
            f"{ident!r} is no decision's id: they look like movies-1f0c9a3e52b7-17."
        )
    return asked


def _audit(ident: str, journal: Journal, seq: int) -> Finding:
    asked, about, row = _parsed(ident), journal.about(), _row(journal, seq)
    made_by = journal.one("SELECT name FROM stream WHERE id = ?", (row["stream"],))
    same = mark_of(row["mark"], row["at"]) == asked.mark
    if made_by is None or not asked.made_in(made_by[0]) or not same:
        raise LookupError(
            f"decision {seq} in {journal.path} is not the one with {asked.key}{asked.mark} in "
            "its id"
        )
    names = tuple(about["features"])
    table = np.frombuffer(row["features"]).reshape(len(names), -1).T
    differences = changed_rows(journal) + changed_sums(journal, len(names))
    differences += changed_monitors(journal)
    missing = None
    watched: tuple[str, ...] = ()
    plays = 0.0
    choices: tuple[Choice, ...] = ()
    alpha = beta = own = total = None
    try:
        rebuilt = rebuild(journal, seq)
        selection, watched = rebuilt.again(), rebuilt.learner.monitors.kinds
        plays = rebuilt.learner.monitors.plays
        alpha = rebuilt.space.alpha_of(about["task"])
        beta = rebuilt.learner.radius()
        entry, total = _epoch(journal, row)
        own = (entry + 1, row["n"])
        choices = weigh(rebuilt, selection.played)
        verdict = _as_tied(rebuilt, selection.played, choices)
        if verdict is not selection.played:
            choices = weigh(rebuilt, verdict)
        differences += _compare(rebuilt, verdict, selection.shadow_action, choices)
    except LookupError as error:
        missing = str(error)
    alarms = raised_before(alarms_of(journal), seq)
    followed = [n for n in read_before(journal).followed if n < seq]
    news = AlarmLog([Alarm(*each[:3]) for each in news_at(alarms, seq, row["at"])], 0, followed)
    return Finding(
        id=ident,
        journal=str(journal.path),
        task=about["task"],
        space=about["space"],
        decision={name: value for name, value in row.items() if name not in BLOBS},
        because=news.told(sentence(row["reason"]), plays),
        health=_health(alarms, news, watched),
        outcome=_outcome(journal, seq),
        names=names,
        features=table.tolist(),
        alpha=alpha,
        beta=beta,
        own=own,
        sum_sha256=None if total is None else Sums.from_bytes(total).sha256,
        choices=choices,
        result="differs" if differences else "same" if missing is None else "impossible",
        differences=tuple(differences),
        missing=missing,
    )


def _health(
    alarms: Sequence[NotedAlarm], news: AlarmLog, watched: tuple[str, ...]
) -> dict[str, Any]:
    """Return what monitors had noticed, and whether somebody had looked at it."""
    return {
        "ok": not news.alarms,
        "alarms": [each._asdict() for each in alarms],
        "watched": list(watched),
        "followed": news.followed,
    }


def _row(journal: Journal, seq: int) -> dict[str, Any]:
    found = journal.decision(seq)
    if found is not None:
        return found
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


def _epoch(journal: Journal, row: dict[str, Any]) -> tuple[int, bytes | None]:
    """Return how many own observations are in the epoch's sum, and the sum."""
    found = journal.one(
        "SELECT own_n, total FROM epoch WHERE epoch = ? AND stream = ?",
        (row["epoch"], row["stream"]),
    )
    return (0, None) if found is None else (found[0], found[1])


def _outcome(journal: Journal, seq: int) -> dict[str, Any] | None:
    found = journal.one("SELECT ended, reward, at, late FROM outcome WHERE seq = ?", (seq,))
    if found is None:
        return None
    ended, reward, at, late = found
    return {"ended": End(ended).name.lower(), "reward": reward, "at": at, "late": late}


def _compare(
    rebuilt: Rebuilt, verdict: Verdict, shadow_action: int | None, choices: tuple[Choice, ...]
) -> list[str]:
    """Return what is not as it was written down."""
    row = rebuilt.row
    held_back = row["reason"] in HELD_BACK
    override, actions = row["override"], rebuilt.request.menu.shape[1]
    if override is not None and not 0 <= override < actions:
        return [f"override {override} is none of the {actions} actions that were offered."]
    awaited = verdict.awaited if override is None else rebuilt.instead(override)
    close = {name: getattr(verdict, name) for name in CLOSE} | {"guess": awaited.guess}
    stake = awaited.stake
    if stake is not None or row["lead"] is not None:
        close |= {name: getattr(stake, field, math.nan) for name, field in STAKED.items()}
    if rebuilt.rule is not None:
        close["weight"] = awaited.weight
    else:  # it was not registered: nothing was promised
        close = {name: value for name, value in close.items() if name not in BY_LEVEL}
    found = [
        f"{name} comes out as {again}, not {row[name]}."
        for name, again in _exact(rebuilt, verdict, shadow_action).items()
        if again != row[name]
    ]
    for name, again in close.items():
        then = row[name]
        if not _close(again, math.nan if then is None else then):
            found.append(f"{name} comes out as {again:.12g}, not {then}.")
    if awaited.x.tobytes() != row["x"]:
        found.append("the features of the action played are not those that were offered.")
    if (row["reason"] == "no-config") != (rebuilt.rule is None) and rebuilt.rule != 1:
        found.append("it has no share of delta, or did not use it, against its reason.")
    if verdict.certified.size == len(choices) and (not held_back or row["reason"] == "shadow"):
        found += [
            f"action {choice.action} is weighed differently by the kernels."
            for choice, certified in zip(choices, verdict.certified.tolist(), strict=True)
            if choice.certified != certified and not abs(choice.slack) <= TOLERANCE
        ]
    return found


def _as_tied(rebuilt: Rebuilt, verdict: Verdict, choices: tuple[Choice, ...]) -> Verdict:
    """Return the verdict for the action written down, where it ties with the one that comes out.

    The agent's numbers came from one reward after another, these come from sums: they agree to
    rounding, and between actions that are equal in everything rounding decides.
    """
    then, again, request = rebuilt.row["action"], verdict.action, rebuilt.request
    if then == again or not max(then, again) < len(choices):
        return verdict
    one, other = choices[then], choices[again]
    same = one.value == other.value and one.cost == other.cost
    pairs = ((getattr(one, name), getattr(other, name)) for name in WEIGHED)
    if request.baseline in (then, again) or not (same and all(_close(*pair) for pair in pairs)):
        return verdict
    awaited = verdict.awaited._replace(x=request.menu[:, then].copy())
    return verdict._replace(action=then, awaited=awaited)


def _exact(rebuilt: Rebuilt, verdict: Verdict, shadow_action: int | None) -> dict[str, Any]:
    """Return what must come out exactly as it was written down."""
    row, request = rebuilt.row, rebuilt.request
    played = verdict.action if row["override"] is None else row["override"]
    exact = {name: getattr(verdict, name) for name in EXACT} | {
        "reason": verdict.reason,
        "shadow_action": shadow_action,
        "careful": int(verdict.awaited.conservative),
    }
    if verdict.reason in ("itself", "no-data") and (
        row["kind"] == "learned" and row["reason"] in FIRST_REASONS
    ):
        del exact["kind"], exact["reason"]
    if row["value"] is not None:  # older rows have none
        exact["value"] = worth_of(request, played)
        exact["baseline_value"] = worth_of(request, request.baseline)
    if rebuilt.costs is not None and row["override"] is None:
        exact["cost"] = float(rebuilt.costs[0][played])
    return exact


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
