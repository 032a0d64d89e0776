"""DiSC-UCB: stage-wise constrained learning, with a known baseline reward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from guardband.algorithms.base import MIXES, SIGHTS
from guardband.algorithms.gated import GATES, Gated
from guardband.algorithms.plan import Plan, pooling_traffic
from guardband.algorithms.policy import Rate
from guardband.algorithms.registry import register
from guardband.facts import Facts
from guardband.kernels.types import Rule

if TYPE_CHECKING:
    from guardband.algorithms.disc_ucb_unknown import DiscUCBUnknown

__all__ = ["DiscUCB"]


@register(
    "disc-ucb-gap-oracle",
    about="the same with a gate that is told the true optimum",
    constraint="stage-wise",
    communication="pools when log det V has grown",
    source="the authors' notebooks",
    label="DiSC-UCB-gap-oracle",
    colour="#0072B2",
    gate="gap",
)
@register(
    "disc-ucb",
    about="safe optimism, known baseline reward; the printed gate",
    constraint="stage-wise",
    communication="pools when log det V has grown",
    source="Lin and Moothedath, the paper",
    label="DiSC-UCB",
    colour="#0072B2",
)
@dataclass(frozen=True)
class DiscUCB(Gated):
    """DiSC-UCB: the baseline's reward is known in every round.

    Parameters
    ----------
    alpha
        The share of the baseline's reward that may be lost, in (0, 1]; one number, or one per task.
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
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

    Examples
    --------
    >>> import guardband as gb
    >>> gates = [gb.DiscUCB(alpha=0.3), gb.DiscUCB(alpha=0.3, gate="none")]
    >>> results = gb.simulate(gb.problem("synthetic-a", psi_noise=0.0), gates, rounds=2_000)
    >>> print(results.summary()[["label", "conservative_share"]].round(2))  # rounds it stays safe
                         label  conservative_share
    0  disc-ucb (gate=printed)                1.00
    1     disc-ucb (gate=none)                0.62
    """

    share: bool = field(default=True, kw_only=True)

    made_for_hidden: ClassVar[bool] = True
    of_paper: ClassVar[bool] = True
    runs: ClassVar[frozenset[str]] = frozenset({"agent", "live"})
    told: ClassVar[frozenset[str]] = frozenset({"horizon", "reward_floor"})
    watched: ClassVar[bool] = True
    # Between a gate that opens and one that does not.
    rate: ClassVar[Rate] = Rate(0.15, 0.02, 0.0004)

    @property
    def name(self) -> str:
        """The name in lists, plots and on the command line."""
        return "disc-ucb-gap-oracle" if self.gate == "gap" else "disc-ucb"

    def agent_rules(self) -> tuple[DiscUCB, DiscUCBUnknown]:
        """Return itself, and DiSC-UCB-UB; agents can play real actions only."""
        # Here, because the list of algorithms is in the order of imports.
        from guardband.algorithms.disc_ucb_unknown import DiscUCBUnknown  # noqa: PLC0415

        known = self._playable()
        shared = {*DiscUCB.settings()} & {*DiscUCBUnknown.settings()}
        return known, DiscUCBUnknown(**{name: getattr(known, name) for name in shared})

    def gate_need(self, alpha: float, beta: float, baseline_reward: float) -> float | None:
        """Return (2 L beta / (alpha r_b))^2 for the printed gate, where r_b is positive."""
        if self.gate != "printed" or baseline_reward <= 0.0:
            return None
        return (2.0 * self.feature_bound * beta / (alpha * baseline_reward)) ** 2

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        terms = self._terms(
            facts, Rule.KNOWN, share=self.share, gate=GATES[self.gate], mix=MIXES[self.mix]
        )
        return Plan(
            terms,
            self._alpha(facts),
            self._rho(facts, facts.reward_low, facts.reward_high),
            self._told_gap(facts),
            sight=int(SIGHTS[self.context]),
            traffic=pooling_traffic(facts),
        )
