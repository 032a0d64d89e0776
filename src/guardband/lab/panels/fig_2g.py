"""Fig. 2g: rewards against the floor, LastFM."""

from __future__ import annotations

from guardband.lab.kinds import Floor
from guardband.lab.settings import ZERO, Row

__all__ = ["PANEL"]

PANEL = Floor(
    name="2g",
    title="Does every reward stay above the floor? (LastFM)",
    question="Is each reward of DiSC-UCB at least (1 − α) of the baseline's, and do rewards rise?",
    source="fig:2_a",
    row=Row(
        problem="lastfm",
        agents=1,
        alpha=0.7,
        baseline=5,
        ridge=0.05,
        noise=0.05,
        psi_variance=1e-3,
        psi_std=1e-3,
        actions=50,
        rounds=10_000_000,
        trials=3,
        notebook={"actions": 538},
        chosen=(ZERO, "Three trials; the notebooks show one, which has no interval."),
    ),
)
