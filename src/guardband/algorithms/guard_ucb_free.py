"""Guard-UCB without a constraint: what its safety is compared with."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

from guardband.algorithms.guard_ucb import GuardUCB
from guardband.algorithms.plan import Plan
from guardband.algorithms.policy import Policy, Rate
from guardband.algorithms.registry import register
from guardband.facts import Facts

__all__ = ["GuardUCBFree"]


@register(
    "guard-ucb-free",
    about="Guard-UCB's confidence set and weights, no constraint: what safety costs",
    constraint="none",
    communication="pools when log det V has grown, no horizon",
    source="guardband",
    reading="own",
    label="Guard-UCB-free",
    colour="#8C564B",
)
@dataclass(frozen=True, kw_only=True)
class GuardUCBFree(Policy):
    """Guard-UCB without a constraint: it plays the most promising action in every round.

    Where actions have values, it plays the most valuable of all, whatever its reward.

    The regret of `GuardUCB` divided by this one's is what safety costs.

    Parameters
    ----------
    noise, delta, theta_bound, shared_context, reward_ceiling, optimism, bias_bound
        As for `GuardUCB`.
    context_noise, radius, ridge
        As for `GuardUCB`.
    share
        False keeps the agents apart.
    """

    noise: float | None = None
    delta: float = 1e-3
    theta_bound: float = 1.0
    shared_context: bool = True
    reward_ceiling: float | None = None
    optimism: float | None = None
    bias_bound: float = 0.0
    context_noise: float | None = None
    radius: str = "best"
    ridge: float | None = None
    share: bool = True

    name: ClassVar[str] = "guard-ucb-free"
    weighted: ClassVar[bool] = True
    anytime: ClassVar[bool] = True
    watched: ClassVar[bool] = True
    rate: ClassVar[Rate] = GuardUCB.rate
    keeps: ClassVar[frozenset[str]] = GuardUCB.keeps

    def __post_init__(self) -> None:
        self._guarded()  # checks the settings

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        plan = self._guarded().plan(facts)
        return plan._replace(terms=plan.terms._replace(free=True))

    def _guarded(self) -> GuardUCB:
        return GuardUCB(mode="policy", pooled_set=False, delta_alarm=None, **asdict(self))
