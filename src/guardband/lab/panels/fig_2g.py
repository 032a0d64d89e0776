"""Fig. 2g: rewards against the floor, LastFM."""

from __future__ import annotations

from dataclasses import replace

from guardband.lab.experiments import LASTFM
from guardband.lab.kinds import Floor

__all__ = ["PANEL"]

PANEL = Floor(
    name="2g",
    title="Does every reward stay above the floor? (LastFM)",
    question="Is each reward of DiSC-UCB at least (1 − α) of the baseline's, and do rewards rise?",
    source="fig:2_a",
    config=replace(
        LASTFM, rules=replace(LASTFM.rules, all_masks=False, noise_first=True, delta=1e-2)
    ),
)
