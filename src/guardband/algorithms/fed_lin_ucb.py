"""FedLinUCB: asynchronous optimism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import SIGHTS, Assumptions, Confidence
from guardband.algorithms.plan import Plan, Traffic, packed, require_simulation
from guardband.algorithms.registry import register, setting
from guardband.checks import check_positive
from guardband.facts import Facts
from guardband.kernels.rivals import UploadRule
from guardband.kernels.types import Rule, Terms

__all__ = ["FedLinUCB"]


@setting(
    "fed-lin-ucb-tuned", "the same with a = 1, beta = 0.25", growth=1.0, ridge=1.0, radius=0.25
)
@setting(
    "fed-lin-ucb-authors",
    "the same with a = 1, lambda = 1, beta = 0.5, as its authors run it",
    growth=1.0,
    ridge=1.0,
    radius=0.5,
)
@register(
    "fed-lin-ucb",
    about="asynchronous optimism",
    constraint="none",
    communication="asynchronous, one agent at a time",
    source="He et al., NeurIPS 2022",
)
@dataclass(frozen=True)
class FedLinUCB(Confidence):
    """FedLinUCB: an agent exchanges data with the server when its own have grown (He et al., 2022).

    In every round all agents act, in random order.

    Parameters
    ----------
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`.
    growth
        a: an agent uploads when det V has grown by more than 1 + a since its last download;
        None: 1 / M^2, as in the theory. The authors' experiments have 1.
    radius
        beta; None: the theory's, see the page on the algorithm. The authors' experiments have 0.5.
    """

    growth: float | None = field(default=None, kw_only=True)
    radius: float | None = field(default=None, kw_only=True)

    constants: ClassVar[tuple[str, ...]] = Assumptions.constants  # the radius has a form of its own

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("growth", "radius"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check_positive(name, value))

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        growth = 1.0 / facts.agents**2 if self.growth is None else self.growth
        terms = self._terms(facts, Rule.FREE, share=False)
        beta = self._theory(facts, terms, growth) if self.radius is None else self.radius
        return Plan(
            terms,
            np.ones(facts.agents),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
            method=UploadRule(math.log1p(growth), beta),
            traffic=Traffic(2, 2 * packed(facts.dim)),
        )

    def _theory(self, facts: Facts, terms: Terms, growth: float) -> float:
        """Return sqrt(ridge) S + (sqrt(1 + M a) + M sqrt(2 a)) beta_T, T / min(a, 1) rounds."""
        rounds = (facts.horizon or 1) / min(growth, 1.0)
        level = math.log(1.0 / self._sigma(facts)[1])
        factor = math.sqrt(1.0 + facts.agents * growth) + facts.agents * math.sqrt(2.0 * growth)
        from guardband.kernels.ridge import horizon_radius  # noqa: PLC0415 - compiled

        alone = float(horizon_radius(terms, facts.dim, rounds, level))
        return math.sqrt(self.ridge) * self.theta_bound + factor * alone
