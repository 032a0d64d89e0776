"""C-SquareCB: inverse gap weighting under a cumulative constraint, every task alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import SIGHTS, idle_terms
from guardband.algorithms.plan import Plan, require_simulation
from guardband.algorithms.policy import Policy, Rate
from guardband.algorithms.registry import register, setting
from guardband.checks import (
    as_alpha,
    check_choice,
    check_delta,
    check_not_negative,
    check_positive,
)
from guardband.facts import Facts
from guardband.kernels.rivals import Method, Solo
from guardband.kernels.types import Rule

__all__ = ["CSquareCB"]


@setting("c-square-cb-tuned", "the same without slack, 1,000 times gamma", slack=0.0, gamma=1000.0)
@register(
    "c-square-cb",
    about="draws by predicted gaps, from savings; every task alone",
    constraint="cumulative",
    communication="none",
    source="Deb et al., ICLR 2025",
    label="C-SquareCB",
    reading="partly read",
)
@dataclass(frozen=True)
class CSquareCB(Policy):
    """C-SquareCB with a linear oracle: all rounds so far keep 1 - alpha (Deb et al., 2025).

    It draws actions by inverse gap weighting of a regression oracle's predictions, the
    Vovk-Azoury-Warmuth forecaster here, as long as predicted rewards and those of past baseline
    rounds cover the promise with a slack. Single rounds fall below the floor by design. It runs as
    M independent copies in the coordinates of the tasks, and must know r_b.

    Parameters
    ----------
    alpha
        The share of the baseline's total reward that may be lost, in (0, 1]; one number, or one
        per task.
    delta
        The probability with which the promise may fail.
    ridge, theta_bound, feature_bound
        lambda, S and L: the oracle's regret is d log(1 + m L^2 / (lambda d)) + lambda S^2.
    slack
        The factor before sqrt(m (regret + log(4 / delta))) in the test; 16 in the paper.
    gamma
        A factor for the learning rate sqrt(K m / (regret + log(8 / delta))).
    context
        "hidden", "observed" or "observed-after", see `Assumptions`.
    """

    alpha: float | tuple[float, ...] = 0.1
    delta: float = field(default=1e-3, kw_only=True)
    ridge: float = field(default=1.0, kw_only=True)
    theta_bound: float = field(default=1.0, kw_only=True)
    feature_bound: float = field(default=1.0, kw_only=True)
    slack: float = field(default=16.0, kw_only=True)
    gamma: float = field(default=1.0, kw_only=True)
    context: str = field(default="hidden", kw_only=True)

    constrained: ClassVar[bool] = True
    rate: ClassVar[Rate] = Rate(0.25, 0.02, 0.0015)

    def __post_init__(self) -> None:
        numbers = as_alpha(self.alpha)
        checked = {
            "alpha": numbers[0] if np.ndim(self.alpha) == 0 else numbers,
            "delta": check_delta(self.delta),
            "slack": check_not_negative("slack", self.slack),
        }
        for name in ("ridge", "theta_bound", "feature_bound", "gamma"):
            checked[name] = check_positive(name, getattr(self, name))
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        check_choice("context", self.context, tuple(SIGHTS))

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        terms = idle_terms(facts, Rule.KNOWN)._replace(
            ridge=self.ridge, theta_bound=self.theta_bound, feature_bound=self.feature_bound
        )
        level = math.log(1.0 / self.delta)
        return Plan(
            terms,
            np.array(as_alpha(self.alpha, facts.agents)),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
            method=Solo(int(Method.GAPS), level, self.slack, self.gamma),
        )
