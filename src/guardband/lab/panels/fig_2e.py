"""Fig. 2e: regret for three values of alpha, MovieLens."""

from __future__ import annotations

from guardband.lab.kinds import Sweep
from guardband.lab.settings import Row

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2e",
    title="Does a looser floor cost less regret? (MovieLens)",
    question="Does DiSC-UCB's regret fall as the share α of the baseline that may be lost grows?",
    source="fig:6",
    over="alpha",
    values=(0.1, 0.3, 0.5),
    guarded=(0.1, 0.3, 0.5),
    row=Row(
        problem="movielens",
        agents=3,
        alpha=0.5,
        baseline=40,
        ridge=1.0,
        noise=0.1,
        psi_variance=1e-2,
        psi_std=0.1,
        rounds=600_000,
        trials=5,
        untold=("ridge",),
        chosen=("Five trials; the notebooks show one, which has no interval.",),
    ),
)
