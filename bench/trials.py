"""What a budget for trials buys, and whether limits were kept: docs/trials-measured.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import guardband as gb
from guardband.sim import Series

HEAD = (
    "`categories`",
    "rounds, seeds",
    "first round with a certified target, latest",
    "gain in the last quarter, mean and least",
    "charged plays",
    "charged, most",
    "truly short or lost, most",
    "other plays below the floor",
)
TOTALS = ("trials", "charged", "shortfall", "violations_expected", "violations_trial")
PAGE = """\
# What a budget for trials buys

For those whose actions have nothing in common with the baseline: what a budget for trials earns,
and what it costs.

Guard-UCB on `categories`: nine actions, of which the baseline is the fifth best; nothing that is
certified teaches about another. +60 % is possible. *Charged* is the most that
[trials](guard-ucb.md#a-budget-for-trials) could fall short of the floor by, or that
[exploration](guard-ucb.md#policy-mode-with-an-end) could cost, by what was known before each play;
*truly* is what they did, in expected reward. Written by `python -m bench.trials`.

"""


@dataclass(frozen=True)
class Case:
    """A line of the table: Guard-UCB with these settings."""

    rounds: int
    seeds: int
    settings: dict[str, Any]

    def line(self) -> str:
        """Run it; return its line of the table."""
        problem = gb.problem("categories")
        told = problem.assumptions()
        guard = gb.GuardUCB(
            told["alpha"], theta_bound=told["theta_bound"], context_noise=0.0, **self.settings
        )
        runs = [
            gb.simulate(problem, guard, rounds=self.rounds, seed=seed, trace=True, progress=False)
            for seed in range(self.seeds)
        ]
        first = [_first_certified(run) for run in runs]
        never = first.count(None)
        gain = np.array([_late_gain(run.series[0], run.rounds) for run in runs])
        totals = {
            name: np.array([run.series[0].totals[name].sum() for run in runs])
            for name in (
                "trials",
                "charged",
                "shortfall",
                "violations_expected",
                "violations_trial",
            )
        }
        below = totals["violations_expected"] - totals["violations_trial"]
        cells = (
            ", ".join(f"`{name}={value!r}`" for name, value in self.settings.items()) or "strict",
            f"{self.rounds:,}, {self.seeds}",
            f"never in {never}" if never else f"{max(filter(None, first)):,}",
            f"{gain.mean():+.1%}, {gain.min():+.1%}",
            f"{totals['trials'].mean():,.0f}",
            f"{totals['charged'].max():,.0f}",
            f"{totals['shortfall'].max():,.1f}",
            f"{below.sum():,.0f}",
        )
        return "| " + " | ".join(cells) + " |"


def _first_certified(run: gb.Results) -> int | None:
    """Return the round in which the most promising action was certified, and not the baseline.

    The baseline earns the same in every round, and no other action does.
    """
    trace, totals = run.trace, run.series[0].totals
    baseline = totals["baseline_reward"][0, 0] / len(trace.rewards)
    other = np.abs(trace.rewards[:, 0] - baseline) > 1e-6
    certified = other & ~trace.conservative[:, 0]
    return int(certified.argmax()) + 1 if certified.any() else None


def _late_gain(series: Series, rounds: Any) -> float:
    """Return the gain over the baseline in the last quarter of a run."""
    start = int(np.searchsorted(rounds, 0.75 * rounds[-1]))
    reward, baseline = (
        series.curves[name][0, -1, 0] - series.curves[name][0, start, 0]
        for name in ("reward", "baseline_reward")
    )
    return float(reward / baseline - 1.0)


LONG: dict[str, Any] = {"rounds": 200_000, "seeds": 20}
CASES = (
    Case(**LONG, settings={}),
    *(Case(**LONG, settings={"trial_budget": budget}) for budget in (150.0, 300.0, 600.0, 1200.0)),
    Case(50_000, 20, {"mode": "policy"}),
    *(Case(50_000, 100, {"mode": "policy", "max_loss": limit}) for limit in (10.0, 100.0, 1000.0)),
)


def main() -> None:
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    page = PAGE + "\n".join([*lines, *(case.line() for case in CASES)]) + "\n"
    (Path(__file__).parents[1] / "docs" / "trials-measured.md").write_text(page)
    Console().print(page)


if __name__ == "__main__":
    main()
