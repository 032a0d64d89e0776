"""The command `guardband`: its subcommands, and how errors and warnings are shown."""

from __future__ import annotations

import inspect
import sys
import warnings
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

import guardband as gb
from guardband.cli import data, lists
from guardband.cli.agent import EXAMPLE, agent
from guardband.cli.alerts import acknowledge
from guardband.cli.audit import audit
from guardband.cli.backup import backup, restore
from guardband.cli.bounds import bounds
from guardband.cli.demo import demo
from guardband.cli.export import export
from guardband.cli.learn import EXAMPLE as LEARN_EXAMPLE
from guardband.cli.learn import learn
from guardband.cli.reproduce import InterruptedRun, reproduce
from guardband.cli.run import run
from guardband.cli.serve import serve
from guardband.cli.space_tasks import space_app
from guardband.cli.status import status
from guardband.cli.study import EXAMPLE as STUDY_EXAMPLE
from guardband.cli.study import study
from guardband.cli.tokens import token_app
from guardband.cli.warmup import EXAMPLE as WARMUP_EXAMPLE
from guardband.cli.warmup import warmup
from guardband.files import in_words

__all__ = ["app", "main"]

STOPPED = 130  # what typer makes of Ctrl-C

app = typer.Typer(
    epilog="Start with: guardband run",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(run)
app.command()(bounds)
app.command()(reproduce)
app.command()(lists.problems)
app.command()(lists.algorithms)
app.command()(demo)
app.command()(serve)
app.command()(status)
app.command(epilog=STUDY_EXAMPLE)(study)
app.command(epilog=EXAMPLE)(agent)
app.command(epilog=LEARN_EXAMPLE)(learn)
app.command()(audit)
app.command()(export)
app.command()(backup)
app.command()(restore)
app.command(epilog=WARMUP_EXAMPLE)(warmup)
space_app.command()(acknowledge)
app.add_typer(space_app, name="space")
app.add_typer(token_app, name="token")
app.add_typer(data.app, name="data")


def _unwrapped(group: typer.Typer) -> None:
    """Let terminals wrap what commands say of themselves; indented examples keep their lines.

    Typer keeps the line ends of docstrings, which are not those of a terminal.
    """
    for command in group.registered_commands:
        paragraphs = inspect.getdoc(command.callback).split("\n\n")  # type: ignore[union-attr]
        command.help = "\n\n".join(
            each if each.startswith(" ") else each.replace("\n", " ") for each in paragraphs
        )
    for below in group.registered_groups:
        if below.typer_instance is not None:
            _unwrapped(below.typer_instance)


_unwrapped(app)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"guardband {version('guardband')}")
        raise typer.Exit


@app.callback()
def every_command(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Safe, distributed linear bandits: learn together, never fall far below a baseline."""


def main() -> None:
    """Run the command; show errors as a sentence, without a traceback."""
    notes = Console(stderr=True, soft_wrap=True)

    def note(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, gb.BoundWarning):
            notes.print(f"[yellow]note:[/yellow] {escape(str(message))}")
        else:
            notes.print(escape(f"{category.__name__}: {message}"))

    warnings.showwarning = note
    try:
        app()
    except SystemExit as end:
        if end.code == STOPPED and not isinstance(end, InterruptedRun):
            notes.print("stopped.")
        raise
    except (gb.GuardbandError, ValueError, TypeError, OSError, ImportError) as error:
        notes.print(f"[red]error:[/red] {escape(in_words(error))}")
        sys.exit(2)
