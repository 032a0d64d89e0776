"""Safe, distributed linear bandits: learn together, never fall far below a trusted baseline."""

from guardband.algorithms import Baseline, DiscUcb, DiscUcbUnknown, DisLinUcb, GuardUcb
from guardband.contexts import Discrete, Gaussian, Samples, expected_features
from guardband.fleet import Agent, Decision, Fleet, UnknownDecisionError
from guardband.problems import Tabular
from guardband.sim import BoundWarning, Replay, Results, simulate

__all__ = [
    "Agent",
    "Baseline",
    "BoundWarning",
    "Decision",
    "DisLinUcb",
    "DiscUcb",
    "DiscUcbUnknown",
    "Discrete",
    "Fleet",
    "Gaussian",
    "GuardUcb",
    "Replay",
    "Results",
    "Samples",
    "Tabular",
    "UnknownDecisionError",
    "expected_features",
    "simulate",
]
