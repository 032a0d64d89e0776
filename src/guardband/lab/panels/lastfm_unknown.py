"""What not knowing the baseline's reward costs on LastFM: in the notebooks, not in the paper."""

from __future__ import annotations

from guardband.lab.panels.fig_3a import Panel3a
from guardband.lab.settings import ZERO, Row

__all__ = ["PANEL"]

PANEL = Panel3a(
    name="lastfm-unknown",
    title="What does not knowing the baseline cost? (LastFM)",
    question="Has DiSC-UCB-UB, which does not know the baseline's reward, more regret?",
    source="",
    guards=("guard-ucb",),
    row=Row(
        problem="lastfm",
        agents=6,
        alpha=0.9,
        baseline=5,
        ridge=0.05,
        noise=0.05,
        psi_variance=1e-3,
        psi_std=1e-3,
        actions=50,
        rounds=5_000_000,
        trials=3,
        notebook={"actions": 538, "rounds": 20_000_000},
        chosen=(
            ZERO,
            "The paper does not have this picture. The printed column takes 50 actions and the "
            "noise of the other LastFM panels, and 5,000,000 rounds to save time; the notebook has "
            "538 actions and 20,000,000 rounds. Three trials; the notebook shows one, which has no "
            "interval.",
        ),
    ),
)
