"""Fig. 3b: what not knowing the baseline's reward costs, MovieLens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from guardband.lab import judge
from guardband.lab.panel import Claim, Findings, Order
from guardband.lab.panels.fig_3a import Panel3a
from guardband.lab.settings import Row

__all__ = ["PANEL"]


@dataclass(frozen=True, kw_only=True)
class Panel3b(Panel3a):
    """The same as Fig. 3a; here the paper also sees the regret bend down."""

    def claims(self, order: Order, found: Findings) -> Sequence[Claim]:
        """Judge also that DiSC-UCB earns more per round late than early."""
        bends = judge.slower(
            self._id("bends"),
            "DiSC-UCB's regret bends down late (per round, less in the last tenth than in the "
            "first half)",
            self.found_as(found, "disc-ucb"),
        )
        return [*super().claims(order, found), bends]


PANEL = Panel3b(
    name="3b",
    title="What does not knowing the baseline cost? (MovieLens)",
    question="Has DiSC-UCB-UB more regret, and does DiSC-UCB's regret bend down late?",
    source="fig:9",
    row=Row(
        problem="movielens",
        agents=1,
        alpha=0.5,
        baseline=45,
        ridge=0.1,
        noise=0.1,
        psi_variance=1e-2,
        psi_std=0.1,
        rounds=1_000_000,
        trials=5,
        untold=("ridge",),
        chosen=("Five trials; the notebooks show one, which has no interval.",),
    ),
)
