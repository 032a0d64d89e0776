"""Whether the numbers of a group of agents have room in memory: known before any is taken."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

from guardband.errors import InvalidValueError
from guardband.kernels.state import entry_size

__all__ = ["room_for"]

LARGEST_GROUP = 4_000_000_000  # tasks times dim squared: numbers in one of each task's matrices
BYTES = 8.0
REMEDY = "Use fewer features, or split the tasks among several processes and machines."


@contextmanager
def room_for(tasks: int, dim: int) -> Iterator[None]:
    """Refuse more agents, or larger ones, than this machine has room for."""
    asked = f"{tasks:,} tasks with dim={dim:,}"
    if tasks * dim**2 > LARGEST_GROUP:
        raise InvalidValueError(
            f"{asked} are too many for one process: tasks times dim squared may be at most "
            f"{LARGEST_GROUP:,}. {REMEDY}"
        )
    needed, there = BYTES * (tasks + 2) * int(entry_size.plain(dim)), _memory()
    most = f"at most {int(tasks * dim**2 * there / needed):,}" if there < needed else "less"
    short = InvalidValueError(
        f"{asked} need {needed / 1e9:,.1f} GB of memory, which this machine has not: tasks times "
        f"dim squared, {tasks * dim**2:,}, must be {most} here. {REMEDY}"
    )
    if there < needed:
        raise short
    try:
        yield
    except MemoryError:  # others need some of it, too
        raise short from None


def _memory() -> float:
    """Return how many bytes of memory the machine has; infinite where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # such as Windows
        return math.inf
