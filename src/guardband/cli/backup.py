"""`guardband backup` and `guardband restore`: copy the coordinator's store, and put it back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardband.cli.operator import readable_errors
from guardband.errors import InvalidValueError

if TYPE_CHECKING:
    from guardband.live.operators.backup import Backup

__all__ = ["backup", "restore"]

HERE = Path("gb")
Data = Annotated[Path, typer.Option(help="The server's data folder.")]


def backup(
    out: Annotated[Path, typer.Option(help="The file to write; it must not exist.")],
    data: Data = HERE,
) -> None:
    """Copy the coordinator's store, also while the server works on it.

    The copy is one file, complete and checked. Do not back up agents' state folders: an agent
    notices that its folder was restored and starts a new stream.
    """
    _only_sqlite()
    with readable_errors():
        from guardband.live.operators.backup import back_up
        from guardband.live.server import DATABASE

        holds = back_up(data / DATABASE, out)
    typer.echo(f"{out}: {_words(holds)}.")


def restore(
    file: Annotated[Path, typer.Argument(help="A file from guardband backup.")],
    data: Data = HERE,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a store that exists; the old one is renamed.")
    ] = False,
) -> None:
    """Put a copy of the coordinator's store back; the server must not run.

    Agents upload again what they have counted since: nothing that was acknowledged is lost, and
    nothing counts twice. Tokens and rules are those of the copy.
    """
    _only_sqlite()
    with readable_errors():
        from guardband.live.operators.backup import restore as put_back
        from guardband.live.server import DATABASE

        holds, old = put_back(file, data / DATABASE, force=force)
    typer.echo(f"{data / DATABASE}: {_words(holds)}.")
    if old is not None:
        typer.echo(f"what was there is kept as {old}.")
    typer.echo(f"next: guardband serve --data {data}")


def _only_sqlite() -> None:
    if os.environ.get("GUARDBAND_STORE"):
        raise InvalidValueError(
            "GUARDBAND_STORE names a database server: use its own tools (pg_dump, pg_restore, "
            "point-in-time recovery); agents upload again what it lacks."
        )


def _words(holds: Backup) -> str:
    spaces = ", ".join(f"{name} (epoch {epoch})" for name, epoch in holds.spaces.items())
    return (
        f"spaces {spaces or 'none'}; {holds.streams} streams with {holds.observations} "
        f"observations; {holds.bytes:,} bytes; integrity checked"
    )
