"""What is proved about Guard-UCB, as numbers: Propositions 1 to 4 of docs/guard-ucb-math.md.

Each bound is a function of what it depends on; a bound that says nothing (more rounds than there
are) is returned as it is, for the caller to see.
"""

from __future__ import annotations

import math

from guardband.checks import (
    check_fraction,
    check_not_negative,
    check_positive,
    check_whole,
)
from guardband.kernels.types import REGRET_WIDTHS

__all__ = [
    "confidence_share",
    "guard_information",
    "guard_least_weight",
    "guard_policy_regret",
    "guard_strict_escape",
    "guard_uncertified_rounds",
]


def confidence_share(delta: float, agents: int, epoch: int, radii: int = 2) -> float:
    """Return delta_p of Proposition 1: 6 delta / (pi^2 M p^2), divided by the number of radii.

    Summed over agents, epochs and radii it is delta.

    Examples
    --------
    >>> round(sum(2 * 3 * confidence_share(0.1, 3, p) for p in range(1, 100_000)), 4)
    0.1
    """
    check_fraction("delta", delta)
    whole = check_whole("agents", agents) * check_whole("epoch", epoch) ** 2
    return 6.0 * delta / (math.pi**2 * whole * check_whole("radii", radii))


def guard_least_weight(noise: float, sharing: float) -> float:
    """Return w_min = 1 / (sigma^2 + f / 4), of an observation with unknown context noise."""
    return 1.0 / (check_positive("noise", noise) ** 2 + check_positive("sharing", sharing) / 4.0)


def guard_information(dim: int, horizon: int, noise: float, ridge: float) -> float:
    """Return D = 2 d log(1 + T / (sigma^2 lambda d)), an agent's own information in T rounds."""
    d, T = check_whole("dim", dim), check_whole("horizon", horizon)
    scale = check_positive("noise", noise) ** 2 * check_positive("ridge", ridge) * d
    return 2.0 * d * math.log(1.0 + T / scale)


def guard_uncertified_rounds(
    *,
    alpha: float,
    margin: float,
    beta: float,
    information: float,
    least_weight: float,
    agents: int,
    delta: float,
    regret_widths: float = REGRET_WIDTHS,
) -> float:
    """Return Proposition 3 (ii): how many rounds of policy mode are uncertified, per agent.

    (1.6 / alpha) (D / min(1, w_min c^2 / (q^2 beta^2)) + log(M / delta)), where c =
    `margin` is the least of (r* - r_b) + alpha r_b over the rounds, beta the largest radius, and
    q = `regret_widths`, which is 2 for optimism=1. For a baseline reward that is known exactly.
    """
    check_positive("alpha", alpha)
    step = min(
        1.0,
        check_positive("least_weight", least_weight)
        * (check_positive("margin", margin) ** 2)
        / (regret_widths * check_positive("beta", beta)) ** 2,
    )
    chance = math.log(check_whole("agents", agents) / check_fraction("delta", delta))
    return 1.6 / alpha * (check_not_negative("information", information) / step + chance)


def guard_policy_regret(
    *,
    horizon: int,
    beta: float,
    information: float,
    least_weight: float,
    uncertified: float,
    regret_widths: float = REGRET_WIDTHS,
) -> float:
    """Return Proposition 3 (iii): the regret of policy mode, per agent, from its own data alone.

    q beta sqrt(T D / w_min) + D + the number of uncertified rounds.
    """
    root = math.sqrt(check_whole("horizon", horizon) * information / least_weight)
    return regret_widths * check_positive("beta", beta) * root + information + uncertified


def guard_strict_escape(
    *,
    beta: float,
    span: float,
    weight: float,
    ridge: float,
    margin: float,
    regret_widths: float = REGRET_WIDTHS,
) -> float:
    """Return Proposition 4 (b): rounds until strict mode certifies a target, or gives it up.

    The target is a combination of certified actions whose coefficients sum to `span` in absolute
    value: q^2 beta^2 span^2 (1 + w / lambda) / (w c^2) informative plays, in expectation
    twice that many rounds for the coin, once the test lets them begin.
    """
    w, c = check_positive("weight", weight), check_positive("margin", margin)
    length = (regret_widths * beta * span) ** 2
    return 2.0 * length * (1.0 + w / check_positive("ridge", ridge)) / (w * c**2)
