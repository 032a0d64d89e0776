"""The algorithms, under the names of the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from guardband.algorithms.base import Algorithm, Confidence, Plan
from guardband.algorithms.disc_ucb import DiscUcb, DiscUcbUnknown
from guardband.algorithms.free import Baseline, DisLinUcb
from guardband.algorithms.guard_ucb import GuardPlan, GuardUcb

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Baseline",
    "Confidence",
    "DisLinUcb",
    "DiscUcb",
    "DiscUcbUnknown",
    "Entry",
    "GuardPlan",
    "GuardUcb",
    "Plan",
]


class Entry(NamedTuple):
    """One line of the list of algorithms."""

    make: Callable[..., Any]
    about: str
    constraint: str


ALGORITHMS: dict[str, Entry] = {
    "disc-ucb": Entry(
        DiscUcb, "safe optimism, known baseline reward; the paper's printed gate", "stage-wise"
    ),
    "disc-ucb-gap-oracle": Entry(
        lambda **settings: DiscUcb(gate="gap", **settings),
        "the same with a gate that is told the true optimum, as in the authors' notebooks",
        "stage-wise",
    ),
    "disc-ucb-unknown": Entry(
        DiscUcbUnknown, "safe optimism, unknown baseline reward (DiSC-UCB-UB)", "stage-wise"
    ),
    "dis-lin-ucb": Entry(DisLinUcb, "distributed optimism without a constraint", "none"),
    "baseline": Entry(Baseline, "yardstick: always the baseline", "stage-wise"),
}
