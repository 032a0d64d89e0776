"""`guardband demo`: the live system, with simulated users."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.numbers import number_option, port_option
from guardband.cli.operator import readable_errors
from guardband.cli.serve import PORT

__all__ = ["demo"]


def demo(
    port: Annotated[int, port_option("Port; another one if it is taken.")] = PORT,
    minutes: Annotated[
        float | None, number_option("How long; until Ctrl-C if left out.", least=0.0)
    ] = None,
    rate: Annotated[
        float, number_option("Users per second of each client, 0.1 to 500.", least=0.1, most=500.0)
    ] = 30.0,
    change_after: Annotated[
        float,
        number_option(
            "Seconds after which the tastes of one part's users change, which its agent "
            "notices; 0: never.",
            least=0.0,
        ),
    ] = 120.0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the dashboard.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="Keep the data in this folder; without it, a temporary one.")
    ] = None,
) -> None:
    """Watch it learn: a coordinator, three agents on MovieLens, and a dashboard.

    Three parts of a film site recommend films to simulated users and learn together. After two
    minutes the tastes of one part's users change: an alarm is raised and acted upon. The first line
    printed is the dashboard's address; Ctrl-C stops everything.
    """
    with readable_errors():
        from guardband.demo import run_demo

        run_demo(
            port=port,
            minutes=minutes,
            rate=rate,
            change_after=change_after,
            browser=not no_browser,
            data=data,
        )
