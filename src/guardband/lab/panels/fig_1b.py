"""Fig. 1b: who falls below the floor, one agent; the runs are those of Fig. 1a.

The notebooks' picture is not a count of violations; it is drawn beside the count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guardband.lab import judge, plots
from guardband.lab.kinds import Violations
from guardband.lab.panel import Claim, RunOptions, RunResults
from guardband.lab.panels import fig_1a

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PANEL"]


@dataclass(frozen=True, kw_only=True)
class Panel1b(Violations):
    """Violations of DiSC-UCB, a safe rival and a free one."""

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge DiSC-UCB = 0 <= SCLTS <= DisLinUCB."""
        disc, safe, free = (
            self.result_of(results, name) for name in ("disc-ucb", "sclts", "dis-lin-ucb")
        )
        return [
            judge.never(self._id("disc-ucb-zero"), "DiSC-UCB never falls below the floor", disc),
            judge.at_most(
                self._id("disc-ucb-sclts"),
                "DiSC-UCB falls below the floor no more often than SCLTS",
                disc,
                safe,
            ),
            judge.at_most(
                self._id("sclts-dis-lin-ucb"),
                "SCLTS falls below the floor no more often than DisLinUCB",
                safe,
                free,
            ),
        ]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw the counts, and what the notebooks draw."""
        theirs = plots.since_first_violation(results, "What the notebooks draw: not a count")
        realised, expected = self._counts(results)
        return self._drawn(results, realised, theirs, expected)

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Add what the notebooks draw."""
        drawn = (
            "The notebooks' plot of Fig. 1b is not a count of violations. It adds 1 in every round "
            "after the first violation in any trial, so that one bad round of a hundred trials "
            "looks like thousands. The second picture shows it, to within a two-hundredth of the "
            "rounds; the first is the count that claims use."
        )
        return [drawn, *super().remarks(options)]


PANEL = Panel1b(
    name="1b",
    title="Who falls below the floor?",
    question="Does DiSC-UCB never earn less than (1 − α) of the baseline, unlike its rivals?",
    source="fig:2",
    config=fig_1a.ROW,
    algorithms=fig_1a.PANEL.algorithms,
)
