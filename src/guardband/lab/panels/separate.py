"""Separate: the regret of agents that share data, against M agents that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.algorithms import ALGORITHMS, Algorithm
from guardband.kernels.types import Floats
from guardband.lab import judge, plots
from guardband.lab.candidates import with_extra
from guardband.lab.counts import growth
from guardband.lab.experiments import as_printed
from guardband.lab.loglog import Line, draw_lines, log_interval, looks_of
from guardband.lab.panel import Claim, Run, RunOptions, RunResults
from guardband.problems import problem
from guardband.report import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PANEL"]

FLEETS = (2, 4, 8, 16, 32)
ALPHA, BASELINE, RIDGE = 0.8, 3, 0.05
PRINTED, OPEN, GUARD, FREE = "DiSC-UCB", "DiSC-UCB, told context_noise", "Guard-UCB", "DisLinUCB"
LOOKS = {PRINTED: 0, OPEN: 5, FREE: 3, GUARD: 1}
SAID = 0.5  # d M sqrt(T) for separate learners, d sqrt(M T) for the paper's


@dataclass(frozen=True, kw_only=True)
class PanelSeparate:
    """Every algorithm twice: sharing, and not."""

    name: str = "separate"
    title: str = "What is sharing worth?"
    question: str = "How many times the regret do M separate learners have?"
    source: str = "T1"
    rounds: int = 10_000
    trials: int = 6

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return every algorithm, sharing and not, for every number of agents."""
        return [
            Run(
                label=_label(who, M, share=share),
                problem=problem("forecast", agents=M, baseline=BASELINE),
                algorithm=_sharing(algorithm, share=share),
                rounds=options.rounds(self.rounds),
                trials=options.trials(self.trials),
                seed=options.seed,
                alpha=ALPHA,
                horizon=self.rounds,
            )
            for M in FLEETS
            for who, algorithm in _algorithms(options).items()
            for share in (True, False)
        ]

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge that sharing lowers regret, and how its worth grows with M."""
        most = FLEETS[-1]
        gains = [
            judge.exceeds(
                f"separate-{_id(who)}",
                f"{most} separate learners of {who} have more regret than {most} that share",
                results[_label(who, most, share=False)],
                results[_label(who, most, share=True)],
                "regret_expected",
            )
            for who in _algorithms(options)
        ]
        return [*gains, *(_power(results, who) for who in _algorithms(options))]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw regret per agent by M, sharing and not, and their ratio."""
        figure = plots.new_figure(15.0, 5.8)
        figure.suptitle(self.title, x=0.012, ha="left", fontweight="bold", fontsize=16)
        axes = figure.add_subplot(1, 2, 1)
        _draw_regret(axes, results, list(_algorithms(options)))
        result = next(iter(results.values()))
        axes.set_title(
            f"Regret per agent, {result.run.rounds:,} rounds, {result.run.trials} trials",
            loc="left",
            fontsize=13,
        )
        other = figure.add_subplot(1, 2, 2)
        _draw_ratio(other, results, list(_algorithms(options)))
        other.set_title("Regret of separate learners / sharing", loc="left", fontsize=13)
        for each in (axes, other):
            each.set_xlabel("agents, M", fontsize=11)
        return figure

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Say which problem this is, and which gates open."""
        return [
            f"forecast, the {BASELINE}rd best action for a baseline, α = {ALPHA}. All agents act "
            "under one hidden context. Regret is in expected rewards.",
            "DiSC-UCB has the printed gate and the paper's √(1 + R²); 'told context_noise' has the "
            f"same gate, the true noise and context_noise, and λ = {RIDGE}: its gate opens.",
            "Guard-UCB that shares allows for the context that all agents have in common; one that "
            "does not share need not.",
            "Drawn: geometric means over trials with the 95 % interval of the logarithms, to which "
            "exponents are fitted, too.",
            "`--with` adds algorithms that can do both: share, and not.",
        ]


def _algorithms(options: RunOptions) -> dict[str, Algorithm]:
    task = problem("forecast", baseline=BASELINE)
    told: dict[str, Any] = {
        **task.assumptions(),
        "alpha": ALPHA,
        "context_noise": task.context_noise,
    }
    own = {
        PRINTED: ALGORITHMS["disc-ucb"].informed(told),
        OPEN: ALGORITHMS["disc-ucb"].informed(told | {"constant": "tight", "ridge": RIDGE}),
        FREE: as_printed("dis-lin-ucb", told),
        GUARD: ALGORITHMS["guard-ucb"].informed(told),
    }
    both = [name for name in options.extra if "share" in ALGORITHMS[name].kind.settings()]
    return with_extra(own, both, told, task.build(0).facts(1))


def _sharing(algorithm: Any, *, share: bool) -> Algorithm:
    made: Algorithm = replace(algorithm, share=share)
    return made


def _label(who: str, agents: int, *, share: bool) -> str:
    return f"{who}, M = {agents}, {'sharing' if share else 'separate'}"


def _id(who: str) -> str:
    return who.lower().replace(",", "").replace(" ", "-")


def _regret(results: RunResults, who: str, *, share: bool) -> Floats:
    """Return (trials, fleets): regret per agent, above 0."""
    sums = [
        judge.per_trial(results[_label(who, M, share=share)], "regret_expected") for M in FLEETS
    ]
    return np.maximum(np.array(sums).T, 1e-9)


def _ratio(results: RunResults, who: str) -> Floats:
    return _regret(results, who, share=False) / _regret(results, who, share=True)


def _power(results: RunResults, who: str) -> Claim:
    ratios = _ratio(results, who)
    typical, _ = log_interval(ratios)
    power, low, high = growth(np.array(FLEETS, float), ratios)
    return Claim(
        f"separate-{_id(who)}-root",
        f"What sharing is worth to {who} grows at least like the root of M, as d M √T against "
        "d √(M T) says",
        True if low >= SAID else False if high < SAID else None,
        f"separate / sharing: {number(typical[0])} at M = {FLEETS[0]}, {number(typical[-1])} at "
        f"M = {FLEETS[-1]} (geometric means); like M^{power:.2f} "
        f"[{low:.2f}, {high:.2f}]",
    )


def _draw_regret(axes: Axes, results: RunResults, names: Sequence[str]) -> None:
    sizes, lines = np.array(FLEETS, float), []
    for share in (True, False):
        for who, look in looks_of(names, LOOKS).items():
            mean, span = log_interval(_regret(results, who, share=share))
            words = "sharing" if share else "separate"
            lines.append(
                Line(f"{who}, {words}", sizes, mean, look=look, dashed=not share, span=span)
            )
    draw_lines(axes, lines, at=FLEETS)


def _draw_ratio(axes: Axes, results: RunResults, names: Sequence[str]) -> None:
    sizes = np.array(FLEETS, float)
    lines = []
    for who, look in looks_of(names, LOOKS).items():
        mean, span = log_interval(_ratio(results, who))
        lines.append(Line(who, sizes, mean, look=look, span=span))
    lines.append(Line("root of M", sizes, np.sqrt(sizes), bound=True))
    draw_lines(axes, lines, at=FLEETS)


PANEL = PanelSeparate()
