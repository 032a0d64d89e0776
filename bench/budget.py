"""What a budget buys beside the best fixed mix in hindsight: lines of docs/routing-measured.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

import guardband as gb
from guardband.kernels.types import Floats

RUNS, ROUNDS, ROWS, PROMPTS = 1_000, 2_000, 20_000, 500
HEAD = (
    "what is wanted, within a budget",
    "budget a round",
    "spent, at most",
    "runs that exceed it",
    "of the best fixed mix's value",
    "of its gain over the baseline",
    "spending at once",
    "plays below the floor",
)


@dataclass(frozen=True)
class Purpose:
    """What to get out of a budget on the models of `routing`: the reward, or a value."""

    name: str
    rank: int  # of the baseline
    budget: float  # for each round
    values: tuple[float, ...] | None = None

    def problem(self) -> gb.Tabular:
        """Return the models and prompts of `routing`, with prices as costs."""
        routing = gb.problem("routing", prompts=PROMPTS, rank=self.rank, seed=0)
        world: Any = routing.build(0)
        return gb.Tabular(
            world.phi,
            world.psi,
            world.theta,
            baseline=world.baseline,
            reward_std=world.reward_noise,
            values=None if self.values is None else np.array(self.values),
            costs=-world.values[0],
        )

    def line(self, guard: Any, seed: int = 0) -> str:
        """Run it; return its line of the table."""
        problem = self.problem()
        results = gb.simulate(
            problem,
            guard,
            rounds=ROUNDS,
            trials=RUNS,
            seed=seed,
            history=(ROWS, "uniform"),
            budget=self.budget * ROUNDS,
        )
        (series,) = results.series
        name = "reward" if self.values is None else "value"
        got = series.totals[name].mean() / ROUNDS
        spent = series.totals["cost"].sum(axis=1) / ROUNDS
        base, mix, at_once = self.references(problem, guard.alpha)
        cells = (
            self.name,
            f"{self.budget:g}",
            f"{spent.mean():.4f}, {spent.max():.4f}",
            f"{int((spent > self.budget * (1 + 1e-12)).sum())} of {RUNS:,}",
            f"{got / mix:.1%}",
            f"{(got - base) / (mix - base):.1%}",
            f"{(at_once - base) / (mix - base):.1%}",
            f"{series.violations_expected.sum():,.0f}",
        )
        return "| " + " | ".join(cells) + " |"

    def references(self, problem: gb.Tabular, alpha: float) -> tuple[float, float, float]:
        """Return what a round is worth by the baseline, by the best fixed mix, and at once.

        The mix knows theta, and has a distribution of its own over the safe actions for each
        prompt. Who spends at once plays the best safe action until the rest must go to the
        baseline.
        """
        world: Any = problem.build(0)
        quality, rows = world.expected[:, 0, :], np.arange(PROMPTS)
        values = quality if self.values is None else np.tile(self.values, (PROMPTS, 1))
        costs, b = np.tile(world.costs[0], (PROMPTS, 1)), world.baseline[0]
        safe = quality >= (1.0 - alpha) * quality[rows, b][:, None] - 1e-12
        one_each = np.kron(np.eye(PROMPTS), np.ones(4))
        found = linprog(
            -values.ravel() / PROMPTS,
            A_ub=costs.ravel()[None] / PROMPTS,
            b_ub=[self.budget],
            A_eq=one_each,
            b_eq=np.ones(PROMPTS),
            bounds=[(0.0, 1.0 if good else 0.0) for good in safe.ravel()],
        )
        best = np.where(safe, values, -np.inf).argmax(axis=1)

        def mean(table: Floats, chosen: Any) -> float:
            return float(table[rows, chosen].mean())

        base, paid, top = mean(values, b), mean(costs, b), mean(costs, best)
        share = min(1.0, (self.budget - paid) / (top - paid))
        return base, -found.fun, base + share * (mean(values, best) - base)


PURPOSES = (
    Purpose("the best answers; the baseline is the cheapest model", 4, 0.25),
    Purpose("the same", 4, 0.6),
    Purpose("values 1, .5, .2, .05; the baseline is the second model", 2, 0.5, (1, 0.5, 0.2, 0.05)),
)
