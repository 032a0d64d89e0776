"""`python -m bench.reproduce`: what the paper's evaluation takes at full scale, and what it says.

Runs `guardband reproduce all --scale paper --settings printed` with an empty folder for its trials,
prints a table, and writes time and memory into docs/lab.md. It takes minutes, on a machine that
should do nothing else; `make bench` leaves it out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from guardband.lab.panel import Claim

__all__ = ["main", "other_verdicts", "rewritten", "verdicts_of_page"]

PAGE = Path(__file__).parents[1] / "docs" / "lab.md"
FOUND = "## What was found"
SENTENCE = re.compile(r"in \d+ minutes? \(\d+ s[^)]*\) on \w+ cores with at most \d+ MB of memory")
COMMAND = ["reproduce", "all", "--settings", "printed", "--seed", "0", "--json", "--scale"]
SECONDS, MEGABYTES = 450.0, 1500.0  # wanted
NUMBERS = {1: "one", 2: "two", 4: "four", 8: "eight"}

Verdicts = dict[str, list[str]]  # by panel, in its order; the same one after the other is said once


class Spent(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float
    megabytes: float


def run(scale: str, folder: Path) -> tuple[Spent, list[dict[str, Any]]]:
    """Run the command with a folder for its trials; return what it took and what it printed."""
    words = [sys.executable, "-m", "guardband", *COMMAND, scale]
    out = folder / f"{scale}.json"
    env = {**os.environ, "GUARDBAND_TRIALS": str(folder / scale)}
    began = time.perf_counter()
    with out.open("wb") as file:
        process = subprocess.Popen(words, stdout=file, env=env)
        _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"guardband {' '.join([*COMMAND, scale])} failed.")
    told: list[dict[str, Any]] = json.loads(out.read_text())
    return Spent(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024), told


def verdicts_of_page(text: str) -> Verdicts:
    """Return the verdicts in the first table of what was found."""
    rows = text.partition(FOUND)[2].partition("\n|---")[2].partition("\n\n")[0].splitlines()[1:]
    cells = [[cell.strip(" *") for cell in row.split("|")[1:4]] for row in rows]
    return _merged((panel, verdict) for panel, _, verdict in cells)


def other_verdicts(page: str, told: Iterable[dict[str, Any]]) -> list[str]:
    """Return the panels on the page whose verdicts are others than those of a run."""
    said = [(one["panel"], Claim(**claim).verdict) for one in told for claim in one["claims"]]
    run_said = _merged(said)
    return [name for name, each in verdicts_of_page(page).items() if run_said.get(name) != each]


def _merged(said: Iterable[tuple[str, str]]) -> Verdicts:
    """Return verdicts by panel; a row of the page may stand for several claims."""
    merged: Verdicts = {}
    for (panel, verdict), _ in groupby(said):
        merged.setdefault(panel, []).append(verdict)
    return merged


def rewritten(text: str, spent: Spent, cores: int) -> str:
    """Return the page with what a run took."""
    words = (
        f"in {spent.seconds / 60:.0f} minutes ({spent.seconds:.0f} s, {spent.cpu:.0f} s of CPU "
        f"time) on {NUMBERS.get(cores, cores)} cores with at most {spent.megabytes:.0f} MB of "
        "memory"
    )
    text, count = SENTENCE.subn(words, text)
    if count != 1:
        raise ValueError(f"{PAGE.name} has {count} sentences on what the run took, not one.")
    return text


def main() -> None:
    """Run it, print what it took, write that into the page."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        run("smoke", Path(place))  # compiles kernels where they are not
        spent, told = run("paper", Path(place))
    others = other_verdicts(page, told)
    table = Table("what", "measured", "wanted", "", box=None, title="The paper's evaluation")
    for what, value, wanted, unit in (
        ("time", spent.seconds, SECONDS, "s"),
        ("memory", spent.megabytes, MEGABYTES, "MB"),
    ):
        kept = "kept" if value <= wanted else "MISSED"
        table.add_row(what, f"{value:,.0f} {unit}", f"{wanted:,.0f} {unit}", kept)
    table.add_row("CPU time", f"{spent.cpu:,.0f} s", "-", "")
    verdicts = f"others in {', '.join(others)}" if others else "as in docs/lab.md"
    table.add_row("verdicts", verdicts, "as in docs/lab.md", "MISSED" if others else "kept")
    Console().print(table)
    PAGE.write_text(rewritten(page, spent, os.cpu_count() or 1), encoding="utf-8")


if __name__ == "__main__":
    main()
