"""Kinds of panels that occur several times in the paper: their runs and how they are judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from guardband.lab import judge, plots
from guardband.lab.experiments import Experiment, ExperimentConfig, remarks_of, shown_name
from guardband.lab.panel import Claim, Run, RunOptions, RunResult, RunResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Floor", "PaperPanel", "Sweep", "Violations"]


@dataclass(frozen=True, kw_only=True)
class PaperPanel(ABC):
    """What all panels of the paper have: a place in it, and an experiment.

    Attributes
    ----------
    name, title, question, source
        See `Panel`.
    config
        The experiment, in both columns.
    """

    name: str
    title: str
    question: str
    source: str
    config: ExperimentConfig

    @abstractmethod
    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return the data to gather."""

    @abstractmethod
    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge."""

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw the regret over the rounds."""
        return self._drawn(results, plots.regret(results))

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Say what differs from print, and what was chosen where nothing is public."""
        return remarks_of(self.config, options)

    def _drawn(self, results: RunResults, *views: plots.View) -> Figure:
        return plots.draw_views(self.title, plots.subtitle_of(results), views)

    def _id(self, words: str) -> str:
        return f"{self.name}-{words}"


@dataclass(frozen=True, kw_only=True)
class Comparison(PaperPanel):
    """Several algorithms on one problem.

    Attributes
    ----------
    algorithms
        Their names; those with a gate have that of the column.
    guards
        The modes of Guard-UCB beside them.
    guard_trials
        How many trials these have at most, where all would take too long.
    """

    algorithms: tuple[str, ...]
    guards: tuple[str, ...] = ("guard-ucb", "guard-ucb-policy")
    guard_trials: int | None = None

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return one run per algorithm: its own, Guard-UCB, and those asked for."""
        experiment = self.config.read(options)
        runs = [experiment.run(experiment.make_gated(name)) for name in self.algorithms]
        most = experiment.trials if self.guard_trials is None else self.guard_trials
        for name in self.guards:
            run = experiment.run(experiment.make(name))
            runs.append(replace(run, trials=min(run.trials, most)))
        runs += [experiment.run(experiment.make(name)) for name in options.extra]
        return list({run.algorithm.name: run for run in runs}.values())

    @staticmethod
    def result_of(results: RunResults, name: str) -> RunResult:
        """Return the result of an algorithm, whichever gate it has."""
        oracle = shown_name(f"{name}-gap-oracle")
        return results[oracle] if oracle in results else results[shown_name(name)]


@dataclass(frozen=True, kw_only=True)
class Violations(Comparison):
    """Who falls below the floor, in runs that another panel has too."""

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw both counts."""
        return self._drawn(results, *self._counts(results))

    @staticmethod
    def _counts(results: RunResults) -> tuple[plots.View, plots.View]:
        return (
            plots.violations(results, "realised", "As realised"),
            plots.violations(results, "expected", "By expectation"),
        )


@dataclass(frozen=True, kw_only=True)
class Floor(PaperPanel):
    """The reward per round of DiSC-UCB against the floor."""

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return DiSC-UCB, Guard-UCB, and those asked for."""
        experiment = self.config.read(options)
        made = [experiment.make_gated("disc-ucb"), experiment.make("guard-ucb")]
        made += [experiment.make(name) for name in options.extra]
        runs = {algorithm.name: experiment.run(algorithm) for algorithm in made}
        return list(runs.values())

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge that no reward is below the floor, and that rewards rise."""
        disc = next(iter(results.values()))
        return [
            judge.never(
                self._id("floor"),
                "Every reward of DiSC-UCB is at least (1 − α) times the baseline's",
                disc,
            ),
            judge.rising(
                self._id("rises"),
                "DiSC-UCB's reward per round rises with t (last tenth of the rounds against the "
                "first)",
                disc,
            ),
        ]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw rewards between checkpoints, the baseline's, and the floor."""
        return self._drawn(results, plots.rewards(results, "Reward per round"))


@dataclass(frozen=True, kw_only=True)
class Sweep(PaperPanel):
    """DiSC-UCB's regret for several values of alpha, or of M.

    Attributes
    ----------
    over
        "alpha" or "agents".
    values
        In the order in which the regret is said to fall.
    guarded
        Those values for which Guard-UCB is drawn.
    """

    over: str
    values: tuple[float, ...]
    guarded: tuple[float, ...]

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return one run per value; Guard-UCB beside some, and those asked for beside all."""
        runs: dict[str, Run] = {}
        for value, experiment in self._experiments(options):
            algorithm = experiment.make_gated("disc-ucb")
            runs[self._label(algorithm.name, value)] = experiment.run(
                algorithm, self._label(algorithm.name, value)
            )
        for value, experiment in self._experiments(options):
            names = [*(("guard-ucb",) if value in self.guarded else ()), *options.extra]
            for name in names:
                label = self._label(name, value)
                runs.setdefault(label, experiment.run(experiment.make(name), label))
        return list(runs.values())

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge that DiSC-UCB's regret falls from value to value."""
        steps = list(results.values())[: len(self.values)]  # DiSC-UCB's runs are the first
        text = {
            "alpha": "DiSC-UCB's regret falls as α grows",
            "agents": "DiSC-UCB's regret per agent falls as M grows",
        }
        # A larger alpha also means a larger rho: regret may fall, or rise, without learning.
        learning = self.over == "agents"
        return [judge.falls(self._id("falls"), text[self.over], steps, learning=learning)]

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Add by which alpha the notebook draws rho."""
        lines = list(super().remarks(options))
        if self.over == "alpha" and not options.printed:
            least = min(self.values)
            lines.insert(0, f"As in the notebook ρ is drawn by the smallest α, {least:g}, always.")
        return lines

    def _experiments(self, options: RunOptions) -> Iterator[tuple[float, Experiment]]:
        for value in self.values:
            change: dict[str, Any] = {self.over: int(value) if self.over == "agents" else value}
            if self.over == "alpha":
                change["rho_alpha"] = min(self.values)
            yield value, self.config.read(options, **change)

    def _label(self, name: str, value: float) -> str:
        letter = {"alpha": "α", "agents": "M"}[self.over]
        return f"{shown_name(name)}, {letter} = {value:g}"
