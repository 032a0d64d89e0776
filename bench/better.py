"""`make better`: Guard-UCB beside every rival, on every problem; writes docs/better.md."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.cli.config import RunConfig, make_algorithms
from guardband.problems import problem
from guardband.sim.provenance import commit

TRIALS = 20
# name, problem, settings of the problem, rounds, declared spread of the hidden context's part;
# "model" says whether the problem is what the theory assumes.
PANELS: list[dict[str, Any]] = [
    {"name": "Fig. 1a", "problem": "synthetic-a", "rounds": 20_000, "alpha": 0.3, "model": False},
    {
        "name": "Fig. 1a, fresh",
        "problem": "synthetic-a",
        "rounds": 20_000,
        "alpha": 0.3,
        "settings": {"nature": "fresh"},
        "model": True,
    },
    {"name": "Fig. 1c", "problem": "synthetic-b", "rounds": 20_000, "alpha": 0.25, "model": False},
    {
        "name": "Fig. 1c, fresh",
        "problem": "synthetic-b",
        "rounds": 20_000,
        "alpha": 0.25,
        "settings": {"nature": "fresh"},
        "model": True,
    },
    {
        "name": "Fig. 2b",
        "problem": "synthetic-c",
        "rounds": 55_000,
        "alpha": 0.1,
        "settings": {"psi_noise": 0.01, "baseline": 80},
        "model": False,
    },
    {
        "name": "Fig. 2b, fresh",
        "problem": "synthetic-c",
        "rounds": 55_000,
        "alpha": 0.1,
        "settings": {"psi_noise": 0.01, "baseline": 80, "nature": "fresh"},
        "model": True,
    },
    {
        "name": "Fig. 2c, M=10",
        "problem": "synthetic-c",
        "rounds": 10_000,
        "alpha": 0.3,
        "settings": {"psi_noise": 0.1, "baseline": 30, "agents": 10},
        "noise": 1.0,
        "model": False,
    },
    {"name": "MovieLens", "problem": "movielens", "rounds": 20_000, "alpha": 0.5, "model": False},
    {
        "name": "MovieLens, fresh",
        "problem": "movielens",
        "rounds": 20_000,
        "alpha": 0.5,
        "settings": {"nature": "fresh"},
        "model": True,
    },
    {
        "name": "LastFM",
        "problem": "lastfm",
        "rounds": 5_000,
        "alpha": 0.7,
        "settings": {"actions": 50},
        "model": False,
    },
    {"name": "forecast", "problem": "forecast", "rounds": 20_000, "alpha": 0.2, "model": True},
    {
        "name": "forecast-formal2",
        "problem": "forecast-formal2",
        "rounds": 20_000,
        "alpha": 0.1,
        "model": True,
    },
    {
        "name": "forecast-large",
        "problem": "forecast-large",
        "rounds": 10_000,
        "alpha": 0.2,
        "model": True,
    },
]


def entrants(task: Any, panel: dict[str, Any]) -> list[Any]:
    """Return all rivals with the problem's assumptions, and Guard-UCB in both modes."""
    assumed = dict(task.assumptions())
    assumed["alpha"] = panel["alpha"]
    if "noise" in panel:
        assumed["noise"] = panel["noise"]
    names = tuple(name for name in ALGORITHMS if not name.startswith("guard-ucb"))
    rivals = make_algorithms(RunConfig(problem=panel["problem"], algorithms=names), assumed)
    world = task.build(0)
    guards = [
        gb.GuardUcb(
            panel["alpha"],
            noise=assumed["noise"],
            theta_bound=assumed["theta_bound"],
            mode=mode,
            spread=task.spread,
        )
        for mode in ("policy", "strict")
    ]
    facts = world.facts(panel["rounds"])
    return [*guards, *(fitting for rival in rivals if (fitting := _fitting(rival, facts)))]


def _fitting(rival: Any, facts: Any) -> Any:
    """Return the rival in a form that the problem allows, or None where there is none."""
    forms = [rival, replace(rival, option="B")] if hasattr(rival, "option") else [rival]
    for form in forms:
        try:
            form.plan(facts)
        except ValueError:
            continue
        return form
    return None


def run(panel: dict[str, Any], trials: int) -> pd.DataFrame:
    """Return one row per algorithm."""
    task = problem(panel["problem"], **panel.get("settings", {}))
    results = gb.simulate(
        task, entrants(task, panel), rounds=panel["rounds"], trials=trials, alpha=panel["alpha"]
    )
    rows = []
    for s in results.series:
        totals = {name: float(values.mean()) for name, values in s.totals.items()}
        rows.append(
            {
                "panel": panel["name"],
                "algorithm": s.label,
                "regret": totals["regret_expected"],
                "below floor, expected": totals["violations_expected"],
                "policy below floor": totals["violations_policy"],
                "below floor, realised": totals["violations_realised"],
                "conservative": totals["conservative"],
                "syncs": float(s.sync_rounds.mean()),
                "outside": totals["outside"]
                if s.algorithm.startswith("guard-ucb")
                else float("nan"),
                "model": panel["model"],
                "rounds": panel["rounds"],
            }
        )
    return pd.DataFrame(rows)


def judge(table: pd.DataFrame) -> list[str]:
    """Return one line per panel: how far the claims are reached there."""
    lines = [
        "| problem | policy / DisLinUCB (at most 2) | strict / DisLinUCB (at most 4) | "
        "printed DiSC-UCB / strict (at least 10 where it never leaves) | promises broken |",
        "|---|---|---|---|---|",
    ]
    for name, part in table.groupby("panel", sort=False):
        rows = part.set_index("algorithm")
        free = rows.loc["dis-lin-ucb", "regret"]
        policy, strict = rows.loc["guard-ucb-policy"], rows.loc["guard-ucb"]
        printed = rows.loc["disc-ucb"]
        stays = printed["conservative"] > 0.999 * printed["rounds"]
        factor = f"{printed['regret'] / strict['regret']:.0f}" + ("" if stays else " (it leaves)")
        broken = policy["policy below floor"] + strict["below floor, expected"]
        kind = f"{broken:.2f}" + ("" if part["model"].iloc[0] else " (outside the model)")
        lines.append(
            f"| {name} | {policy['regret'] / free:.2f} | {strict['regret'] / free:.2f} | "
            f"{factor} | {kind} |"
        )
    return lines


def main() -> None:
    notes, start, frames = Console(stderr=True), time.perf_counter(), []
    for panel in PANELS:
        began = time.perf_counter()
        with notes.status(panel["name"]):
            frames.append(run(panel, TRIALS))
        notes.print(f"{panel['name']}: {time.perf_counter() - began:.1f} s")
    table = pd.concat(frames, ignore_index=True)
    folder = Path(__file__).parents[1] / "docs"
    table.to_csv(folder / "better.csv", index=False, float_format="%.6g")
    lines = [
        "# Guard-UCB beside the others",
        "",
        f"Means over {TRIALS} trials, per agent; written by `make better` in "
        f"{time.perf_counter() - start:.0f} s, commit {commit()}. Regret is in expected "
        "rewards; counts are rounds. `outside`: rounds with theta outside the confidence set.",
        "",
        *judge(table),
        "",
    ]
    for name, part in table.groupby("panel", sort=False):
        shown = part.drop(columns=["panel", "model", "rounds"])
        lines += [
            f"## {name}, {part['rounds'].iloc[0]:,} rounds"
            + (
                ""
                if part["model"].iloc[0]
                else " (psi is phi plus frozen noise: outside the model)"
            ),
            "",
            "| " + " | ".join(shown.columns) + " |",
            "|" + "---|" * shown.shape[1],
        ]
        for row in shown.itertuples(index=False):
            cells = [
                str(row[0]),
                *(
                    "-" if math.isnan(v) else f"{v:,.2f}" if v < 100 else f"{v:,.0f}"
                    for v in row[1:]
                ),
            ]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    (folder / "better.md").write_text("\n".join(lines))
    Console().print("\n".join(judge(table)))
    notes.print("written to docs/better.md and docs/better.csv")


if __name__ == "__main__":
    main()
