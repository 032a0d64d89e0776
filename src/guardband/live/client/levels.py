"""What the rules of a space mean to one stream: its part of delta, and when an epoch is due."""

from __future__ import annotations

import math

from guardband.algorithms import Policy, paper_trigger
from guardband.facts import Facts
from guardband.kernels.types import Trigger
from guardband.live.protocol.space import SpaceSettings

__all__ = ["delta_share", "level_of", "trigger_of"]


def delta_share(
    space: SpaceSettings, share: float, epoch: int, excluded: int = 0, half: int = 0
) -> float:
    """Return the part of delta that one stream may use up in its p-th set of data, p = epoch + 1.

    Registered: delta w / (p (p + 1)), with the w of the coordinator; equal: 6 delta / (pi^2 M p^2);
    paper: delta.

    Operators may have left out tasks because of their rewards, any of 2^M sets of them. One half is
    for the case that they left out none, the other for all other cases: with k tasks out
    1 / ((e - 1)(M + 1)^k) of it, and sum_k C(M, k) / (M + 1)^k < e - 1. "equal" and "paper" have
    no such half. Where one of the other tasks may lie, each of them has its part. With a window
    the first half window has 1 / 2 of all this, and the k-th 1 / (2 k (k - 1)).
    """
    p = epoch + 1
    choice = 1.0 / ((math.e - 1.0) * (space.agents + 1) ** excluded) if excluded else 1.0
    choice /= space.others * (2.0 * _sets_up_to(half) if half else 1.0)
    if space.shares == "paper":
        return choice * space.delta
    if space.shares == "equal":
        return choice * 6.0 * space.delta / (math.pi**2 * space.agents * p * p)
    return choice * 0.5 * space.delta * share / (p * (p + 1))


def _sets_up_to(half: int) -> float:
    """Return k (k - 1) for the k-th half window, 1 for the first."""
    return float(half * max(half - 1, 1))


def level_of(
    space: SpaceSettings,
    policy: Policy,
    base: float,
    share: float,
    epoch: int,
    excluded: int = 0,
    half: int = 0,
) -> float:
    """Return 2 log(1 / delta) as the kernels use it; `base` is that of the whole space."""
    if space.shares == "equal" and policy.anytime and not excluded:
        later = 2.0 * math.log(_sets_up_to(half)) if half else 0.0
        return base + 4.0 * math.log(epoch + 1) + later  # as `gb.Fleet` has it, to the last bit
    return float(policy.confidence(delta_share(space, share, epoch, excluded, half)))


def trigger_of(space: SpaceSettings) -> tuple[Trigger, float]:
    """Return when an epoch is due, and what the trigger compares with."""
    sync = space.sync
    if sync.horizon is not None:
        return paper_trigger(Facts(((0,),), space.dim, sync.horizon, size=space.agents))
    if sync.budget is not None:
        return Trigger.PAPER, sync.budget
    if sync.growth is not None:
        return Trigger.GROWTH, math.log1p(sync.growth)
    # An interval is measured by a clock, not by kernels; and one agent has nobody to pool with.
    anytime = sync.trigger == "anytime" and space.agents > 1
    return Trigger.ANYTIME if anytime else Trigger.NEVER, math.inf
