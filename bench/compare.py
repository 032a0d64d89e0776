"""Two runs of `make bench` beside each other, row by row.

    python -m bench.compare v0.1.0 HEAD                # what their bench/results.json say
    python -m bench.compare build/bench.json HEAD      # or a file

The last column allows for machines of different speed: it is the ratio divided by that of a plain
NumPy round in the same two runs.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.tables import Section

__all__ = ["Change", "changes", "main", "read"]

FILE = "bench/results.json"
NUMBER = re.compile(r"([\d,]*\.?\d+)( ?[a-zA-Z%/]+)?")
DIFFER = 0.1  # smaller changes are noise on most machines


class Change(NamedTuple):
    """One row in both runs."""

    table: str
    row: str
    what: str
    before: float
    after: float


def read(name: str) -> dict[str, Any]:
    """Return a run: from a file, or as a commit has it."""
    if Path(name).is_file():
        text = Path(name).read_text()
    else:
        done = subprocess.run(
            ["git", "show", f"{name}:{FILE}"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(
                f"{name} is neither a file nor a commit with {FILE}: run `make bench`."
            )
        text = done.stdout
    found: dict[str, Any] = json.loads(text)
    return found


def changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    """Yield the rows that both runs have, by what counts in their table."""
    old = {(table, row): value for table, row, _, value in _values(before)}
    for table, row, what, value in _values(after):
        if (table, row) in old:
            yield Change(table, row, what, old[table, row], value)


def _values(run: dict[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    for given in run["sections"]:
        section = Section(**given)
        for row in section.rows:
            found = NUMBER.fullmatch(row[section.names])
            if found:
                name = ", ".join(row[: section.names])
                value = float(found[1].replace(",", ""))
                yield section.title, name, section.headings[section.names], value


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("before", help="a commit, or a file")
    parser.add_argument("after", help="a commit, or a file")
    given = parser.parse_args()
    runs = read(given.before), read(given.after)
    for name, run in zip((given.before, given.after), runs, strict=True):
        told = (run["commit"], run["date"], run["machine"], f"Python {run['versions']['python']}")
        print(f"{name}: {', '.join(map(str, told))}, load {run['load']}")
    speed = runs[1]["numpy_us"] / runs[0]["numpy_us"]
    table = Table("table", "row", "what", "before", "after", "ratio", "by NumPy", box=None)
    for each in changes(*runs):
        ratio = each.after / each.before if each.before else float("nan")
        style = "bold" if abs(ratio / speed - 1) > DIFFER else ""
        numbers = (f"{each.before:g}", f"{each.after:g}", f"{ratio:.2f}", f"{ratio / speed:.2f}")
        table.add_row(each.table, each.row, each.what, *numbers, style=style)
    Console().print(table)


if __name__ == "__main__":
    main()
