"""Fig. 2i: regret per agent for three values of M, LastFM."""

from __future__ import annotations

from guardband.lab.kinds import Sweep
from guardband.lab.settings import ZERO, Row

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2i",
    title="Does company help each agent? (LastFM)",
    question="Does DiSC-UCB's regret per agent fall as more agents learn together?",
    source="fig:2_c",
    over="agents",
    values=(7, 10, 12),
    guarded=(7,),
    row=Row(
        problem="lastfm",
        agents=7,
        alpha=0.7,
        baseline=5,
        ridge=0.05,
        noise=0.05,
        psi_variance=1e-3,
        psi_std=1e-3,
        actions=50,
        rounds=1_800_000,
        trials=3,
        notebook={"actions": 538},
        chosen=(
            ZERO,
            "Three trials; the notebooks show one, which has no interval.",
            "Guard-UCB is drawn at the smallest M only, to save time; `--with guard-ucb` adds the "
            "others.",
        ),
    ),
)
