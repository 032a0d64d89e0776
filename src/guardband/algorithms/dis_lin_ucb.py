"""DisLinUCB: distributed optimism without a constraint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import SIGHTS, Confidence
from guardband.algorithms.plan import Plan, pooling_traffic
from guardband.algorithms.registry import register
from guardband.facts import Facts
from guardband.kernels.types import Rule

__all__ = ["DisLinUCB"]


@register(
    "dis-lin-ucb",
    about="distributed optimism",
    constraint="none",
    communication="pools when log det V has grown",
    source="Wang et al., ICLR 2020",
    colour="#CC79A7",
    reading="partly read",
)
@dataclass(frozen=True)
class DisLinUCB(Confidence):
    """DisLinUCB: distributed optimism without any constraint.

    Made by you it knows only what you state; by name, "dis-lin-ucb", it is told a problem's bounds.

    Parameters
    ----------
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`.
    share
        False keeps the agents apart: M separate learners.

    Examples
    --------
    >>> import guardband as gb
    >>> results = gb.simulate("forecast", gb.DisLinUCB(noise=0.1), rounds=2_000, alpha=0.1)
    >>> print(results.summary()[["label", "violations_expected"]])  # it knows no floor
             label  violations_expected
    0  dis-lin-ucb                 29.0
    """

    share: bool = field(default=True, kw_only=True)

    name: ClassVar[str] = "dis-lin-ucb"
    runs: ClassVar[frozenset[str]] = frozenset({"agent", "live"})
    told: ClassVar[frozenset[str]] = frozenset({"horizon"})
    watched: ClassVar[bool] = True

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        return Plan(
            self._terms(facts, Rule.FREE, share=self.share),
            np.ones(facts.agents),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
            traffic=pooling_traffic(facts),
        )
