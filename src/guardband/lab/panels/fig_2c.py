"""Fig. 2c: regret per agent for three values of M, synthetic data."""

from __future__ import annotations

from guardband.lab.experiments import ExperimentConfig
from guardband.lab.kinds import Sweep

__all__ = ["PANEL"]

PANEL = Sweep(
    name="2c",
    title="Do more agents help each agent? (synthetic data)",
    question="Does DiSC-UCB's regret per agent fall as more agents learn together?",
    source="fig:3",
    over="agents",
    values=(3, 5, 10),
    guarded=(3, 5, 10),
    config=ExperimentConfig(
        problem="synthetic-c",
        agents=3,
        alpha=0.3,
        baseline=30,
        ridge=1.0,
        noise=1.0,
        psi_variance=1e-2,
        psi_std=0.1,
        rounds=10_000,
        trials=25,
        notebook_only=("ridge",),
    ),
)
