"""SCLUCB: optimism among the certified actions, every task alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from guardband.algorithms.registry import register
from guardband.algorithms.scl import StageWiseLearner
from guardband.kernels.rivals import Method

__all__ = ["SCLUCB"]


@register(
    "scl-ucb",
    about="safe optimism, every task alone",
    constraint="stage-wise",
    communication="none",
    source="Moradipari et al., NeurIPS 2020",
)
@dataclass(frozen=True)
class SCLUCB(StageWiseLearner):
    """SCLUCB: optimism among the certified actions (Moradipari et al., 2020).

    Parameters
    ----------
    alpha, mix
        See `Conservative`; directions of "vector" lie in the task's own coordinates.
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`; by default it ignores the hidden context, as the
        authors' does.
    gate, gap
        See `Gated`; an unknown baseline has 2 (2 - alpha) and r_l in the place of 2 and r_b.
    known_baseline
        False bounds the baseline's reward by the confidence set, too.
    reward_floor
        r_l, for the unknown baseline's gate; None takes the problem's own.
    """

    stem: ClassVar[str] = "scl-ucb"
    method: ClassVar[Method] = Method.OPTIMISM
