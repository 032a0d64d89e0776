"""SEGE: safe exploration, then greedy choices, every task alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from guardband.algorithms.base import OWN_MIXES, SIGHTS, Conservative
from guardband.algorithms.plan import Plan, require_simulation
from guardband.algorithms.policy import Rate
from guardband.algorithms.registry import register, setting
from guardband.checks import check_not_negative
from guardband.facts import Facts
from guardband.kernels.rivals import Method, Solo
from guardband.kernels.types import Rule

__all__ = ["SEGE"]


@setting("sege-tuned", "the same with c = 0: no gate", pace=0.0)
@register(
    "sege",
    about="safe exploration, then greed; every task alone",
    constraint="stage-wise",
    communication="none",
    source="Khezeli and Bitar, AAAI 2020",
    label="SEGE-type",
    reading="inferred",
)
@dataclass(frozen=True)
class SEGE(Conservative):
    """SEGE: safe exploration, then greed among the certified actions (Khezeli and Bitar, 2020).

    Parameters
    ----------
    alpha, mix, ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        As for `SCLTS`.
    pace
        c: round t is greedy only if lambda_min(V) >= c sqrt(t).
    """

    constant: str = field(default="source", kw_only=True)
    pace: float = field(default=1.0, kw_only=True)

    rate: ClassVar[Rate] = Rate(0.25, 0.02, 0.001)
    mixes: ClassVar[tuple[str, ...]] = tuple(OWN_MIXES)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pace", check_not_negative("pace", self.pace))

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        terms = self._terms(facts, Rule.KNOWN, share=False, mix=OWN_MIXES[self.mix])
        level = math.log(1.0 / self._sigma(facts)[1])
        return Plan(
            terms,
            self._alpha(facts),
            self._rho(facts, facts.reward_low, facts.reward_high),
            sight=int(SIGHTS[self.context]),
            method=Solo(int(Method.GREEDY), level, self.pace),
        )
