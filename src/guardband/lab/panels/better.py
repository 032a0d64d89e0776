"""Better: regret and violations of all algorithms on all problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from guardband.algorithms import ALGORITHMS, Algorithm
from guardband.lab import judge, plots
from guardband.lab.entrants import field_of
from guardband.lab.heat import dots_of, table_of
from guardband.lab.panel import Claim, Findings, Order, Run, Shown
from guardband.lab.settings import shown_name
from guardband.problems import NamedProblem, problem
from guardband.report.words import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PANEL", "PLACES", "PanelBetter", "Place"]

STRICT, POLICY, PRINTED, FREE = "guard-ucb", "guard-ucb-policy", "disc-ucb", "dis-lin-ucb"
# The same algorithms with what Guard-UCB is told, the spread of psi - phi, in place of the 1 that
# the paper assumes; names of this panel's own.
TOLD = {f"{name}-told": name for name in (PRINTED, FREE)}
FREE_TOLD, PRINTED_TOLD = f"{FREE}-told", f"{PRINTED}-told"
YARDSTICKS = ("baseline", "oracle")
# Those that promise a floor in every round; cl-ucb promises one over all rounds together.
STAGEWISE = (
    PRINTED,
    PRINTED_TOLD,
    "disc-ucb-gap-oracle",
    "disc-ucb-unknown",
    "sclts",
    "scl-ucb",
    "sege",
)
# Drawn with their intervals, and in which colour and with which marker.
DRAWN = {STRICT: 1, POLICY: 4, FREE: 3, FREE_TOLD: 2, PRINTED: 0, PRINTED_TOLD: 5}


@dataclass(frozen=True)
class Place:
    """A problem of the comparison.

    Attributes
    ----------
    name
        In tables; "Fig. 1a" has the problem of that figure.
    kind, settings
        The problem's name and settings.
    rounds, alpha
        The horizon at full length, and the share that may be lost.
    model
        Whether psi is the expectation of phi, as the theory assumes.
    noise
        R, where it is not what the problem declares.
    """

    name: str
    kind: str
    rounds: int
    alpha: float
    model: bool
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    noise: float | None = None

    @property
    def problem(self) -> NamedProblem:
        """The problem itself."""
        return problem(self.kind, **self.settings)

    def told(self) -> dict[str, Any]:
        """Return what algorithms may assume; only Guard-UCB has a setting for the spread."""
        assumed: dict[str, Any] = {**self.problem.assumptions(), "alpha": self.alpha}
        if self.noise is not None:
            assumed["noise"] = self.noise
        return assumed | {"spread": self.problem.context_noise}

    def told_the_spread(self) -> dict[str, Any]:
        """Return the same, with the spread where the paper's algorithms have a place for it.

        Guard-UCB reads a forecast's spread off each round's support; others get the true one.
        """
        told = self.told()
        known = told["spread"] is not None
        return told | ({"context_noise": told["spread"]} if known else {"constant": "tight"})


PLACES = (
    Place("Fig. 1a", "synthetic-a", 20_000, 0.3, False),
    Place("Fig. 1a, fresh", "synthetic-a", 20_000, 0.3, True, {"nature": "fresh"}),
    Place("Fig. 1c", "synthetic-b", 20_000, 0.25, False),
    Place("Fig. 1c, fresh", "synthetic-b", 20_000, 0.25, True, {"nature": "fresh"}),
    Place("Fig. 2b", "synthetic-c", 55_000, 0.1, False, {"psi_noise": 0.01, "baseline": 80}),
    Place(
        "Fig. 2b, fresh",
        "synthetic-c",
        55_000,
        0.1,
        True,
        {"psi_noise": 0.01, "baseline": 80, "nature": "fresh"},
    ),
    Place(
        "Fig. 2c, M=10",
        "synthetic-c",
        10_000,
        0.3,
        False,
        {"psi_noise": 0.1, "baseline": 30, "agents": 10},
        noise=1.0,
    ),
    Place("MovieLens", "movielens", 20_000, 0.5, False),
    Place("MovieLens, fresh", "movielens", 20_000, 0.5, True, {"nature": "fresh"}),
    Place("LastFM", "lastfm", 5_000, 0.7, False, {"actions": 50}),
    Place("forecast", "forecast", 20_000, 0.2, True),
    Place("forecast-formal2", "forecast-formal2", 20_000, 0.1, True),
    Place("forecast-large", "forecast-large", 10_000, 0.2, True),
)
ROWS = {place.name: place.name + ("" if place.model else " *") for place in PLACES}


@dataclass(frozen=True, kw_only=True)
class PanelBetter:
    """All algorithms on all problems.

    Attributes
    ----------
    share, trials
        How much of the full horizons is played at the scale "paper", and how often.
    """

    name: str = "better"
    title: str = "Who learns, and who keeps the floor?"
    question: str = "What do all algorithms lose, and how often do they fall below the floor?"
    source: str = ""
    share: float = 0.5
    trials: int = 5

    def runs(self, order: Order) -> Sequence[Run]:
        """Return one run per problem and algorithm."""
        return [
            Run(
                label=_label(place, name),
                problem=place.problem,
                algorithm=algorithm,
                rounds=order.rounds(int(place.rounds * self.share)),
                trials=order.trials(self.trials),
                seed=order.seed,
                alpha=place.alpha,
                horizon=int(place.rounds * self.share),
            )
            for place in PLACES
            for name, algorithm in _entrants(place).items()
        ]

    def claims(self, order: Order, found: Findings) -> Sequence[Claim]:
        """Judge safety where the theory applies, and regret everywhere."""
        return [
            _kept(found, STRICT, "violations_expected", "every play"),
            _kept(found, POLICY, "violations_policy", "every randomised choice"),
            _factor(found, POLICY, FREE, 2.0),
            _factor(found, POLICY, FREE_TOLD, 2.0),
            _factor(found, STRICT, FREE, 4.0),
            _factor(found, STRICT, FREE_TOLD, 4.0),
            _factor(found, STRICT, PRINTED, 1.0),
            _factor(found, STRICT, PRINTED_TOLD, 1.0),
            _best_safe(found),
        ]

    def draw(self, order: Order, found: Findings) -> Figure:
        """Draw a table of regret and violations, and below it the main ones with intervals."""
        names = [name for name in _names(found) if name not in YARDSTICKS]
        table, dots = 2.2 + 0.52 * len(PLACES), 1.4 + 0.44 * len(PLACES)
        figure = plots.new_figure(1.9 + 0.86 * len(names), table + dots)
        figure.suptitle(self.title, x=0.012, ha="left", fontweight="bold", fontsize=16)
        trials = next(iter(found.values())).run.trials
        axes, below = figure.subplots(2, 1, height_ratios=[table, dots])
        cells = _cells(found)
        table_of(axes, cells, ROWS, {name: _shown_name(name) for name in names})
        axes.set_title(
            "Regret as a share of the baseline's (dark: as much or more).  ▼ rounds per agent "
            f"below the floor, in expectation.  Mean of {trials} trials.  * ψ is not the mean of "
            "φ: outside the theory\nGuard-UCB is told the spread of ψ − φ; so are those marked "
            "'told the spread', and nobody else",
            loc="left",
            fontsize=11,
            pad=124,
        )
        dots_of(below, cells, ROWS, {name: (_shown_name(name), DRAWN[name]) for name in DRAWN})
        below.set_title(
            f"The same with the 95 % interval over {trials} trials; a line to the left edge: it "
            "reaches 0",
            loc="left",
            fontsize=11,
        )
        return figure

    def remarks(self, order: Order) -> Sequence[str]:
        """Say what was played, and what everybody was told."""
        played = ", ".join(
            f"{place.name} {order.rounds(int(place.rounds * self.share)):,}" for place in PLACES
        )
        return [
            f"Rounds: {played}; {order.trials(self.trials)} trials each. At the scale 'paper' "
            f"this is {100 * self.share:g} % of the problems' full horizons.",
            "Every algorithm is told the problem's α, R, and honest bounds on ‖θ‖ and features; "
            "both columns of settings are the same here. Regret is in expected rewards.",
            "Guard-UCB is told more than its rivals: the spread of ψ − φ, a number (the support of "
            "each round's distribution where the problem is a forecast), where the paper and "
            "others after it assume 1. Part of its lead is this information. So DisLinUCB and "
            "DiSC-UCB play twice, as in the paper and told the spread, and factors are judged "
            "against both.",
            "Outside the theory (marked *): ψ is φ plus noise that is drawn once, so that no "
            "confidence set can be right.",
        ]

    def table(self, found: Findings) -> pd.DataFrame:
        """Return one row per problem and algorithm: means over trials, per agent."""
        rows = []
        by_name = {place.name: place for place in PLACES}
        for (where, name), shown in _cells(found).items():
            place = by_name[where]
            mean = {metric: float(v.mean()) for metric, v in shown.series.totals.items()}
            watched = name not in YARDSTICKS
            rows.append(
                {
                    "problem": place.name,
                    "algorithm": name,
                    "regret": mean["regret_expected"],
                    "below floor, expected": mean["violations_expected"],
                    "policy below floor": mean["violations_policy"],
                    "below floor, realised": mean["violations_realised"],
                    "conservative": mean["conservative"],
                    "syncs": float(shown.series.sync_rounds.mean()),
                    "outside": mean["outside"] if watched and _has_set(name) else float("nan"),
                    "model": place.model,
                    "rounds": shown.run.rounds,
                }
            )
        return pd.DataFrame(rows)


def _shown_name(name: str) -> str:
    return f"{shown_name(TOLD[name])}, told the spread" if name in TOLD else shown_name(name)


def _label(place: Place, name: str) -> str:
    return f"{place.name}: {_shown_name(name)}"


@cache
def _entrants(place: Place) -> dict[str, Algorithm]:
    """Return the algorithms that the problem allows; those told the spread beside their twins."""
    facts = place.problem.build(0).facts(place.rounds)
    twins = {twin: name for name, twin in TOLD.items()}
    made: dict[str, Algorithm] = {}
    for algorithm in field_of(place.told(), facts):
        made[algorithm.name] = algorithm
        if algorithm.name in twins:
            informed = ALGORITHMS[algorithm.name].informed(place.told_the_spread())
            made[twins[algorithm.name]] = informed
    return made


def _cells(found: Findings) -> dict[tuple[str, str], Shown]:
    """Return what was found by problem and algorithm."""
    return {
        (place.name, name): found[_label(place, name)]
        for place in PLACES
        for name in _names(found)
        if _label(place, name) in found
    }


def _names(found: Findings) -> list[str]:
    """Return who played somewhere, in the order of the list; twins side by side."""
    twins = {twin: name for name, twin in TOLD.items()}
    known = [each for name in ALGORITHMS for each in (name, twins.get(name)) if each is not None]
    return [name for name in known if any(_label(place, name) in found for place in PLACES)]


def _has_set(name: str) -> bool:
    """Tell whether the simulator looks for theta in the algorithm's confidence set."""
    return name.startswith(("guard-ucb", "disc-ucb", FREE)) or name == "lin-ucb"


def _regret(found: Findings, place: Place, name: str) -> np.ndarray:
    return judge.per_trial(found[_label(place, name)], "regret_expected")


def _kept(found: Findings, name: str, metric: str, what: str) -> Claim:
    """Judge by counting that a promise was kept wherever the theory applies."""
    broken = {
        place.name: float(found[_label(place, name)].series.totals[metric].sum())
        for place in PLACES
        if place.model
    }
    total = sum(broken.values())
    told = ", ".join(f"{place} {count:,.0f}" for place, count in broken.items() if count)
    outside = sum(
        float(found[_label(place, name)].series.totals[metric].sum())
        for place in PLACES
        if not place.model
    )
    return Claim(
        f"better-{name}-safe",
        f"Where ψ is the mean of φ, {what} of {shown_name(name)} keeps the floor in expectation",
        total == 0,
        f"{total:,.0f} agent-rounds below it on {len(broken)} problems, all trials"
        + (f" ({told})" if told else "")
        + f"; on the {len(PLACES) - len(broken)} others, where nothing is promised, {outside:,.0f}",
    )


def _factor(found: Findings, name: str, rival: str, factor: float) -> Claim:
    """Judge that regret is at most a factor times a rival's, on every problem."""
    verdicts: list[bool | None] = []
    told = []
    for place in PLACES:
        if _label(place, rival) not in found:
            verdicts.append(None)
            continue
        mine, theirs = _regret(found, place, name), _regret(found, place, rival)
        verdicts.append(judge.difference(factor * theirs, mine).not_below)
        told.append(f"{place.name} {mine.mean() / theirs.mean():.2g}")
    times = "at most" if factor == 1 else f"at most {factor:g} times"
    return Claim(
        f"better-{name}-{rival}",
        f"{shown_name(name)}'s regret is {times} that of {_shown_name(rival)}, on every problem",
        judge.together(verdicts),
        "ratio: " + ", ".join(told),
    )


def _best_safe(found: Findings) -> Claim:
    """Judge that no rival with a promise per round, that kept it, has less regret."""
    verdicts: list[bool | None] = []
    told = []
    for place in PLACES:
        for name in STAGEWISE:
            shown = found.get(_label(place, name))
            if shown is None or shown.series.violations_expected.any():
                continue
            mine, theirs = _regret(found, place, STRICT), _regret(found, place, name)
            verdict = judge.difference(theirs, mine).not_below
            verdicts.append(verdict)
            if verdict is not True:
                means = f"{number(theirs.mean())} against {number(mine.mean())}"
                told.append(f"{place.name}: {_shown_name(name)} {means}")
    return Claim(
        "better-best-safe",
        "No stage-wise safe rival that kept its promise has less regret than Guard-UCB",
        judge.together(verdicts),
        f"{len(verdicts)} comparisons; not clearly worse: " + ("; ".join(told) or "none"),
    )


PANEL = PanelBetter()
