"""Fig. 1c: three agents, against distributed rivals without a constraint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from guardband.lab.experiments import ExperimentConfig
from guardband.lab.kinds import Comparison
from guardband.lab.panel import Claim, RunOptions, RunResults

__all__ = ["PANEL", "ROW"]

ROW = ExperimentConfig(
    problem="synthetic-b",
    agents=3,
    alpha=0.25,
    baseline=2,
    ridge=0.1,
    noise=0.1,
    psi_variance=1e-2,
    rounds=20_000,
    trials=100,
    chosen=(
        "The horizon is not public: 20,000 rounds, as in Fig. 1a. Nor is the generator of the "
        "features: non-negative normal vectors, one action per band of reward.",
        "DisLSB has its source's constant 600: its first phase is longer than the run, and it "
        "plays by its first design throughout.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Panel1c(Comparison):
    """Regret of DiSC-UCB and of three free rivals."""

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge nothing: the text makes no claim about this picture."""
        return []


PANEL = Panel1c(
    name="1c",
    title="What does safety cost three agents?",
    question="How does DiSC-UCB's regret compare with that of distributed rivals without a floor?",
    source="fig:1b",
    config=ROW,
    algorithms=("disc-ucb", "dis-lin-ucb", "dis-lsb", "fed-pe-cd"),
)
