"""What logs of an earlier rule are worth: docs/logs-measured.md."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import guardband as gb
from guardband.sim import Results, Series

HEAD = (
    "problem",
    "learned before round 1",
    "rounds, seeds",
    "what was measured",
    "wanted",
    "plays below the floor",
    "rounds outside the set",
)


def lost(series: Series, results: Results) -> str:
    """Return the reward lost against the best action, mean and standard error."""
    each = series.regret_expected.sum(axis=1)
    return f"{each.mean():,.0f} ± {each.std(ddof=1) / np.sqrt(each.size):,.0f} clicks lost"


def gained(series: Series, results: Results) -> str:
    """Return the gain over the baseline, mean and the least of all seeds."""
    each = series.totals["reward"].sum(axis=1) / series.totals["baseline_reward"].sum(axis=1) - 1.0
    return f"{each.mean():+.1%} against the baseline, at least {each.min():+.1%}"


@dataclass(frozen=True)
class Case:
    """A line of the table: strict mode on a problem after a history; `measure` fills the cell."""

    problem: str
    rounds: int
    trials: int
    measure: Callable[[Series, Results], str]
    history: Any = None
    wanted: str = "–"

    def line(self) -> str:
        """Run it; return its line of the table."""
        problem = gb.problem(self.problem)
        alpha = problem.assumptions()["alpha"]
        guard = gb.GuardUCB(alpha, context_noise=problem.context_noise)
        results = gb.simulate(
            problem, guard, rounds=self.rounds, trials=self.trials, history=self.history
        )
        (series,) = results.series
        past = results.settings["history"]
        cells = (
            f"`{self.problem}`",
            "nothing" if past is None else f"{past[0]:,} rounds, {past[1]}",
            f"{self.rounds:,}, {self.trials}",
            self.measure(series, results),
            self.wanted,
            f"{series.violations_expected.sum():,.0f}",
            f"{series.totals['outside'].sum():,.0f}",
        )
        return "| " + " | ".join(cells) + " |"


CLICKS: dict[str, Any] = {"problem": "clicks", "rounds": 1_000_000, "trials": 10, "measure": lost}
FIRST: dict[str, Any] = {"problem": "categories", "rounds": 1_000, "trials": 20, "measure": gained}
CASES = (
    Case(**CLICKS),
    Case(**CLICKS, history=100_000, wanted="at most 520, 0 below"),
    Case(**CLICKS, history=1_000_000, wanted="at most 130, 0 below"),
    Case(**FIRST),
    Case(**FIRST, history=100_000),
    Case(**FIRST, history=(100_000, "uniform"), wanted="at least +50 %, 0 below"),
)


def seconds_of(rows: int, dim: int) -> float:
    """Return what it costs one core to let an agent learn so many rows."""
    rng = np.random.default_rng(0)
    features = rng.uniform(0.0, 1.0 / np.sqrt(dim), (rows, dim))
    rewards = (rng.random(rows) < features @ np.full(dim, 0.3)).astype(float)
    gb.Agent(dim).learn(features[:10], rewards[:10])  # compiled before the clock runs
    agent, started = gb.Agent(dim), time.process_time()
    agent.learn(features, rewards)
    return time.process_time() - started


def main() -> None:
    page = [
        "# What logs are worth",
        "",
        "For those who have logs of the rule that works today: how much sooner agents learn "
        "with them.",
        "",
        "Guard-UCB in strict mode with the alpha of the problem, after agents have "
        "[learned](logs.md) what the baseline's own rule played, or a rule that plays every action "
        "with the same probability; means with their standard errors. Written by "
        "`python -m bench.logs`.",
        "",
        "| " + " | ".join(HEAD) + " |",
        "|" + "---|" * len(HEAD),
        *(case.line() for case in CASES),
        "",
        f"`Agent.learn` takes {seconds_of(1_000_000, 8):.1f} s of one core for a million rows of 8 "
        "features, checks included.",
        "",
    ]
    (Path(__file__).parents[1] / "docs" / "logs-measured.md").write_text("\n".join(page))
    Console().print("\n".join(page))


if __name__ == "__main__":
    main()
