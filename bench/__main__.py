"""`make bench`: measure, print a table, write bench/results.md."""

from __future__ import annotations

import platform
import sys
import time
import warnings
from datetime import date
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

import guardband as gb
from bench import certificates, live, replicas, workloads
from bench.clock import best_of, limit, matrix_rate, root_rate
from guardband.algorithms import ALGORITHMS
from guardband.problems import PROBLEMS
from guardband.sim import commit, versions

REFERENCE = 21.0  # microseconds of the NumPy round at (50, 9) for which the targets were set
SHUT = gb.DiscUCB(0.1)  # the printed gate stays shut: every round is conservative
FREE = gb.DisLinUCB()
OPEN = gb.DiscUCB(0.9, gate="none", noise=0.1, context_noise=0.1)

GUARD = gb.GuardUCB(0.5, noise=0.1, context_noise=0.1)

ROUNDS = [
    ("conservative round, K=40, d=2", SHUT, (40, 2, 100), 200_000, 0.15),
    ("optimistic round, K=40, d=2", FREE, (40, 2, 100), 200_000, 0.35),
    ("optimistic round, K=50, d=9", FREE, (50, 9, 100), 50_000, 1.2),
    ("optimistic round, K=538, d=9, 741 contexts", FREE, (538, 9, 741), 10_000, 12.0),
    ("safe optimistic round, K=40, d=2", OPEN, (40, 2, 100), 200_000, None),
    ("safe optimistic round, K=50, d=9", OPEN, (50, 9, 100), 50_000, None),
    ("safe optimistic round, K=538, d=9, 741 contexts", OPEN, (538, 9, 741), 10_000, None),
    ("Guard-UCB round, context noise declared, K=40, d=2", GUARD, (40, 2, 100), 200_000, 0.7),
    ("Guard-UCB round, context noise declared, K=50, d=9", GUARD, (50, 9, 100), 50_000, 2.4),
    ("Guard-UCB round, context noise declared, K=538, d=9", GUARD, (538, 9, 741), 10_000, 24.0),
]


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")


def measure(notes: Console) -> tuple[list[list[str]], float]:
    with notes.status("measuring this core"):
        flops, roots = matrix_rate(), root_rate()
        numpy_round = best_of(workloads.numpy_rounds(50, 9, 100, 3000), 3000)
    scale = numpy_round / REFERENCE
    rows = []
    for label, algorithm, (actions, dim, contexts), rounds, target in ROUNDS:
        with notes.status(label):
            work = workloads.rounds_of(algorithm, actions, dim, contexts, rounds)
            share = work()
            ours = best_of(work, rounds)
            plain = best_of(workloads.numpy_rounds(actions, dim, contexts, 1000), 1000, repeats=3)
        top = "-"
        if share < 0.5:
            top = f"{100 * limit(actions, dim, flops, roots) / ours:.0f} %"
        rows.append(
            [
                label,
                f"{ours:.3f}",
                _target(target, scale),
                f"{plain:.1f}",
                f"{plain / ours:.0f}",
                top,
            ]
        )
    with notes.status("decide + observe"):
        for actions, dim, target in ((10, 2, None), (50, 9, 20.0), (5000, 9, None)):
            count = 5000 if actions < 1000 else 500
            work = workloads.calls(actions, dim, count)
            work()
            ours = best_of(work, count)
            plain = best_of(workloads.numpy_rounds(actions, dim, 100, 500), 500, repeats=3)
            label = f"decide + observe from Python, K={actions}, d={dim}"
            rows.append(
                [
                    label,
                    f"{ours:.2f}",
                    _target(target, scale),
                    f"{plain:.1f}",
                    f"{plain / ours:.1f}",
                    "-",
                ]
            )
        for valued in (False, True):
            work = workloads.calls(50, 9, 5000, guard=True, valued=valued)
            work()
            label = f"the same by guard-ucb, K=50, d=9{', with value' if valued else ''}"
            rows.append([label, f"{best_of(work, 5000):.2f}", "-", "-", "-", "-"])
    return rows, numpy_round


def builds(notes: Console) -> list[list[str]]:
    """Return how long each named problem takes to build, and how large its tables are."""
    rows = []
    for name, kind in PROBLEMS.items():
        with notes.status(f"building {name}"):
            problem = kind()
            micros = best_of(partial(problem.build, 0), 1, repeats=3)
            world = problem.build(0)
        size = sum(a.nbytes for a in (world.phi, world.psi, world.theta, world.baseline))
        rows.append([name, f"{micros / 1000:.2f}", f"{size:,}"])
    return rows


def everything(notes: Console) -> str:
    """Return the seconds that all algorithms take on synthetic-b, 20,000 rounds, 20 trials."""
    algorithms = [entry.make() for entry in ALGORITHMS.values()]
    task = gb.problem("synthetic-b")
    with notes.status("all algorithms on synthetic-b"), warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.BoundWarning)
        gb.simulate(task, algorithms, rounds=2, alpha=0.25, progress=False)
        start = time.perf_counter()
        gb.simulate(task, algorithms, rounds=20_000, trials=20, alpha=0.25, progress=False)
    return f"{len(algorithms)} algorithms: {time.perf_counter() - start:.1f} s on all cores"


def _target(target: float | None, scale: float) -> str:
    return "-" if target is None else f"{target * scale:.3g}"


def main() -> None:
    notes = Console(stderr=True)
    rows, numpy_round = measure(notes)
    headings = ["workload", "us", "target us", "NumPy us", "NumPy / ours", "of the limit"]
    table = Table(
        *headings, box=None, title="CPU microseconds per agent-round, best of 7, one core"
    )
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    ranged = certificates.measure(notes)
    by_range = Table(*certificates.HEADINGS, box=None, title="Certificates by the range of rewards")
    for row in ranged:
        by_range.add_row(*row)
    Console().print(by_range)
    beside = Table(*live.HEADINGS, box=None, title="The live system, beside what it rests on")
    lived = [row.cells() for row in live.measure(notes)]
    for row in lived:
        beside.add_row(*row)
    Console().print(beside)
    stores = replicas.measure(notes)
    several = Table(*replicas.HEADINGS, box=None, title="64 agents, SQLite and PostgreSQL")
    for row in stores:
        several.add_row(*row)
    Console().print(several)
    built, whole = builds(notes), everything(notes)
    Console().print(f"synthetic-b, 20,000 rounds, 20 trials, {whole}")
    lines = [
        "# Speed",
        "",
        "CPU microseconds per agent-round (simulator, environment included) or per call (agent),",
        "best of 7, one core, kernels warm. Targets are scaled to this core: they were set on one",
        f"where the plain NumPy round at K=50, d=9 takes {REFERENCE:g} us; here it takes "
        f"{numpy_round:.1f} us.",
        "`of the limit`: the round's floating-point work at the rate of a matrix product on this",
        "core, plus its square roots, against what was measured.",
        "",
        "| " + " | ".join(headings) + " |",
        "|" + "---|" * len(headings),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "Guard-UCB's rounds with certificates by the range of rewards, all agents together:",
        "",
        "| " + " | ".join(certificates.HEADINGS) + " |",
        "|" + "---|" * len(certificates.HEADINGS),
        *("| " + " | ".join(row) + " |" for row in ranged),
        "",
        "The live system beside what it rests on, in turns; everything on this machine:",
        "",
        "| " + " | ".join(live.HEADINGS) + " |",
        "|" + "---|" * len(live.HEADINGS),
        *("| " + " | ".join(row) + " |" for row in lived),
        "",
        "Durable uploads of 64 agents and the time of an epoch, by store and number of replicas:",
        "",
        "| " + " | ".join(replicas.HEADINGS) + " |",
        "|" + "---|" * len(replicas.HEADINGS),
        *("| " + " | ".join(row) + " |" for row in stores),
        "",
        "Building each problem:",
        "",
        "| problem | ms | bytes of features, theta and baseline |",
        "|---|---|---|",
        *("| " + " | ".join(row) + " |" for row in built),
        "",
        f"synthetic-b, 20,000 rounds, 20 trials, {whole}.",
        "",
        f"{date.today()}, {cpu()}, Python {sys.version.split()[0]}, numba {versions()['numba']}, "
        f"numpy {versions()['numpy']}, commit {commit()}",
        "",
    ]
    Path(__file__).with_name("results.md").write_text("\n".join(lines))
    notes.print("written to bench/results.md")


if __name__ == "__main__":
    main()
