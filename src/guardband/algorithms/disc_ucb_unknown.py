"""DiSC-UCB-UB: stage-wise constrained learning, with an unknown baseline reward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from guardband.algorithms.base import MIXES, SIGHTS, Conservative, Floored
from guardband.algorithms.plan import Plan, pooling_traffic
from guardband.algorithms.policy import Rate
from guardband.algorithms.registry import register
from guardband.checks import check_choice
from guardband.facts import Facts
from guardband.kernels.types import Gate, Rule

__all__ = ["DiscUCBUnknown"]


@register(
    "disc-ucb-unknown",
    about="safe optimism, unknown baseline reward (DiSC-UCB-UB)",
    constraint="stage-wise",
    communication="pools when log det V has grown",
    source="Lin and Moothedath, the paper",
    label="DiSC-UCB-UB",
    colour="#56B4E9",
)
@dataclass(frozen=True)
class DiscUCBUnknown(Conservative, Floored):
    """DiSC-UCB-UB: the baseline's reward is not known; its upper bound takes its place.

    Parameters
    ----------
    alpha, ridge, noise, context_noise, delta, theta_bound, feature_bound, mix, share
        As in `DiscUCB`, and so are constant and context.
    gate
        "printed": lambda_min(V) >= (2 (2 - alpha) L beta / (alpha r_l))^2; "none": no gate.
    reward_floor
        r_l, a positive number that the baseline's reward never falls below; None takes the
        problem's own in a simulation. Without it the printed gate stays shut.
    """

    gate: str = field(default="printed", kw_only=True)
    share: bool = field(default=True, kw_only=True)

    name: ClassVar[str] = "disc-ucb-unknown"
    of_paper: ClassVar[bool] = True
    gates: ClassVar[tuple[str, ...]] = ("printed", "none")
    runs: ClassVar[frozenset[str]] = frozenset({"agent", "live"})
    told: ClassVar[frozenset[str]] = frozenset({"horizon"})
    watched: ClassVar[bool] = True
    rate: ClassVar[Rate] = Rate(0.15, 0.02, 0.0004)
    made_for_hidden: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("gate", self.gate, self.gates)

    def agent_rules(self) -> tuple[DiscUCBUnknown, DiscUCBUnknown]:
        """Return itself, for every round; agents can play real actions only."""
        rule = self._playable()
        return rule, rule

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        low = self._low(facts)
        if self.gate == "none":
            gate = Gate.NONE
        else:
            gate = Gate.PRINTED if low is not None and low > 0 else Gate.SHUT
        terms = self._terms(
            facts,
            Rule.UNKNOWN,
            share=self.share,
            gate=gate,
            mix=MIXES[self.mix],
            reward_floor=low or 0.0,
        )
        return Plan(
            terms,
            self._alpha(facts),
            self._rho(facts, low, None),
            sight=int(SIGHTS[self.context]),
            traffic=pooling_traffic(facts),
        )
