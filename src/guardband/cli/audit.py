"""`guardband audit`: why a decision was made, and whether it comes out again."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from guardband.cli.operator import Target, readable_errors
from guardband.cli.verify import check_signature, verify
from guardband.errors import InvalidValueError
from guardband.reasons import promise_shown, sentence

if TYPE_CHECKING:
    from guardband.live.operators.audit import Finding
    from guardband.live.protocol.messages import EpochRecord

__all__ = ["audit", "searched"]

HERE = Path("gb")
COLUMNS = 4  # so many features fit beside every action; more get a table of their own
FEW, MOST = 20, 10  # of more than FEW features, the MOST that differ most are shown
RESULTS = {
    "same": "recomputed: the same action, and the same margin within 1e-9.",
    "differs": "NOT CONFIRMED: what is written down does not come out again.",
    "impossible": "cannot be recomputed: something that it rests on is no longer there.",
}


def audit(
    id: Annotated[
        str | None, typer.Argument(help="The decision's id, such as movies-1f0c9a3e52b7-17.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="The agent's state folder, or one with several; else ./gb is searched."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Compare the epoch's sum with that in a server's data folder, or check it."
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Or with that of a running server, such as https://gb:8710.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="A token that may read the space, for --url.", envvar="GUARDBAND_TOKEN"),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--verify", help="Check all of the journals, and the store of --data."),
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="And mend what is damaged, from what is sound.")
    ] = False,
    sign: Annotated[
        bool | None,
        typer.Option(help="Sign what --json prints; else done in spaces of profile hospital."),
    ] = None,
    signed: Annotated[
        Path | None,
        typer.Option(help="Check the signature of an export, or of an audit that was kept."),
    ] = None,
) -> None:
    """Explain a decision from its agent's journal, and make it again; or check whole journals.

    Exit status: 0 where it comes out again, or all is sound or mended; 1 elsewhere.
    """
    if signed is not None:
        check_signature(signed)
        return
    if check or repair:
        with readable_errors():
            from guardband.live.operators.export import journals_under

            only_store = state is None and data is not None
            journals = [] if only_store else journals_under(searched(state))
        verify(journals, data, repair=repair, as_json=as_json)
        return
    if id is None:
        raise InvalidValueError("name a decision by its id, or say --verify or --signed FILE.")
    with readable_errors():
        from guardband.live.operators.audit import audit as examine
        from guardband.live.operators.audit import find_decision

        try:
            finding = examine(id, find_decision(id, searched(state)))
        except LookupError as error:
            raise InvalidValueError(str(error)) from None
    asked = data is not None or url is not None
    with_coordinator = asked and finding.sum_sha256 is not None
    if with_coordinator:
        finding = _compared(finding, Target(data or HERE, url, token))
    if as_json:
        typer.echo(json.dumps(_signed(finding, sign), indent=2))
    else:
        _print(finding, with_coordinator)
    if finding.result != "same":
        sys.exit(1)


def _signed(finding: Finding, sign: bool | None) -> dict[str, Any]:
    """Return an audit as plain data, with its signature where that is wanted."""
    from guardband.live.operators.signatures import is_signed_by_default, sign_audit

    plain = finding.as_json()
    wanted = bool(is_signed_by_default([Path(finding.journal)])) if sign is None else sign
    return sign_audit(plain, finding.space) if wanted else plain


def searched(state: Path | None) -> list[Path]:
    """Return where to look for journals."""
    from platformdirs import user_state_path

    if state is None:
        return [HERE, user_state_path("guardband") / "agents"]
    if not state.exists():
        raise FileNotFoundError(f"there is no {state}: name an agent's state folder.")
    return [state]


def _compared(finding: Finding, coordinator: Target) -> Finding:
    from guardband.live.operators.audit import compared

    space, epoch = finding.space, finding.decision["epoch"]
    sha256: str | None = coordinator.do(
        lambda here: _told(here.epoch(space, epoch)),
        "GET",
        f"/v1/spaces/{space}/epochs/{epoch}",
        read=lambda answer: answer["sha256"],
    )
    return compared(finding, sha256)


def _told(record: EpochRecord) -> str | None:
    return None if record.sums is None else record.sha256


def _print(found: Finding, with_coordinator: bool) -> None:
    row = found.decision
    out = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    at = datetime.fromtimestamp(row["at"], UTC).isoformat(sep=" ", timespec="seconds")
    lines = [
        ("decision", f"{found.id} of task {found.task} in space {found.space}, {at}"),
        ("played", f"action {row['action']} ({row['kind']}), because: {found.because}"),
        (
            "baseline",
            f"action {row['baseline']}, reported reward {_number(row['baseline_reward'])}",
        ),
        ("floor", f"{_number(row['floor'])} with alpha {_number(found.alpha)}"),
        ("certificate", f"{row['certificate']}, margin {_number(row['margin'])}"),
        ("promise", promise_shown(row["promise"], row["certificate"])),
        *(("health", words) for words in _health(found)),
        (
            "estimate",
            f"{_number(row['mean'])} ± {_number(row['width'])}, radius {_number(found.beta)}",
        ),
        ("coin", f"{row['coin']:.6f}, propensity {row['propensity']:g}"),
        *_worth(found),
        ("knew", _knew(found)),
        ("sum", _sum(found, with_coordinator)),
        ("rules", f"config_version {row['config']}"),
        ("outcome", _outcome(found)),
        ("journal", found.journal),
    ]
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        out.print(f"{name:<{width}}  {text}", markup=False, soft_wrap=True)
    if found.choices:
        out.print()
        out.print(_table(found))
    if len(found.names) > COLUMNS or not found.choices:
        out.print()
        out.print(_features(found))
    if len(found.names) > FEW:
        out.print(
            f"the {MOST} features that differ most of {len(found.names)}; --json has all.",
            markup=False,
        )
    out.print()
    out.print(RESULTS[found.result], markup=False, soft_wrap=True)
    for each in (*found.differences, *([found.missing] if found.missing else [])):
        out.print(f"- {each}", markup=False, soft_wrap=True)


def _health(found: Finding) -> list[str]:
    """Return what monitors had noticed, a line for each alarm, and when it followed its pool."""
    health = found.health
    followed = [f"{sentence('followed')}, after decision {n}" for n in health["followed"]]
    if not health["alarms"]:
        watched = ", ".join(health["watched"])
        return [f"ok; watched: {watched}" if watched else "nothing was watched", *followed]
    return followed + [
        f"an alarm of {each['kind']} after decision {each['round']}, evidence "
        f"{each['evidence']:.1f}; {_looked_at(each['looked_at'], found.decision['at'])}"
        for each in health["alarms"]
    ]


def _looked_at(when: float | None, decided: float) -> str:
    return "nobody had looked at it" if when is None or when > decided else "looked at"


def _worth(found: Finding) -> list[tuple[str, str]]:
    """Return what is said of overrides, values and costs, where there are any."""
    row, lines = found.decision, []
    if row["override"] is not None:
        words = "was played instead, by somebody else: the reward is learned as its"
        lines.append(("override", f"action {row['override']} {words}"))
    if row["value"] is not None:
        words = f"{_number(row['value'])}, the baseline's {_number(row['baseline_value'])}"
        lines.append(("value", words))
    if row["cost"] is not None:
        told = "" if row["paid"] is None else f", of which {_number(row['paid'])} was needed"
        lines.append(("cost", f"{_number(row['cost'])} charged to the budget{told}"))
    return lines


def _knew(found: Finding) -> str:
    row = found.decision
    words = f"the sum of epoch {row['epoch']}" if row["epoch"] else "no epoch"
    if found.own is None:
        return f"{words}, {row['n']} own observations"
    first, last = found.own
    extra = f"own observations {first} to {last}" if last >= first else "no own ones since"
    return f"{words}, and {extra}"


def _sum(found: Finding, with_coordinator: bool) -> str:
    if found.sum_sha256 is None:
        return "none"
    same = with_coordinator and not any("coordinator" in each for each in found.differences)
    words = ", as the coordinator has it" if same and found.result == "same" else ""
    return f"sha256 {found.sum_sha256[:16]}...{words}"


def _outcome(found: Finding) -> str:
    if found.outcome is None:
        return "none yet: it waits for its reward"
    ended, reward, late = (found.outcome[key] for key in ("ended", "reward", "late"))
    words = ended if reward is None else f"{ended}, reward {reward:g}"
    return words if late is None else f"{words}; {late:g} came too late to count"


def _table(found: Finding) -> Table:
    table = Table(box=None, pad_edge=False)
    worth = [
        name
        for name in ("value", "cost")
        if any(getattr(choice, name) is not None for choice in found.choices)
    ]
    for name in ("action", "mean", "lower", "upper", "slack", *worth, "why"):
        table.add_column(name, justify="left" if name == "why" else "right", overflow="fold")
    few = len(found.names) <= COLUMNS
    for name in found.names if few else ():
        table.add_column(escape(name), justify="right", overflow="fold")
    for choice, features in zip(found.choices, found.features, strict=True):
        numbers = (choice.mean, choice.lower, choice.upper, choice.slack)
        table.add_row(
            str(choice.action),
            *(_number(value, 5) for value in numbers),
            *(_number(getattr(choice, name), 5) for name in worth),
            choice.why,
            *(_number(value, 4) for value in (features if few else ())),
        )
    return table


def _features(found: Finding) -> Table:
    """Return the features of the actions that matter; of many, those that differ most."""
    row = found.decision
    columns = {"played": row["action"], "baseline": row["baseline"]}
    if found.choices:
        promising = max(found.choices, key=lambda choice: choice.score)
        columns["the most promising"] = promising.action
    table = Table(box=None, pad_edge=False)
    table.add_column("feature", overflow="fold")
    for name, action in columns.items():
        table.add_column(f"{name} ({action})", justify="right")
    lines = [
        (name, [found.features[action][i] for action in columns.values()])
        for i, name in enumerate(found.names)
    ]
    if len(lines) > FEW:
        lines = sorted(lines, key=lambda line: min(line[1]) - max(line[1]))[:MOST]
    for name, values in lines:
        table.add_row(escape(name), *(_number(value, 5) for value in values))
    return table


def _number(value: float | None, digits: int = 8) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}g}"
