"""Fig. 2h: regret for three values of alpha, LastFM."""

from __future__ import annotations

from dataclasses import replace

from guardband.lab.experiments import LASTFM
from guardband.lab.kinds import Sweep

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2h",
    title="Does a looser floor cost less regret? (LastFM)",
    question="Does DiSC-UCB's regret fall as the share α of the baseline that may be lost grows?",
    source="fig:2_b",
    over="alpha",
    values=(0.7, 0.8, 0.9),
    guarded=(0.7,),
    config=replace(
        LASTFM,
        agents=3,
        chosen=(
            *LASTFM.chosen,
            "Guard-UCB, whose rounds take three times as long as DiSC-UCB's conservative ones, is "
            "drawn at the smallest α only; `--with guard-ucb` adds the others.",
        ),
    ),
)
