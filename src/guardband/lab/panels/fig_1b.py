"""Fig. 1b: who falls below the floor, one agent; the runs are those of Fig. 1a.

The notebooks' picture is not a count of violations; here they are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from guardband.lab import judge
from guardband.lab.kinds import Violations
from guardband.lab.panel import Claim, RunOptions, RunResults
from guardband.lab.panels import fig_1a

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

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Add what the notebooks draw."""
        drawn = "The notebooks' plot of Fig. 1b is not a count of violations; this one is."
        return [drawn, *super().remarks(options)]


PANEL = Panel1b(
    name="1b",
    title="Who falls below the floor?",
    question="Does DiSC-UCB never earn less than (1 − α) of the baseline, unlike its rivals?",
    source="fig:2",
    config=fig_1a.ROW,
    algorithms=fig_1a.PANEL.algorithms,
)
