"""Fed-PECD: Fed-PE on expected features, with the hidden context counted as noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from guardband.algorithms.fed_pe import FedPE
from guardband.algorithms.policy import Rate
from guardband.algorithms.registry import register

__all__ = ["FedPECD"]


@register(
    "fed-pe-cd",
    about="Fed-PE with the hidden context counted as noise",
    constraint="none",
    communication="pools at the end of each phase",
    source="Lin and Moothedath, arXiv 2303.17043",
    label="Fed-PECD",
    colour="#444444",
    reading="inferred",
)
@dataclass(frozen=True)
class FedPECD(FedPE):
    """Fed-PECD: Fed-PE on expected features, which counts the hidden context as noise.

    Parameters
    ----------
    noise, context_noise, delta, constant, context, base
        As in `FedPE`; by default sigma is sqrt(context_noise^2 + noise^2).
    """

    constant: str = field(default="paper", kw_only=True)

    rate: ClassVar[Rate] = Rate(0.4, 0.0, 0.005, 0.2)
    made_for_hidden: ClassVar[bool] = True
