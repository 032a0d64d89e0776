"""The oracle, which knows theta: the reference that regret is counted from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import idle_terms
from guardband.algorithms.plan import Plan, require_simulation
from guardband.algorithms.policy import Policy, Rate
from guardband.algorithms.registry import register
from guardband.facts import Facts
from guardband.kernels.rivals import Method, Solo

__all__ = ["Oracle"]


@register(
    "oracle",
    about="reference: knows theta, plays the best",
    constraint="none",
    communication="none",
    source="-",
    reading="own",
    label="oracle",
)
@dataclass(frozen=True)
class Oracle(Policy):
    """The reference that knows theta and plays the action with the best expected reward."""

    name: ClassVar[str] = "oracle"
    rate: ClassVar[Rate] = Rate(0.06, 0.0, 0.0)

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        terms = idle_terms(facts)
        method = Solo(int(Method.ORACLE), level=0.0)
        return Plan(terms, np.ones(facts.agents), np.zeros(facts.agents), method=method)
