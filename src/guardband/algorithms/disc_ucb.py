"""DiSC-UCB and DiSC-UCB-UB: stage-wise constrained learning with a known or unknown baseline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from guardband.algorithms.base import Confidence, Plan
from guardband.checks import as_alpha, as_array, check_choice, check_not_negative
from guardband.core.types import Floats, Gate, Mix, Rule
from guardband.facts import Facts

__all__ = ["DiscUcb", "DiscUcbUnknown"]

MIXES = {"vector": Mix.VECTOR, "task-vector": Mix.TASK_VECTOR, "action": Mix.ACTION}


@dataclass(frozen=True)
class _Conservative(Confidence):
    """What the known and the unknown baseline have in common."""

    alpha: float | tuple[float, ...] = 0.1
    gate: str = field(default="printed", kw_only=True)
    mix: str = field(default="vector", kw_only=True)
    share: bool = field(default=True, kw_only=True)

    constrained: ClassVar[bool] = True
    gates: ClassVar[tuple[str, ...]] = ("printed", "none")

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = as_alpha(self.alpha)
        object.__setattr__(self, "alpha", numbers[0] if np.ndim(self.alpha) == 0 else numbers)
        check_choice("gate", self.gate, self.gates)
        check_choice("mix", self.mix, tuple(MIXES))

    def _rho(self, facts: Facts, alpha: Floats, low: float | None, high: float) -> Floats:
        """Return alpha r_l / (S + r_h), the largest weight that is safe for every direction.

        A coin between real actions needs only rho <= alpha and rewards >= 0; with nothing known
        about r_l it explores as much as that allows, and a mixed vector not at all.
        """
        if low is None:
            return alpha.copy() if self.mix == "action" else np.zeros(facts.agents)
        return alpha * max(low, 0.0) / (self.theta_bound + high)


@dataclass(frozen=True)
class DiscUcb(_Conservative):
    """DiSC-UCB: the baseline's reward is known in every round.

    Parameters
    ----------
    alpha
        The share of the baseline's reward that may be lost, in (0, 1]; one number, or one per task.
    ridge, noise, context_noise, delta, theta_bound, feature_bound
        The confidence set, see `Confidence`.
    gate
        When lambda_min(V) lets an agent leave the baseline: "printed" at
        (2 L beta / (alpha r_b))^2; "gap" at (2 L beta / (gap + alpha r_b))^2, which needs the
        truth and is called `disc-ucb-gap-oracle`; "none" at once.
    gap
        (M, C): what the gap gate is told; None takes each context's optimum minus the largest
        baseline reward from the problem.
    mix
        What a conservative round plays: "vector", the paper's (1 - rho) psi_b + rho zeta;
        "task-vector", the same with zeta in the task's own coordinates; "action", a real action:
        the baseline with probability 1 - rho, otherwise the one with the largest upper bound.
    share
        False keeps the agents apart: M separate learners.
    """

    gap: Any = field(default=None, kw_only=True, compare=False)

    gates: ClassVar[tuple[str, ...]] = ("printed", "gap", "none")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gap is not None:
            if self.gate != "gap":
                raise ValueError(f"gap is read by gate='gap' only, not by gate={self.gate!r}.")
            object.__setattr__(self, "gap", as_array("gap", self.gap, (None, None)))

    @property
    def name(self) -> str:
        """The name in lists, plots and on the command line."""
        return "disc-ucb-gap-oracle" if self.gate == "gap" else "disc-ucb"

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        gate = {"printed": Gate.PRINTED, "gap": Gate.GAP, "none": Gate.NONE}[self.gate]
        gap = facts.gap if self.gap is None else self.gap
        if gate == Gate.GAP and gap is None:
            raise ValueError(
                "gate='gap' needs the true optimum, which only a simulation knows; "
                "use gate='printed' or gate='none'."
            )
        alpha = np.array(as_alpha(self.alpha, facts.agents))
        high = 1.0 if facts.reward_high is None else facts.reward_high
        terms = self._terms(facts, Rule.KNOWN, share=self.share, gate=gate, mix=MIXES[self.mix])
        return Plan(terms, alpha, self._rho(facts, alpha, facts.reward_low, high), gap)


@dataclass(frozen=True)
class DiscUcbUnknown(_Conservative):
    """DiSC-UCB-UB: the baseline's reward is not known; its upper bound takes its place.

    Parameters
    ----------
    alpha, ridge, noise, context_noise, delta, theta_bound, feature_bound, mix, share
        As in `DiscUcb`.
    gate
        "printed": lambda_min(V) >= (2 (2 - alpha) L beta / (alpha r_l))^2; "none": no gate.
    reward_floor
        r_l, a positive number that the baseline's reward never falls below; None takes the
        problem's own in a simulation. Without it the printed gate stays shut.
    """

    reward_floor: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reward_floor is not None:
            floor = check_not_negative("reward_floor", self.reward_floor)
            object.__setattr__(self, "reward_floor", floor)

    @property
    def name(self) -> str:
        """The name in lists, plots and on the command line."""
        return "disc-ucb-unknown"

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        low = facts.reward_low if self.reward_floor is None else self.reward_floor
        if self.gate == "none":
            gate = Gate.NONE
        else:
            gate = Gate.PRINTED if low is not None and low > 0 else Gate.SHUT
        alpha = np.array(as_alpha(self.alpha, facts.agents))
        terms = self._terms(
            facts,
            Rule.UNKNOWN,
            share=self.share,
            gate=gate,
            mix=MIXES[self.mix],
            reward_floor=low or 0.0,
        )
        return Plan(terms, alpha, self._rho(facts, alpha, low, 1.0))
