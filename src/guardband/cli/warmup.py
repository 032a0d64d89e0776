"""`guardband warmup`: compile ahead what agents need."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from guardband.cli.operator import readable_errors

__all__ = ["EXAMPLE", "warmup"]

EXAMPLE = (
    "In an image, as the user that will run it: RUN guardband warmup. Machine code is kept in that "
    "user's cache folder; set NUMBA_CACHE_DIR to keep it elsewhere, in the image and where it runs."
)


class Role(StrEnum):
    """What agents do; see `guardband.agent.warmup.ROLES`."""

    guard_ucb = "guard-ucb"
    value = "value"
    tolerate = "tolerate"
    others = "others"


def warmup(
    roles: Annotated[
        list[str] | None,
        typer.Argument(
            help="guard-ucb: the default agents, live ones too; value: with values or a budget; "
            "tolerate: with tolerate=1; others: the paper's algorithms. Without any: all."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Compile ahead what agents need, so that they start at full speed: minutes, once.

    Without it agents start in a second all the same: small menus are decided by plain Python, and
    the kernels are compiled in the background. Nothing is compiled twice for one version.
    """
    with readable_errors():
        from guardband.agent import warm_up
        from guardband.checks import check_choice
        from guardband.kernels._compile import cache_folder, is_shared
        from guardband.progress import ProgressBar

        known = [role.value for role in Role]
        names = [check_choice("role", role, known) for role in roles or known]
        if not is_shared():
            raise OSError(
                "no folder for machine code can be written: set NUMBA_CACHE_DIR to one that can."
            )
        with ProgressBar("compiling kernels", show=False if quiet else None) as bar:
            count = warm_up(names, bar)
        if not quiet:
            typer.echo(f"{count} kernels are compiled, in {cache_folder()}.")
