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
    alpha, mix, ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        As in `SCLTS`, and so are gate, gap, known_baseline and reward_floor.
    """

    stem: ClassVar[str] = "scl-ucb"
    method: ClassVar[Method] = Method.OPTIMISM
