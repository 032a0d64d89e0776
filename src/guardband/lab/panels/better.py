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
from guardband.lab.candidates import fitting
from guardband.lab.experiments import as_printed, shown_name
from guardband.lab.heatmap import draw_dots, draw_table
from guardband.lab.leaders import Tally, rival_of, strongest
from guardband.lab.panel import Claim, Run, RunOptions, RunResult, RunResults
from guardband.problems import NamedProblem, problem
from guardband.report import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BENCHMARKS", "PANEL", "Benchmark", "PanelBetter"]

STRICT, POLICY, UNGUARDED = "guard-ucb", "guard-ucb-policy", "guard-ucb-free"
PRINTED, FREE = "disc-ucb", "dis-lin-ucb"
# The same algorithms with what Guard-UCB is told, context_noise, in place of the 1 that
# the paper assumes; names of this panel's own.
TOLD = {f"{name}-told": name for name in (PRINTED, FREE)}
FREE_TOLD, PRINTED_TOLD = f"{FREE}-told", f"{PRINTED}-told"
REFERENCES = ("baseline", "oracle")
# Drawn with their intervals, and in which colour and with which marker.
DRAWN = {STRICT: 1, POLICY: 4, FREE: 3, FREE_TOLD: 2, PRINTED: 0, PRINTED_TOLD: 5}


@dataclass(frozen=True)
class Benchmark:
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
        """Return what algorithms may assume; the paper's keep their own context noise, 1."""
        assumed: dict[str, Any] = {**self.problem.assumptions(), "alpha": self.alpha}
        if self.noise is not None:
            assumed["noise"] = self.noise
        # Learners are compared here, without monitors; the panel `notices` is about those.
        return assumed | {"context_noise": self.problem.context_noise, "delta_alarm": None}

    def told_context_noise(self) -> dict[str, Any]:
        """Return what the paper's algorithms are given to know as much as Guard-UCB.

        Guard-UCB reads it off each round's support in a forecast; others get the true one.
        """
        told = self.problem.context_noise
        return {"constant": "tight"} if told is None else {"context_noise": told}


BENCHMARKS = (
    Benchmark("Fig. 1a", "synthetic-a", 20_000, 0.3, False),
    Benchmark("Fig. 1a, fresh", "synthetic-a", 20_000, 0.3, True, {"nature": "fresh"}),
    Benchmark("Fig. 1c", "synthetic-b", 20_000, 0.25, False),
    Benchmark("Fig. 1c, fresh", "synthetic-b", 20_000, 0.25, True, {"nature": "fresh"}),
    Benchmark("Fig. 2b", "synthetic-c", 55_000, 0.1, False, {"psi_noise": 0.01, "baseline": 80}),
    Benchmark(
        "Fig. 2b, fresh",
        "synthetic-c",
        55_000,
        0.1,
        True,
        {"psi_noise": 0.01, "baseline": 80, "nature": "fresh"},
    ),
    *(
        Benchmark(
            f"Fig. 2c, M={agents}" + (", fresh" if fresh else ""),
            "synthetic-c",
            10_000,
            0.3,
            fresh,
            {"psi_noise": 0.1, "baseline": 30, "agents": agents}
            | ({"nature": "fresh"} if fresh else {}),
            noise=1.0,
        )
        for agents in (3, 10)
        for fresh in (False, True)
    ),
    Benchmark("MovieLens", "movielens", 20_000, 0.5, False),
    Benchmark("MovieLens, fresh", "movielens", 20_000, 0.5, True, {"nature": "fresh"}),
    Benchmark("LastFM", "lastfm", 5_000, 0.7, False, {"actions": 50}),
    Benchmark("forecast", "forecast", 20_000, 0.2, True),
    Benchmark("forecast-formal2", "forecast-formal2", 20_000, 0.1, True),
    Benchmark("forecast-large", "forecast-large", 10_000, 0.2, True),
)
ROWS = {case.name: case.name + ("" if case.model else " *") for case in BENCHMARKS}


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

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return one run per problem and algorithm."""
        return [
            Run(
                label=_label(case, name),
                problem=case.problem,
                algorithm=algorithm,
                rounds=options.rounds(int(case.rounds * self.share)),
                trials=options.trials(self.trials),
                seed=options.seed,
                alpha=case.alpha,
                horizon=int(case.rounds * self.share),
            )
            for case in BENCHMARKS
            for name, algorithm in _algorithms(case).items()
        ]

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge safety where the theory applies, and regret everywhere."""
        return [
            _kept(results, STRICT, "violations_expected", "every play"),
            _kept(results, POLICY, "violations_policy", "every randomised choice"),
            _factor(results, STRICT, UNGUARDED, 2.5),
            _factor(results, POLICY, UNGUARDED, 1.7),
            _factor(results, POLICY, FREE, 2.0),
            _factor(results, POLICY, FREE_TOLD, 2.0),
            _factor(results, STRICT, FREE, 4.0),
            _factor(results, STRICT, FREE_TOLD, 4.0),
            _factor(results, STRICT, PRINTED, 1.0),
            _factor(results, STRICT, PRINTED_TOLD, 1.0),
            _best_safe(results),
        ]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw a table of regret and violations, and below it the main ones with intervals."""
        cells = _cells(results)
        shown = _strongest_cells(cells)
        names = {column: None for _, column in shown if column not in REFERENCES}
        table, dots = 2.2 + 0.52 * len(BENCHMARKS), 1.4 + 0.44 * len(BENCHMARKS)
        figure = plots.new_figure(1.9 + 0.86 * len(names), table + dots)
        figure.suptitle(self.title, x=0.012, ha="left", fontweight="bold", fontsize=16)
        trials = next(iter(results.values())).run.trials
        axes, below = figure.subplots(2, 1, height_ratios=[table, dots])
        draw_table(axes, shown, ROWS, {name: _shown_name(name) for name in names})
        axes.set_title(
            "Regret as a share of the baseline's (dark: as much or more).  ▼ rounds per agent "
            f"below the floor, in expectation.  Mean of {trials} trials.  * ψ is not the mean of "
            "φ: outside the theory\nGuard-UCB is told context_noise of ψ − φ; so are all whose "
            "sets have a place for it, but DisLinUCB and DiSC-UCB as printed.\nOf rivals with "
            "several settings: the strongest on each problem",
            loc="left",
            fontsize=11,
            pad=124,
        )
        draw_dots(below, cells, ROWS, {name: (_shown_name(name), DRAWN[name]) for name in DRAWN})
        below.set_title(
            f"The same with the 95 % interval over {trials} trials; a line to the left edge: it "
            "reaches 0",
            loc="left",
            fontsize=11,
        )
        return figure

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Say which rounds were played, and what each algorithm was told."""
        played = ", ".join(
            f"{case.name} {options.rounds(int(case.rounds * self.share)):,}" for case in BENCHMARKS
        )
        return [
            f"Rounds: {played}; {options.trials(self.trials)} trials each. At the scale 'paper' "
            f"this is {100 * self.share:g} % of the problems' full horizons.",
            "Every algorithm is told the problem's α, R, and honest bounds on ‖θ‖ and features; "
            "both columns of settings are the same here. Regret is in expected rewards.",
            "Guard-UCB is told more than its rivals in print: context_noise, a number (the support "
            "of each round's distribution where the problem is a forecast), where the paper and "
            "others after it assume 1. So all rivals whose confidence sets have a place for it are "
            "told it here; DisLinUCB and DiSC-UCB play twice, as in the paper and told "
            "context_noise, and factors are judged against both.",
            "A rival has up to three settings: theory, the constants of its paper; authors, those "
            "its authors experiment with; tuned, chosen by `python -m bench.tune` on other seeds. "
            "Tables lead with the strongest on each problem, which is chosen in hindsight. Oracles "
            "are told what no learner knows.",
            "Outside the theory (marked *): ψ is φ plus noise that is drawn once, so that no "
            "confidence set can be right. Guard-UCB has its default there too, "
            "on_refuted='baseline': the table counts the rounds in which it plays the baseline "
            "because no parameter fits.",
        ]

    def table(self, results: RunResults) -> pd.DataFrame:
        """Return one row per problem and algorithm: means over trials, per agent."""
        rows = []
        by_name = {case.name: case for case in BENCHMARKS}
        for (where, name), result in _cells(results).items():
            case = by_name[where]
            mean = {metric: float(v.mean()) for metric, v in result.series.totals.items()}
            watched = name not in REFERENCES
            rows.append(
                {
                    "problem": case.name,
                    "algorithm": name,
                    "reading": ALGORITHMS[TOLD.get(name, name)].reading,
                    "regret": mean["regret_expected"],
                    "below floor, expected": mean["violations_expected"],
                    "policy below floor": mean["violations_policy"],
                    "below floor, realised": mean["violations_realised"],
                    "conservative": mean["conservative"],
                    "refuted": mean["refuted"] if name in (STRICT, POLICY) else float("nan"),
                    "syncs": float(result.series.sync_rounds.mean()),
                    "outside": mean["outside"] if watched and _has_set(name) else float("nan"),
                    "model": case.model,
                    "rounds": result.run.rounds,
                }
            )
        return pd.DataFrame(rows)


def _shown_name(name: str) -> str:
    return f"{shown_name(TOLD[name])}, told context_noise" if name in TOLD else shown_name(name)


def _label(case: Benchmark, name: str) -> str:
    return f"{case.name}: {_shown_name(name)}"


@cache
def _algorithms(case: Benchmark) -> dict[str, Algorithm]:
    """Return what the problem allows, told as much as Guard-UCB; two are there as printed, too.

    Algorithms whose confidence sets ignore the hidden context have no use for context_noise.
    """
    facts = case.problem.build(0).facts(case.rounds)
    twins = {twin: name for name, twin in TOLD.items()}
    made: dict[str, Algorithm | None] = {}
    for name, entry in ALGORITHMS.items():
        plain = as_printed(name, case.told())
        told = plain
        if getattr(plain, "constant", "") == "paper":
            told = entry.informed(case.told(), **case.told_context_noise())
        made[name] = fitting(plain if name in twins else told, facts)
        if name in twins:
            made[twins[name]] = fitting(told, facts)
    return {name: algorithm for name, algorithm in made.items() if algorithm is not None}


def _cells(results: RunResults) -> dict[tuple[str, str], RunResult]:
    """Return what was found by problem and algorithm."""
    return {
        (case.name, name): results[_label(case, name)]
        for case in BENCHMARKS
        for name in _names(results)
        if _label(case, name) in results
    }


def _strongest_cells(cells: Mapping[tuple[str, str], RunResult]) -> dict[Any, RunResult]:
    """Return what was found by problem and rival, of its strongest setting there.

    All settings of DisLinUCB and DiSC-UCB stay apart.
    """
    found: dict[tuple[str, str], list[Tally]] = {}
    for (case, name), result in cells.items():
        totals, rival = result.series.totals, rival_of(name)
        column = name if rival in (FREE, PRINTED) else rival
        mean = (float(totals[key].mean()) for key in ("regret_expected", "violations_expected"))
        found.setdefault((case, column), []).append(Tally(name, *mean))
    return {(case, column): cells[case, strongest(all_)] for (case, column), all_ in found.items()}


def _is_stage_wise(name: str) -> bool:
    """Tell whether a rival promises a floor in every round; cl-ucb's is over all together."""
    entry = ALGORITHMS[TOLD.get(name, name)]
    return entry.constraint == "stage-wise" and entry.reading != "own"


def _names(results: RunResults) -> list[str]:
    """Return who played somewhere, in the order of the list; twins side by side."""
    twins = {twin: name for name, twin in TOLD.items()}
    known = [each for name in ALGORITHMS for each in (name, twins.get(name)) if each is not None]
    return [name for name in known if any(_label(case, name) in results for case in BENCHMARKS)]


def _has_set(name: str) -> bool:
    """Tell whether the simulator looks for theta in the algorithm's confidence set."""
    return ALGORITHMS[TOLD.get(name, name)].kind.watched


def _regret(results: RunResults, case: Benchmark, name: str) -> np.ndarray:
    return judge.per_trial(results[_label(case, name)], "regret_expected")


def _kept(results: RunResults, name: str, metric: str, what: str) -> Claim:
    """Judge by counting that a promise was kept wherever the theory applies."""
    broken = {
        case.name: float(results[_label(case, name)].series.totals[metric].sum())
        for case in BENCHMARKS
        if case.model
    }
    total = sum(broken.values())
    told = ", ".join(f"{case} {count:,.0f}" for case, count in broken.items() if count)
    outside = sum(
        float(results[_label(case, name)].series.totals[metric].sum())
        for case in BENCHMARKS
        if not case.model
    )
    return Claim(
        f"better-{name}-safe",
        f"Where ψ is the mean of φ, {what} of {shown_name(name)} keeps the floor in expectation",
        total == 0,
        f"{total:,.0f} agent-rounds below it on {len(broken)} problems, all trials"
        + (f" ({told})" if told else "")
        + f"; on the {len(BENCHMARKS) - len(broken)} others, where nothing is promised, "
        f"{outside:,.0f}",
    )


def _factor(results: RunResults, name: str, rival: str, factor: float) -> Claim:
    """Judge that regret is at most a factor times a rival's, on every problem."""
    verdicts: list[bool | None] = []
    told = []
    for case in BENCHMARKS:
        if _label(case, rival) not in results:
            verdicts.append(None)
            continue
        mine, theirs = _regret(results, case, name), _regret(results, case, rival)
        verdicts.append(judge.difference(factor * theirs, mine).not_below)
        told.append(f"{case.name} {mine.mean() / theirs.mean():.2g}")
    times = "at most" if factor == 1 else f"at most {factor:g} times"
    return Claim(
        f"better-{name}-{rival}",
        f"{shown_name(name)}'s regret is {times} that of {_shown_name(rival)}, on every problem",
        judge.together(verdicts),
        "ratio: " + ", ".join(told),
    )


def _best_safe(results: RunResults) -> Claim:
    """Judge that no rival with a promise per round, that kept it, has less regret."""
    verdicts: list[bool | None] = []
    told = []
    for case in BENCHMARKS:
        for name in filter(_is_stage_wise, _names(results)):
            result = results.get(_label(case, name))
            if result is None or result.series.violations_expected.any():
                continue
            mine, theirs = _regret(results, case, STRICT), _regret(results, case, name)
            verdict = judge.difference(theirs, mine).not_below
            verdicts.append(verdict)
            if verdict is not True:
                means = f"{number(theirs.mean())} against {number(mine.mean())}"
                told.append(f"{case.name}: {_shown_name(name)} {means}")
    return Claim(
        "better-best-safe",
        "No stage-wise safe rival that kept its promise has less regret than Guard-UCB",
        judge.together(verdicts),
        f"{len(verdicts)} comparisons; not clearly worse: " + ("; ".join(told) or "none"),
    )


PANEL = PanelBetter()
