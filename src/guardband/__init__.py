"""Safe, distributed linear bandits: learn together, never fall far below a trusted baseline."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from guardband import envs as envs
    from guardband import theory as theory
    from guardband.agent import Agent, Decision, Fleet, UnknownDecisionError
    from guardband.algorithms import (
        CLUCB,
        SCLTS,
        SCLUCB,
        SEGE,
        Baseline,
        DiscUCB,
        DiscUCBUnknown,
        DisLinUCB,
        DisLSB,
        FedLinUCB,
        FedPE,
        FedPECD,
        Guarded,
        GuardUCB,
        LinUCB,
        Oracle,
    )
    from guardband.contexts import (
        Discrete,
        Gaussian,
        Samples,
        difference_covariance,
        expected_features,
        feature_support,
    )
    from guardband.problems import (
        GaussianNoise,
        StudentNoise,
        Tabular,
        TwoPointNoise,
        from_file,
        problem,
    )
    from guardband.sim import BoundWarning, Replay, Results, simulate

    __version__: str

__all__ = [
    "CLUCB",
    "SCLTS",
    "SCLUCB",
    "SEGE",
    "Agent",
    "Baseline",
    "BoundWarning",
    "Decision",
    "DisLSB",
    "DisLinUCB",
    "DiscUCB",
    "DiscUCBUnknown",
    "Discrete",
    "FedLinUCB",
    "FedPE",
    "FedPECD",
    "Fleet",
    "Gaussian",
    "GaussianNoise",
    "GuardUCB",
    "Guarded",
    "LinUCB",
    "Oracle",
    "Replay",
    "Results",
    "Samples",
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

# Names are looked up when they are asked for: numba and pandas take seconds to import, and
# `guardband --help` needs neither.
_HOMES = {
    "guardband.algorithms": (
        "Baseline",
        "CLUCB",
        "DiscUCB",
        "DiscUCBUnknown",
        "DisLinUCB",
        "DisLSB",
        "FedLinUCB",
        "FedPE",
        "FedPECD",
        "Guarded",
        "GuardUCB",
        "LinUCB",
        "Oracle",
        "SCLTS",
        "SCLUCB",
        "SEGE",
    ),
    "guardband.contexts": (
        "Discrete",
        "Gaussian",
        "Samples",
        "difference_covariance",
        "expected_features",
        "feature_support",
    ),
    "guardband.agent": ("Agent", "Decision", "Fleet", "UnknownDecisionError"),
    "guardband.problems": (
        "GaussianNoise",
        "StudentNoise",
        "Tabular",
        "TwoPointNoise",
        "from_file",
        "problem",
    ),
    "guardband.sim": ("BoundWarning", "Replay", "Results", "simulate"),
}
_WHERE = {_name: _home for _home, _names in _HOMES.items() for _name in _names}
_ROOMS = ("envs", "theory")  # what is used as gb.theory.X; `envs` needs the extra `gym`
_INNER = ("algorithms", "agent", "contexts", "live", "problems", "seeds", "sim")


def __getattr__(name: str) -> _Any:
    """Load what is asked for, once."""
    if name in _ROOMS or name in _INNER:
        return _import_module(f"guardband.{name}")
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("guardband")
    if name not in _WHERE:
        raise AttributeError(f"module 'guardband' has no attribute {name!r}")
    if name == "Agent":
        _import_module("guardband.live")  # tells Agent what a coordinator makes of it
    found = getattr(_import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return what there is, loaded or not."""
    return sorted({*globals(), *__all__, *_ROOMS, "__version__"})
