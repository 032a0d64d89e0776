"""`guardband study`: logs are studied before an agent is switched on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from guardband.cli.numbers import count_option, number_option
from guardband.cli.report_folder import check_folder, write_new
from guardband.errors import InvalidTypeError

if TYPE_CHECKING:
    from guardband.studies import Study

__all__ = ["EXAMPLE", "study"]

EXAMPLE = "Example: guardband study january.csv --config study.toml --out report"
FOLDER = "guardband-study"


def study(
    logs: Annotated[
        Path | None, typer.Argument(help="A CSV file, or Parquet if it ends with .parquet.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file that says which columns are what; see --init.")
    ] = None,
    alpha: Annotated[
        float | None, number_option("Share of the baseline's reward that may be lost.")
    ] = None,
    rounds: Annotated[int | None, count_option("How far to look ahead.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the page and agent.toml go.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    init: Annotated[
        Path | None, typer.Option(help="Write a commented settings file, and stop.")
    ] = None,
) -> None:
    """Study the logs of an earlier rule: will a safe agent learn, when, and at which cost.

    One row per past decision, in the order of time: its reward, its action, the features, and
    perhaps the menu, the baseline's label, the propensity, a time, a task and an id. A page says
    what is there, whether a linear model is good enough, which settings the data suggest, what to
    expect of an agent, what it would have earned, and what to do; beside it is an agent.toml for
    gb.Agent.from_file and `guardband space create --from`.

    The first half of the rows is looked at; the rest is left for the agent to learn.
    """
    from guardband.studies import StudyConfig, make_study, read_study_config

    console = Console()
    if init is not None:
        _write_template(init)
        console.print(f"wrote {init}; edit it, then: guardband study LOGS --config {init}")
        return
    if logs is None:
        raise InvalidTypeError("give a file of logs: guardband study LOGS, or see --help.")
    told = StudyConfig() if config is None else read_study_config(config)
    told = told.updated(alpha=alpha, rounds=rounds, out=None if out is None else str(out))
    folder = Path(told.out or FOLDER)
    write = told.out is not None or not as_json  # --json writes files only where it is asked to
    if write:
        check_folder(folder)
    found = make_study(logs, told)
    page = found.save(folder) if write else None
    if as_json:
        typer.echo(found.to_json())
        return
    _show(console, found)
    console.print(f"\nThe page, with pictures and tables: [bold]{page}[/bold]", soft_wrap=True)
    console.print(f"The agent, to be read and changed: [bold]{folder / 'agent.toml'}[/bold]")


def _show(console: Console, found: Study) -> None:
    table = Table(title=f"What to expect within {found.config.rounds:,} rounds")
    for name in ("mode", "these logs", "leaves the baseline", "first learned play", "cost"):
        table.add_column(name)
    words = {True: "yes", False: "no", None: "can't tell"}
    for mode in ("strict", "trial_budget", "policy"):
        for logs in ("with_logs", "without_logs"):
            each = getattr(getattr(found.expectation, mode), logs)
            first = "-" if each.first_learned is None else f"{each.first_learned:,}"
            name, with_ = mode.replace("_", " "), logs.removesuffix("_logs")
            table.add_row(name, with_, words[each.can_leave], first, f"{each.cost:.3g}")
    console.print(table)
    console.print()
    console.print(found.recommendation, soft_wrap=False, highlight=False, markup=False)


def _write_template(path: Path) -> None:
    from guardband.studies import TEMPLATE, StudyConfig

    usual = StudyConfig()
    text = TEMPLATE.format(
        alpha=usual.alpha, rounds=usual.rounds, look=usual.look, seed=usual.seed, out=FOLDER
    )
    write_new(path, text)
