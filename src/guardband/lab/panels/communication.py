"""Communication: poolings and numbers sent, as T, M and d grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from guardband import theory
from guardband.algorithms import ALGORITHMS, Algorithm
from guardband.kernels.types import Floats
from guardband.lab import plots
from guardband.lab.candidates import with_extra
from guardband.lab.counts import growth, misfit
from guardband.lab.loglog import Line, draw_lines, looks_of
from guardband.lab.panel import Claim, Run, RunOptions, RunResult, RunResults
from guardband.problems import GaussianNoise, World, rank_baseline
from guardband.report import number, percent
from guardband.seeds import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PANEL", "Ball"]

ALPHA, NOISE, ACTIONS, CONTEXTS = 0.3, 0.1, 10, 10
PRINTED, OPEN, GUARD = "DiSC-UCB", "DiSC-UCB, no gate", "Guard-UCB"
LOOKS = {PRINTED: 0, OPEN: 5, GUARD: 1}
COUNTED = ("disc-ucb", "guard-ucb")  # whose messages are known here
SWEEPS = ("T", "M", "d")
SAID = {"T": 0.0, "M": 1.5, "d": 3.0}  # O(M^1.5 d^3): exponents of the numbers sent


@dataclass(frozen=True, kw_only=True)
class Ball:
    """Any number of agents and features: actions are drawn from the positive part of the ball.

    Contexts are seen by all (psi = phi); every agent but the first lacks one feature.
    """

    agents: int
    features: int

    name: ClassVar[str] = "ball"
    about: ClassVar[str] = "features from the ball, for any M and d"

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of agents, contexts, actions and features."""
        return {
            "agents": self.agents,
            "contexts": CONTEXTS,
            "actions": ACTIONS,
            "features": self.features,
        }

    def build(self, seed: int) -> World:
        """Return the world of a trial."""
        d = self.features
        rng = stream(seed, "features")
        phi = np.abs(rng.standard_normal((CONTEXTS, ACTIONS, d)))
        phi /= np.linalg.norm(phi, axis=2, keepdims=True)
        phi *= rng.random((CONTEXTS, ACTIONS, 1)) ** (1 / d)  # uniform in the ball
        theta = np.abs(stream(seed, "theta").standard_normal(d))
        theta /= np.linalg.norm(theta)
        everything = tuple(range(d))
        tasks = tuple(
            tuple(i for i in everything if d == 1 or i != m % d) if m else everything
            for m in range(self.agents)
        )
        baseline = rank_baseline(phi, theta, tasks, ACTIONS // 2)
        return World(phi, phi, theta, tasks, baseline, GaussianNoise(NOISE))


class Point(NamedTuple):
    """One size of the problem; T is the number of rounds that are played."""

    T: int
    M: int
    d: int


POINTS: dict[str, tuple[Point, ...]] = {
    "T": tuple(Point(T, 10, 8) for T in (1_000, 2_000, 5_000, 10_000, 20_000)),
    "M": tuple(Point(1_000, M, 8) for M in (3, 10, 30, 100, 300, 1_000)),
    "d": tuple(Point(2_000, 10, d) for d in (2, 4, 8, 16, 32)),
}
CORNER = Point(500, 1_000, 32)
SMALL = 1_000  # M d of the largest size that is played at the scale "smoke"


@dataclass(frozen=True, kw_only=True)
class PanelCommunication:
    """Three sweeps, and the largest size of all."""

    name: str = "communication"
    title: str = "How much do the agents send?"
    question: str = "How do poolings and numbers sent grow with T, M and d, against M^1.5 d^3?"
    source: str = "T1"
    trials: int = 4

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return every algorithm at every size."""
        return [
            Run(
                label=_label(who, point),
                problem=Ball(agents=point.M, features=point.d),
                algorithm=algorithm,
                rounds=point.T,
                trials=options.trials(self.trials),
                seed=options.seed,
                alpha=ALPHA,
            )
            for point in _sizes(options)
            for who, algorithm in _algorithms(options).items()
        ]

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge the bound on poolings, the count of numbers, and the exponents."""
        return [
            _within(results),
            _counted(results),
            *(
                _exponent(_along(options, results, who, over), who, over)
                for who in _algorithms(options)
                for over in SWEEPS
            ),
        ]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw the numbers sent in every sweep, with the bound and M^1.5 d^3."""
        figure = plots.new_figure(17.0, 5.6)
        figure.suptitle(self.title, x=0.012, ha="left", fontweight="bold", fontsize=16)
        for i, over in enumerate(SWEEPS):
            axes = figure.add_subplot(1, 3, i + 1)
            lines = {who: _along(options, results, who, over) for who in _algorithms(options)}
            _draw_sweep(axes, lines, over)
            fixed = _fixed(lines[PRINTED][0], over)
            axes.set_title(f"Numbers sent, by {over} ({fixed})", loc="left", fontsize=12)
            axes.set_xlabel(over, fontsize=11)
        return figure

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Say which problem this is, and how long it ran."""
        corner = _played(options, CORNER).T
        return [
            f"Features are drawn from the positive part of the unit ball, {ACTIONS} actions in "
            f"{CONTEXTS} contexts that all agents see; agent m > 0 lacks one feature. α = {ALPHA}, "
            f"R = {NOISE}.",
            f"Sweeps over M run {_sweep_points(options, 'M')[0].T:,} rounds, over d "
            f"{_sweep_points(options, 'd')[0].T:,}. M = {CORNER.M:,} with d = {CORNER.d} runs "
            f"{corner:,}, which is fewer than the {2 * int(np.ceil(CORNER.d * CORNER.M**0.5)):,} "
            "poolings of the bound: it is vacuous there. The scale 'smoke' leaves out the largest, "
            "and has one T for all sizes.",
            "A pooling sends the upper half of W, and U, up and down: 2M (d(d+1)/2 + d) numbers; "
            "Guard-UCB sends four more sums with each. Exponents: least squares through the "
            "logarithms, one line per trial. Their 95 % interval is over trials only: it says "
            "nothing about how well a power describes the growth. How far the means are off the "
            "line is said beside it.",
        ]


def _algorithms(options: RunOptions) -> dict[str, Algorithm]:
    told: dict[str, Any] = {"alpha": ALPHA, "noise": NOISE, "theta_bound": 1.0}
    told["context_noise"] = 0.0
    own = {
        PRINTED: ALGORITHMS["disc-ucb"].informed(told),
        OPEN: ALGORITHMS["disc-ucb"].informed(told, gate="none", context_noise=0.0),
        GUARD: ALGORITHMS["guard-ucb"].informed(told),
    }
    facts = Ball(agents=3, features=2).build(0).facts(POINTS["T"][0].T)
    return with_extra(own, options.extra, told, facts)


def _played(options: RunOptions, point: Point) -> Point:
    """Return the size that is played at a scale: T is what the agents are told, and play."""
    return point._replace(T=options.rounds(point.T))


def _sweep_points(options: RunOptions, over: str) -> list[Point]:
    """Return the sizes of a sweep; where several become one, it is there once."""
    played = dict.fromkeys(_played(options, point) for point in POINTS[over])
    return [point for point in played if options.scale != "smoke" or point.M * point.d <= SMALL]


def _sizes(options: RunOptions) -> list[Point]:
    """Return all sizes, each once."""
    corner = [] if options.scale == "smoke" else [_played(options, CORNER)]
    return list(
        dict.fromkeys([*(p for over in SWEEPS for p in _sweep_points(options, over)), *corner])
    )


def _label(who: str, point: Point) -> str:
    return f"{who}, T = {point.T:,}, M = {point.M:,}, d = {point.d}"


def _size_of(result: RunResult) -> Point:
    """Return T, M and d of a run."""
    problem = result.run.problem
    assert isinstance(problem, Ball)
    return Point(result.run.rounds, problem.agents, problem.features)


def _setting(result: RunResult) -> theory.Setting:
    T, M, d = _size_of(result)
    return theory.Setting(agents=M, horizon=T, dim=d, alpha=ALPHA, reward_low=0.1, noise=NOISE)


def _within(results: RunResults) -> Claim:
    worst, broken, vacuous, counted = 0.0, 0, 0, 0
    for result in results.values():
        if not result.series.policy.of_paper:
            continue
        bound = theory.epochs(_setting(result))
        counted += 1
        vacuous += bound.vacuous
        broken += int(result.series.sync_rounds.max() > bound.value)
        worst = max(worst, float(result.series.sync_rounds.max()) / bound.value)
    return Claim(
        "communication-epochs",
        "DiSC-UCB never pools more often than 2 ceil(sqrt(T R / B)) times",
        broken == 0,
        f"{counted} runs, {broken} above; at most {100 * worst:.0f} % of the bound; vacuous (no "
        f"less than the rounds) in {vacuous}",
    )


def _counted(results: RunResults) -> Claim:
    wrong, runs = 0, [result for result in results.values() if result.series.algorithm in COUNTED]
    for result in runs:
        _, M, d = _size_of(result)
        extra = 4 if result.series.policy.weighted else 0
        each = 2 * M * (d * (d + 1) // 2 + d + extra)
        wrong += int((result.series.numbers_sent != result.series.sync_rounds * each).any())
    return Claim(
        "communication-counted",
        "Every pooling of DiSC-UCB sends 2M (d(d+1)/2 + d) numbers; of Guard-UCB, four more per "
        "message",
        wrong == 0,
        f"{len(runs)} runs, {wrong} with another count",
    )


def _along(options: RunOptions, results: RunResults, who: str, over: str) -> list[RunResult]:
    """Return the runs of a sweep."""
    return [results[_label(who, point)] for point in _sweep_points(options, over)]


def _sweep(runs: Sequence[RunResult], over: str) -> tuple[Floats, Floats, Floats]:
    """Return (n,) sizes, (trials, n) poolings and numbers sent."""
    sizes = np.array([getattr(_size_of(result), over) for result in runs], float)
    trials = min(result.run.trials for result in runs)
    syncs = np.array([result.series.sync_rounds[:trials] for result in runs], float).T
    sent = np.array([result.series.numbers_sent[:trials] for result in runs], float).T
    return sizes, syncs, sent


def _exponent(runs: Sequence[RunResult], who: str, over: str) -> Claim:
    sizes, syncs, sent = _sweep(runs, over)
    said = SAID[over]
    id = f"communication-{who}-{over}"
    text = f"The numbers that {who} sends grow no faster than {over}^{said:g}, as in M^1.5 d^3"
    if said == 0:
        text = f"The numbers that {who} sends do not grow with {over}, as in M^1.5 d^3"
    id = id.lower().replace(", ", "-").replace(" ", "-")
    if sizes.size < 2:
        return Claim(id, text, None, "all runs have the same size at this scale")
    if not (sent > 0).all():
        return Claim(id, text, None, "some runs never pooled: no logarithms")
    power, low, high = growth(sizes, sent)
    pools, pools_low, pools_high = growth(sizes, syncs)
    return Claim(
        id,
        text,
        True if high <= said + 1e-9 else False if low > said else None,
        f"numbers grow like {over}^{power:.2f} [{low:.2f}, {high:.2f}], poolings like "
        f"{over}^{pools:.2f} [{pools_low:.2f}, {pools_high:.2f}]; from {number(sent[:, 0].mean())} "
        f"to {number(sent[:, -1].mean())} numbers; intervals over trials, means off the line by up "
        f"to {percent(misfit(sizes, sent))}",
    )


def _fixed(first: RunResult, over: str) -> str:
    told = _size_of(first)._asdict()
    return ", ".join(f"{name} = {told[name]:,}" for name in SWEEPS if name != over)


def _draw_sweep(axes: Any, results: Mapping[str, Sequence[RunResult]], over: str) -> None:
    lines = []
    for who, look in looks_of(results, LOOKS).items():
        sizes, _, sent = _sweep(results[who], over)
        lines.append(Line(who, sizes, sent.mean(axis=0), look=look))
    runs = results[PRINTED]
    bounds = [theory.communication(_setting(result)) for result in runs]
    lines.append(Line("bound", sizes, np.array([b.value for b in bounds]), bound=True))
    order = np.array([b.terms["order"] for b in bounds])
    lines.append(Line("M^1.5 d^3", sizes, order, bound=True))
    draw_lines(axes, lines, room=0.06, at=sizes.tolist())


PANEL = PanelCommunication()
