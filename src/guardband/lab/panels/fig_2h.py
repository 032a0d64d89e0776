"""Fig. 2h: regret for three values of alpha, LastFM."""

from __future__ import annotations

from guardband.lab.kinds import Sweep
from guardband.lab.settings import ZERO, Row

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2h",
    title="Does a looser floor cost less regret? (LastFM)",
    question="Does DiSC-UCB's regret fall as the share α of the baseline that may be lost grows?",
    source="fig:2_b",
    over="alpha",
    values=(0.7, 0.8, 0.9),
    guarded=(0.7,),
    row=Row(
        problem="lastfm",
        agents=3,
        alpha=0.7,
        baseline=5,
        ridge=0.05,
        noise=0.05,
        psi_variance=1e-3,
        psi_std=1e-3,
        actions=50,
        rounds=10_000_000,
        trials=3,
        notebook={"actions": 538},
        chosen=(
            ZERO,
            "Three trials; the notebooks show one, which has no interval.",
            "Guard-UCB is drawn at the smallest alpha only, to save time; `--with guard-ucb` adds "
            "the others.",
        ),
    ),
)
