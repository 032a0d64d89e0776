"""The cheapest that is still good enough, in numbers: docs/routing-measured.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import guardband as gb
from bench import budget
from bench.clock import best_of
from guardband.agent import warm_up
from guardband.kernels.types import Floats

PROBLEM = "routing"
SEEDS, ROUNDS = 100, 20_000
WANTED = {20_000: 0.65, 60_000: 0.60}
TIMED = 2_000
HEAD = ("logged rows", "cost", "wanted", "ideal", "plays below the floor", "rounds outside the set")


def guard() -> Any:
    """Return Guard-UCB with what the problem declares."""
    problem = gb.problem(PROBLEM)
    told = problem.assumptions()
    return gb.GuardUCB(
        told["alpha"],
        noise=told["noise"],
        theta_bound=told["theta_bound"],
        context_noise=problem.context_noise,
    )


def cost_line(rows: int, seed: int = 0) -> str:
    """Return what routing costs after so many logged rows, as a line of the table."""
    results = gb.simulate(
        PROBLEM, guard(), rounds=ROUNDS, trials=SEEDS, seed=seed, history=(rows, "uniform")
    )
    (series,) = results.series
    totals = {name: each.sum(axis=1) for name, each in series.totals.items()}
    cost = totals["value"] / totals["baseline_value"]
    ideal = (totals["value"] + totals["value_regret"]) / totals["baseline_value"]
    error = cost.std(ddof=1) / np.sqrt(cost.size)
    cells = (
        f"{rows:,}",
        f"{cost.mean():.3f} ± {error:.3f}, at most {cost.max():.3f}",
        f"at most {WANTED[rows]:.2f}, 0 below",
        f"{ideal.mean():.3f}",
        f"{series.violations_expected.sum():,.0f}",
        f"{totals['outside'].sum():,.0f}",
    )
    return "| " + " | ".join(cells) + " |"


def microseconds(value: Floats | None) -> float:
    """Return what decide and observe take after 20,000 logged rows, with values or without."""
    world = gb.problem(PROBLEM).build(0)
    assert isinstance(world, gb.problems.World)
    rng = np.random.default_rng(0)
    played = world.psi[rng.integers(world.shape[0], size=20_000), rng.integers(4, size=20_000)]
    noise = world.reward_noise.draw(rng, (20_000,))
    menus = [world.psi[c].copy() for c in rng.integers(world.shape[0], size=TIMED)]
    agent = gb.Agent(played.shape[1], algorithm=guard())
    agent.learn(played, played @ world.theta + noise)

    def work() -> None:
        for menu, error in zip(menus, noise, strict=False):
            d = agent.decide(menu, 0, value=value)
            agent.observe(d, float(menu[d.action] @ world.theta + error))

    warm_up(["guard-ucb", "value"])  # before the clock runs
    work()
    return best_of(work, TIMED)


def main() -> None:
    prices = np.array([1.0, 0.3, 0.1, 0.02])
    pairs = [(microseconds(None), microseconds(-prices)) for _ in range(3)]
    without, with_value = (min(each) for each in zip(*pairs, strict=True))
    page = [
        "# The cheapest that is still good enough, measured",
        "",
        "For those whose actions differ in price, as language models do: how much can be saved "
        "while the floor holds.",
        "",
        "Guard-UCB in strict mode on [`routing`](problems.md#routing), with [values](value.md), "
        "after it has learned rows of a rule that plays all four models alike: cost over the next "
        f"{ROUNDS:,} rounds, that of always playing the baseline = 1. Means of {SEEDS} seeds with "
        "their standard errors; others than those that it was developed with. Ideal is who knows "
        "theta. Written by `python -m bench.routing`.",
        "",
        "| " + " | ".join(HEAD) + " |",
        "|" + "---|" * len(HEAD),
        *(cost_line(rows) for rows in WANTED),
        "",
        f"With a [budget](value.md#a-budget), after {budget.ROWS:,} rows of the same models: "
        f"{budget.RUNS:,} runs of {budget.ROUNDS:,} rounds. The best fixed mix knows theta, and "
        "plays for each prompt the same mixture of safe models, such that the budget is spent in "
        "the mean. Spending at once plays the best safe model until the rest must go to the "
        "baseline, and knows theta as well. Wanted: no run that exceeds the budget, and at least "
        "90 % of the mix's value.",
        "",
        "| " + " | ".join(budget.HEAD) + " |",
        "|" + "---|" * len(budget.HEAD),
        *(purpose.line(guard()) for purpose in budget.PURPOSES),
        "",
        f"`decide` and `observe` together take {with_value:.1f} µs with a value and "
        f"{without:.1f} µs without: {with_value / without:.2f} times as long, wanted at most 1.1.",
        "",
    ]
    (Path(__file__).parents[1] / "docs" / "routing-measured.md").write_text("\n".join(page))
    Console().print("\n".join(page), markup=False)


if __name__ == "__main__":
    main()
