"""Safe, distributed linear bandits: learn together, never fall far below a trusted baseline."""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType

from guardband import theory as theory
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
from guardband.contexts import (
    Discrete,
    Gaussian,
    Samples,
    expected_features,
    feature_support,
)
from guardband.fleet import Agent, Decision, Fleet, UnknownDecisionError
from guardband.live import LiveAgent as _LiveAgent  # noqa: F401 - what a coordinator makes of Agent
from guardband.problems import (
    GaussianNoise,
    StudentNoise,
    Tabular,
    TwoPointNoise,
    from_file,
    problem,
)
from guardband.sim import BoundWarning, Replay, Results, simulate
from guardband.spreads import difference_covariance

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
    "GaussianNoise",
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
    "StudentNoise",
    "Tabular",
    "TwoPointNoise",
    "UnknownDecisionError",
    "difference_covariance",
    "expected_features",
    "feature_support",
    "from_file",
    "problem",
    "simulate",
]


def __getattr__(name: str) -> _ModuleType:
    """Load `gb.envs` when it is asked for: it needs the extra `gym`."""
    if name == "envs":
        return _import_module("guardband.envs")
    raise AttributeError(f"module 'guardband' has no attribute {name!r}")
