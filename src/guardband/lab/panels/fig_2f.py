"""Fig. 2f: regret per agent for two values of M, MovieLens."""

from __future__ import annotations

from guardband.lab.kinds import Sweep
from guardband.lab.settings import Row

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2f",
    title="Does company help each agent? (MovieLens)",
    question="Does DiSC-UCB's regret per agent fall as more agents learn together?",
    source="fig:5",
    over="agents",
    values=(3, 5),
    guarded=(3, 5),
    row=Row(
        problem="movielens",
        agents=3,
        alpha=0.5,
        baseline=40,
        ridge=1.0,
        noise=0.1,
        psi_variance=1e-2,
        psi_std=0.1,
        rounds=800_000,
        trials=5,
        untold=("ridge",),
        chosen=("Five trials; the notebooks show one, which has no interval.",),
    ),
)
