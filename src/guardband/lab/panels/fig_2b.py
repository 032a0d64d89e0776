"""Fig. 2b: regret for three values of alpha, synthetic data."""

from __future__ import annotations

from guardband.lab.experiments import ExperimentConfig
from guardband.lab.kinds import Sweep

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2b",
    title="Does a looser floor cost less regret? (synthetic data)",
    question="Does DiSC-UCB's regret fall as the share α of the baseline that may be lost grows?",
    source="fig:8",
    over="alpha",
    values=(0.1, 0.3, 0.5),
    guarded=(0.1, 0.3, 0.5),
    config=ExperimentConfig(
        problem="synthetic-c",
        agents=3,
        alpha=0.3,
        baseline=80,
        ridge=1.0,
        noise=0.1,
        psi_variance=1e-4,
        psi_std=1e-2,
        rounds=55_000,
        trials=25,
        notebook_only=("ridge",),
        chosen=(
            "Below the picture the paper has M = 1 and α = 0.3, in its caption M = 3 and three α; "
            "used: M = 3.",
        ),
    ),
)
