"""Safe, distributed linear bandits: learn together, never fall far below a trusted baseline."""

from guardband.algorithms import (
    Baseline,
    ClUcb,
    DiscUcb,
    DiscUcbUnknown,
    DisLinUcb,
    DisLsb,
    FedLinUcb,
    FedPe,
    FedPeCd,
    Guarded,
    GuardUcb,
    LinUcb,
    Oracle,
    Sclts,
    SclUcb,
    Sege,
)
from guardband.contexts import Discrete, Gaussian, Samples, expected_features
from guardband.fleet import Agent, Decision, Fleet, UnknownDecisionError
from guardband.problems import Tabular
from guardband.sim import BoundWarning, Replay, Results, simulate

__all__ = [
    "Agent",
    "Baseline",
    "BoundWarning",
    "ClUcb",
    "Decision",
    "DisLinUcb",
    "DisLsb",
    "DiscUcb",
    "DiscUcbUnknown",
    "Discrete",
    "FedLinUcb",
    "FedPe",
    "FedPeCd",
    "Fleet",
    "Gaussian",
    "GuardUcb",
    "Guarded",
    "LinUcb",
    "Oracle",
    "Replay",
    "Results",
    "Samples",
    "SclUcb",
    "Sclts",
    "Sege",
    "Tabular",
    "UnknownDecisionError",
    "expected_features",
    "simulate",
]
