"""`guardband audit`: why a decision was made, and whether it comes out again."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from guardband.cli.live import plainly

if TYPE_CHECKING:
    from guardband.live.operators.audit import Finding

__all__ = ["audit", "searched"]

HERE = Path("gb")
RESULTS = {
    "same": "recomputed: the same action, and the same margin within 1e-9.",
    "differs": "NOT CONFIRMED: what is written down does not come out again.",
    "impossible": "cannot be recomputed: something that it rests on is no longer there.",
}


def audit(
    id: Annotated[str, typer.Argument(help="The decision's id, such as movies-1f0c9a3e52b7-17.")],
    state: Annotated[
        Path | None,
        typer.Option(help="The agent's state folder, or one with several; else ./gb is searched."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Explain a decision from its agent's journal, and make it again.

    Exit status: 0 where it comes out again, 1 where it does not or cannot be made again.
    """
    with plainly():
        from guardband.live.operators.audit import audit as examine  # noqa: PLC0415 - needs an extra
        from guardband.live.operators.audit import find_decision  # noqa: PLC0415

        try:
            finding = examine(id, find_decision(id, searched(state)))
        except LookupError as error:
            raise ValueError(str(error)) from None
    if as_json:
        typer.echo(json.dumps(finding.as_json(), indent=2))
    else:
        _print(finding)
    if finding.result != "same":
        sys.exit(1)


def searched(state: Path | None) -> list[Path]:
    """Return where to look for journals."""
    from platformdirs import user_state_path  # noqa: PLC0415

    if state is None:
        return [HERE, user_state_path("guardband") / "agents"]
    if not state.exists():
        raise FileNotFoundError(f"there is no {state}: name an agent's state folder.")
    return [state]


def _print(found: Finding) -> None:
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
        ("promise", str(row["promise"])),
        (
            "estimate",
            f"{_number(row['mean'])} ± {_number(row['width'])}, radius {_number(found.beta)}",
        ),
        ("coin", f"{row['coin']:.6f}, propensity {row['propensity']:g}"),
        ("knew", _knew(found)),
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
    out.print()
    out.print(RESULTS[found.result], markup=False, soft_wrap=True)
    for each in (*found.differences, *([found.missing] if found.missing else [])):
        out.print(f"- {each}", markup=False, soft_wrap=True)


def _knew(found: Finding) -> str:
    row = found.decision
    words = f"the sum of epoch {row['epoch']}" if row["epoch"] else "no epoch"
    if found.own is None:
        return f"{words}, {row['n']} own observations"
    first, last = found.own
    extra = f"own observations {first} to {last}" if last >= first else "no own ones since"
    return f"{words}, and {extra}"


def _outcome(found: Finding) -> str:
    if found.outcome is None:
        return "none yet: it waits for its reward"
    ended, reward, late = (found.outcome[key] for key in ("ended", "reward", "late"))
    words = ended if reward is None else f"{ended}, reward {reward:g}"
    return words if late is None else f"{words}; {late:g} came too late to count"


def _table(found: Finding) -> Table:
    table = Table(box=None, pad_edge=False)
    used = [f"{name}" for name in found.names]
    for name in ("action", "mean", "lower", "upper", "slack", "why"):
        table.add_column(name, justify="left" if name == "why" else "right", overflow="fold")
    if len(used) <= 4:
        for name in used:
            table.add_column(name, justify="right", overflow="fold")
    for choice, features in zip(found.choices, found.features, strict=True):
        numbers = (choice.mean, choice.lower, choice.upper, choice.slack)
        shown = [_number(value, 4) for value in features] if len(used) <= 4 else []
        table.add_row(
            str(choice.action), *(_number(value, 5) for value in numbers), choice.why, *shown
        )
    return table


def _number(value: float | None, digits: int = 8) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}g}"
