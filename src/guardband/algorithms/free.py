"""The unconstrained rival and the yardstick: DisLinUCB, and the baseline itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import Confidence, Plan
from guardband.core.types import Rule
from guardband.facts import Facts

__all__ = ["Baseline", "DisLinUcb"]


@dataclass(frozen=True)
class DisLinUcb(Confidence):
    """DisLinUCB: distributed optimism without any constraint.

    Parameters
    ----------
    ridge, noise, context_noise, delta, theta_bound, feature_bound
        The confidence set, see `Confidence`.
    share
        False keeps the agents apart: M separate learners.
    """

    share: bool = field(default=True, kw_only=True)

    name: ClassVar[str] = "dis-lin-ucb"

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        terms = self._terms(facts, Rule.FREE, share=self.share)
        return Plan(terms, np.ones(facts.agents), np.zeros(facts.agents))


@dataclass(frozen=True)
class Baseline:
    """The yardstick that always plays the baseline and never learns."""

    name: ClassVar[str] = "baseline"
    constrained: ClassVar[bool] = False

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        terms = Confidence()._terms(facts, Rule.BASELINE, share=False)
        return Plan(terms, np.ones(facts.agents), np.zeros(facts.agents))
