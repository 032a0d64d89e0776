"""What SCLTS and SCLUCB share: single-task methods with a stage-wise constraint.

Each runs as M independent copies in the coordinates of the tasks. Both choose among the actions
that the whole confidence ellipsoid certifies, psi'theta-hat - beta norm(psi)_{V^-1} >=
(1 - alpha) r_b, and learn from their conservative rounds too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from guardband.algorithms.base import OWN_MIXES, SIGHTS, Floored
from guardband.algorithms.gated import GATES, GapGated
from guardband.algorithms.plan import Plan, require_simulation
from guardband.algorithms.policy import Rate
from guardband.facts import Facts
from guardband.kernels.rivals import Method, Solo
from guardband.kernels.types import Gate, Rule

__all__ = ["StageWiseLearner"]


@dataclass(frozen=True)
class StageWiseLearner(GapGated, Floored):
    """The settings and terms of both; each says how it chooses."""

    constant: str = field(default="source", kw_only=True)
    known_baseline: bool = field(default=True, kw_only=True)

    rate: ClassVar[Rate] = Rate(0.25, 0.02, 0.001)
    method: ClassVar[Method]
    mixes: ClassVar[tuple[str, ...]] = tuple(OWN_MIXES)

    def _share_of_delta(self, facts: Facts) -> float:
        """Return by how much the level is divided, for the union over rounds."""
        return 1.0

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        low, high, gate = self._low(facts), facts.reward_high, GATES[self.gate]
        if not self.known_baseline:
            high = None
            if gate == Gate.PRINTED and not (low is not None and low > 0):
                gate = Gate.SHUT
        rule = Rule.KNOWN if self.known_baseline else Rule.UNKNOWN
        mix = OWN_MIXES[self.mix]
        floor = low or 0.0
        terms = self._terms(facts, rule, share=False, gate=gate, mix=mix, reward_floor=floor)
        level = self._sigma(facts)[1] / self._share_of_delta(facts)
        return Plan(
            terms._replace(kappa=self.kappa_l),
            self._alpha(facts),
            self._rho(facts, low, high),
            self._told_gap(facts),
            sight=int(SIGHTS[self.context]),
            method=Solo(int(self.method), math.log(1.0 / level)),
        )
