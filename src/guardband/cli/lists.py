"""`guardband problems` and `guardband algorithms`: lists of what can be run by name."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import guardband as gb

__all__ = ["algorithms", "problems"]

SIZES = ("agents", "actions", "contexts", "features")


def problems() -> None:
    """List the problems that can be run by name."""
    table = Table(box=None, pad_edge=False)
    for heading in ("problem", *SIZES, "what it is"):
        named = heading == "problem"
        table.add_column(heading, justify="right" if heading in SIZES else "left", no_wrap=named)
    for name, kind in gb.problems.PROBLEMS.items():
        sizes = dict(kind().sizes)
        table.add_row(name, *(str(sizes[size]) for size in SIZES), kind.about)
    console = _wide()
    console.print(table)
    console.print("\nrun one with: guardband run --problem NAME; or your own: FILE.npz, FILE.csv")


def algorithms() -> None:
    """List the algorithms that can be run by name."""
    table = Table(box=None, pad_edge=False)
    for heading in ("algorithm", "constraint", "communication", "what it is", "source", "reading"):
        table.add_column(heading, no_wrap=heading == "algorithm")
    for name, entry in gb.algorithms.ALGORITHMS.items():
        words = (entry.constraint, entry.communication, entry.about, entry.source, entry.reading)
        table.add_row(name, *words)
    _wide().print(table)


def _wide() -> Console:
    """Return a console on which an entry takes one line; a narrow terminal wraps it."""
    console = Console()
    return Console(width=max(console.width, 220))
