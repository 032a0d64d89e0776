"""Fig. 2f: regret per agent for two values of M, MovieLens."""

from __future__ import annotations

from guardband.lab.experiments import MOVIELENS
from guardband.lab.kinds import Sweep

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2f",
    title="Do more agents help each agent? (MovieLens)",
    question="Does DiSC-UCB's regret per agent fall as more agents learn together?",
    source="fig:5",
    over="agents",
    values=(3, 5),
    guarded=(3, 5),
    config=MOVIELENS,
)
