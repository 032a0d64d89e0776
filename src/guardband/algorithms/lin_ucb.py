"""LinUCB: every agent learns by itself, optimistically and without a constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import SIGHTS, Confidence
from guardband.algorithms.plan import Plan
from guardband.algorithms.registry import register
from guardband.facts import Facts
from guardband.kernels.types import Rule

__all__ = ["LinUCB"]


@register(
    "lin-ucb",
    about="optimism, every task alone",
    constraint="none",
    communication="none",
    source="Abbasi-Yadkori et al., NeurIPS 2011",
)
@dataclass(frozen=True)
class LinUCB(Confidence):
    """LinUCB: every agent learns by itself; the comparison shows what sharing data gains.

    With context="observed-after" and M = 1 it is the method of Kirschner and Krause for contexts
    that are revealed after the choice. No coordinate outside a task is ever learned about, so an
    agent's confidence set is that of its task's own dimensions.

    Parameters
    ----------
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`.
    """

    name: ClassVar[str] = "lin-ucb"
    runs: ClassVar[frozenset[str]] = frozenset({"agent"})
    watched: ClassVar[bool] = True

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        return Plan(
            self._terms(facts, Rule.FREE, share=False),
            np.ones(facts.agents),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
        )
