"""`python -m bench.tune`: choose the settings named "-tuned"; writes docs/tuning.csv.

Every candidate plays the problems of the panel `better`, on seeds that the panel does not use, for
a part of their horizons. Chosen is the least regret, as the mean over problems of its logarithm; of
rivals with a promise per round, among candidates that kept it wherever the theory applies.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from guardband.algorithms import ALGORITHMS
from guardband.engines import LocalEngine
from guardband.lab import Run, run_all
from guardband.lab.candidates import fitting
from guardband.lab.experiments import as_printed
from guardband.lab.panels.better import BENCHMARKS

SEED, TRIALS, SHARE = 20_261_117, 3, 0.25  # the panel has seed 0
RECORD = Path(__file__).parents[1] / "docs" / "tuning.csv"
OPEN = [
    {"kappa_l": 0.1},
    {"kappa_l": 0.3},
    {"gate": "none"},
    {"gate": "none", "constant": "tight"},
    {"gate": "none", "constant": "guard"},
]
SETS = [{"constant": "tight"}, {"constant": "guard"}]
GRID: dict[str, list[dict[str, Any]]] = {
    "sclts": OPEN,
    "scl-ucb": OPEN,
    "ma-scl-ucb": OPEN,
    "roful": SETS,
    "cl-ucb": SETS,
    "sege": [{"pace": 0.0}, {"pace": 0.01}, {"pace": 0.1}, {"pace": 0.1, "constant": "guard"}],
    "c-square-cb": [
        {"slack": slack, "gamma": gamma}
        for slack, gamma in product((1.0, 0.1, 0.0), (10.0, 100.0, 1000.0))
    ],
    "fed-lin-ucb": [
        {"growth": 1.0, "ridge": 1.0, "radius": radius} for radius in (0.05, 0.1, 0.25, 1.0)
    ],
    "dis-lsb": [{"pulls": pulls} for pulls in (0.001, 0.01, 0.1, 1.0)],
    "fed-pe": [{"delta": 0.5}, {"base": 4.0}],
}


def runs(names: list[str]) -> dict[str, tuple[str, dict[str, Any], Any, Run]]:
    """Return rival, candidate, problem and run, by label."""
    made = {}
    for case in BENCHMARKS:
        facts = case.problem.build(0).facts(case.rounds)
        for name in names:
            for preset in GRID[name]:
                algorithm = fitting(as_printed(name, case.told(), **preset), facts)
                if algorithm is not None:
                    label = f"{case.name}: {name} {preset}"
                    horizon = int(case.rounds * SHARE)
                    run = Run(
                        label=label,
                        problem=case.problem,
                        algorithm=algorithm,
                        rounds=horizon,
                        trials=TRIALS,
                        seed=SEED,
                        alpha=case.alpha,
                        horizon=horizon,
                    )
                    made[label] = (name, preset, case, run)
    return made


def record(names: list[str]) -> pd.DataFrame:
    """Return one row per rival, candidate and problem, with the candidate that is chosen."""
    asked = runs(names)
    results = run_all([run for *_, run in asked.values()], engine=LocalEngine())
    rows = []
    for label, (name, preset, case, run) in asked.items():
        totals = results[label].series.totals
        rows.append(
            {
                "rival": name,
                "settings": repr(preset),
                "problem": case.name,
                "model": case.model,
                "seed": SEED,
                "trials": TRIALS,
                "rounds": run.rounds,
                "regret": float(totals["regret_expected"].mean()),
                "below floor, expected": float(totals["violations_expected"].mean()),
            }
        )
    table = pd.DataFrame(rows)
    table["chosen"] = False
    for name, part in table.groupby("rival"):
        table.loc[(table["rival"] == name) & (table["settings"] == best(part)), "chosen"] = True
    return table


def best(table: pd.DataFrame) -> str:
    """Return the settings that are chosen for a rival."""
    name = table["rival"].iloc[0]
    if ALGORITHMS[name].constraint == "stage-wise":
        broken = table[table["model"]].groupby("settings")["below floor, expected"].sum()
        kept = table["settings"].isin(broken.index[broken == 0.0])
        table = table[kept] if kept.any() else table
    scores = np.log(table["regret"].clip(lower=1e-3)).groupby(table["settings"]).mean()
    return str(scores.idxmin())


def main() -> None:
    names = sys.argv[1:] or list(GRID)
    table = record(names)
    if RECORD.exists():  # rivals that were not asked for keep their lines
        before = pd.read_csv(RECORD)
        table = pd.concat([before[~before["rival"].isin(names)], table])
    table.to_csv(RECORD, index=False, float_format="%.6g")
    shown = table[table["chosen"]].groupby("rival")["settings"].first()
    Console().print(shown.to_string())


if __name__ == "__main__":
    main()
