"""Fig. 2d: rewards against the floor, MovieLens."""

from __future__ import annotations

from dataclasses import replace

from guardband.lab.experiments import FIVE, MOVIELENS, WHOLE
from guardband.lab.kinds import Floor

__all__ = ["PANEL"]

PANEL = Floor(
    name="2d",
    title="Does every reward stay above the floor? (MovieLens)",
    question="Is each reward of DiSC-UCB at least (1 − α) of the baseline's, and do rewards rise?",
    source="fig:4",
    config=replace(
        MOVIELENS,
        agents=1,
        ridge=0.1,
        notebook={"baseline": 30},
        rules=replace(MOVIELENS.rules, all_masks=False),
        chosen=(FIVE, WHOLE),
    ),
)
