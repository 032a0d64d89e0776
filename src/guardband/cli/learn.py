"""`guardband learn`: a task of a live system learns from logs of what was played before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.agent import (
    COORDINATOR,
    CoordinatorAddress,
    SpaceName,
    TaskName,
    TaskToken,
    names_of,
)
from guardband.cli.operator import print_table, readable_errors
from guardband.errors import InputError, InvalidValueError
from guardband.progress import ProgressBar

__all__ = ["EXAMPLE", "learn"]

EXAMPLE = (
    "Example: guardband learn january.csv --space home --task movies --reward clicked --id request"
)


def learn(
    logs: Annotated[Path, typer.Argument(help="A CSV file, or Parquet if it ends with .parquet.")],
    space: SpaceName,
    task: TaskName,
    coordinator: CoordinatorAddress = COORDINATOR,
    token: TaskToken = None,
    state: Annotated[
        Path | None,
        typer.Option(help="The state folder of the task's agent, which may be running meanwhile."),
    ] = None,
    uses: Annotated[
        str | None,
        typer.Option(help="Features that the task uses, with commas; else as before, or all."),
    ] = None,
    reward: Annotated[str, typer.Option(help="The column of rewards.")] = "reward",
    ident: Annotated[
        str | None,
        typer.Option(
            "--id", help="The column of ids, the study's if there was one; else `id`, if it exists."
        ),
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(help="The column of propensities; else `propensity`, if there is one."),
    ] = None,
    reuse: Annotated[
        bool,
        typer.Option("--reuse", help="Learn rows that a study has looked at, too; see below."),
    ] = False,
    rest: Annotated[
        bool, typer.Option("--rest", help="Leave out rows that a study has looked at.")
    ] = False,
    feature: Annotated[
        list[str] | None,
        typer.Option(help="NAME=COLUMN, for a feature whose column has another name; repeatable."),
    ] = None,
) -> None:
    """Let a task learn from logs: one row for each thing that an earlier rule played.

    Columns: one for each feature of the task, named as in the space, with the features of what was
    played, or those that the space's named features are made of; `reward`; perhaps `id` and
    `propensity`. Other columns are ignored. Rows are learned in the order of the file: that of
    time, if the earlier rule learned from its rewards.

    Everything is checked before anything is learned. Each row counts once, by its id: run the
    command again after it was stopped or killed, or with a longer file, and rows that are known
    are left out. Without a column of ids, a row's id is its number and the content of the file up
    to it. When the promise holds with logs: docs/logs.md.

    Rows that a study looked at when the space was set up are refused. With --rest they are left
    out: give the file that was studied, or the rest of it. With --reuse they are learned, and
    decisions say promise "reused" from then on, in every task that pools with them.
    """
    with readable_errors("`guardband agent --space-file FILE`"):
        from guardband.cli.log_file import LogColumns, LogFile
        from guardband.live import connect
        from guardband.row_files import check_file

        check_file(logs)  # before a coordinator is asked, and before a folder is made
        try:
            agent = connect(
                coordinator,
                space=space,
                task=task,
                token=token,
                state_dir=state,
                uses=None if uses is None else names_of(uses),
                background=False,
            )
        except LookupError as error:
            raise InvalidValueError(str(error)) from None
        with agent, ProgressBar("learning") as bar:
            known = agent.settings.features
            features = [known[i] for i in agent.report().state.uses]
            renamed = dict(_pair(each) for each in feature or [])
            named = agent.features
            read = features if named is None else list(named.columns)
            columns = LogColumns(read, renamed, reward, ident, propensity, named)
            bar.expect(2.0)
            file = LogFile(logs, columns, bar.advance)
            try:
                learned = agent.learn_blocks(file.blocks, reuse=reuse, rest=rest)
            except InputError as error:
                raise file.named(error) from None
            except ImportError as error:
                raise InvalidValueError(str(error)) from None
            agent.sync()
    typer.echo(f"{learned.rows:,} rows learned, {learned.known:,} known before.")
    if learned.reused:
        typer.echo(f'{learned.reused:,} of them had been looked at: promises are "reused" now.')
    if columns.ident is None:
        typer.echo("No ids: a row is known by its number and the content of the file up to it.")
    print_table(
        ("feature", "before", "after"),
        [
            {"feature": name, "before": f"{before:.4g}", "after": f"{after:.4g}"}
            for name, before, after in zip(features, learned.before, learned.after, strict=True)
        ],
    )


def _pair(given: str) -> tuple[str, str]:
    name, found, column = given.partition("=")
    if not found:
        raise InvalidValueError(f"--feature takes NAME=COLUMN, not {given!r}.")
    return name, column
