"""Simulate for as long as one likes: `make simulate EVENTS=10_000_000 SEED=0`.

World after world, each with a seed of its own; `--seed N --worlds 1` replays one. The summary of a
run of a million events or more goes to docs/simulation-runs.md. Ctrl-C ends a run before its time,
and what it reached is its summary.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

from live.simulation.parallel import outcomes
from live.simulation.simulation import Outcome

from bench.commits import commit_now
from guardband.progress import ProgressBar

WORLD = 20_000  # events of one world
WORTH_KEEPING = 1_000_000
PAGE = Path(__file__).parents[3] / "docs" / "simulation-runs.md"
LIST = "<!-- runs -->\n"


def main() -> int:
    """Run, and return the number of worlds in which a promise was broken."""
    asked, commit = arguments(), commit_now()
    worlds = asked.worlds or max(1, -(-asked.events // WORLD))
    seeds = range(asked.seed, asked.seed + worlds)
    total, began, used = Outcome(asked.seed), time.monotonic(), 0.0
    failed: list[int] = []
    done = 0
    with ProgressBar("simulating") as bar, suppress(KeyboardInterrupt):
        bar.expect(worlds)
        with closing(outcomes(seeds, min(WORLD, asked.events), asked.workers)) as found:
            for outcome, seconds in found:
                add(total, outcome)
                done, used = done + 1, used + seconds
                bar.advance(1)
                if outcome.failure:
                    failed.append(outcome.seed)
                    print(f"seed {outcome.seed}, trace {outcome.trace}:\n{outcome.failure}")
                    print(f"replay it: make simulate SEED={outcome.seed} WORLDS=1", flush=True)
    rate = total.events / max(used, 1e-9)
    lines = summary(total, failed, done, time.monotonic() - began, rate, commit)
    print("\n".join(lines))
    if total.events >= WORTH_KEEPING:
        text = PAGE.read_text()
        head, rest = text.split(LIST)
        PAGE.write_text(head + LIST + "\n".join(["", *lines, ""]) + rest)
    return len(failed)


def arguments() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first world")
    parser.add_argument("--worlds", type=int, default=0, help="how many; 0: by the events")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes at a time")
    return parser.parse_args()


def add(total: Outcome, one: Outcome) -> None:
    """Add the numbers of one world to those of all."""
    total.faults += one.faults
    total.kinds += one.kinds
    for name in ("events", "epochs", "acknowledged", "checks", "seconds"):
        setattr(total, name, getattr(total, name) + getattr(one, name))


def summary(
    total: Outcome, failed: list[int], worlds: int, seconds: float, rate: float, commit: str
) -> list[str]:
    """Return the table of a run, in Markdown."""
    faults, events = total.faults.total(), total.events
    kinds = ", ".join(f"{name} {n:,}" for name, n in Counter(total.faults).most_common())
    rows = {
        "seeds, commit": f"{total.seed:,} to {total.seed + worlds - 1:,}, {commit}",
        "events": f"{events:,}",
        "faults": f"{faults:,}, one in {events / max(faults, 1):,.0f}",
        "faults by kind": kinds,
        "simulated time": f"{total.seconds / 3600:,.1f} h",
        "real time": f"{seconds / 60:,.1f} min, {rate:,.0f} events per second of a processor",
        "decisions, rewards": f"{total.kinds['decision']:,}, {total.kinds['reward']:,}",
        "observations acknowledged": f"{total.acknowledged:,}",
        "epochs": f"{total.epochs:,}",
        "checks of everything": f"{total.checks:,}",
        "worlds with a broken promise": f"{len(failed)} of {worlds:,} {failed or ''}".strip(),
    }
    lines = ["| what | how much |", "|---|---|"]
    return [*lines, *(f"| {name} | {value} |" for name, value in rows.items())]


if __name__ == "__main__":
    sys.exit(bool(main()))
