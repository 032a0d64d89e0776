"""What panels are made of: options, runs, results and claims; and the interface of a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from guardband.algorithms import Algorithm
from guardband.checks import check_choice, check_seed
from guardband.kernels.types import Ints
from guardband.problems import Problem
from guardband.sim import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SCALES", "SETTINGS", "VERDICTS", "Claim", "Panel", "Run", "RunOptions", "RunResult"]
__all__ += ["RunResults"]

SCALES = ("smoke", "quick", "paper")
SETTINGS = ("printed", "notebook")
VERDICTS = ("holds", "holds vacuously", "does not hold", "inconclusive")
SMOKE_ROUNDS, SMOKE_TRIALS = 300, 2


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What was asked for: how large, by which column of settings, with whom, from which seed.

    Attributes
    ----------
    scale
        "paper": the horizons and trials of the paper; "quick": a tenth; "smoke": seconds.
    settings
        "printed": as in the paper's text; "notebook": as in its authors' notebooks.
    extra
        Names of algorithms to draw beside those of the panel.
    seed
        All draws follow from it.
    """

    scale: str = "quick"
    settings: str = "printed"
    extra: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, SCALES)
        check_choice("settings", self.settings, SETTINGS)
        check_seed(self.seed)

    @property
    def printed(self) -> bool:
        """Whether the settings are those of the text."""
        return self.settings == "printed"

    def rounds(self, paper: int) -> int:
        """Return the horizon at this scale; `paper` is the paper's."""
        return {"paper": paper, "quick": max(paper // 10, 1), "smoke": min(paper, SMOKE_ROUNDS)}[
            self.scale
        ]

    def trials(self, paper: int) -> int:
        """Return the number of trials at this scale; never fewer than two: one has no interval."""
        return {
            "paper": max(paper, 2),
            "quick": max(paper // 10, 3),
            "smoke": SMOKE_TRIALS,
        }[self.scale]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One curve: an algorithm on a problem, over some trials.

    Trial i has the same world and the same draws in every run of the same problem, rounds and
    seed: differences between runs are differences within trials.

    Attributes
    ----------
    label
        What tells it apart in the panel; unique there.
    alpha
        By which violations are counted; None: they are not.
    horizon
        The rounds of the panel at full length; None: these are all of them.
    """

    label: str
    problem: Problem
    algorithm: Algorithm
    rounds: int
    trials: int
    seed: int = 0
    alpha: float | None = None
    horizon: int | None = None

    @property
    def full(self) -> bool:
        """Whether it has the panel's full horizon; what a shorter run lacks may still come."""
        return self.horizon is None or self.rounds >= self.horizon


@dataclass(frozen=True)
class RunResult:
    """A run and what it gave; curves are means over the agents, so their last axis has length 1."""

    run: Run
    series: Series
    rounds: Ints  # (P,) the rounds at which curves are kept


RunResults = Mapping[str, RunResult]  # by label, in the order of the runs


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper (or of ours) and what the numbers say about it.

    Attributes
    ----------
    id
        Short and stable, such as "1b-disc-ucb-zero".
    text
        The sentence.
    holds
        True, False, or None: inconclusive at this scale.
    detail
        The numbers, with their interval.
    vacuous
        Whether it holds only because hardly any round left the baseline.
    """

    id: str
    text: str
    holds: bool | None
    detail: str
    vacuous: bool = False

    @property
    def verdict(self) -> str:
        """The verdict in words, one of `VERDICTS`."""
        if self.holds:
            return "holds vacuously" if self.vacuous else "holds"
        return "inconclusive" if self.holds is None else "does not hold"


class Panel(Protocol):
    """One panel of the paper, or one of our own.

    Attributes
    ----------
    name
        As on the command line: "1a".
    title
        A heading of a few words.
    question
        What it asks, in one sentence.
    source
        The figure's label in the paper's source, such as "fig:1"; "" for panels of our own.
    """

    @property
    def name(self) -> str:
        """As on the command line."""

    @property
    def title(self) -> str:
        """A heading."""

    @property
    def question(self) -> str:
        """What it asks."""

    @property
    def source(self) -> str:
        """The figure's label."""

    def runs(self, options: RunOptions) -> Sequence[Run]:
        """Return the data to gather."""

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge."""

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw."""

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Say what differs from print, and what was chosen where nothing is public."""
