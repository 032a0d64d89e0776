"""The tables of `make bench`: on the screen, on the page, and as JSON that can be compared."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from guardband.sim import commit, versions

__all__ = ["Section", "about", "as_json", "markdown", "show"]


class Section(NamedTuple):
    """One table."""

    title: str
    words: str  # what the page says of it
    headings: Sequence[str]
    rows: list[list[str]]
    names: int = 1  # how many columns, the first ones, name a row; the next one is what counts


def show(section: Section) -> None:
    """Print a table."""
    table = Table(*section.headings, box=None, title=section.title)
    for row in section.rows:
        table.add_row(*row)
    Console().print(table)


def markdown(section: Section) -> list[str]:
    """Return the lines of a table on a page."""
    return [
        section.words,
        "",
        _line(section.headings),
        "|" + "---|" * len(section.headings),
        *map(_line, section.rows),
        "",
    ]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def about(numpy_us: float) -> dict[str, Any]:
    """Return what measurements depend on; `numpy_us` says how fast this core is."""
    return {
        "commit": commit(),
        "date": str(date.today()),
        "machine": cpu(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": versions(),
        "settings": {name: os.environ[name] for name in sorted(os.environ) if "_THREADS" in name},
        "numpy_us": numpy_us,
    }


def as_json(facts: dict[str, Any], sections: Sequence[Section]) -> dict[str, Any]:
    """Return all that was measured, for `bench.compare`."""
    return {**facts, "sections": [section._asdict() for section in sections]}


def cpu() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")
