"""Kinds of panels that the paper has several of each: who, what, and how it is judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from guardband.lab import judge, plots
from guardband.lab.panel import Claim, Findings, Order, Run, Shown
from guardband.lab.settings import Row, Setting, remarks_of, shown_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Contest", "Floor", "PaperPanel", "Sweep", "Violations"]


@dataclass(frozen=True, kw_only=True)
class PaperPanel(ABC):
    """What all panels of the paper have: a place in it, and a row of settings.

    Attributes
    ----------
    name, title, question, source
        See `Panel`.
    row
        The settings, in both columns.
    """

    name: str
    title: str
    question: str
    source: str
    row: Row

    @abstractmethod
    def runs(self, order: Order) -> Sequence[Run]:
        """Return the data to gather."""

    @abstractmethod
    def claims(self, order: Order, found: Findings) -> Sequence[Claim]:
        """Judge."""

    def draw(self, order: Order, found: Findings) -> Figure:
        """Draw the regret over the rounds."""
        return self._drawn(found, plots.regret(found))

    def remarks(self, order: Order) -> Sequence[str]:
        """Say what differs from print, and what was chosen where nothing is public."""
        return remarks_of(self.row, order)

    def _drawn(self, found: Findings, *views: plots.View) -> Figure:
        return plots.draw_views(self.title, plots.subtitle_of(found), views)

    def _id(self, words: str) -> str:
        return f"{self.name}-{words}"


@dataclass(frozen=True, kw_only=True)
class Contest(PaperPanel):
    """Several algorithms on one problem.

    Attributes
    ----------
    entrants
        Their names; those with a gate have that of the column.
    guards
        The modes of Guard-UCB beside them.
    guard_trials
        How many trials these have at most, where all would take too long.
    """

    entrants: tuple[str, ...]
    guards: tuple[str, ...] = ("guard-ucb", "guard-ucb-policy")
    guard_trials: int | None = None

    def runs(self, order: Order) -> Sequence[Run]:
        """Return one run per algorithm: entrants, Guard-UCB, and those asked for."""
        setting = self.row.read(order)
        runs = [setting.run(_gated(setting, name)) for name in self.entrants]
        most = setting.trials if self.guard_trials is None else self.guard_trials
        for name in self.guards:
            run = setting.run(setting.make(name))
            runs.append(replace(run, trials=min(run.trials, most)))
        runs += [setting.run(setting.make(name)) for name in order.extra]
        return list({run.algorithm.name: run for run in runs}.values())

    @staticmethod
    def found_as(found: Findings, name: str) -> Shown:
        """Return the run of an entrant, whichever gate it has."""
        oracle = shown_name(f"{name}-gap-oracle")
        return found[oracle] if oracle in found else found[shown_name(name)]


@dataclass(frozen=True, kw_only=True)
class Violations(Contest):
    """Who falls below the floor, in runs that another panel has too."""

    def draw(self, order: Order, found: Findings) -> Figure:
        """Draw both counts."""
        return self._drawn(
            found,
            plots.violations(found, "realised", "As realised"),
            plots.violations(found, "expected", "By expectation"),
        )


@dataclass(frozen=True, kw_only=True)
class Floor(PaperPanel):
    """The reward per round of DiSC-UCB against the floor."""

    def runs(self, order: Order) -> Sequence[Run]:
        """Return DiSC-UCB, Guard-UCB, and those asked for."""
        setting = self.row.read(order)
        made = [_gated(setting, "disc-ucb"), setting.make("guard-ucb")]
        made += [setting.make(name) for name in order.extra]
        runs = {algorithm.name: setting.run(algorithm) for algorithm in made}
        return list(runs.values())

    def claims(self, order: Order, found: Findings) -> Sequence[Claim]:
        """Judge that no reward is below the floor, and that rewards rise."""
        disc = next(iter(found.values()))
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

    def draw(self, order: Order, found: Findings) -> Figure:
        """Draw rewards between checkpoints, the baseline's, and the floor."""
        return self._drawn(found, plots.rewards(found, "Reward per round"))


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

    def runs(self, order: Order) -> Sequence[Run]:
        """Return one run per value; Guard-UCB beside some, and those asked for beside all."""
        runs: dict[str, Run] = {}
        for value, setting in self._settings(order):
            algorithm = _gated(setting, "disc-ucb")
            runs[self._label(algorithm.name, value)] = setting.run(
                algorithm, self._label(algorithm.name, value)
            )
        for value, setting in self._settings(order):
            names = [*(("guard-ucb",) if value in self.guarded else ()), *order.extra]
            for name in names:
                label = self._label(name, value)
                runs.setdefault(label, setting.run(setting.make(name), label))
        return list(runs.values())

    def claims(self, order: Order, found: Findings) -> Sequence[Claim]:
        """Judge that DiSC-UCB's regret falls from value to value."""
        steps = [
            shown
            for shown in found.values()
            if shown.series.algorithm in ("disc-ucb", "disc-ucb-gap-oracle")
        ][: len(self.values)]
        text = {
            "alpha": "DiSC-UCB's regret falls as α grows",
            "agents": "DiSC-UCB's regret per agent falls as M grows",
        }
        # A larger alpha also means a larger rho: regret may fall, or rise, without learning.
        learning = self.over == "agents"
        return [judge.falls(self._id("falls"), text[self.over], steps, learning=learning)]

    def _settings(self, order: Order) -> Iterator[tuple[float, Setting]]:
        for value in self.values:
            change: Mapping[str, Any] = {self.over: int(value) if self.over == "agents" else value}
            yield value, self.row.read(order, **change)

    def _label(self, name: str, value: float) -> str:
        letter = {"alpha": "α", "agents": "M"}[self.over]
        return f"{shown_name(name)}, {letter} = {value:g}"


def _gated(setting: Setting, name: str) -> Any:
    """Return an entrant with the gate of the column, if it has one to choose."""
    return setting.make(name, **({"gate": setting.gate} if name in ("disc-ucb", "sclts") else {}))
