"""Lemmas: what the paper proves about safety, measured, and where an assumption of it fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from guardband.algorithms import ALGORITHMS, Algorithm
from guardband.kernels.types import Floats
from guardband.lab import judge, plots
from guardband.lab.counts import share_interval
from guardband.lab.experiments import shown_name
from guardband.lab.panel import Claim, Run, RunOptions, RunResult, RunResults
from guardband.problems import NamedProblem, problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PANEL", "QUICK"]

MISSES = 0.1  # M delta: in how many trials theta may leave the set
RIDGE = 0.05
KNOWN, UNKNOWN, GUARD = "disc-ucb", "disc-ucb-unknown", "guard-ucb"
QUICK = "The scale 'quick' has a tenth of the trials, and all rounds: shorter runs open no gate."


@dataclass(frozen=True)
class Case:
    """A problem, and which assumption of the paper it breaks, if any."""

    name: str
    kind: str
    rounds: int
    alpha: float
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    breaks: str = ""

    @property
    def problem(self) -> NamedProblem:
        """The problem itself."""
        return problem(self.kind, **self.settings)

    def algorithms(self) -> Iterator[Algorithm]:
        """Yield the algorithms, told the true noise and context_noise: gates open."""
        made = self.problem
        noise = made.build(0).reward_noise.std
        told: dict[str, Any] = {**made.assumptions(), "alpha": self.alpha, "ridge": RIDGE}
        told |= {"noise": noise, "constant": "tight", "context_noise": made.context_noise}
        # Guard-UCB's delta is for all agents together, the paper's for each of them.
        for name in (KNOWN, UNKNOWN):
            yield ALGORITHMS[name].informed(told | {"delta": MISSES / made.agents})
        yield ALGORITHMS[GUARD].informed(told | {"delta": MISSES})


CASES = (
    Case("fresh", "synthetic-b", 10_000, 0.5, {"nature": "fresh"}),
    Case("forecast", "forecast", 10_000, 0.8, {"baseline": 3}),
    Case("forecast 2", "forecast-formal2", 20_000, 0.5, {"baseline": 3}),
    Case(
        "crowd",
        "synthetic-b",
        2_000,
        0.5,
        {"nature": "fresh", "agents": 50},
        "50 agents share each hidden context, whose errors the proof takes for independent",
    ),
    Case(
        "frozen",
        "synthetic-b",
        10_000,
        0.5,
        {},
        "ψ is φ plus noise that is drawn once, not the mean of φ",
    ),
)


class Lemma(NamedTuple):
    """A statement that can be counted: in how many rounds it fails.

    `less` is subtracted: violations of all rounds less those of conservative ones are violations
    behind the gate. What is `sure` has no allowance: one round of one trial refutes it.
    """

    id: str
    algorithm: str
    text: str
    metric: str
    less: str = ""
    sure: bool = False


MOSTLY, GUARDED = "in all but Mδ of the trials", "in all but δ of the trials"
LOW, HOME = "violations_realised", "violations_conservative"
LOW_MEAN, HOME_MEAN = "violations_expected", "violations_conservative_expected"
TELLING = ("outside", LOW_MEAN)  # what a broken assumption may break


def _of_the_paper(who: str, gate: str, pruned: str, home: str) -> Iterator[Lemma]:
    """Yield what is proved of one algorithm: behind the gate, and in conservative rounds."""
    behind, safe = "behind the gate no", "in conservative rounds no"
    mean = "in expectation"
    yield Lemma(pruned, who, f"behind the gate x* is in the pruned set, {MOSTLY}", "optimum_pruned")
    yield Lemma(gate, who, f"{behind} reward is below the floor, {MOSTLY}", LOW, HOME)
    text = f"{behind} expected reward is below the floor, {MOSTLY}"
    yield Lemma(f"{gate} {mean}", who, text, LOW_MEAN, HOME_MEAN)
    yield Lemma(home, who, f"{safe} reward is below the floor", HOME, sure=True)
    text = f"{safe} expected reward is below the floor"
    yield Lemma(f"{home} {mean}", who, text, HOME_MEAN, sure=True)


LEMMAS = (
    Lemma("confidence", KNOWN, f"θ never leaves B, {MOSTLY}", "outside"),
    *_of_the_paper(KNOWN, "L2", "L4", "L3"),
    *_of_the_paper(UNKNOWN, "L2_2_", "L4_2", "L3_2"),
    Lemma("guard-set", GUARD, f"θ never leaves the set, {GUARDED}", "outside"),
    Lemma("guard-mean", GUARD, f"no expected reward is below the floor, {GUARDED}", LOW_MEAN),
)


@dataclass(frozen=True, kw_only=True)
class PanelLemmas:
    """Counts of what must never, or seldom, happen."""

    name: str = "lemmas"
    title: str = "Does what is proved happen?"
    question: str = "Is θ in its set, x* in the pruned set, and every reward above the floor?"
    source: str = "app:sup"
    trials: int = 50

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return three algorithms on every problem."""
        return [
            Run(
                label=_label(case, algorithm.name),
                problem=case.problem,
                algorithm=algorithm,
                rounds=_rounds(options, case),
                trials=options.trials(self.trials),
                seed=options.seed,
                alpha=case.alpha,
                horizon=case.rounds,
            )
            for case in CASES
            for algorithm in case.algorithms()
        ]

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge every lemma where the theory applies, and the main ones where it does not."""
        inside = [case for case in CASES if not case.breaks]
        claims = [_inside(lemma, inside, results) for lemma in LEMMAS]
        for case in CASES:
            for lemma in LEMMAS:
                if case.breaks and lemma.algorithm != UNKNOWN and lemma.metric in TELLING:
                    result = results[_label(case, lemma.algorithm)]
                    claims.append(
                        Claim(
                            f"lemmas-{lemma.id}-{case.name}".replace(" ", "-"),
                            f"{_name(lemma)}: {lemma.text}, although {case.breaks}",
                            _holds(lemma, result),
                            _detail(lemma, result),
                        )
                    )
        return claims

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw a table: a verdict and a count for every lemma and problem."""
        figure = plots.new_figure(14.4, 1.7 + 0.58 * len(LEMMAS))
        figure.suptitle(self.title, x=0.012, ha="left", fontweight="bold", fontsize=16)
        axes = figure.add_subplot()
        shade = np.zeros((len(LEMMAS), len(CASES)))
        words = {True: "holds", False: "FAILS", None: "inconclusive"}
        for row, lemma in enumerate(LEMMAS):
            for column, case in enumerate(CASES):
                result = results[_label(case, lemma.algorithm)]
                holds = _holds(lemma, result)
                shade[row, column] = {True: 0.0, None: 0.12, False: 0.42}[holds]
                weight = "bold" if holds is False else "normal"
                style: dict[str, Any] = {"ha": "center", "fontsize": 11, "fontweight": weight}
                axes.text(column, row, words[holds], va="bottom", **style)
                axes.text(
                    column, row + 0.06, _count(lemma, result), ha="center", va="top", fontsize=9
                )
        axes.imshow(shade, cmap="Greys", vmin=0, vmax=1, aspect="auto")
        heads = [
            f"{case.name}\n{case.problem.agents} agents\n"
            f"{results[_label(case, KNOWN)].run.rounds:,} rounds"
            + ("\noutside the theory" if case.breaks else "")
            for case in CASES
        ]
        axes.set_xticks(range(len(CASES)), heads, fontsize=11)
        names = [f"{_name(lemma)}\n{lemma.text}" for lemma in LEMMAS]
        axes.set_yticks(range(len(LEMMAS)), names, fontsize=10)
        axes.xaxis.tick_top()
        axes.set_xticks(np.arange(len(CASES) + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(len(LEMMAS) + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="#999999", linewidth=0.8)
        axes.set_xlabel(
            "Counts are agent-rounds of all trials, of the kind that a lemma speaks of.",
            loc="left",
            fontsize=10,
        )
        axes.tick_params(which="both", length=0)
        return figure

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Say what algorithms were told, and what breaks an assumption."""
        return [
            "DiSC-UCB has the printed gate. It is told the true noise and context_noise "
            f"(constant='tight') and λ = {RIDGE}, so that the gate opens; both columns of settings "
            "are the same here.",
            f"The paper's δ is {MISSES} / M, so that θ may leave the set in {100 * MISSES:g} % of "
            f"the trials; Guard-UCB's δ is {MISSES}, for all agents together.",
            "A lemma that may fail in such a share of the trials holds if the 95 % interval of the "
            "share lies within it, and does not if it lies above; fewer than 36 trials, all clean, "
            "are inconclusive. L3 and L3_2 have no such allowance: one round refutes them.",
            "x* is the best action by ψ'θ. The simulator looks for it in the pruned set in every "
            "round with an open gate, and for θ in the set in every round.",
            *(f"{case.name}: {case.breaks}." for case in CASES if case.breaks),
            QUICK,
        ]


def _rounds(options: RunOptions, case: Case) -> int:
    """Return the horizon; "quick" saves trials only, because shorter runs open no gate."""
    return options.rounds(case.rounds) if options.scale == "smoke" else case.rounds


def _label(case: Case, name: str) -> str:
    return f"{case.name}: {shown_name(name)}"


def _name(lemma: Lemma) -> str:
    shown = shown_name(lemma.algorithm)
    return f"{lemma.id}, {shown}" if _of_paper(lemma) else shown


def _of_paper(lemma: Lemma) -> bool:
    return ALGORITHMS[lemma.algorithm].kind.of_paper


def _inside(lemma: Lemma, cases: Sequence[Case], results: RunResults) -> Claim:
    result = {case.name: results[_label(case, lemma.algorithm)] for case in cases}
    return Claim(
        f"lemmas-{lemma.id}".replace(" ", "-"),
        f"{_name(lemma)}: {lemma.text}",
        _together(lemma, list(result.values())),
        "; ".join(f"{name}: {_detail(lemma, each)}" for name, each in result.items()),
    )


def _together(lemma: Lemma, runs: Sequence[RunResult]) -> bool | None:
    """Judge one lemma on all problems but those without a round that it speaks of."""
    told = [_holds(lemma, result) for result in runs if not _idle(lemma, result)]
    return judge.together(told) if told else None


def _holds(lemma: Lemma, result: RunResult) -> bool | None:
    """Judge one lemma on one problem: by counting, or by the share of trials in which it fails."""
    bad, trials = _bad_trials(lemma, result), len(result.series.regret)
    low, high = share_interval(bad, trials)
    if low > MISSES or (lemma.sure and bad > 0):
        return False
    if _idle(lemma, result) or not result.run.full:
        return None  # what has not happened may still happen
    return True if lemma.sure or high <= MISSES else None


def _detail(lemma: Lemma, result: RunResult) -> str:
    bad, trials = _bad_trials(lemma, result), len(result.series.regret)
    low, high = share_interval(bad, trials)
    detail = _count(lemma, result)
    if _idle(lemma, result):
        return detail
    if lemma.metric != "outside":
        detail += f" rounds, in {bad} of {trials} trials"
    return detail if lemma.sure else f"{detail} [{low:.2f}, {high:.2f}], allowed: {MISSES:g}"


def _idle(lemma: Lemma, result: RunResult) -> bool:
    """Tell whether nothing happened that could break a lemma on what is behind the gate."""
    return _behind(lemma) and _open_rounds(result) == 0 and _bad_trials(lemma, result) == 0


def _behind(lemma: Lemma) -> bool:
    return _of_paper(lemma) and lemma.metric != "outside" and not lemma.sure


def _counts(lemma: Lemma, result: RunResult) -> Floats:
    """Return (trials, M): in how many rounds it failed."""
    totals = result.series.totals
    return totals[lemma.metric] - totals[lemma.less] if lemma.less else totals[lemma.metric]


def _bad_trials(lemma: Lemma, result: RunResult) -> int:
    return int((_counts(lemma, result).sum(axis=1) > 0).sum())


def _count(lemma: Lemma, result: RunResult) -> str:
    counts = _counts(lemma, result)
    if lemma.metric == "outside":
        return f"left in {_bad_trials(lemma, result)} of {len(counts)} trials"
    if _idle(lemma, result):
        return "the gate never opened"
    whole = counts.size * result.run.rounds
    home = int(result.series.conservative.sum())
    if lemma.sure or lemma.less:
        whole = home if lemma.sure else whole - home
    elif _behind(lemma):
        whole = round(_open_rounds(result) * counts.size)
    many = f"{whole / 1e6:.3g} million" if whole >= 1e6 else f"{whole:,}"
    return f"{counts.sum():,.0f} of {many}"


def _open_rounds(result: RunResult) -> float:
    """Return in how many rounds per agent the gate was open, at most.

    A conservative round has a closed gate, or an empty set, which lacks x* too.
    """
    totals = result.series.totals
    closed = totals["conservative"] - totals["optimum_pruned"]
    return float(np.maximum(result.run.rounds - closed, 0).mean())


PANEL = PanelLemmas()
