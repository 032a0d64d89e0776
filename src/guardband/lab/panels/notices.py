"""What monitors notice when the world is not as assumed, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.algorithms import GuardUCB
from guardband.kernels.environment import RoundTables
from guardband.kernels.types import Floats
from guardband.lab import plots
from guardband.lab.panel import Claim, Run, RunOptions, RunResult, RunResults
from guardband.problems import ChangingWorld, NamedProblem, OddTask, problem
from guardband.report import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ALONE", "CASES", "NOTHING", "PANEL", "POOLED", "OthersAlone", "alarmed", "first_alarms"]

ALPHA, NOISE, LEVEL, FAKES = 0.2, 0.1, 1e-3, 1_000.0
WATCHED, UNWATCHED = "watched", "not watched"
ALONE, POOLED, NOTHING = "odd-task, alone", "odd-task, the others pooled", "nothing happens"
SOON, FEW = {"drift-abrupt": 150, "misfit": 500}, 5.0
EARLY, KEPT, DEARER = 100, 0.8, 1.05  # rounds; a share of a gain; times the regret
NEVER = 10**9  # the round from which on a liar lies: nothing happens
LAST = {"odd-task": "the odd task", "liar": "the liar"}  # what is unlike the others: the last one
COLOURS = {WATCHED: "#D55E00", UNWATCHED: "#0072B2"}
CASES: dict[str, dict[str, Any]] = {
    "drift-abrupt": {},
    "drift-slow": {},
    "drift-season": {},
    "odd-task": {},
    "liar": {"since": 1_000, "fakes": FAKES},
    "misfit": {"error": 0.1},
}


class _OneHasNothing(ChangingWorld):
    """A world whose last task has features of zero: it learns nothing, and teaches nothing."""

    def chunks(self, rounds: int, numbers: int) -> Iterator[RoundTables]:
        """Yield the tables of all rounds; those of the other tasks are as they were."""
        for tables in super().chunks(rounds, numbers):
            for each in (tables.menu[-1], tables.expected[:, -1], tables.baseline_reward[:, -1]):
                each[...] = 0.0
            yield tables


@dataclass(frozen=True, kw_only=True)
class OthersAlone(OddTask):
    """`odd-task` as it is for the others if the odd task is not there.

    Their menus, noise and parameter are those of `odd-task`, so that trials are pairs.
    """

    def _world(self, seed: int) -> ChangingWorld:
        world = super()._world(seed)
        return _OneHasNothing(**{each.name: getattr(world, each.name) for each in fields(world)})


def first_alarms(result: RunResult) -> Floats:
    """Return (trials,): the round of the first alarm of any task; NaN where there was none."""
    rounds = np.where(result.series.totals["noticed"] > 0, result.series.totals["noticed"], np.inf)
    first = rounds.min(axis=1)
    found: Floats = np.where(np.isfinite(first), first, np.nan)
    return found


def alarmed(result: RunResult) -> float:
    """Return the share of trials with an alarm."""
    return float(np.isfinite(first_alarms(result)).mean())


@dataclass(frozen=True, kw_only=True)
class PanelNotices:
    """Guard-UCB with and without monitors on every problem that is not as assumed."""

    name: str = "notices"
    title: str = "What is noticed when the world is not as assumed?"
    question: str = "When do monitors notice, and how many plays are then below the floor?"
    source: str = ""
    rounds: int = 4_000
    trials: int = 20

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return every problem, watched and not, and what the odd task and costs are judged by."""
        rounds = self.rounds if options.scale != "smoke" else options.rounds(self.rounds)

        def run(label: str, world: NamedProblem, level: float | None, share: bool = True) -> Run:
            guard = GuardUCB(ALPHA, noise=NOISE, context_noise=0.0, delta_alarm=level, share=share)
            return Run(
                label=label,
                problem=world,
                algorithm=guard,
                rounds=rounds,
                trials=options.trials(self.trials),
                seed=options.seed,
                alpha=ALPHA,
                horizon=self.rounds,
            )

        still = problem("liar", agents=3, since=NEVER)
        levels = {WATCHED: LEVEL, UNWATCHED: None}
        return [
            *(
                run(_label(name, who), _problem(name, rounds), level)
                for name in CASES
                for who, level in levels.items()
            ),
            *(run(_label(NOTHING, who), still, level) for who, level in levels.items()),
            run(ALONE, problem("odd-task"), LEVEL, share=False),
            run(POOLED, OthersAlone(), LEVEL),
        ]

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge how soon it is noticed, plays below the floor, and what monitors cost."""
        return [
            *(_soon(results, name) for name in SOON),
            _few(results),
            *(_fewer(results, name) for name in ("drift-abrupt", "odd-task", "misfit")),
            _late(results),
            _kept(results),
            _honest(results),
            _cheap(results),
        ]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw the plays below the floor over the rounds, and when it was noticed."""
        figure = plots.new_figure(15.0, 8.6)
        figure.suptitle(self.title, x=0.012, ha="left", fontweight="bold", fontsize=16)
        for place, name in enumerate(CASES):
            axes = figure.add_subplot(2, 3, place + 1)
            _draw(axes, name, results)
            axes.set_title(name, loc="left", fontsize=13)
        return figure

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Say what is drawn."""
        return [
            "Plays below the floor so far, in true rewards, per task: the mean over trials. The "
            "dashed line is the median round of the first alarm, where half of the trials have "
            "one. Where one task is unlike the others, the legend has its plays apart from theirs: "
            "a liar that left the pool decides by what it made up.",
            f"Guard-UCB in strict mode, α = {ALPHA}, noise {NOISE}, δ_alarm = 0.001; an alarm "
            "starts the task anew. Without monitors it is the same algorithm.",
            "Not drawn: odd-task where no tasks pool, and where the odd task has nothing to offer, "
            "as if it were not there, which is the gain of pooling that the others can keep; and "
            "three tasks to which nothing happens.",
            f"The liar makes up {FAKES:,.0f} observations a quarter through the run.",
        ]


def _problem(name: str, rounds: int) -> NamedProblem:
    settings = dict(CASES[name])
    if "since" in settings:
        settings["since"] = max(1, rounds // 4)
    return problem(name, **settings)


def _label(name: str, who: str) -> str:
    return f"{name}, {who}"


def _below(result: RunResult, tasks: slice = slice(None)) -> Floats:
    """Return (trials,): plays below the floor in all, in true rewards, per task."""
    total: Floats = result.series.violations_realised[:, tasks].mean(axis=1)
    return total


def _soon(results: RunResults, name: str) -> Claim:
    result = results[_label(name, WATCHED)]
    start = result.run.rounds // 2 if name.startswith("drift-abrupt") else 0
    after = first_alarms(result) - start
    median = float(np.median(np.where(np.isnan(after), np.inf, after)))
    return Claim(
        f"notices-{name}-soon",
        f"{name} is noticed within {SOON[name]} rounds, in half of the trials or more",
        median <= SOON[name] if result.run.full else None,
        f"median {number(median)} rounds; noticed in {100 * alarmed(result):.0f} % of the trials",
    )


def _few(results: RunResults) -> Claim:
    watched = _below(results[_label("drift-abrupt", WATCHED)]).mean()
    unwatched = _below(results[_label("drift-abrupt", UNWATCHED)]).mean()
    return Claim(
        "notices-few",
        f"After an abrupt change at most {FEW:g} plays are below the floor, on average",
        bool(watched <= FEW),
        f"{number(watched)}; without monitors {number(unwatched)}",
    )


def _fewer(results: RunResults, name: str) -> Claim:
    watched, unwatched = (_below(results[_label(name, who)]) for who in (WATCHED, UNWATCHED))
    return Claim(
        f"notices-{name}-fewer",
        f"On {name} fewer plays are below the floor with monitors",
        _positive(unwatched - watched),
        f"{number(watched.mean())} with, {number(unwatched.mean())} without",
    )


def _positive(gaps: Floats) -> bool | None:
    """Tell whether a mean over trials is above 0: by two standard errors, or None."""
    error = 2.0 * gaps.std(ddof=1) / np.sqrt(gaps.size)
    return True if gaps.mean() > error else False if gaps.mean() < -error else None


def _late(results: RunResults) -> Claim:
    result = results[_label("odd-task", WATCHED)]
    curve = result.series.curves["violations_realised"].mean(axis=2)  # of tasks
    place = int(np.searchsorted(result.rounds, EARLY, side="right")) - 1
    tasks = result.series.violations_realised.shape[1]
    late = tasks * (curve[:, -1] - curve[:, place])
    holds = True if result.run.full else None
    return Claim(
        "notices-odd-task-late",
        f"On odd-task no significant number of plays is below the floor from round {EARLY} on",
        False if _positive(late) else holds,
        f"{number(late.mean())} of {tasks * (result.run.rounds - EARLY):,} plays in a trial",
    )


def _kept(results: RunResults) -> Claim:
    result = results[_label("odd-task", WATCHED)]
    own, alone, pooled = (
        each.series.regret[:, :-1].mean(axis=1)
        for each in (result, results[ALONE], results[POOLED])
    )
    gain, most = alone - own, alone - pooled
    share = f"{100 * gain.mean() / most.mean():.0f} %" if most.mean() > 0.0 else "no gain"
    return Claim(
        "notices-odd-task-kept",
        f"Tasks that pool with an odd one keep {100 * KEPT:.0f} % of what pooling gains them",
        _positive(gain - KEPT * most) if result.run.full else None,
        f"{share}; regret {number(own.mean())}, alone {number(alone.mean())}, "
        f"without the odd task {number(pooled.mean())}",
    )


def _cheap(results: RunResults) -> Claim:
    watched, unwatched = (
        results[_label(NOTHING, who)].series.regret.mean(axis=1) for who in (WATCHED, UNWATCHED)
    )
    full = results[_label(NOTHING, WATCHED)].run.full
    return Claim(
        "notices-cheap",
        f"Where nothing happens, monitors cost at most {DEARER:g} times the regret",
        _positive(DEARER * unwatched - watched) if full else None,
        f"{number(watched.mean())} with, {number(unwatched.mean())} without",
    )


def _honest(results: RunResults) -> Claim:
    watched, unwatched = (
        _below(results[_label("liar", who)], slice(-1)).mean() for who in (WATCHED, UNWATCHED)
    )
    return Claim(
        "notices-liar-honest",
        "Monitors put no honest task below its floor where one lies",
        bool(watched <= unwatched),
        f"{number(watched)} per honest task with, {number(unwatched)} without",
    )


def _draw(axes: Axes, name: str, results: RunResults) -> None:
    for who, colour in COLOURS.items():
        result, label = results[_label(name, who)], who
        if name in LAST:
            own, rest = (_below(result, tasks).mean() for tasks in (slice(-1, None), slice(-1)))
            label += f" ({LAST[name]} {number(own)}, each other {number(rest)})"
        curve = result.series.curves["violations_realised"].mean(axis=(0, 2))
        axes.plot(result.rounds, curve, label=label, color=colour)
    first = first_alarms(results[_label(name, WATCHED)])
    median = float(np.median(np.where(np.isnan(first), np.inf, first)))
    if np.isfinite(median):
        axes.axvline(median, color=COLOURS[WATCHED], linestyle="--", label="first alarm, median")
    axes.set_ylim(0.0, max(1.0, axes.get_ylim()[1]))  # nothing below the floor is a line at zero
    axes.set_xlabel("round", fontsize=11)
    axes.set_ylabel("plays below the floor", fontsize=11)
    axes.legend(frameon=False)


PANEL = PanelNotices()
