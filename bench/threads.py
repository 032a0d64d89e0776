"""`python -m bench.threads`: decisions per second of agents in threads, each with an agent its own.

Kernels release the interpreter's lock, so threads run them side by side; all else in a call is
Python, of which one thread at a time runs. Calls of one agent take turns, whichever thread they
come from: more threads on one agent are no faster.
"""

from __future__ import annotations

import threading
import time
import warnings

from rich.console import Console
from rich.table import Table

import guardband as gb
from bench.agents import BATCH, Menus, Round, in_batches, menus, ours, prepared
from guardband.agent import warm_up

__all__ = ["HEADINGS", "measure"]

HEADINGS = ["how", "K", "d", "threads", "decisions/s", "to one thread"]
SIZES = [(50, 9), (500, 50)]
THREADS = (1, 2, 4)
TURNS, SECONDS = 5, 0.5  # turns that each number of threads has, and how long one takes


def decided(rounds: list[Round], seconds: float) -> float:
    """Let each thread play its rounds for so long; return how many there were a second."""
    counts, ready = [0] * len(rounds), threading.Barrier(len(rounds) + 1)
    over = threading.Event()

    def play(which: int) -> None:
        one, done = rounds[which], 0
        ready.wait()
        while not over.is_set():
            one(done)
            done += 1
        counts[which] = done

    threads = [threading.Thread(target=play, args=(k,)) for k in range(len(rounds))]
    for thread in threads:
        thread.start()
    ready.wait()
    started = time.perf_counter()
    time.sleep(seconds)
    over.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def rates(given: Menus, agents: list[gb.Agent], *, batches: bool) -> list[float]:
    """Return decisions per second for each number of threads, the best of several turns."""
    rounds: list[Round] = [(in_batches if batches else ours)(agent, given) for agent in agents]
    best = [0.0] * len(THREADS)
    for _ in range(TURNS):
        for k, count in enumerate(THREADS):
            best[k] = max(best[k], decided(rounds[:count], SECONDS))
    return [(BATCH if batches else 1) * each for each in best]


def measure(notes: Console) -> list[list[str]]:
    """Return a row for every size, way to ask and number of threads."""
    rows = []
    for actions, dim in SIZES:
        given = menus(actions, dim, certified=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gb.StuckWarning)
            agents = [prepared(actions, dim, given, certified=True) for _ in range(max(THREADS))]
            for how in ("one by one", "in batches"):
                with notes.status(f"threads, K={actions}, d={dim}, {how}"):
                    found = rates(given, agents, batches=how == "in batches")
                for count, rate in zip(THREADS, found, strict=True):
                    ratio = f"{rate / found[0]:.2f}"
                    rows.append([how, f"{actions}", f"{dim}", f"{count}", f"{rate:,.0f}", ratio])
    return rows


def main() -> None:
    """Print the table alone."""
    warm_up()
    table = Table(*HEADINGS, box=None, title="Agents in threads, decide + observe")
    for row in measure(Console(stderr=True)):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
