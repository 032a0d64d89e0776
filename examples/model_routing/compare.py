"""Compare routers on the same prompts: what they cost, and what they do to the quality.

`python compare.py` prints a table and writes routing.png. Everything is recorded: no model is
called.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rivals import AlwaysBest, BanditRouter, EstimateRouter, ThresholdRouter
from router import ALPHA, GuardedRouter
from traffic import ATLAS, ELM, MODELS, Model, Prompt, prompts

IDEAL = "who knows everything"
ROUTERS = (AlwaysBest, ThresholdRouter, EstimateRouter, BanditRouter, GuardedRouter)
COLOURS = ("0.6", "tab:orange", "tab:red", "tab:purple", "tab:blue", "black")


@dataclass(frozen=True)
class Plan:
    """What happens when; numbers of prompts."""

    pilot: int = 12_000  # graded beforehand, each answered by a model drawn at random
    traffic: int = 30_000
    joins: int = 10_000  # ELM joins after so many prompts
    shadow: int = 6_000  # and its answers to some of the next so many are graded, shown to nobody
    shadow_share: float = 0.3
    graded: float = 0.2  # the share of answers that somebody grades ...
    delay: int = 500  # ... so many prompts later


@dataclass(frozen=True)
class Run:
    """What one router did: one number per prompt."""

    name: str
    cost: NDArray[np.float64]  # of the answer, and of one in shadow
    quality: NDArray[np.float64]  # expected, of the answer that was given
    best_cost: NDArray[np.float64]  # the same of the best model
    best_quality: NDArray[np.float64]

    @property
    def relative(self) -> NDArray[np.float64]:
        """The quality of every answer against the best model's."""
        return self.quality / self.best_quality

    @property
    def below(self) -> NDArray[np.bool_]:
        """Which prompts got less than 95 %; what is exactly on the floor is not below it."""
        return self.relative < 1.0 - ALPHA - 1e-12


def follow(router: Any, plan: Plan, seed: int) -> Run:
    """Let a router route the prompts of a seed; all routers see the same."""
    made = prompts(np.random.default_rng([seed, 0]), plan.pilot + plan.traffic)
    rng = np.random.default_rng([seed, 1])
    first = MODELS.index(ELM)
    router.learn([(next(made), MODELS[rng.integers(first)]) for _ in range(plan.pilot)])
    waiting: deque[tuple[int, object, float]] = deque()
    rows = []
    for t, prompt in enumerate(made):
        if t == plan.joins:
            router.join(ELM)
        model, decision = router.route(prompt)
        luck, cost = rng.random(), model.cost(prompt.words)
        if luck < plan.graded:
            waiting.append((t + plan.delay, decision, prompt.grades[model.name]))
        else:
            router.not_graded(decision)
            # Of one prompt one answer is graded, so that no two grades share what is hidden in it.
            in_shadow = plan.joins <= t < plan.joins + plan.shadow
            if router.learns and in_shadow and luck < plan.graded + plan.shadow_share:
                router.learn([(prompt, ELM)])
                cost += ELM.cost(prompt.words)
        while waiting and waiting[0][0] <= t:
            _, old, grade = waiting.popleft()
            router.graded(old, grade)
        rows.append(
            (cost, quality(model, prompt), ATLAS.cost(prompt.words), quality(ATLAS, prompt))
        )
    return Run(router.name, *np.array(rows).T)


def quality(model: Model, prompt: Prompt) -> float:
    """Return the expected quality of an answer, which no router knows."""
    return model.expected_quality(prompt.words, prompt.cues)


def ideal(plan: Plan, seed: int) -> Run:
    """Return what a router would do that knows every model's quality."""
    made = list(prompts(np.random.default_rng([seed, 0]), plan.pilot + plan.traffic))[plan.pilot :]
    rows = []
    for t, prompt in enumerate(made):
        floor = (1.0 - ALPHA) * quality(ATLAS, prompt)
        offered = [model for model in MODELS if model is not ELM or t >= plan.joins]
        good = [model for model in offered if quality(model, prompt) >= floor]
        model = min(good, key=lambda each: each.price)
        best = ATLAS.cost(prompt.words), quality(ATLAS, prompt)
        rows.append((model.cost(prompt.words), quality(model, prompt), *best))
    return Run(IDEAL, *np.array(rows).T)


def table(runs: Sequence[Run], plan: Plan) -> Table:
    """Return the comparison as a table."""
    shown = Table(title=f"{plan.traffic:,} prompts after a pilot of {plan.pilot:,}", box=SIMPLE)
    shown.add_column("router", no_wrap=True)
    settled = plan.joins + plan.shadow
    for head in ("cost", f"from {settled:,} on", "quality", "below the floor", "worst prompt"):
        shown.add_column(head, justify="right")
    for run in runs:
        late = slice(min(settled, run.cost.size - 1), None)
        shown.add_row(
            run.name,
            f"{run.cost.sum() / run.best_cost.sum():.1%}",
            f"{run.cost[late].sum() / run.best_cost[late].sum():.1%}",
            f"{run.quality.sum() / run.best_quality.sum():.1%}",
            f"{run.below.sum():,}",
            f"{run.relative.min():.1%}",
        )
    shown.caption = "All against always asking the best model; the floor is 95 % for every prompt."
    return shown


def draw(runs: Sequence[Run], plan: Plan, path: Path) -> None:
    """Draw what routers cost over time, and how good each prompt's answer was."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    span = max(1, plan.traffic // 30)
    for run, colour in zip(runs, COLOURS, strict=True):
        parts = run.cost.size // span
        paid, best = (
            each[: parts * span].reshape(parts, span).sum(axis=1)
            for each in (run.cost, run.best_cost)
        )
        line = {"color": colour, "label": run.name, "lw": 2.5 if run.name == "guardband" else 1.5}
        if run.name == IDEAL:
            line["ls"] = ":"
        left.plot(span * (np.arange(parts) + 0.5), paid / best, **line)
        right.plot(100 * np.arange(run.cost.size) / run.cost.size, np.sort(run.relative), **line)
    left.axvline(plan.joins, color="0.8", lw=1)
    left.annotate("a new model joins ", (plan.joins, 0.02), color="0.4", ha="right", fontsize=9)
    left.set(xlabel="prompts", ylabel="cost, always asking the best = 1", ylim=(0, 1.1))
    right.axhline(1 - ALPHA, color="black", lw=1, ls="--")
    right.annotate("floor", (100, 1 - ALPHA), ha="right", va="top", fontsize=9)
    right.set(xlabel="% of prompts, the worst first", ylabel="quality, the best model's = 1")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def compare(plan: Plan, seed: int, folder: Path) -> list[Run]:
    """Run all routers, print the table and draw the picture."""
    first = MODELS[: MODELS.index(ELM)]
    runs = [
        follow(kind(first), plan, seed)
        for kind in track(ROUTERS, "routing", console=Console(stderr=True), transient=True)
    ]
    runs.append(ideal(plan, seed))
    Console().print(table(runs, plan))
    draw(runs, plan, folder / "routing.png")
    return runs


def main() -> None:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the prompts and their grades")
    parser.add_argument("--folder", type=Path, default=Path(), help="where routing.png goes")
    given = parser.parse_args()
    compare(Plan(), given.seed, given.folder)


if __name__ == "__main__":
    main()
