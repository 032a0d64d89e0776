"""MA-SCLUCB: SCLUCB on the data that all agents pooled with a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from guardband.algorithms.base import MIXES, SIGHTS
from guardband.algorithms.gated import GATES, GapGated
from guardband.algorithms.plan import Plan, pooling_traffic, require_simulation
from guardband.algorithms.policy import Rate
from guardband.algorithms.registry import register, setting
from guardband.facts import Facts
from guardband.kernels.types import Rule

__all__ = ["MASCLUCB"]


@setting(
    "ma-scl-ucb-tuned",
    "the same without a gate, told the true context noise",
    gate="none",
    constant="tight",
)
@register(
    "ma-scl-ucb",
    about="SCLUCB on pooled data: inferred from an abstract",
    constraint="stage-wise",
    communication="pools when log det V has grown",
    source="Afsharrad et al., arXiv 2510.00602",
    reading="inferred",
    label="MA-SCLUCB",
)
@dataclass(frozen=True)
class MASCLUCB(GapGated):
    """Pooled SCLUCB: what MA-SCLUCB is taken to be with a server and one theta.

    The paper has agents on a graph that speak to neighbours alone, and only its abstract and
    introduction were read. Optimism among the actions that the whole ellipsoid certifies, behind
    SCLUCB's gate, on data that are pooled by DisLinUCB's rule.

    Parameters
    ----------
    alpha, mix, ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        As in `DiscUCB`.
    gate, kappa_l
        As in `SCLUCB`, without the gate that is told the true optimum.
    """

    gates: ClassVar[tuple[str, ...]] = ("printed", "none")
    watched: ClassVar[bool] = True
    rate: ClassVar[Rate] = Rate(0.15, 0.02, 0.0004)

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        gate, mix = GATES[self.gate], MIXES[self.mix]
        terms = self._terms(facts, Rule.CLEAR, share=True, gate=gate, mix=mix)
        return Plan(
            terms._replace(kappa=self.kappa_l),
            self._alpha(facts),
            self._rho(facts, facts.reward_low, facts.reward_high),
            sight=int(SIGHTS[self.context]),
            traffic=pooling_traffic(facts),
        )
