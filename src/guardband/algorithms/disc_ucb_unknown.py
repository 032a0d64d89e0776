"""DiSC-UCB-UB: stage-wise constrained learning, with an unknown baseline reward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from guardband.algorithms.base import MIXES, SIGHTS, Floored
from guardband.algorithms.gated import GATES, Gated
from guardband.algorithms.plan import Plan, pooling_traffic
from guardband.algorithms.policy import Rate
from guardband.algorithms.registry import ORACLE, register
from guardband.facts import Facts
from guardband.kernels.types import Gate, Rule

__all__ = ["DiscUCBUnknown"]


@register(
    "disc-ucb-unknown-gap-oracle",
    about="DiSC-UCB-UB with a gate that is told the true optimum",
    constraint="stage-wise",
    communication="pools when log det V has grown",
    source="the authors' notebooks",
    label="DiSC-UCB-UB-gap-oracle",
    colour="#56B4E9",
    gate="gap",
)
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
class DiscUCBUnknown(Gated, Floored):
    """DiSC-UCB-UB: the baseline's reward is not known; its upper bound takes its place.

    Parameters
    ----------
    alpha, ridge, noise, context_noise, delta, theta_bound, feature_bound, mix, share
        As in `DiscUCB`, and so are constant and context.
    gate
        When lambda_min(V) lets an agent leave the baseline: "printed" at
        (2 (2 - alpha) L beta / (alpha r_l))^2; "gap" at
        (2 (2 - alpha) L beta / (gap + alpha r_l))^2, which needs the truth and is called
        `disc-ucb-unknown-gap-oracle`; "none" at once.
    gap
        (M, C): what the gap gate is told, as in `DiscUCB`.
    reward_floor
        r_l, a positive number that the baseline's reward never falls below; None takes the
        problem's own in a simulation. Without it the printed gate stays shut.

    Examples
    --------
    >>> import guardband as gb
    >>> told = {"alpha": 0.3, "noise": 0.1, "context_noise": 0.1}
    >>> gates = [gb.DiscUCBUnknown(**told), gb.DiscUCBUnknown(gate="none", **told)]
    >>> results = gb.simulate(gb.problem("synthetic-a", psi_noise=0.0), gates, rounds=2_000)
    >>> print(results.summary()[["label", "conservative_share"]].round(2))  # rounds it stays safe
                                 label  conservative_share
    0  disc-ucb-unknown (gate=printed)                1.00
    1     disc-ucb-unknown (gate=none)                0.06
    """

    share: bool = field(default=True, kw_only=True)

    of_paper: ClassVar[bool] = True
    runs: ClassVar[frozenset[str]] = frozenset({"agent", "live"})
    told: ClassVar[frozenset[str]] = frozenset({"horizon"})
    watched: ClassVar[bool] = True
    rate: ClassVar[Rate] = Rate(0.15, 0.02, 0.0004)
    made_for_hidden: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The name in lists, plots and on the command line."""
        return "disc-ucb-unknown" + (ORACLE if self.gate == "gap" else "")

    def agent_rules(self) -> tuple[DiscUCBUnknown, DiscUCBUnknown]:
        """Return itself, for every round; agents can play real actions only."""
        rule = self._playable()
        return rule, rule

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        low, gate = self._low(facts), GATES[self.gate]
        if gate == Gate.PRINTED and not (low is not None and low > 0):
            gate = Gate.SHUT
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
            self._told_gap(facts),
            sight=int(SIGHTS[self.context]),
            traffic=pooling_traffic(facts),
        )
