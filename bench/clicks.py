"""What clicks are lost when nothing is declared of rewards, beside noise=0.5: docs/clicks.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

import guardband as gb
from guardband.algorithms.plan import Plan
from guardband.facts import Facts
from guardband.sim import Results, Series

ALPHA, ROUNDS, TRIALS = 0.2, 1_000_000, 10
# The median rate of the best advert, and what is to be reached there.
RATES = {
    0.045: "at most 1,300 lost, the first learned play before 50,000 in the median, 0 below",
    0.5: "no more lost than with noise=0.5",
}
HEAD = (
    "rewards are declared as",
    "clicks lost",
    "first learned play",
    "plays below the floor",
    "rounds outside the set",
    "the baseline loses",
)


@dataclass(frozen=True)
class Stated(gb.GuardUCB):
    """Guard-UCB that is told noise=0.5 and not that rewards lie in [0, 1]: every weight is 4."""

    noise: float | None = 0.5

    def plan(self, facts: Facts) -> Plan:
        """Return the terms without the range of rewards."""
        return super().plan(replace(facts, bounded=False))


RIVALS = {
    "nothing": gb.GuardUCB(ALPHA, context_noise=0.0),
    "noise=0.5": Stated(ALPHA, context_noise=0.0),
}


def first_learned(series: Series, results: Results) -> np.ndarray:
    """Return (trials,) the first round kept by which an action beside the baseline was played."""
    gain = np.abs(series.curves["reward"] - series.curves["baseline_reward"]).sum(axis=2)
    moved = gain > 1e-6
    rounds = results.rounds[np.argmax(moved, axis=1)].astype(float)
    return np.where(moved.any(axis=1), rounds, np.inf)


def lines(rate: float) -> list[str]:
    """Return the table of one rate."""
    problem = gb.problem("clicks", agents=1, rate=rate)
    results = gb.simulate(
        problem, [*RIVALS.values(), "baseline"], rounds=ROUNDS, trials=TRIALS, alpha=ALPHA
    )
    *learners, still = results.series
    table = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for name, series in zip(RIVALS, learners, strict=True):
        lost = series.regret_expected.sum(axis=1)
        first = first_learned(series, results)
        cells = (
            name,
            f"{lost.mean():,.0f} ± {lost.std(ddof=1) / np.sqrt(TRIALS):,.0f}",
            f"{np.median(first):,.0f} ({first.min():,.0f} to {first.max():,.0f})",
            f"{series.violations_expected.sum():,.0f}",
            f"{series.totals['outside'].sum():,.0f}",
            f"{still.regret_expected.sum(axis=1).mean():,.0f}",
        )
        table.append("| " + " | ".join(cells) + " |")
    return table


def main() -> None:
    page = [
        "# Clicks, with nothing declared",
        "",
        "For people whose rewards are clicks, a few in a hundred: how long an agent needs before "
        "it leaves the baseline, and what it loses until then, if nobody tells it anything about "
        "the rates.",
        "",
        f"`clicks`, one agent, {ROUNDS:,} impressions, strict mode, alpha {ALPHA}, {TRIALS} seeds; "
        "means with their standard errors, the first learned play as median and range. Written by "
        "`make better`.",
        "",
    ]
    for rate, wanted in RATES.items():
        page += [f"## Rates around {rate:g}", "", f"Wanted: {wanted}.", "", *lines(rate), ""]
    (Path(__file__).parents[1] / "docs" / "clicks.md").write_text("\n".join(page))
    Console().print("\n".join(page))


if __name__ == "__main__":
    main()
