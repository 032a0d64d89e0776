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
    communication: str
    source: str


LIN = "Lin and Moothedath, the paper"

ALGORITHMS: dict[str, Entry] = {
    "guard-ucb": Entry(
        GuardUcb,
        "certified plays, unknown or known baseline; the default",
        "stage-wise",
        "pools when log det V has grown, no horizon",
        "guardband",
    ),
    "disc-ucb": Entry(
        DiscUcb,
        "safe optimism, known baseline reward; the printed gate",
        "stage-wise",
        "pools when log det V has grown",
        LIN,
    ),
    "disc-ucb-gap-oracle": Entry(
        lambda **settings: DiscUcb(gate="gap", **settings),
        "the same with a gate that is told the true optimum",
        "stage-wise",
        "pools when log det V has grown",
        "the authors' notebooks",
    ),
    "disc-ucb-unknown": Entry(
        DiscUcbUnknown,
        "safe optimism, unknown baseline reward (DiSC-UCB-UB)",
        "stage-wise",
        "pools when log det V has grown",
        LIN,
    ),
    "dis-lin-ucb": Entry(
        DisLinUcb,
        "distributed optimism",
        "none",
        "pools when log det V has grown",
        "Wang et al., ICLR 2020",
    ),
    "baseline": Entry(Baseline, "yardstick: always the baseline", "stage-wise", "none", "-"),
}
