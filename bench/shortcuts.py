"""`python -m bench.shortcuts`: the simulator with old widths and blocks, and computing everything.

All in one run and in turns: beside the same rounds one by one, and beside plain NumPy.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import guardband as gb
from bench import workloads
from bench.clock import best_of, limit, matrix_rate, root_rate
from guardband.algorithms import Algorithm

FREE, SHUT = gb.DisLinUCB(), gb.DiscUCB(0.1)
GUARD = gb.GuardUCB(0.5, noise=0.1, context_noise=0.1)
OPEN = gb.DiscUCB(0.9, gate="none", noise=0.1, context_noise=0.1)

# What is measured; rounds; how many times faster than one by one it has to be, where more is
# wanted than of any fast path; which share of NumPy's time it may take.
ROWS: list[tuple[str, Algorithm, tuple[int, int, int], int, float | None, float | None]] = [
    ("conservative round, K=50, d=9", SHUT, (50, 9, 100), 50_000, 4.0, None),
    ("optimistic round, K=50, d=9", FREE, (50, 9, 100), 50_000, 1.6, None),
    ("optimistic round, K=538, d=9, 741 contexts", FREE, (538, 9, 741), 30_000, None, None),
    ("optimistic round, K=500, d=50", FREE, (500, 50, 100), 10_000, 3.0, None),
    ("optimistic round, K=1000, d=128", FREE, (1000, 128, 20), 1_000, None, 0.5),
    ("optimistic round, K=100, d=384", FREE, (100, 384, 20), 1_000, None, 0.5),
    ("conservative round, K=100, d=384", SHUT, (100, 384, 20), 1_000, None, 0.5),
    ("safe optimistic round, K=50, d=9", OPEN, (50, 9, 100), 50_000, None, None),
    ("Guard-UCB round, K=50, d=9", GUARD, (50, 9, 100), 50_000, None, None),
    ("Guard-UCB round, K=500, d=50", GUARD, (500, 50, 100), 10_000, None, None),
    ("Guard-UCB round, K=1000, d=128", GUARD, (1000, 128, 20), 1_000, None, 0.5),
    ("Guard-UCB round, K=100, d=384", GUARD, (100, 384, 20), 1_000, None, 0.5),
]
HEADINGS = ["workload", "us", "one by one us", "ratio", "wanted", "NumPy us", "of NumPy's time"]
HEADINGS += ["wanted", "of the limit", ""]
FASTER = 1.5  # a fast path that wins less is to be removed
REPEATS = 3


def measure(notes: Console) -> list[list[str]]:
    """Return a row for every workload."""
    flops, roots, rows = matrix_rate(), root_rate(), []
    for label, algorithm, (actions, dim, contexts), rounds, faster, share in ROWS:
        with notes.status(label):
            size = (actions, dim, contexts, rounds)
            quick = workloads.rounds_of(algorithm, *size)
            slow = workloads.rounds_of(algorithm, *size, quick=False)
            few = 1000 if actions * dim < 10_000 else 200
            plain = workloads.numpy_rounds(actions, dim, contexts, few)
            careful = quick() > 0.5
            ours = before = numpy = float("inf")
            for _ in range(REPEATS):
                ours = min(ours, best_of(quick, rounds, 1))
                before = min(before, best_of(slow, rounds, 1))
                numpy = min(numpy, best_of(plain, few, 1))
        wanted, kept = FASTER if faster is None else faster, "kept"
        if before < wanted * ours or (share is not None and ours > share * numpy):
            kept = "MISSED"
        top = "-" if careful else f"{100 * limit(actions, dim, flops, roots) / ours:.0f} %"
        rows.append(
            [
                label,
                f"{ours:.3g}",
                f"{before:.3g}",
                f"{before / ours:.2f}",
                f"{wanted:g}",
                f"{numpy:.4g}",
                f"{ours / numpy:.3f}",
                "-" if share is None else f"{share:g}",
                top,
                kept,
            ]
        )
    return rows


def main() -> None:
    table = Table(*HEADINGS, box=None, title=f"CPU us per round, best of {REPEATS}, in turns")
    for row in measure(Console(stderr=True)):
        table.add_row(*row)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
