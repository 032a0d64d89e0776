"""SCLTS: Thompson sampling among the certified actions, every task alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from guardband.algorithms.registry import register, setting
from guardband.algorithms.scl import StageWiseLearner
from guardband.checks import check_positive
from guardband.facts import Facts
from guardband.kernels.rivals import Method

__all__ = ["SCLTS"]


@setting("sclts-tuned", "the same without a gate", gate="none")
@setting(
    "sclts-authors",
    "as DiSC-UCB's authors run it: delta / (10 T), its gate told the true optimum",
    gate="gap",
    parts=10.0,
)
@setting("sclts-gap-oracle", "the same, its gate told the true optimum", gate="gap")
@register(
    "sclts",
    about="safe Thompson sampling, every task alone",
    constraint="stage-wise",
    communication="none",
    source="Moradipari et al., NeurIPS 2020",
    colour="#009E73",
    reading="partly read",
)
@dataclass(frozen=True)
class SCLTS(StageWiseLearner):
    """SCLTS: Thompson sampling among the certified actions (Moradipari et al., 2020).

    Parameters
    ----------
    alpha, mix
        See `Conservative`; directions of "vector" lie in the task's own coordinates.
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`; by default it ignores the hidden context, as the
        authors' does.
    gate, gap, kappa_l
        See `GapGated`; an unknown baseline has 2 (2 - alpha) and r_l in the place of 2 and r_b.
    known_baseline
        False bounds the baseline's reward by the confidence set, too.
    reward_floor
        r_l, for the unknown baseline's gate; None takes the problem's own.
    parts
        The radius is taken at level delta / (parts T).
    """

    parts: float = field(default=4.0, kw_only=True)

    method: ClassVar[Method] = Method.SAMPLE

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "parts", check_positive("parts", self.parts))

    def _share_of_delta(self, facts: Facts) -> float:
        return self.parts * (facts.horizon or 1)
