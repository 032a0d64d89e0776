"""Without a constraint: optimism, together or alone, and two yardsticks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import SIGHTS, Confidence, idle_terms
from guardband.algorithms.plan import Plan, pooling_traffic, require_simulation
from guardband.facts import Facts
from guardband.kernels.rivals import Method, Solo
from guardband.kernels.types import Rule

__all__ = ["Baseline", "DisLinUCB", "LinUCB", "Oracle"]


@dataclass(frozen=True)
class DisLinUCB(Confidence):
    """DisLinUCB: distributed optimism without any constraint.

    Parameters
    ----------
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`.
    share
        False keeps the agents apart: M separate learners.
    """

    share: bool = field(default=True, kw_only=True)

    name: ClassVar[str] = "dis-lin-ucb"

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        return Plan(
            self._terms(facts, Rule.FREE, share=self.share),
            np.ones(facts.agents),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
            traffic=pooling_traffic(facts),
        )


@dataclass(frozen=True)
class LinUCB(Confidence):
    """LinUCB: every agent an optimist on its own; what sharing is worth is measured against it.

    With context="observed-after" and M = 1 it is the method of Kirschner and Krause for contexts
    that are revealed after the choice. No coordinate outside a task is ever learned about, so an
    agent's confidence set is that of its task's own dimensions.

    Parameters
    ----------
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`.
    """

    name: ClassVar[str] = "lin-ucb"

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        return Plan(
            self._terms(facts, Rule.FREE, share=False),
            np.ones(facts.agents),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
        )


@dataclass(frozen=True)
class Baseline:
    """The yardstick that always plays the baseline and never learns."""

    name: ClassVar[str] = "baseline"
    constrained: ClassVar[bool] = False

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        terms = idle_terms(facts, Rule.BASELINE)
        return Plan(terms, np.ones(facts.agents), np.zeros(facts.agents))


@dataclass(frozen=True)
class Oracle:
    """The yardstick that knows theta and plays the best expected action, regret's reference."""

    name: ClassVar[str] = "oracle"
    constrained: ClassVar[bool] = False

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        terms = idle_terms(facts)
        method = Solo(int(Method.ORACLE), level=0.0, pace=0.0)
        return Plan(terms, np.ones(facts.agents), np.zeros(facts.agents), method=method)
