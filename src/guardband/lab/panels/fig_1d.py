"""Fig. 1d: who falls below the floor, three agents; the runs are those of Fig. 1c."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from guardband.lab import judge
from guardband.lab.experiments import shown_name
from guardband.lab.kinds import Violations
from guardband.lab.panel import Claim, RunOptions, RunResults
from guardband.lab.panels import fig_1c

__all__ = ["PANEL"]

LARGE = 0.01  # of the rounds; the paper says "large" and no number


@dataclass(frozen=True, kw_only=True)
class Panel1d(Violations):
    """Violations of DiSC-UCB and of three free rivals."""

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge DiSC-UCB = 0, and the others large: above it, and by a number of ours."""
        disc = self.result_of(results, "disc-ucb")
        return [
            judge.never(self._id("disc-ucb-zero"), "DiSC-UCB never falls below the floor", disc),
            *(
                judge.exceeds(
                    self._id(f"{name}-above"),
                    f"{shown_name(name)} falls below the floor more often than DiSC-UCB",
                    self.result_of(results, name),
                    disc,
                    judge.REALISED,
                )
                for name in self.algorithms[1:]
            ),
            *(
                judge.at_least(
                    self._id(f"{name}-large"),
                    f"{shown_name(name)} falls below the floor often (here: in 1 % of the rounds)",
                    self.result_of(results, name),
                    LARGE,
                )
                for name in self.algorithms[1:]
            ),
        ]


PANEL = Panel1d(
    name="1d",
    title="Who falls below the floor, among three agents?",
    question="Does DiSC-UCB never earn less than (1 − α) of the baseline, and free rivals often?",
    source="fig:2b",
    config=fig_1c.ROW,
    algorithms=fig_1c.PANEL.algorithms,
)
