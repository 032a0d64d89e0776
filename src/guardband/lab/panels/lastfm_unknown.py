"""What not knowing the baseline's reward costs on LastFM: in the notebooks, not in the paper."""

from __future__ import annotations

from dataclasses import replace

from guardband.lab.experiments import LASTFM
from guardband.lab.panels.fig_3a import Panel3a

__all__ = ["PANEL"]

PANEL = Panel3a(
    name="lastfm-unknown",
    title="What does not knowing the baseline cost? (LastFM)",
    question="Has DiSC-UCB-UB, which does not know the baseline's reward, more regret?",
    source="",
    guards=("guard-ucb",),
    guard_trials=1,
    config=replace(
        LASTFM,
        agents=6,
        alpha=0.9,
        rounds=20_000_000,
        rules=replace(LASTFM.rules, gate="gap", rho_high=1.0),
        chosen=(
            *LASTFM.chosen,
            "The paper does not have this picture; the printed column takes 50 actions and the "
            "noise of the other LastFM panels.",
            "Guard-UCB has one trial, and so no interval: its rounds take three times as long as "
            "DiSC-UCB's conservative ones, and there are 20,000,000. `--with guard-ucb` adds the "
            "others.",
        ),
    ),
)
