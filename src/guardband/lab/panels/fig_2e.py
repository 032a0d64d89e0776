"""Fig. 2e: regret for three values of alpha, MovieLens."""

from __future__ import annotations

from dataclasses import replace

from guardband.lab.experiments import MOVIELENS
from guardband.lab.kinds import Sweep

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2e",
    title="Does a looser floor cost less regret? (MovieLens)",
    question="Does DiSC-UCB's regret fall as the share α of the baseline that may be lost grows?",
    source="fig:6",
    over="alpha",
    values=(0.1, 0.3, 0.5),
    guarded=(0.1, 0.3, 0.5),
    config=replace(MOVIELENS, rounds=600_000),
)
