"""`guardband export`: decisions and rewards for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.audit import searched
from guardband.cli.operator import readable_errors
from guardband.errors import InvalidValueError

__all__ = ["export"]


def export(
    out: Annotated[Path, typer.Option(help="The file to write; it must not exist.")],
    state: Annotated[
        Path | None,
        typer.Option(help="An agent's state folder, or one with several; else ./gb is searched."),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Write CSV in place of Parquet.")] = False,
    sign: Annotated[
        bool | None,
        typer.Option(help="Sign the file; else done for spaces of profile hospital."),
    ] = None,
) -> None:
    """Write every decision that journals keep, with its reward and its propensity.

    One row per decision; every column is described in the file. What the rows can and cannot say
    about other policies is printed, and kept in the file as `valid_use`.
    """
    with readable_errors():
        from guardband.live.operators.export import (
            VALID_USE,
            export_csv,
            export_parquet,
            journals_under,
        )

        journals = journals_under(searched(state))
        if not journals:
            raise FileNotFoundError("no journal was found: name an agent's state folder: --state.")
        try:
            counts = (export_csv if as_csv else export_parquet)(journals, out)
        except ImportError as error:
            raise InvalidValueError(str(error)) from None
        signature = _signature(out, journals, sign)
    total = counts.pop("decisions", 0)
    random, logged, alarms = (counts.pop(name, 0) for name in ("random", "logged", "alarms"))
    typer.echo(f"{out}: {total} decisions of {len(journals)} agent(s).")
    if signature is not None:
        typer.echo(f"{signature}: its signature.")
    typer.echo(
        f"{random} were drawn by a coin (propensity < 1), {total - random} were deterministic: "
        "those have no overlap."
    )
    typer.echo(", ".join(f"{count} {name}" for name, count in sorted(counts.items())) + ".")
    if logged:
        typer.echo(f"{logged} rows learned from logs are not in it: they were no decisions.")
    typer.echo(
        f"{alarms} alarm(s) of monitors: the column `alarms` says which decisions came after one."
        if alarms
        else "Monitors raised no alarm."
    )
    typer.echo("")
    typer.echo(VALID_USE.rstrip())


def _signature(out: Path, journals: list[Path], sign: bool | None) -> Path | None:
    from guardband.live.operators.signatures import is_signed_by_default, sign_file

    wanted = bool(is_signed_by_default(journals)) if sign is None else sign
    return sign_file(out, journals) if wanted else None
