"""Bounds: the paper's bounds on regret and conservative rounds, over what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband import theory
from guardband.algorithms import ALGORITHMS
from guardband.kernels.types import Floats
from guardband.lab import judge, plots
from guardband.lab.bound_inputs import bound_setting
from guardband.lab.candidates import with_extra
from guardband.lab.counts import share_interval
from guardband.lab.experiments import as_printed
from guardband.lab.loglog import Line, draw_lines, looks_of
from guardband.lab.panel import Claim, Run, RunOptions, RunResult, RunResults
from guardband.lab.panels.lemmas import QUICK
from guardband.problems import NamedProblem, problem
from guardband.report import number
from guardband.sim import interval_half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PANEL"]

ALPHA, DELTA, BASELINE, WORLD = 0.8, 1e-3, 3, 0
DECLARED, TOLD, FREE, GUARD = "DiSC-UCB", "DiSC-UCB, told context_noise", "DisLinUCB", "Guard-UCB"
LOOKS = {DECLARED: 0, TOLD: 5, FREE: 3, GUARD: 1}
FAR = 10**15  # where the search for a bound that says something ends


@dataclass(frozen=True, kw_only=True)
class PanelBounds:
    """Measured curves and the bounds, each taken at T = t."""

    name: str = "bounds"
    title: str = "What do the paper's bounds say?"
    question: str = "Where do the bounds lie, and where do they say anything?"
    source: str = "sec:reg"
    rounds: int = 20_000
    trials: int = 20

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return DiSC-UCB twice (as the paper assumes, and told the truth), and its rivals."""
        made = _problem()
        told = _told(tight=False) | {"context_noise": made.context_noise}
        facts = made.build(WORLD).facts(self._rounds(options))
        own = {
            DECLARED: ALGORITHMS["disc-ucb"].informed(told),
            TOLD: ALGORITHMS["disc-ucb"].informed({}, **_told(tight=True)),
            FREE: as_printed("dis-lin-ucb", told),
            GUARD: ALGORITHMS["guard-ucb"].informed(told),
        }
        return [
            Run(
                label=label,
                problem=made,
                algorithm=algorithm,
                rounds=self._rounds(options),
                trials=options.trials(self.trials),
                seed=options.seed,
                alpha=ALPHA,
                horizon=self.rounds,
            )
            for label, algorithm in with_extra(own, options.extra, told, facts).items()
        ]

    def _rounds(self, options: RunOptions) -> int:
        """Return the horizon; "quick" saves trials only, because shorter runs open no gate."""
        return options.rounds(self.rounds) if options.scale == "smoke" else self.rounds

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge whether the bounds hold, and whether they say anything."""
        return [
            *_regret_claims(results),
            _t1(results),
            *(_l7(results[label], tight=label == TOLD) for label in (DECLARED, TOLD)),
            _l5(results[TOLD]),
            _earliest(results),
        ]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw regret and conservative rounds, with their bounds, on logarithmic axes."""
        figure = plots.new_figure(15.0, 6.4)
        figure.suptitle(self.title, x=0.012, ha="left", fontweight="bold", fontsize=16)
        _draw_regret(figure.add_subplot(1, 2, 1), results)
        _draw_conservative(figure.add_subplot(1, 2, 2), results)
        return figure

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Say which problem this is, and how the bounds were evaluated."""
        given = _given(self._rounds(options), tight=False)
        return [
            f"forecast with the {BASELINE}rd best action for a baseline, α = {ALPHA}, δ = {DELTA}: "
            f"M = {given.agents}, d = {given.dim}, r_b from {given.reward_low:.3g} to "
            f"{given.reward_high:.3g} in the one world of all trials, which the bounds are told.",
            "Bounds are for all agents together and taken at T = t, β_T at its largest. 'Told "
            "context_noise': noise and context as small as they are, not the paper's √(1 + R²), "
            "and λ = 0.05, so that the gate opens.",
            "A regret of M t is true of everything, because rewards lie in [0, 1].",
            "prop1 and T1 are drawn and judged with what the DiSC-UCB that was told context_noise "
            "assumes, ECC with what DisLinUCB assumes, the paper's √(1 + R²). Bounds are about "
            "single trials: a claim counts the trials that exceed one at some t, and may fail in "
            f"Mδ = {_allowed(given):g} of them. prop1 takes each trial's own conservative rounds; "
            "the picture shows its mean over trials.",
            QUICK,
        ]


def _problem() -> NamedProblem:
    return problem("forecast", baseline=BASELINE, seed=WORLD)


def _told(*, tight: bool) -> dict[str, Any]:
    made = _problem()
    told: dict[str, Any] = {**made.assumptions(), "alpha": ALPHA, "delta": DELTA}
    if tight:
        told |= {"constant": "tight", "ridge": 0.05}
        told["context_noise"] = made.build(WORLD).context_noise
    return told


def _given(horizon: int, *, tight: bool) -> theory.Setting:
    told = _told(tight=tight)
    return bound_setting(_problem().build(WORLD), told, horizon=horizon, alpha=ALPHA, delta=DELTA)


def _allowed(given: theory.Setting) -> float:
    """Return M delta: in which share of the trials a bound may fail."""
    return given.agents * given.level


def _regret(result: RunResult) -> Floats:
    """Return (trials, P): regret of all agents so far."""
    agents = result.series.regret.shape[1]
    total: Floats = agents * result.series.curves["regret"].mean(axis=2)
    return total


def _together(result: RunResult) -> Floats:
    """Return (P,): regret of all agents so far, mean over trials."""
    mean: Floats = _regret(result).mean(axis=0)
    return mean


def _conservative(result: RunResult) -> Floats:
    """Return (trials, P): conservative rounds so far, mean over agents."""
    mean: Floats = result.series.curves["conservative"].mean(axis=2)
    return mean


def _careful(result: RunResult) -> Floats:
    """Return (P,): conservative rounds so far, mean over agents and trials."""
    mean: Floats = _conservative(result).mean(axis=0)
    return mean


def _over(
    given: theory.Setting, result: RunResult, bound: Callable[[theory.Setting, float], theory.Bound]
) -> Floats:
    """Return (trials, P): a bound at T = t and each trial's conservative rounds by then."""
    at = [replace(given, horizon=int(t)) for t in result.rounds]
    counts = np.minimum(_conservative(result), result.rounds)
    return np.array(
        [[bound(g, float(n)).value for g, n in zip(at, row, strict=True)] for row in counts]
    )


def _counted(bad: int, trials: int, allowed: float) -> tuple[bool | None, str]:
    """Judge a bound that may fail in a share of the trials, from how many exceed it."""
    low, high = share_interval(bad, trials)
    holds = False if low > allowed else True if bad == 0 else None
    return holds, (
        f"{bad} of {trials} trials exceed it at some t [{low:.2g}, {high:.2g}], said: at most "
        f"{allowed:g}"
    )


def _statement(given: theory.Setting, n: float) -> theory.Bound:
    return theory.prop1(given, conservative=n, form="statement")


def _proof(given: theory.Setting, n: float) -> theory.Bound:
    return theory.prop1(given, conservative=n, form="proof")


def _free(given: theory.Setting, _: float) -> theory.Bound:
    return theory.ECC(given)


def _useful_from(given: theory.Setting) -> float:
    """Return the least horizon at which the bound without a constraint is below M T."""
    low, high = 2, FAR
    if theory.ECC(replace(given, horizon=high)).vacuous:
        return math.inf
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        if theory.ECC(replace(given, horizon=middle)).vacuous:
            low = middle
        else:
            high = middle
    return float(high)


def _regret_claims(results: RunResults) -> list[Claim]:
    claims = []
    last = int(next(iter(results.values())).rounds[-1])
    for label, tight, name, bound in (
        (TOLD, True, "prop1-statement", _statement),
        (TOLD, True, "prop1-proof", _proof),
        (FREE, False, "ECC", _free),
    ):
        given, result = _given(last, tight=tight), results[label]
        measured, limit = _regret(result), _over(given, result, bound)
        above = int((measured > limit).any(axis=1).sum())
        holds, told = _counted(above, len(measured), _allowed(given))
        times = float((limit[:, -1] / np.maximum(measured[:, -1], 1e-9)).min())
        claims.append(
            Claim(
                f"bounds-{name}",
                f"The regret of {label} stays below {name.replace('-', ', ')}",
                holds,
                f"{told}; at T = {last:,} {number(float(measured[:, -1].mean()))} for all agents, "
                f"bound {number(float(limit[:, -1].mean()))}: at least "
                f"{number(times)} times as much in every trial",
            )
        )
    given = _given(last, tight=True)
    limit = _over(given, results[TOLD], _statement).mean(axis=0)
    most = given.agents * results[TOLD].rounds
    start, idle = _useful_from(given), judge.never_left(results[TOLD])
    claims.append(
        Claim(
            "bounds-says-something",
            "prop1, statement, says more than what is true of everything at this horizon",
            bool(limit[-1] < most[-1]),
            f"at T = {last:,} it is {number(limit[-1] / most[-1])} times M T"
            + (", its third term alone: no round was of its own choice" if idle else "")
            + "; without any "
            "conservative round (ECC) "
            + (f"it falls below M T from T = {start:.2g} on" if start < FAR else "it never does"),
        )
    )
    return claims


def _theorem(given: theory.Setting, rounds: Sequence[int]) -> list[theory.Bound]:
    return [theory.T1(replace(given, horizon=int(t))) for t in rounds]


def _where(bounds: Sequence[theory.Bound]) -> str:
    """Return at how many t T1 is a number, and at how many of these its condition is met."""
    numbers = [bound for bound in bounds if not math.isnan(bound.value)]
    met = sum(bound.holds for bound in numbers)
    if not numbers:
        return f"T1 is a number at none of {len(bounds)} t"
    return (
        f"T1 is a number at {len(numbers)} of {len(bounds)} t, its condition is met at "
        f"{met or 'none'} of them"
    )


def _t1(results: RunResults) -> Claim:
    result = results[TOLD]
    last = int(result.rounds[-1])
    given = _given(last, tight=True)
    bounds = _theorem(given, result.rounds.tolist())
    met = np.array([bound.holds for bound in bounds])
    above = _regret(result) > np.array([bound.value for bound in bounds])
    bad = int((above & met).any(axis=1).sum())
    holds, counted = _counted(bad, len(above), _allowed(given))
    if not met.any():
        holds, counted = False, "it applies nowhere, so there is nothing to count"
    parts, span = bounds[-1].terms, theory.window(given)
    own, careful = number(parts["c'"]), number(parts["c''"])
    return Claim(
        "bounds-T1",
        "T1 applies to DiSC-UCB at some t, and bounds its regret there",
        holds,
        f"{_where(bounds)}; {counted}; at T = {last:,} c' = {own}, "
        f"c'' = {careful}. L7, on which it rests, has a proof for {span.value:.2g} rounds, from "
        f"T = {number(span.terms['first'])} on",
    )


def _l7(result: RunResult, *, tight: bool) -> Claim:
    last = int(result.rounds[-1])
    given = _given(last, tight=tight)
    low, high = theory.L7_lower(given), theory.L7_upper(given)
    counts = judge.per_trial(result, "conservative")
    inside = bool(low.value <= counts.min() and counts.max() <= high.value)
    return Claim(
        "bounds-L7" + ("-told" if tight else ""),
        f"The conservative rounds of {result.run.label} lie between the bounds of L7",
        inside,
        f"{number(float(counts.mean()))} of {last:,} rounds per agent; L7: at least "
        f"{_told_number(low.value)}, at most {_told_number(high.value)}; its condition is "
        + ("met" if high.holds else "not met"),
    )


def _l5(result: RunResult) -> Claim:
    last = int(result.rounds[-1])
    given = _given(last, tight=True)
    bound = theory.L5(given, conservative=min(float(_careful(result)[-1]), last))
    return Claim(
        "bounds-L5",
        "L5 says more about λ_min(V) than its trace does",
        not bound.vacuous,
        f"L5: at most {number(bound.value)}; the trace: at most {number(bound.trivial)}",
    )


def _earliest(results: RunResults) -> Claim:
    verdicts, told = [], []
    for label, tight in ((DECLARED, False), (TOLD, True)):
        result = results[label]
        last = int(result.rounds[-1])
        first = theory.L2(_given(last, tight=tight)).terms["earliest round"]
        least = float(result.series.conservative.min())
        verdicts.append(least >= min(math.floor(first) - 1, last))
        told.append(f"{label}: not before round {number(first)}, was {number(least)}")
    return Claim(
        "bounds-earliest",
        "No gate opens before the trace of V lets it (not in the paper)",
        all(verdicts),
        "; ".join(told),
    )


def _told_number(value: float) -> str:
    return "not a number" if math.isnan(value) else number(value)


def _measured(results: RunResults, of: Callable[[RunResult], Floats]) -> list[Line]:
    """Return what was measured, with its 95 % interval over trials; who has none is left out."""
    lines = []
    for label, look in looks_of(results, LOOKS).items():
        samples, rounds = of(results[label]), results[label].rounds.astype(float)
        if samples.any():
            half = interval_half_width(samples)
            lines.append(Line(label, rounds, samples.mean(axis=0), half, look=look))
    return lines


def _draw_regret(axes: Axes, results: RunResults) -> None:
    rounds = results[TOLD].rounds.astype(float)
    given, declared = (_given(int(rounds[-1]), tight=tight) for tight in (True, False))
    theorem = _theorem(given, results[TOLD].rounds.tolist())
    lines = _measured(results, _regret)
    for label, values in (
        ("prop1, statement", _over(given, results[TOLD], _statement).mean(axis=0)),
        ("prop1, proof", _over(given, results[TOLD], _proof).mean(axis=0)),
        ("ECC, no constraint", _over(declared, results[FREE], _free)[0]),
        ("T1", np.array([bound.value for bound in theorem])),
        ("M t, true of everything", given.agents * rounds),
    ):
        lines.append(Line(label, rounds, values, bound=True))
    draw_lines(axes, lines)
    _finish(axes, "Regret of all agents so far", _where(theorem))


def _draw_conservative(axes: Axes, results: RunResults) -> None:
    rounds = results[TOLD].rounds.astype(float)
    lines = _measured(results, _conservative)
    met = False
    for label, tight in ((DECLARED, False), (TOLD, True)):
        given = _given(int(rounds[-1]), tight=tight)
        for name, bound in (("at most", theory.L7_upper), ("at least", theory.L7_lower)):
            at = [bound(replace(given, horizon=int(t))) for t in rounds]
            met = met or any(each.holds for each in at)
            values = np.array([each.value for each in at])
            short = label.removeprefix("DiSC-UCB, ") if tight else "as declared"
            lines.append(Line(f"L7, {name}, {short}", rounds, values, bound=True))
    lines.append(Line("t, true of everything", rounds, rounds, bound=True))
    draw_lines(axes, lines)
    _finish(
        axes,
        "Conservative rounds per agent so far",
        "" if met else "The condition of L7 is met at no t shown",
    )


def _finish(axes: Axes, title: str, note: str) -> None:
    axes.set_title(title, loc="left", fontsize=13)
    axes.set_xlabel("round t", fontsize=11)
    axes.text(0.98, 0.03, note, ha="right", transform=axes.transAxes, fontsize=11, style="italic")


PANEL = PanelBounds()
