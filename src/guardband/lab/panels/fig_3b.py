"""Fig. 3b: what not knowing the baseline's reward costs, MovieLens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from guardband.lab import judge
from guardband.lab.experiments import FIVE, MOVIELENS, WHOLE
from guardband.lab.panel import Claim, RunOptions, RunResults
from guardband.lab.panels.fig_3a import Panel3a

__all__ = ["PANEL"]

BEND = 0.6  # of the rounds: "a decreasing trend after t = 6 x 10^5" of a million


@dataclass(frozen=True, kw_only=True)
class Panel3b(Panel3a):
    """The same as Fig. 3a; here the paper also sees the regret go down."""

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge also that DiSC-UCB's regret goes down late; slower growth is a claim of ours."""
        disc = self.result_of(results, "disc-ucb")
        return [
            *super().claims(options, results),
            judge.sinking(
                self._id("bends"),
                "DiSC-UCB's regret goes down late (it is below 0 per round after 0.6 T, the "
                "paper's 600,000)",
                disc,
                after=BEND,
            ),
            judge.slower(
                self._id("slows"),
                "DiSC-UCB's regret grows more slowly late (ours: per round, less in the last tenth "
                "than in the first half)",
                disc,
            ),
        ]


PANEL = Panel3b(
    name="3b",
    title="What does not knowing the baseline cost? (MovieLens)",
    question="Has DiSC-UCB-UB more regret, and does DiSC-UCB's regret go down late?",
    source="fig:9",
    config=replace(
        MOVIELENS,
        agents=1,
        baseline=45,
        ridge=0.1,
        rounds=1_000_000,
        rules=replace(MOVIELENS.rules, all_masks=False, rho_high=1.0),
        chosen=(
            FIVE,
            WHOLE,
            "The public notebook stops DiSC-UCB-UB after its first round; here it runs on.",
        ),
    ),
)
