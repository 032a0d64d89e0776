"""The algorithms, under the names of the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from guardband.algorithms.base import Confidence
from guardband.algorithms.cl_ucb import CLUCB
from guardband.algorithms.design import Design, optimal_design
from guardband.algorithms.dis_lsb import DisLSB
from guardband.algorithms.disc_ucb import DiscUCB, DiscUCBUnknown
from guardband.algorithms.fed_lin_ucb import FedLinUCB
from guardband.algorithms.fed_pe import FedPE, FedPECD
from guardband.algorithms.free import Baseline, DisLinUCB, LinUCB, Oracle
from guardband.algorithms.guard_ucb import GuardPlan, GuardUCB
from guardband.algorithms.plan import Algorithm, Plan
from guardband.algorithms.staged import SCLTS, SCLUCB, SEGE
from guardband.algorithms.wrapped import Guarded

__all__ = [
    "ALGORITHMS",
    "CLUCB",
    "SCLTS",
    "SCLUCB",
    "SEGE",
    "Algorithm",
    "Baseline",
    "Confidence",
    "Design",
    "DisLSB",
    "DisLinUCB",
    "DiscUCB",
    "DiscUCBUnknown",
    "Entry",
    "FedLinUCB",
    "FedPE",
    "FedPECD",
    "GuardPlan",
    "GuardUCB",
    "Guarded",
    "LinUCB",
    "Oracle",
    "Plan",
    "optimal_design",
]


class Entry(NamedTuple):
    """One line of the list of algorithms."""

    make: Callable[..., Any]
    about: str
    constraint: str
    communication: str
    source: str

    def informed(self, assumed: Mapping[str, Any], **given: Any) -> Any:
        """Return the algorithm, told what it has a setting for; what is given wins.

        Some settings keep their own value whatever is assumed of the problem, unless given.
        """
        plain = self.make()
        keeps: frozenset[str] = getattr(plain, "keeps", frozenset())
        told = {name: value for name, value in assumed.items() if name not in keeps}
        own = {field.name for field in fields(plain)}
        return replace(plain, **{k: v for k, v in {**told, **given}.items() if k in own})


POOLING = "pools when log det V has grown"
PHASES = "pools at the end of each phase"
LIN = "Lin and Moothedath, the paper"

ALGORITHMS: dict[str, Entry] = {
    "guard-ucb": Entry(
        GuardUCB,
        "certified plays, unknown or known baseline; the default",
        "stage-wise",
        "pools when log det V has grown, no horizon",
        "guardband",
    ),
    "guard-ucb-policy": Entry(
        lambda **settings: GuardUCB(mode="policy", **settings),
        "the same, certified as a randomised choice: learns faster",
        "stage-wise",
        "pools when log det V has grown, no horizon",
        "guardband",
    ),
    "disc-ucb": Entry(
        DiscUCB,
        "safe optimism, known baseline reward; the printed gate",
        "stage-wise",
        POOLING,
        LIN,
    ),
    "disc-ucb-gap-oracle": Entry(
        lambda **settings: DiscUCB(gate="gap", **settings),
        "the same with a gate that is told the true optimum",
        "stage-wise",
        POOLING,
        "the authors' notebooks",
    ),
    "disc-ucb-unknown": Entry(
        DiscUCBUnknown,
        "safe optimism, unknown baseline reward (DiSC-UCB-UB)",
        "stage-wise",
        POOLING,
        LIN,
    ),
    "dis-lin-ucb": Entry(
        DisLinUCB,
        "distributed optimism",
        "none",
        POOLING,
        "Wang et al., ICLR 2020",
    ),
    "sclts": Entry(
        SCLTS,
        "safe Thompson sampling, every task alone",
        "stage-wise",
        "none",
        "Moradipari et al., NeurIPS 2020",
    ),
    "scl-ucb": Entry(
        SCLUCB,
        "safe optimism, every task alone",
        "stage-wise",
        "none",
        "Moradipari et al., NeurIPS 2020",
    ),
    "dis-lsb": Entry(
        DisLSB,
        "distributed elimination on expected features",
        "none",
        PHASES,
        "Lin and Moothedath, ACC",
    ),
    "fed-pe": Entry(
        FedPE,
        "federated elimination, a client per agent and context",
        "none",
        PHASES,
        "Huang et al., NeurIPS 2021",
    ),
    "fed-pe-cd": Entry(
        FedPECD,
        "the same, the hidden context counted as noise",
        "none",
        PHASES,
        "Lin and Moothedath, arXiv 2303.17043",
    ),
    "sege": Entry(
        SEGE,
        "safe exploration, then greed; every task alone",
        "stage-wise",
        "none",
        "Khezeli and Bitar, AAAI 2020",
    ),
    "cl-ucb": Entry(
        CLUCB,
        "optimism from savings, every task alone",
        "cumulative",
        "none",
        "Kazerouni et al., NeurIPS 2017",
    ),
    "fed-lin-ucb": Entry(
        FedLinUCB,
        "asynchronous optimism",
        "none",
        "asynchronous, one agent at a time",
        "He et al., NeurIPS 2022",
    ),
    "lin-ucb": Entry(
        LinUCB,
        "optimism, every task alone",
        "none",
        "none",
        "Abbasi-Yadkori et al., NeurIPS 2011",
    ),
    "baseline": Entry(Baseline, "yardstick: always the baseline", "stage-wise", "none", "-"),
    "oracle": Entry(Oracle, "yardstick: knows theta, plays the best", "none", "none", "-"),
}
