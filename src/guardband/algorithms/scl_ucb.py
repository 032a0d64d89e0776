"""SCLUCB: optimism among the certified actions, every task alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from guardband.algorithms.registry import register, setting
from guardband.algorithms.scl import StageWiseLearner
from guardband.kernels.rivals import Method

__all__ = ["SCLUCB"]


@setting("scl-ucb-tuned", "the same without a gate", gate="none")
@setting("scl-ucb-gap-oracle", "the same, its gate told the true optimum", gate="gap")
@register(
    "scl-ucb",
    about="safe optimism, every task alone",
    constraint="stage-wise",
    communication="none",
    source="Moradipari et al., NeurIPS 2020",
    reading="partly read",
)
@dataclass(frozen=True)
class SCLUCB(StageWiseLearner):
    """SCLUCB: optimism among the certified actions (Moradipari et al., 2020).

    Parameters
    ----------
    alpha, mix, ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        As in `SCLTS`, and so are gate, gap, kappa_l, known_baseline and reward_floor.
    """

    method: ClassVar[Method] = Method.OPTIMISM
