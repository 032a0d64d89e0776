"""`guardband problems` and `guardband algorithms`: what there is."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from guardband.algorithms import ALGORITHMS
from guardband.problems import PROBLEMS

__all__ = ["algorithms", "problems"]


def problems() -> None:
    """List the problems that can be run by name."""
    table = Table(box=None, pad_edge=False)
    for heading in ("problem", "agents", "actions", "contexts", "features", "what it is"):
        table.add_column(heading, justify="right" if heading in SIZES else "left")
    for name, kind in PROBLEMS.items():
        problem = kind()
        world = problem.build(0)
        contexts, actions, dim = world.phi.shape
        sizes = (len(world.tasks), actions, contexts, dim)
        table.add_row(name, *map(str, sizes), problem.about)
    Console().print(table)


def algorithms() -> None:
    """List the algorithms that can be run by name."""
    table = Table(box=None, pad_edge=False)
    for heading in ("algorithm", "constraint", "communication", "what it is", "source"):
        table.add_column(heading)
    for name, entry in ALGORITHMS.items():
        table.add_row(name, entry.constraint, entry.communication, entry.about, entry.source)
    Console().print(table)


SIZES = ("agents", "actions", "contexts", "features")
