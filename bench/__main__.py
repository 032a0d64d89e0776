"""`make bench`: measure, print tables, write bench/results.md and bench/results.json.

    python -m bench                  # all of it
    python -m bench rounds agents    # some tables; writes build/bench.json alone

`python -m bench.compare` puts two runs beside each other.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import guardband as gb
from bench import agents, certificates, live, replicas, shortcuts, start, threads, workloads
from bench.clock import best_of, limit, matrix_rate, root_rate
from bench.tables import Section, about, as_json, markdown, show
from guardband.agent import warm_up
from guardband.algorithms import ALGORITHMS
from guardband.problems import PROBLEMS

ROOT = Path(__file__).parents[1]
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


def plain_round(notes: Console) -> float:
    """Return the microseconds of a round in plain NumPy, by which cores are compared."""
    with notes.status("measuring this core"):
        return best_of(workloads.numpy_rounds(50, 9, 100, 3000), 3000)


def rounds(notes: Console, numpy_us: float) -> list[list[str]]:
    with notes.status("measuring this core"):
        flops, roots = matrix_rate(), root_rate()
    scale = numpy_us / REFERENCE
    rows = []
    for label, algorithm, (actions, dim, contexts), many, target in ROUNDS:
        with notes.status(label):
            work = workloads.rounds_of(algorithm, actions, dim, contexts, many)
            share = work()
            ours = best_of(work, many)
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
        for actions, dim, target in ((10, 2, None), (50, 9, 20.0)):
            count = 5000
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
    return rows


def builds(notes: Console) -> list[list[str]]:
    """Return how long each named problem takes to build, and how large its tables are."""
    rows = []
    for name, kind in PROBLEMS.items():
        with notes.status(f"building {name}"):
            problem = kind()
            micros = best_of(partial(problem.build, 0), 1, repeats=3)
            world = problem.build(0)
        # Worlds that change have no tables of features: menus are drawn as rounds come.
        arrays = (getattr(world, name, None) for name in ("phi", "psi", "theta", "baseline"))
        size = sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
        rows.append([name, f"{micros / 1000:.2f}", f"{size:,}"])
    return rows


def everything(notes: Console) -> list[list[str]]:
    """Return the seconds that all algorithms take on synthetic-b, 20,000 rounds, 20 trials."""
    algorithms = [entry.make() for entry in ALGORITHMS.values()]
    task = gb.problem("synthetic-b")
    with notes.status("all algorithms on synthetic-b"), warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.BoundWarning)
        gb.simulate(task, algorithms, rounds=2, alpha=0.25, progress=False)
        start = time.perf_counter()
        gb.simulate(task, algorithms, rounds=20_000, trials=20, alpha=0.25, progress=False)
    seconds = time.perf_counter() - start
    return [["synthetic-b, 20,000 rounds, 20 trials", f"{seconds:.1f} s", f"{len(algorithms)}"]]


def _target(target: float | None, scale: float) -> str:
    return "-" if target is None else f"{target * scale:.3g}"


def tables(notes: Console, numpy_us: float) -> dict[str, Callable[[], Section]]:
    """Return how each table is made, by its name on the command line."""
    return {
        "rounds": lambda: Section(
            "CPU microseconds per agent-round, best of 7, one core",
            "CPU microseconds per agent-round (simulator, environment included) or per call "
            "(agent), best of 7, one core, kernels warm. Targets are scaled to this core: they "
            f"were set on one where the plain NumPy round at K=50, d=9 takes {REFERENCE:g} us; "
            f"here it takes {numpy_us:.1f} us. `of the limit`: the round's floating-point work at "
            "the rate of a matrix product on this core, plus its square roots, against what was "
            "measured.",
            ["workload", "us", "target us", "NumPy us", "NumPy / ours", "of the limit"],
            rounds(notes, numpy_us),
        ),
        "shortcuts": lambda: Section(
            "The simulator's shortcuts",
            "The simulator by old widths and in blocks, beside computing every width in every "
            "round, one by one, and beside plain NumPy; in turns. A fast path that is not "
            f"{shortcuts.FASTER:g} times faster than one by one is to be removed:",
            shortcuts.HEADINGS,
            shortcuts.measure(notes),
        ),
        "agents": lambda: Section(
            "The default agent, decide + observe",
            "decide + observe of the default agent (Guard-UCB with certificates and monitors), and "
            "of a plain LinUCB in NumPy without either, in turns on one thread. Certified: the "
            "target is, by the confidence set. Careful: nothing safe teaches about it; the "
            "baseline is played.",
            agents.HEADINGS,
            agents.measure(notes),
            names=agents.HEADINGS.index("us p50"),
        ),
        "calls": lambda: Section(
            "Calls of the default agent, alone",
            "Calls of the default agent with a certified target, one kind at a time; of a batch, "
            "for each decision in it:",
            agents.CALLS,
            agents.measure_calls(notes),
            names=agents.CALLS.index("us p50"),
        ),
        "threads": lambda: Section(
            "Agents in threads",
            "decide + observe of default agents with a certified target, one in each thread, on "
            f"{os.cpu_count()} cores. What scales is the work of the kernels, which release the "
            "interpreter's lock: large menus and batches. Of the Python around them one thread "
            "at a time runs, and calls of one agent take turns:",
            threads.HEADINGS,
            threads.measure(notes),
            names=4,
        ),
        "certificates": lambda: Section(
            "Certificates by the range of rewards",
            "Guard-UCB's rounds with certificates by the range of rewards, all agents together:",
            certificates.HEADINGS,
            certificates.measure(notes),
        ),
        "live": lambda: Section(
            "The live system, beside what it rests on",
            "The live system beside what it rests on, in turns, everything on this machine; of "
            "decide + observe the median and the 99th percentile of single calls:",
            live.HEADINGS,
            [row.cells() for row in live.measure(notes)],
        ),
        "replicas": lambda: Section(
            "64 agents, SQLite and PostgreSQL",
            "Durable uploads of 64 agents and the time of an epoch, by store and number of "
            "replicas:",
            replicas.HEADINGS,
            replicas.measure(notes),
            names=2,
        ),
        "start": lambda: Section(
            "The start of gb.Agent",
            "The start of an agent, with all imports: until its first `decide`, or `decide_many` "
            "of a batch, returns, and the "
            "longest `decide` or `observe` after it, while kernels are compiled and loaded:",
            start.HEADINGS,
            start.measure(notes),
        ),
        "builds": lambda: Section(
            "Building each problem",
            "Building each problem:",
            ["problem", "ms", "bytes of features, theta and baseline"],
            builds(notes),
        ),
        "everything": lambda: Section(
            "All algorithms",
            "All algorithms on all cores:",
            ["run", "seconds", "algorithms"],
            everything(notes),
        ),
    }


def main() -> None:
    notes, asked = Console(stderr=True), sys.argv[1:]
    with notes.status("compiling the agents' kernels"):
        warm_up()
    numpy_us = plain_round(notes)
    made = tables(notes, numpy_us)
    if unknown := set(asked) - set(made):
        raise SystemExit(f"there is no table {', '.join(unknown)}; there are {', '.join(made)}.")
    sections = []
    for name in asked or made:
        sections.append(made[name]())
        show(sections[-1])
    facts = about(numpy_us)
    target = ROOT / ("build/bench.json" if asked else "bench/results.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(as_json(facts, sections), indent=1) + "\n")
    notes.print(f"written to {target}")
    if not asked:
        (ROOT / "bench" / "results.md").write_text("\n".join(page(facts, sections)))


def page(facts: dict[str, Any], sections: list[Section]) -> list[str]:
    """Return the lines of bench/results.md."""
    found = facts["versions"]
    return [
        "# Speed",
        "",
        "For those who need to know whether decisions are fast enough for a service, or whether a "
        "change has made anything slower: how long each thing takes on one core.",
        "",
        *(line for section in sections for line in markdown(section)),
        f"{facts['date']}, {facts['machine']}, Python {found['python']}, numba {found['numba']}, "
        f"numpy {found['numpy']}, commit {facts['commit']}",
        "",
    ]


if __name__ == "__main__":
    main()
