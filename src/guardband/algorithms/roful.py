"""ROFUL: directional optimism, every task alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import SIGHTS, Constrained
from guardband.algorithms.plan import Plan, require_simulation
from guardband.algorithms.policy import Rate
from guardband.algorithms.registry import register, setting
from guardband.checks import check_choice
from guardband.facts import Facts
from guardband.kernels.rivals import Method, Solo
from guardband.kernels.types import Mix, Rule

__all__ = ["ROFUL"]

MIXES = {"vector": Mix.PARTWAY, "action": Mix.ACTION}


@setting("roful-tuned", "the same, told the true context noise", constant="tight")
@setting("roful-action", "the same, whole actions by a coin: the choice is safe", mix="action")
@register(
    "roful",
    about="goes from the baseline towards the best action as far as is safe; every task alone",
    constraint="stage-wise",
    communication="none",
    source="Hutchinson et al., AISTATS 2024",
)
@dataclass(frozen=True)
class ROFUL(Constrained):
    """ROFUL: restrained optimism, with the baseline as origin (Hutchinson et al., 2024).

    It goes from the baseline's features towards those of the action with the largest upper bound,
    and stops where more than alpha r_b might be lost. There is no gate. It must know r_b. The rule
    is the paper's; that it carries over to a constraint relative to a baseline is derived here.

    Parameters
    ----------
    alpha
        The share of the baseline's reward that may be lost, in (0, 1]; one number, or one per task.
    mix
        What a restrained round plays: "vector", psi_b + g (psi_k - psi_b), as the paper scales
        its actions, so that every play keeps the floor in expectation; "action", action k with
        probability g, else the baseline: then the randomised choice does, and a single play
        may lie below the floor.
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`; by default it ignores the hidden context, as the
        authors' does.
    """

    constant: str = field(default="source", kw_only=True)
    mix: str = field(default="vector", kw_only=True)

    rate: ClassVar[Rate] = Rate(0.25, 0.02, 0.001)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("mix", self.mix, tuple(MIXES))

    @property
    def randomised(self) -> bool:
        """Whether the promise is about a randomised choice, not about single plays."""
        return self.mix == "action"

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        # Half of delta is for the reward, half for the constraint, as in the paper.
        level = math.log(2.0 / self._sigma(facts)[1])
        return Plan(
            self._terms(facts, Rule.KNOWN, share=False, mix=MIXES[self.mix]),
            self._alpha(facts),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
            method=Solo(int(Method.DIRECTION), level),
        )
