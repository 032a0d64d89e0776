"""`guardband data`: show, download and import the original data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from guardband import data

__all__ = ["app"]

app = typer.Typer(
    help="Show, fetch or import the real data sets (not needed to run: factors are embedded).",
    invoke_without_command=True,
    rich_markup_mode="rich",
)

Name = Annotated[str, typer.Argument(help="movielens or lastfm")]


@app.callback()
def show(context: typer.Context) -> None:
    """Show, fetch or import the real data sets (not needed to run: factors are embedded)."""
    if context.invoked_subcommand is not None:
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("data set", "state", "where", "rights"):
        table.add_column(heading, overflow="fold")
    for entry in data.status():
        table.add_row(entry.name, entry.state, str(entry.path or "-"), entry.licence)
    console = Console()
    console.print(table)
    console.print(
        "\nProblems need none of these: their factors are part of the package. "
        "Fetch one with: guardband data fetch NAME"
    )


@app.command()
def fetch(name: Name) -> None:
    """Download a data set from GroupLens, with resume, and check it."""
    typer.echo(f"{name} is at {data.fetch(name)}")


@app.command("import")
def import_(
    name: Name, file: Annotated[Path, typer.Argument(help="the raw file, or the zip")]
) -> None:
    """Take a data set from a file that you already have."""
    typer.echo(f"{name} is at {data.import_file(name, file)}")


@app.command()
def build(
    name: Name, out: Annotated[Path, typer.Option(help="folder to write to")] = Path(".")
) -> None:
    """Rebuild the embedded low-rank factors from the raw data."""
    factors = data.build(name, out)
    typer.echo(
        f"{name}: users {factors.users.shape}, items {factors.items.shape}, written to {out}; "
        f"held-out RMSE {factors.provenance.get('held_out_rmse')}"
    )
