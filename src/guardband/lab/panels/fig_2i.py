"""Fig. 2i: regret per agent for three values of M, LastFM."""

from __future__ import annotations

from dataclasses import replace

from guardband.lab.experiments import LASTFM
from guardband.lab.kinds import Sweep

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2i",
    title="Do more agents help each agent? (LastFM)",
    question="Does DiSC-UCB's regret per agent fall as more agents learn together?",
    source="fig:2_c",
    over="agents",
    values=(7, 10, 12),
    guarded=(7,),
    config=replace(
        LASTFM,
        agents=7,
        rounds=1_800_000,
        chosen=(
            *LASTFM.chosen,
            "Guard-UCB, whose rounds take three times as long as DiSC-UCB's conservative ones, is "
            "drawn at the smallest M only; `--with guard-ucb` adds the others.",
        ),
    ),
)
