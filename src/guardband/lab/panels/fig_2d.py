"""Fig. 2d: rewards against the floor, MovieLens."""

from __future__ import annotations

from guardband.lab.kinds import Floor
from guardband.lab.settings import Row

__all__ = ["PANEL"]

PANEL = Floor(
    name="2d",
    title="Does every reward stay above the floor? (MovieLens)",
    question="Is each reward of DiSC-UCB at least (1 − α) of the baseline's, and do rewards rise?",
    source="fig:4",
    row=Row(
        problem="movielens",
        agents=1,
        alpha=0.5,
        baseline=40,
        ridge=0.1,
        noise=0.1,
        psi_variance=1e-2,
        psi_std=0.1,
        rounds=800_000,
        trials=5,
        untold=("ridge",),
        chosen=("Five trials; the notebooks show one, which has no interval.",),
        notebook={"baseline": 30},
    ),
)
