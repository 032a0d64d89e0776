"""What certificates by the range of rewards cost a round, beside the confidence set alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console

import guardband as gb
from bench import workloads

HEADINGS = ["workload", "us", "us by the confidence set alone", "ratio", "limit"]
REPEATS = 5


def guard(on_refuted: str, **settings: Any) -> gb.GuardUCB:
    return gb.GuardUCB(noise=0.1, on_refuted=on_refuted, **settings)


def certified(on_refuted: str) -> Callable[[], float]:
    """Almost everything may be lost: the confidence set certifies the target in all rounds."""
    algorithm = guard(on_refuted, alpha=0.9, context_noise=0.1)
    return workloads.rounds_of(algorithm, 50, 9, 100, 50_000)


def whole_run(name: str, rounds: int, mode: str) -> Callable[[str], Callable[[], float]]:
    return lambda on_refuted: workloads.rounds_on(
        gb.problem(name), guard(on_refuted, alpha=0.2, mode=mode), rounds
    )


ROWS = [
    ("certified target, K=50, d=9", certified, 50_000, 1.1),
    *(
        (f"a run of {rounds:,} rounds, {name}, {mode}", whole_run(name, rounds, mode), rounds, 1.5)
        for name, rounds in (("forecast", 20_000), ("forecast-large", 5_000))
        for mode in ("strict", "policy")
    ),
]


def measure(notes: Console) -> list[list[str]]:
    """Return a row per workload; both certificates take turns, and each counts by its best run."""
    rows = []
    for label, work_of, rounds, limit in ROWS:
        with notes.status(label):
            works = {kind: work_of(kind) for kind in ("baseline", "ellipsoid")}
            best = dict.fromkeys(works, float("inf"))
            for _ in range(REPEATS):
                for kind, work in works.items():
                    start = time.process_time()
                    work()
                    best[kind] = min(best[kind], 1e6 * (time.process_time() - start) / rounds)
        ours, alone = best["baseline"], best["ellipsoid"]
        rows.append([label, f"{ours:.2f}", f"{alone:.2f}", f"{ours / alone:.2f}", f"{limit:g}"])
    return rows
