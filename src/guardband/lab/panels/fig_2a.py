"""Fig. 2a: rewards against the floor, synthetic data; the runs are those of Fig. 1a."""

from __future__ import annotations

from dataclasses import replace

from guardband.lab.kinds import Floor
from guardband.lab.panels import fig_1a

__all__ = ["PANEL"]

PANEL = Floor(
    name="2a",
    title="Does every reward stay above the floor? (synthetic data)",
    question="Is each reward of DiSC-UCB at least (1 − α) of the baseline's, and do rewards rise?",
    source="fig:7",
    config=replace(fig_1a.ROW, notebook={}),
)
