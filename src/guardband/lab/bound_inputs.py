"""The numbers that the paper's bounds depend on, computed from a world.

They are properties of the problem, taken from the truth; no algorithm is told them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from guardband.problems import Forecast, World
from guardband.theory import Setting

__all__ = ["bound_setting", "gap_range"]


def bound_setting(
    world: World,
    told: Mapping[str, Any],
    *,
    horizon: int,
    alpha: float,
    delta: float | None = None,
    rho: float | None = None,
) -> Setting:
    """Return what the bounds depend on.

    Parameters
    ----------
    world
        r_l, r_h, kappa_l and kappa_h are read off it.
    told
        What DiSC-UCB assumes: ridge, noise, context_noise, theta_bound and feature_bound.
    horizon, alpha, delta, rho
        See `Setting`.
    """
    facts = world.facts(horizon)
    low, high = gap_range(world)
    assumed: dict[str, Any] = {
        name: float(told[name])
        for name in ("ridge", "noise", "context_noise", "theta_bound", "feature_bound")
        if name in told
    }
    return Setting(
        agents=facts.agents,
        horizon=horizon,
        dim=facts.dim,
        alpha=alpha,
        reward_low=max(facts.reward_low or 0.0, 0.0),
        reward_high=max(facts.reward_high or 0.0, 0.0),
        gap_low=low,
        gap_high=high,
        delta=delta,
        rho=rho,
        **assumed,
    )


def gap_range(world: World) -> tuple[float, float]:
    """Return kappa_l and kappa_h: the range of the best action's lead over the baseline.

    With a forecast psi is different in every round: then 0, and the largest reward minus r_l,
    which bound the range.
    """
    if isinstance(world.nature, Forecast):
        return 0.0, float(world.realised.max()) - (world.facts(1).reward_low or 0.0)
    top = np.take_along_axis(world.told_rewards, world.best[:, :, None], axis=2)[:, :, 0]
    lead = top[:, world.groups[1]] - world.baseline_rewards
    return float(lead.min()), float(lead.max())
