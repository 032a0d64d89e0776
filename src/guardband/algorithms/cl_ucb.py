"""CLUCB: optimism under a cumulative constraint."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import SIGHTS, Floored
from guardband.algorithms.plan import Plan, require_simulation
from guardband.algorithms.registry import register, setting
from guardband.facts import Facts
from guardband.kernels.rivals import Method, Solo
from guardband.kernels.types import Mix, Rule

__all__ = ["CLUCB"]


@setting("cl-ucb-tuned", "the same, told the true context noise", constant="tight")
@register(
    "cl-ucb",
    about="optimism from savings, every task alone",
    constraint="cumulative",
    communication="none",
    source="Kazerouni et al., NeurIPS 2017",
    reading="partly read",
)
@dataclass(frozen=True)
class CLUCB(Floored):
    """CLUCB: all rounds so far together earn 1 - alpha of the baseline (Kazerouni et al., 2017).

    It saves in rounds with the baseline and spends in others, so single rounds fall below the
    floor by design. It runs as M independent copies in the coordinates of the tasks.

    Parameters
    ----------
    alpha
        The share of the baseline's total reward that may be lost, in (0, 1].
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`; by default it ignores the hidden context, as the
        authors' does.
    known_baseline
        False is CLUCB2: the baseline's reward is bounded by the confidence set, and baseline
        rounds teach something, too.
    reward_floor
        r_l, which CLUCB2 may rely on in baseline rounds; None takes the problem's own.
    """

    constant: str = field(default="source", kw_only=True)
    known_baseline: bool = field(default=True, kw_only=True)

    sights: ClassVar[tuple[str, ...]] = ("hidden", "observed")

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        rule = Rule.KNOWN if self.known_baseline else Rule.UNKNOWN
        floor = max(self._low(facts) or 0.0, 0.0)
        terms = self._terms(facts, rule, share=False, mix=Mix.ACTION, reward_floor=floor)
        level = math.log(1.0 / self._sigma(facts)[1])
        return Plan(
            terms,
            self._alpha(facts),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
            method=Solo(int(Method.BUDGET), level),
        )
