"""The toy example of the appendix: an expected context hides what is safe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from guardband.lab import plots
from guardband.lab.panel import Claim, Run, RunOptions, RunResults
from guardband.problems import SafeSets, Toy, toy_safe_sets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PANEL"]

SMALL = 0.03
ALPHAS = (0.03, 0.05, 0.1, 0.15, 0.3, 0.5)
ACTIONS = ("x", "x'", "x''")
STATED = SafeSets(("x", "x'"), ("x", "x''"))
GRID = tuple(i / 1000 for i in range(1, 1001))


@dataclass(frozen=True, kw_only=True)
class PanelToy:
    """Safe sets under the true context c and under the expected one c'; nothing is simulated."""

    name: str = "toy"
    title: str = "Do expected features tell what is safe?"
    question: str = "Which actions of the toy example keep the floor, in c and in c'?"
    source: str = "sec:rel"

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return nothing: the sets follow from the matrices."""
        return []

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge the two sets for a small alpha, and for every alpha."""
        small = toy_safe_sets(SMALL)
        as_stated = [alpha for alpha in GRID if toy_safe_sets(alpha) == STATED]
        return [
            Claim(
                "toy-true",
                "In the context c exactly x and x' are safe",
                small.true == STATED.true,
                f"α = {SMALL}: {_set(small.true)}",
            ),
            Claim(
                "toy-expected",
                "In c' exactly x and x'' are safe: the best action x' is missing, and x'', which "
                "is unsafe in c, is there",
                small.expected == STATED.expected,
                f"α = {SMALL}: {_set(small.expected)}",
            ),
            Claim(
                "toy-any-alpha",
                "This is so for any α in [0, 1]",
                len(as_stated) == len(GRID),
                f"of α = 0.001, 0.002, ..., 1 it is so up to {as_stated[-1]:g}: x'' is safe in c "
                "from α = 1/25 on, and x' in c' from α = 7/55 on",
            ),
        ]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw which action is safe at which alpha, in both contexts."""
        world = Toy(agents=1).build(0)
        figure = plots.new_figure(13.0, 3.6)
        figure.suptitle(self.title, x=0.012, ha="left", fontweight="bold", fontsize=15)
        for column, (told, rewards) in enumerate(
            (
                ("in the true context c", world.realised[0, 0]),
                ("in the expected context c'", world.expected[0, 0]),
            )
        ):
            axes = figure.add_subplot(1, 2, column + 1)
            safe = np.array([[a in toy_safe_sets(x)[column] for x in ALPHAS] for a in ACTIONS])
            _matrix(axes, safe, [float(reward) for reward in rewards])
            axes.set_title(f"Safe actions {told}", loc="left", fontsize=12)
        return figure

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Say whose matrices these are."""
        return [
            "The matrices and θ = (1, 2) are the paper's, first agent, baseline x; both columns "
            "of settings are the same. Features and θ are longer than the 1 that the text assumes.",
        ]


def _matrix(axes: Axes, safe: np.ndarray, rewards: list[float]) -> None:
    """Write a word into every cell, and shade those that are not safe."""
    axes.imshow(np.where(safe, 0.0, 0.45), cmap="Greys", vmin=0, vmax=1, aspect="auto")
    for (row, column), keeps in np.ndenumerate(safe):
        word = "safe" if keeps else "unsafe"
        weight = "normal" if keeps else "bold"
        axes.text(column, row, word, ha="center", va="center", fontsize=11, fontweight=weight)
    axes.set_xticks(range(len(ALPHAS)), [f"{alpha:g}" for alpha in ALPHAS])
    names = [f"{a}  (reward {r:.3f})" for a, r in zip(ACTIONS, rewards, strict=True)]
    axes.set_yticks(range(len(ACTIONS)), names, fontsize=11)
    axes.set_xlabel("α, the share that may be lost", fontsize=11)
    axes.set_xticks(np.arange(len(ALPHAS) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(ACTIONS) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#999999", linewidth=0.8)
    axes.tick_params(which="both", length=0)


def _set(actions: tuple[str, ...]) -> str:
    return "{" + ", ".join(actions) + "}"


PANEL = PanelToy()
