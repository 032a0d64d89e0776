"""What every kind of agent offers, learning alone, in a fleet or with a coordinator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from guardband.agent.decision import Decision
from guardband.agent.hooks import OnDecision, OnReward
from guardband.agent.learned import Learned
from guardband.agent.outlook import Outlook
from guardband.contexts import Discrete, Gaussian
from guardband.kernels.types import Floats
from guardband.uplift import LEVEL, Uplift

__all__ = ["BanditAgent"]


@runtime_checkable
class BanditAgent(Protocol):
    """An agent: `gb.Agent`, an agent of a `gb.Fleet`, or a `gb.LiveAgent`."""

    @property
    def name(self) -> str:
        """The task's name."""

    @property
    def pending(self) -> int:
        """How many decisions still wait for their reward."""

    @property
    def rounds(self) -> int:
        """How many decisions this agent has made."""

    @property
    def theta(self) -> Floats:
        """(d,): the estimate of the parameter."""

    def decide(
        self,
        features: Any,
        baseline: Any,
        baseline_reward: float | None = None,
        *,
        support: Any = None,
        weights: Any = None,
        covariance: Any = None,
        labels: Sequence[Any] | None = None,
        value: Any = None,
        cost: Any = None,
    ) -> Decision:
        """Choose one of this round's actions."""

    async def adecide(
        self,
        features: Any,
        baseline: Any,
        baseline_reward: float | None = None,
        *,
        support: Any = None,
        weights: Any = None,
        covariance: Any = None,
        labels: Sequence[Any] | None = None,
        value: Any = None,
        cost: Any = None,
    ) -> Decision:
        """Choose one of this round's actions, while the event loop goes on."""

    def decide_from(
        self,
        feature_map: Callable[[Any, Any], Any],
        actions: Sequence[Any],
        distribution: Discrete | Gaussian,
        baseline: int,
        baseline_reward: float | None = None,
        *,
        value: Any = None,
        cost: Any = None,
    ) -> Decision:
        """Choose one of this round's actions, from a distribution of the hidden context."""

    def decide_many(
        self,
        features: Sequence[Any],
        baselines: Sequence[Any],
        baseline_rewards: Any = None,
        *,
        supports: Any = None,
        weights: Any = None,
        covariances: Any = None,
        labels: Any = None,
        values: Any = None,
        costs: Any = None,
    ) -> list[Decision]:
        """Decide for a batch of requests; an error changes nothing."""

    def observe(
        self, decision: str | Decision, reward: float, *, cost: float | None = None
    ) -> None:
        """Learn the reward of a decision, and what it cost."""

    async def aobserve(
        self, decision: str | Decision, reward: float, *, cost: float | None = None
    ) -> None:
        """Learn the reward of a decision, while the event loop goes on."""

    def observe_many(
        self,
        decisions: Sequence[str | Decision],
        rewards: Sequence[float],
        *,
        costs: Sequence[float | None] | None = None,
    ) -> None:
        """Learn the rewards of a batch of decisions; an error changes nothing."""

    def override(self, decision: str | Decision, *, action: int) -> None:
        """Say that somebody played another action than the one that was decided."""

    def learn(
        self,
        features: Any,
        rewards: Any,
        *,
        menus: Sequence[Any] | None = None,
        propensities: Any = None,
        ids: Sequence[str | int] | None = None,
        reuse: bool = False,
    ) -> Learned:
        """Learn from logs: what an earlier rule played and earned; an error changes nothing."""

    def discard(self, decision: str | Decision) -> None:
        """Give up waiting for a reward, for a cause that does not depend on it."""

    def outlook(self) -> Outlook:
        """Return whether the agent will leave the baseline, what is in its way and what helps."""

    def uplift(self, level: float = LEVEL) -> Uplift:
        """Return what its choices earn over the baseline, per round; it needs a holdback."""

    def on_decision(self, hook: OnDecision) -> OnDecision:
        """Call `hook(decision)` after each decision."""

    def on_reward(self, hook: OnReward) -> OnReward:
        """Call `hook(decision_id, reward)` after each reward."""
