"""How often the holdback's interval holds, and how wide it is: docs/uplift-measured.md."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import guardband as gb
from guardband.sim import Series
from guardband.uplift import BETS, LEVEL, LOG_WEIGHTS, PRICES, GainSums, reach_of, uplift_of

SEED, SHARE, RUNS, ROUNDS = 77, 0.1, 1_000, 4_000  # of coverage
SHARES, RUNS_OF_WIDTHS = (0.02, 0.05, 0.1, 0.2), 100
SUMS = ("gain_squares", "lead")
WIDTHS = (500, 1_000, 2_000, 4_000)  # rounds after which the width is told
PROBLEMS: dict[str, dict[str, Any]] = {
    "forecast": {"agents": 1},
    "clicks": {"agents": 1, "rate": 0.4},
    "drift-abrupt": {},
}
PAGE = """\
# What a holdback tells

For those who ask whether agents earn: how often the interval of a holdback is right, and how wide
it is.

`agent.uplift()` of one agent ([what it is](guard-ucb.md#did-it-earn)): the interval of level
{level} % for what its choices earn over the baseline per round, from the coin and the rewards
alone. Rewards of `forecast` and `drift-abrupt` have a noise of 0.1, which is stated; those of
`clicks` (`rate=0.4`) are 0 or 1, and nothing is stated. In `drift-abrupt` the world turns half way,
and what the agent has learned is wrong. Written by `python -m bench.uplift`.

## Coverage

{runs:,} runs of {rounds:,} rounds, `holdback={share}`. A run fails if the true mean lead leaves the
interval at any of 200 rounds, evenly spaced: no more than {rate} % of the runs should. *At the end*
counts the last round alone. The interval holds for any rewards in their range, and is wider than
these need.

| problem | mode | runs that fail | at the end | earned per round, true | told, mean of runs |
|---|---|---:|---:|---:|---:|
{coverage}

## Width

Half the length of the interval after so many rounds, mean of {few} runs, and what the choices
really earn over the baseline per round.

| problem, strict | `holdback` | {heads} | earned, true |
|---|---:|{rules}---:|
{widths}
"""


class Case(NamedTuple):
    """Guard-UCB with a holdback on a problem."""

    problem: str
    mode: str
    holdback: float
    runs: int
    rounds: int

    def run(self) -> gb.Results:
        """Simulate it; every run is a trial."""
        problem = gb.problem(self.problem, **PROBLEMS[self.problem])
        told = problem.assumptions()
        guard = gb.GuardUCB(
            told["alpha"],
            noise=None if self.problem == "clicks" else told["noise"],
            theta_bound=told["theta_bound"],
            context_noise=problem.context_noise,
            mode=self.mode,
            holdback=self.holdback,
        )
        return gb.simulate(problem, guard, rounds=self.rounds, trials=self.runs, seed=SEED)


def outside(series: Series) -> np.ndarray:
    """Return (runs, checkpoints): whether the true mean lead is outside the interval.

    It is where the mixture of bets, at the truth, has reached its threshold.
    """
    reach = reach_of(series.settings["holdback"], series.settings["noise"])
    gain, squares, lead = (series.curves[name][..., 0] for name in ("gain", *SUMS))
    off, square = np.abs(gain - lead) / reach, squares / reach**2
    logs = LOG_WEIGHTS + BETS * off[..., None] - PRICES * square[..., None]
    return np.logaddexp.reduce(logs, axis=-1) >= math.log(2.0 / (1.0 - LEVEL))


def covered(case: Case) -> str:
    """Return the line of a case in the table of coverage."""
    (series,) = case.run().series
    out = outside(series)
    cells = (
        f"{out.any(axis=1).mean():.1%}",
        f"{out[:, -1].mean():.1%}",
        f"{series.totals['lead'].mean() / case.rounds:.4f}",
        f"{series.totals['gain'].mean() / case.rounds:.4f}",
    )
    return f"| `{case.problem}` | {case.mode} | {' | '.join(cells)} |"


def widths(case: Case) -> str:
    """Return the line of a case in the table of widths."""
    results = case.run()
    (series,) = results.series
    at = np.searchsorted(results.rounds, WIDTHS)
    reach = reach_of(series.settings["holdback"], series.settings["noise"])
    gains, squares = (series.curves[name][:, at, 0] for name in ("gain", SUMS[0]))
    sums = np.stack([np.tile(WIDTHS, case.runs), gains.ravel(), squares.ravel()], axis=1)
    told = [uplift_of(GainSums(*each), reach) for each in sums.tolist()]
    half = [0.5 * (each.high - each.low) for each in told]
    half = np.reshape(half, (case.runs, len(WIDTHS))).mean(axis=0)
    lead = series.totals["lead"].mean() / case.rounds
    cells = " | ".join(f"{value:.3f}" for value in half)
    return f"| `{case.problem}` | {case.holdback:g} | {cells} | {lead:.3f} |"


def main() -> None:
    """Write the page."""
    cases = [Case(p, "strict", SHARE, RUNS, ROUNDS) for p in PROBLEMS]
    cases.insert(1, Case("forecast", "policy", SHARE, RUNS, ROUNDS))
    wide = [
        Case(problem, "strict", share, RUNS_OF_WIDTHS, max(WIDTHS))
        for problem in ("forecast", "clicks")
        for share in SHARES
    ]
    page = PAGE.format(
        level=round(100 * LEVEL),
        rate=round(100 * (1 - LEVEL)),
        runs=RUNS,
        few=RUNS_OF_WIDTHS,
        rounds=ROUNDS,
        share=SHARE,
        coverage="\n".join(covered(case) for case in cases),
        heads=" | ".join(f"{n:,}" for n in WIDTHS),
        rules="---:|" * len(WIDTHS),
        widths="\n".join(widths(case) for case in wide),
    )
    (Path(__file__).parents[1] / "docs" / "uplift-measured.md").write_text(page)


if __name__ == "__main__":
    main()
