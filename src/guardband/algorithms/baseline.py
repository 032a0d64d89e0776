"""Always the baseline: the reference that every safe algorithm is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import idle_terms
from guardband.algorithms.plan import Plan
from guardband.algorithms.policy import Policy, Rate
from guardband.algorithms.registry import register
from guardband.facts import Facts
from guardband.kernels.types import Rule

__all__ = ["Baseline"]


@register(
    "baseline",
    about="reference: always the baseline",
    constraint="stage-wise",
    communication="none",
    source="-",
    reading="own",
    label="baseline",
)
@dataclass(frozen=True)
class Baseline(Policy):
    """The reference that always plays the baseline and never learns."""

    name: ClassVar[str] = "baseline"
    always_baseline: ClassVar[bool] = True
    runs: ClassVar[frozenset[str]] = frozenset({"agent"})
    rate: ClassVar[Rate] = Rate(0.06, 0.0, 0.0)

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        terms = idle_terms(facts, Rule.BASELINE)
        return Plan(terms, np.ones(facts.agents), np.zeros(facts.agents))
