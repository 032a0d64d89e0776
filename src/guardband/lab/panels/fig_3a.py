"""Fig. 3a: what not knowing the baseline's reward costs, synthetic data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guardband.lab import judge, plots
from guardband.lab.experiments import ExperimentConfig
from guardband.lab.kinds import Comparison
from guardband.lab.panel import Claim, RunOptions, RunResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PANEL", "Panel3a"]


@dataclass(frozen=True, kw_only=True)
class Panel3a(Comparison):
    """Regret with a known and with an unknown baseline."""

    algorithms: tuple[str, ...] = ("disc-ucb", "disc-ucb-unknown")

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        """Judge that not knowing costs regret."""
        return [
            judge.exceeds(
                self._id("unknown-costs"),
                "DiSC-UCB-UB, which does not know the baseline's reward, has more regret",
                self.result_of(results, "disc-ucb-unknown"),
                self.result_of(results, "disc-ucb"),
            )
        ]

    def remarks(self, options: RunOptions) -> Sequence[str]:
        """Add the gate of DiSC-UCB-UB."""
        oracle = self.config.rules.unknown_gate == "gap"
        theirs = f"(2(2−α)Lβ / ({'(r_opt − r_h) + ' if oracle else ''}α r_l))²"
        gate = f"DiSC-UCB-UB's gate, as in the notebook: λ_min(V) ≥ {theirs}."
        if options.printed:
            gate = (
                "DiSC-UCB-UB's gate is the printed one, λ_min(V) ≥ (2(2−α)β / (α r_l))²; the "
                f"notebook has {theirs}."
            )
        return [gate, *super().remarks(options)]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        """Draw the regret, and its average over the rounds so far."""
        return self._drawn(results, plots.regret(results), plots.average_regret(results))


PANEL = Panel3a(
    name="3a",
    title="What does not knowing the baseline cost? (synthetic data)",
    question="Has DiSC-UCB-UB, which does not know the baseline's reward, more regret?",
    source="fig:11",
    config=ExperimentConfig(
        problem="synthetic-c",
        agents=1,
        alpha=0.5,
        baseline=80,
        ridge=0.1,
        noise=0.1,
        psi_variance=1e-2,
        psi_std=0.1,
        rounds=50_000,
        trials=50,
    ),
)
