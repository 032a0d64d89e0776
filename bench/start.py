"""How agents start: with an empty cache, and with what was compiled before.

`python -m bench.start` prints the table alone. It takes ten minutes or more: each row with an empty
cache compiles anew, and lasts until all is compiled, so that none disturbs the next.
"""

from __future__ import annotations

import asyncio
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
HEADINGS += ["compiled after, s", "longest stall of an event loop, ms", "wanted", ""]
SIZES = [(50, 9), (5, 31), (2, 50), (1250, 2), (5000, 1)]  # K d^2 <= 5,000
LARGE = (500, 20)  # it waits until its kernels are compiled
BATCH = 8  # decisions of the first call, where that is `decide_many`
FIRST_S, LATER_MS, STALL_MS = 1.5, 50.0, 50.0  # wanted at most
PAUSE_S = 0.01
TICK_S = 0.005
PATIENCE_S = 900.0


def decide_until_compiled(actions: int, dim: int, batch: int) -> None:
    """Decide and observe in this process, and print what that took; runs in a child.

    Of a `batch` the first call is `decide_many`; all others are `decide` and `observe`.
    """
    import guardband as gb  # noqa: PLC0415 - counts as the start
    from guardband.kernels.start.background import idle  # noqa: PLC0415

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
        if compiled is None and idle():
            compiled = now
        if now > PATIENCE_S or (compiled is not None and now > compiled + 1.0 and idle()):
            break
        time.sleep(PAUSE_S)
    print(json.dumps([*longest, compiled, None]), flush=True)


async def wait_in_a_loop(actions: int, dim: int) -> None:
    """Decide and observe while an event loop ticks, and print what that took; runs in a child."""
    import guardband as gb  # noqa: PLC0415 - counts as the start

    stall = 0.0

    async def tick() -> None:
        nonlocal stall
        last = time.perf_counter()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.perf_counter()
            stall, last = max(stall, now - last - TICK_S), now

    agent, ticking = gb.Agent(dim), asyncio.create_task(tick())
    menu = np.random.default_rng(0).uniform(0.0, dim**-0.5, (actions, dim))
    made = await agent.adecide(menu, 0)
    print(json.dumps(time.process_time()), flush=True)
    wall, own = time.perf_counter(), time.process_time()
    await agent.aobserve(made, 0.5)
    wall, own = time.perf_counter() - wall, time.process_time() - own
    ticking.cancel()
    print(json.dumps([wall, own, wall, stall]), flush=True)


def _start(label: str, size: tuple[int, int], folder: str, batch: int = 0) -> list[str]:
    """Return a row: a process that decides among so many actions."""
    words = [sys.executable, "-m", "bench.start", *map(str, (*size, batch))]
    env = {**os.environ, "NUMBA_CACHE_DIR": folder}
    began = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        cpu = json.loads(process.stdout.readline())
        first = time.perf_counter() - began
        wall, own, compiled, stall = json.loads(process.stdout.readline())
    after = "-" if compiled is None else f"{compiled:.1f}"
    if stall is None:
        wanted = f"{FIRST_S:g} s, then {LATER_MS:g} ms"
        kept, stalled = first <= FIRST_S and 1e3 * wall <= LATER_MS, "-"
    else:
        wanted = f"stalls of {STALL_MS:g} ms"
        kept, stalled = 1e3 * stall <= STALL_MS, f"{1e3 * stall:.0f}"
    times = [f"{first:.2f}", f"{cpu:.2f}", f"{1e3 * wall:.0f}", f"{1e3 * own:.0f}", after, stalled]
    return [label, *times, wanted, "kept" if kept else "MISSED"]


def measure(notes: Console) -> list[list[str]]:
    """Return a row for every start."""
    rows = []

    def cold(size: tuple[int, int], more: str = "", batch: int = 0, *, again: bool = False) -> None:
        name = f"K={size[0]:,}, d={size[1]}{more}"
        folders = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with folders as folder, notes.status(f"starting with nothing compiled, {name}"):
            rows.append(_start(f"empty cache, {name}", size, folder, batch))
            if again:
                rows.append(_start(f"compiled before, {name}", size, folder, batch))

    for size in SIZES:
        cold(size, again=size == SIZES[0])
    cold(SIZES[0], f", a batch of {BATCH}", BATCH)
    cold(LARGE, ", in an event loop")
    return rows


if __name__ == "__main__":
    if len(sys.argv) > 1:
        actions, dim, batch = map(int, sys.argv[1:])
        if (actions, dim) == LARGE:
            asyncio.run(wait_in_a_loop(actions, dim))
        else:
            decide_until_compiled(actions, dim, batch)
    else:
        table = Table(*HEADINGS, box=None, title="The start of gb.Agent")
        for row in measure(Console(stderr=True)):
            table.add_row(*row)
        Console().print(table)
