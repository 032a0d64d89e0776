"""`guardband audit --verify`: whether journals and stores are what was written."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from guardband.cli.operator import open_store, readable_errors

if TYPE_CHECKING:
    from guardband.live.operators.verify import Verified

__all__ = ["check_signature", "verify"]


def check_signature(path: Path) -> None:
    """Check the signature of an export, which is beside it, or of an audit, which is in it.

    Exit status: 0 where the file is what was signed; 1 elsewhere.
    """
    with readable_errors():
        from guardband.live.operators.signatures import check_audit, check_file

        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}.")
        found = (check_audit if path.suffix == ".json" else check_file)(path)
    if found.wrong:
        typer.echo(f"{path}: NOT what was signed")
        for words in found.wrong:
            typer.echo(f"- {words}.")
        sys.exit(1)
    keys = " and ".join(f"the key of space {name!r}" for name in dict.fromkeys(found.spaces))
    typer.echo(f"{path}: as it was signed, with {keys}")


def verify(journals: list[Path], data: Path | None, *, repair: bool, as_json: bool) -> None:
    """Check journals, and the store of a data folder or of GUARDBAND_STORE; print what is wrong.

    Exit status: 0 where all is sound, or was mended; 1 elsewhere.
    """
    with readable_errors():
        found = list(_found(journals, data, repair=repair))
    if not found:
        raise FileNotFoundError(
            "no journal and no store was found: name an agent's state folder with --state, or a "
            "server's data folder with --data."
        )
    if as_json:
        typer.echo(json.dumps([each.as_json() for each in found], indent=2))
    else:
        for each in found:
            _print(each, repair)
    if not all(each.sound for each in found):
        sys.exit(1)


def _found(journals: list[Path], data: Path | None, *, repair: bool) -> list[Verified]:
    from guardband.live.operators.verify import verify_database, verify_journal, verify_store
    from guardband.live.server import DATABASE

    found = [verify_journal(path, repair=repair) for path in journals]
    address = os.environ.get("GUARDBAND_STORE")
    if data is None:
        return found
    if address:
        with closing(open_store(data, address)) as store:
            return [*found, verify_database(store, address.rpartition("@")[2], repair=repair)]
    if not (data / DATABASE).is_file():
        raise FileNotFoundError(f"there is no {data / DATABASE}: name a server's data folder.")
    return [*found, verify_store(data / DATABASE, repair=repair)]


def _print(each: Verified, repair: bool) -> None:
    state = "sound" if not each.wrong else "MENDED" if each.sound else "DAMAGED"
    typer.echo(f"{each.kind} {each.path}: {state}")
    for words in each.wrong:
        typer.echo(f"- {words}.")
    if each.mended is not None:
        typer.echo(f"- mended: {each.mended}.")
    elif each.wrong and not repair:
        typer.echo("- its agent, or its server, mends what can be mended; --repair does it now.")
