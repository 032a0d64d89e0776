"""Base classes of algorithms: their settings, their confidence set, their terms for the kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from guardband.algorithms.guard_ucb import GuardUCB
from guardband.algorithms.plan import require_simulation
from guardband.algorithms.policy import Policy
from guardband.checks import (
    as_alpha,
    check_choice,
    check_delta,
    check_not_negative,
    check_positive,
)
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.environment import Sight
from guardband.kernels.types import Floats, Gate, Mix, Rule, Terms, Trigger

__all__ = [
    "MIXES",
    "OWN_MIXES",
    "SIGHTS",
    "Assumptions",
    "Confidence",
    "Conservative",
    "Constrained",
    "Floored",
    "idle_terms",
    "paper_trigger",
    "safe_rho",
]

UNKNOWN_PROBLEM = Facts(((0,),), 1)
MIXES = {"vector": Mix.VECTOR, "task-vector": Mix.TASK_VECTOR, "action": Mix.ACTION}
# Of a method that runs in the coordinates of its task alone: it knows no other directions.
OWN_MIXES = {"vector": Mix.TASK_VECTOR, "action": Mix.ACTION}
SIGHTS = {"hidden": Sight.HIDDEN, "observed": Sight.OBSERVED, "observed-after": Sight.AFTER}


@dataclass(frozen=True, kw_only=True)
class Assumptions(Policy):
    """What an algorithm takes for granted about noise, and what it sees of the context.

    Parameters
    ----------
    noise
        R: the reward noise is R-sub-Gaussian.
    context_noise
        The same for what the hidden context adds to the reward, (phi - psi)'theta; by name,
        algorithms made for known contexts are told the problem's. None, for
        constant="guard" only: from each round's possible contexts, as Guard-UCB has it.
    delta
        The probability with which the promise may fail.
    constant
        What stands for sigma in the confidence set. "source": as the algorithm's own paper has
        it, which is R alone for those made for known contexts; "paper":
        sqrt(context_noise^2 + R^2); "tight": the same with the problem's true context noise, that
        of (phi - psi)'theta, which only a simulation knows. Beside R alone the level is delta,
        else delta / 2. "guard", for those with a confidence set, in a simulation: Guard-UCB's set
        and weights in the place of their own.
    context
        "hidden": chooses and learns by expected features psi; "observed": by the true features
        phi; "observed-after": chooses by psi and learns from phi. Where phi is seen, the hidden
        context adds no noise, and sigma is R.
    """

    noise: float = 1.0
    context_noise: float | None = 1.0
    delta: float = 1e-3
    constant: str = "paper"
    context: str = "hidden"

    made_for_hidden: ClassVar[bool] = False
    constants: ClassVar[tuple[str, ...]] = ("source", "paper", "tight")
    sights: ClassVar[tuple[str, ...]] = tuple(SIGHTS)

    def __post_init__(self) -> None:
        checked = {
            "noise": check_not_negative("noise", self.noise),
            "delta": check_delta(self.delta),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        check_choice("constant", self.constant, self.constants)
        if self.context_noise is not None:
            context_noise = check_not_negative("context_noise", self.context_noise)
            object.__setattr__(self, "context_noise", context_noise)
        elif self.constant != "guard":
            raise InvalidValueError("context_noise must be a number unless constant='guard'.")
        check_choice("context", self.context, self.sights)

    @property
    def keeps(self) -> frozenset[str]:
        """What Guard-UCB keeps, or a context noise of 1 where papers on hidden contexts have it.

        Papers on known contexts have R for all of the noise, and a hidden context is a part of it.
        """
        if self.constant == "guard":
            return GuardUCB.keeps
        return frozenset({"context_noise"} if self.made_for_hidden else ())

    def hears(self, assumed: Mapping[str, Any]) -> dict[str, Any]:
        """Return what it takes over, and where no context noise is stated, the true one.

        Guard-UCB reads it off each round's possible contexts there; no other algorithm can.
        """
        told = super().hears(assumed)
        if self.constant != "guard" and told.get("context_noise", 0.0) is None:
            del told["context_noise"]
            if self.constant == "paper":
                told["constant"] = "tight"
        return told

    def _sigma(self, facts: Facts) -> tuple[float, float]:
        """Return sigma, and the level at which the confidence set holds."""
        if self.context == "observed-after":
            require_simulation(facts, "context='observed-after'")
        unaware = self.constant == "source" and not self.made_for_hidden
        if unaware or self.context != "hidden":
            return self.noise, self.delta
        context_noise = self.context_noise or 0.0
        if self.constant == "tight":
            if facts.context_noise is None:
                raise InvalidValueError(
                    "constant='tight' needs the problem's true context noise, which only a "
                    "simulation knows; state what you assume by context_noise instead."
                )
            context_noise = facts.context_noise
        return math.hypot(context_noise, self.noise), 0.5 * self.delta

    def confidence(self, delta: float) -> float:
        """Return 2 log(1 / level) as the kernels use it, for a set that may fail with `delta`."""
        return 2.0 * math.log(1.0 / replace(self, delta=delta)._sigma(UNKNOWN_PROBLEM)[1])


@dataclass(frozen=True, kw_only=True)
class Confidence(Assumptions):
    """The settings of the confidence set; assumptions about the problem, never read off its data.

    Parameters
    ----------
    noise, context_noise, delta, constant, context
        See `Assumptions`.
    ridge
        lambda, the weight of the ridge penalty; above 0.
    theta_bound
        S, a bound on the length of theta.
    feature_bound
        L, a bound on the length of expected features.
    """

    ridge: float = 1.0
    theta_bound: float = 1.0
    feature_bound: float = 1.0

    constants: ClassVar[tuple[str, ...]] = (*Assumptions.constants, "guard")

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "Without a ridge the first estimates are undefined; 1.0 is the usual choice."
        checked = {
            "ridge": check_positive("ridge", self.ridge, why),
            "theta_bound": check_positive("theta_bound", self.theta_bound),
            "feature_bound": check_positive("feature_bound", self.feature_bound),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def beta(self, logdet: float, delta: float) -> float:
        """Return sigma sqrt(log det(V / lambda) + 2 log(1 / level)) + sqrt(lambda) S."""
        sigma = self._sigma(UNKNOWN_PROBLEM)[0]
        root = math.sqrt(logdet + self.confidence(delta))
        return sigma * root + math.sqrt(self.ridge) * self.theta_bound

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
        together = share and facts.agents > 1  # nobody pools alone
        trigger, budget = paper_trigger(facts) if together else (Trigger.NEVER, math.inf)
        own = self._guards_set(facts, share) if self.constant == "guard" else self._own_set(facts)
        return own._replace(
            rule=int(rule),
            gate=int(gate),
            mix=int(mix),
            trigger=int(trigger),
            feature_bound=self.feature_bound,
            reward_floor=float(reward_floor),
            budget=float(budget),
        )

    def _own_set(self, facts: Facts) -> Terms:
        sigma, level = self._sigma(facts)
        return Terms(
            rule=int(Rule.FREE),
            ridge=self.ridge,
            sigma=sigma,
            confidence=2.0 * math.log(1.0 / level),
            theta_bound=self.theta_bound,
        )

    def _guards_set(self, facts: Facts, share: bool) -> Terms:
        """Return the terms of Guard-UCB's confidence set, for noise that is not bounded."""
        require_simulation(facts, "constant='guard'")
        guard = GuardUCB(
            noise=self.noise,
            delta=self.delta,
            theta_bound=self.theta_bound,
            context_noise=self.context_noise if self.context == "hidden" else 0.0,
            ridge=self.ridge,
            share=share,
        )
        return guard.plan(replace(facts, bounded=False)).terms._replace(weighted=True)


@dataclass(frozen=True)
class Constrained(Confidence):
    """What algorithms with a promise have in common.

    Parameters
    ----------
    alpha
        The share of the baseline's reward that may be lost, in (0, 1]; one number, or one per task.
    """

    alpha: float | tuple[float, ...] = 0.1

    constrained: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = as_alpha(self.alpha)
        object.__setattr__(self, "alpha", numbers[0] if np.ndim(self.alpha) == 0 else numbers)

    def _alpha(self, facts: Facts) -> Floats:
        return np.array(as_alpha(self.alpha, facts.agents))


@dataclass(frozen=True)
class Floored(Constrained):
    """What is known of a baseline whose reward is not told.

    Parameters
    ----------
    reward_floor
        r_l, a positive number that the baseline's reward never falls below; None takes the
        problem's own in a simulation.
    """

    reward_floor: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reward_floor is not None:
            floor = check_not_negative("reward_floor", self.reward_floor)
            object.__setattr__(self, "reward_floor", floor)

    def _low(self, facts: Facts) -> float | None:
        return facts.reward_low if self.reward_floor is None else self.reward_floor


@dataclass(frozen=True)
class Conservative(Constrained):
    """What algorithms with conservative rounds have in common.

    Parameters
    ----------
    mix
        What a conservative round plays: "vector", the paper's (1 - rho) psi_b + rho zeta;
        "task-vector", the same with zeta in the task's own coordinates; "action", a real action:
        the baseline with probability 1 - rho, otherwise the one with the largest upper bound.
    """

    mix: str = field(default="vector", kw_only=True)

    mixes: ClassVar[tuple[str, ...]] = tuple(MIXES)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("mix", self.mix, self.mixes)

    def _playable(self) -> Self:
        """Return the algorithm as agents run it, which play real actions only."""
        if self.mix == "task-vector":
            raise InvalidValueError(
                "mix='task-vector' plays mixtures of features, and agents can play actions only: "
                "leave it out, or use mix='action'."
            )
        return replace(self, mix="action")

    def _rho(self, facts: Facts, low: float | None, high: float | None) -> Floats:
        return safe_rho(self._alpha(facts), low, high, self.theta_bound, self.mix)


def safe_rho(
    alpha: Floats, low: float | None, high: float | None, theta_bound: float, mix: str
) -> Floats:
    """Return alpha r_l / (S + r_h), the largest weight that is safe for every direction.

    Where r_h is not known it is 1, the largest reward. A coin between real actions needs only
    rho <= alpha and rewards >= 0; with nothing known about r_l it explores as much as that allows,
    and a mixed vector not at all.
    """
    if low is None:
        return alpha.copy() if mix == "action" else np.zeros_like(alpha)
    return alpha * max(low, 0.0) / (theta_bound + (1.0 if high is None else high))


def paper_trigger(facts: Facts) -> tuple[Trigger, float]:
    """Return the paper's trigger with B = T log(M T) / (d M); doubling of det V if T is open."""
    if facts.horizon is None:
        return Trigger.GROWTH, math.log(2.0)
    product = facts.agents * facts.horizon
    return Trigger.PAPER, facts.horizon * math.log(product) / (facts.dim * facts.agents)


def idle_terms(facts: Facts, rule: Rule = Rule.FREE) -> Terms:
    """Return terms for methods without a confidence set; the mix plays the baseline as it is."""
    return Confidence()._terms(facts, rule, share=False, mix=Mix.ACTION)
