"""What all algorithms are: frozen descriptions that answer with the terms of the kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from guardband.checks import check_fraction, check_not_negative, check_positive
from guardband.core.types import Floats, Gate, Mix, Rule, Terms, Trigger
from guardband.facts import Facts

__all__ = ["Algorithm", "Confidence", "Plan", "paper_trigger"]


class Plan(NamedTuple):
    """An algorithm made ready for one problem."""

    terms: Terms
    alpha: Floats  # (M,)
    rho: Floats  # (M,) exploration of conservative rounds
    gap: Floats | None = None  # (M, C), for the gap gate


class Algorithm(Protocol):
    """What the simulator and the fleet ask of an algorithm."""

    @property
    def name(self) -> str:
        """The name in lists, plots and on the command line."""

    @property
    def constrained(self) -> bool:
        """Whether it promises anything about the baseline."""

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The settings of the confidence set; assumptions about the problem, never read off its data.

    Parameters
    ----------
    ridge
        lambda, the weight of the ridge penalty; above 0.
    noise
        R: the reward noise is R-sub-Gaussian.
    context_noise
        The same for what the hidden context adds to the reward, (phi - psi)'theta.
    delta
        The probability with which the promise may fail.
    theta_bound
        S, a bound on the length of theta.
    feature_bound
        L, a bound on the length of expected features.
    """

    ridge: float = 1.0
    noise: float = 1.0
    context_noise: float = 1.0
    delta: float = 1e-3
    theta_bound: float = 1.0
    feature_bound: float = 1.0

    constrained: ClassVar[bool] = False

    def __post_init__(self) -> None:
        why = "Without a ridge the first estimates are undefined; 1.0 is the usual choice."
        checked = {
            "ridge": check_positive("ridge", self.ridge, why),
            "noise": check_not_negative("noise", self.noise),
            "context_noise": check_not_negative("context_noise", self.context_noise),
            "delta": check_fraction("delta", self.delta),
            "theta_bound": check_positive("theta_bound", self.theta_bound),
            "feature_bound": check_positive("feature_bound", self.feature_bound),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _terms(
        self,
        facts: Facts,
        rule: Rule,
        *,
        share: bool,
        gate: Gate = Gate.NONE,
        mix: Mix = Mix.VECTOR,
        reward_floor: float = 0.0,
    ) -> Terms:
        trigger, budget = paper_trigger(facts) if share else (Trigger.NEVER, math.inf)
        return Terms(
            rule=int(rule),
            gate=int(gate),
            mix=int(mix),
            trigger=int(trigger),
            ridge=self.ridge,
            deviation=math.hypot(self.context_noise, self.noise),
            confidence=2.0 * math.log(2.0 / self.delta),
            theta_bound=self.theta_bound,
            feature_bound=self.feature_bound,
            reward_floor=float(reward_floor),
            budget=float(budget),
        )


def paper_trigger(facts: Facts) -> tuple[Trigger, float]:
    """Return the paper's trigger with B = T log(M T) / (d M); doubling of det V if T is open."""
    if facts.horizon is None:
        return Trigger.GROWTH, math.log(2.0)
    product = facts.agents * facts.horizon
    return Trigger.PAPER, facts.horizon * math.log(product) / (facts.dim * facts.agents)
