"""Fig. 1a: what safety costs one agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from guardband.lab import judge
from guardband.lab.experiments import ExperimentConfig
from guardband.lab.kinds import Comparison
from guardband.lab.panel import Claim, RunOptions, RunResults

__all__ = ["PANEL", "ROW"]

ROW = ExperimentConfig(
    problem="synthetic-a",
    agents=1,
    alpha=0.3,
    baseline=10,
    ridge=1.0,
    noise=1.0,
    psi_variance=2.5e-3,
    psi_std=2.5e-3,
    rounds=20_000,
    trials=100,
    notebook={"alpha": 0.01},
)


@dataclass(frozen=True, kw_only=True)
class Panel1a(Comparison):
    """Regret of DiSC-UCB, a safe rival and a free one."""

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge that DiSC-UCB has the largest regret."""
        disc = self.result_of(results, "disc-ucb")
        return [
            judge.exceeds(
                self._id(f"above-{name}"),
                f"DiSC-UCB has more regret than {told}",
                disc,
                self.result_of(results, name),
            )
            for name, told in (("sclts", "SCLTS"), ("dis-lin-ucb", "DisLinUCB"))
        ]


PANEL = Panel1a(
    name="1a",
    title="What does safety cost one agent?",
    question="Is DiSC-UCB's regret above that of SCLTS and of DisLinUCB, which is not constrained?",
    source="fig:1",
    config=ROW,
    algorithms=("disc-ucb", "sclts", "dis-lin-ucb"),
)
