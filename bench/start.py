"""How agents start: with an empty cache, and with what was compiled before.

`python -m bench.start` prints the table alone. It takes some minutes: each row compiles anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from rich.console import Console
from rich.table import Table

__all__ = ["HEADINGS", "measure"]

HEADINGS = ["start", "first call, s", "CPU s", "longest later call, ms", "its CPU ms"]
HEADINGS += ["compiled after, s"]
LONGEST_S = 10.0  # for how long calls are watched; the first row until all is compiled
SIZES = [(50, 9), (5, 31), (2, 50), (1250, 2), (5000, 1)]  # K d^2 <= 5,000
BATCH = 8  # decisions of the first call, where that is `decide_many`
PAUSE_S = 0.01
PATIENCE_S = 900.0


def decide_for(actions: int, dim: int, seconds: float, batch: int) -> None:
    """Decide and observe in this process, and print what that took; runs in a child.

    Of a `batch` the first call is `decide_many`; all others are `decide` and `observe`.
    """
    import guardband as gb  # noqa: PLC0415 - counts as the start

    rng = np.random.default_rng(0)
    agent, theta = gb.Agent(dim), np.full(dim, 0.9 * dim**-0.5)
    longest, began, compiled = (0.0, 0.0), time.perf_counter(), None
    for turn in range(10**9):
        menu = rng.uniform(0.0, dim**-0.5, (actions, dim))
        wall, own = time.perf_counter(), time.thread_time()
        if batch and not turn:
            made = agent.decide_many([menu] * batch, [0] * batch)[0]
        else:
            made = agent.decide(menu, 0)
        if turn:
            longest = max(longest, (time.perf_counter() - wall, time.thread_time() - own))
        else:
            print(json.dumps(time.process_time()), flush=True)
        wall, own = time.perf_counter(), time.thread_time()
        agent.observe(made, float(menu[made.action] @ theta))
        longest = max(longest, (time.perf_counter() - wall, time.thread_time() - own))
        now = time.perf_counter() - began
        if compiled is None and agent._group.engine.full_speed:
            compiled = now
        if now > seconds or (compiled is not None and now > compiled + 1.0):
            break
        time.sleep(PAUSE_S)
    print(json.dumps([*longest, compiled]), flush=True)


def _start(
    label: str, size: tuple[int, int], seconds: float, folder: str, batch: int = 0
) -> list[str]:
    """Return a row: a process that decides among so many actions."""
    words = [sys.executable, "-m", "bench.start", *map(str, (*size, seconds, batch))]
    env = {**os.environ, "NUMBA_CACHE_DIR": folder}
    began = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        cpu = json.loads(process.stdout.readline())
        first = time.perf_counter() - began
        wall, own, compiled = json.loads(process.stdout.readline())
    after = "-" if compiled is None else f"{compiled:.1f}"
    return [label, f"{first:.2f}", f"{cpu:.2f}", f"{1e3 * wall:.0f}", f"{1e3 * own:.0f}", after]


def measure(notes: Console) -> list[list[str]]:
    """Return a row for every start."""
    rows = []
    for number, size in enumerate(SIZES):
        name = f"K={size[0]:,}, d={size[1]}"
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            with notes.status(f"starting with nothing compiled, {name}"):
                seconds = LONGEST_S if number else PATIENCE_S
                rows.append(_start(f"empty cache, {name}", size, seconds, folder))
            if not number:
                rows.append(_start(f"compiled before, {name}", size, PATIENCE_S, folder))
    name = f"K={SIZES[0][0]}, d={SIZES[0][1]}, a batch of {BATCH}"
    folders = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with folders as folder, notes.status(f"starting with nothing compiled, {name}"):
        rows.append(_start(f"empty cache, {name}", SIZES[0], LONGEST_S, folder, BATCH))
    return rows


if __name__ == "__main__":
    if len(sys.argv) > 1:
        decide_for(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
    else:
        table = Table(*HEADINGS, box=None, title="The start of gb.Agent")
        for row in measure(Console(stderr=True)):
            table.add_row(*row)
        Console().print(table)
