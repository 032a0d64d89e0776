"""Safe, distributed linear bandits: learn together, never fall far below a trusted baseline."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from guardband import algorithms as algorithms
    from guardband import envs as envs
    from guardband import problems as problems
    from guardband import theory as theory
    from guardband.agent import Agent as Agent
    from guardband.agent import Budget as Budget
    from guardband.agent import Decision as Decision
    from guardband.agent import Fleet as Fleet
    from guardband.agent import Health as Health
    from guardband.agent import Learned as Learned
    from guardband.agent import Outlook as Outlook
    from guardband.agent import StuckWarning as StuckWarning
    from guardband.algorithms import DiscUCB as DiscUCB
    from guardband.algorithms import DiscUCBUnknown as DiscUCBUnknown
    from guardband.algorithms import DisLinUCB as DisLinUCB
    from guardband.algorithms import GuardUCB as GuardUCB
    from guardband.contexts import Discrete as Discrete
    from guardband.contexts import Gaussian as Gaussian
    from guardband.contexts import Samples as Samples
    from guardband.contexts import difference_covariance as difference_covariance
    from guardband.contexts import expected_features as expected_features
    from guardband.contexts import feature_support as feature_support
    from guardband.data import DataError as DataError
    from guardband.errors import BudgetSpentError as BudgetSpentError
    from guardband.errors import GuardbandError as GuardbandError
    from guardband.errors import InputError as InputError
    from guardband.errors import InvalidTypeError as InvalidTypeError
    from guardband.errors import InvalidValueError as InvalidValueError
    from guardband.errors import OtherVersionError as OtherVersionError
    from guardband.errors import UnknownDecisionError as UnknownDecisionError
    from guardband.errors import UnknownSeriesError as UnknownSeriesError
    from guardband.errors import UnknownTaskError as UnknownTaskError
    from guardband.features import Features as Features
    from guardband.features import Hashed as Hashed
    from guardband.live import JournalError as JournalError
    from guardband.live import LiveAgent as LiveAgent
    from guardband.live import OtherRewardError as OtherRewardError
    from guardband.live import OtherSettingsError as OtherSettingsError
    from guardband.live import Refused as Refused
    from guardband.live import SpaceSettings as SpaceSettings
    from guardband.live import UnknownSpaceError as UnknownSpaceError
    from guardband.live import Unreachable as Unreachable
    from guardband.live import connect as connect
    from guardband.problems import Tabular as Tabular
    from guardband.problems import problem as problem
    from guardband.sim import BoundWarning as BoundWarning
    from guardband.sim import PolicyError as PolicyError
    from guardband.sim import Replay as Replay
    from guardband.sim import Results as Results
    from guardband.sim import simulate as simulate
    from guardband.studies import Study as Study
    from guardband.studies import study as study
    from guardband.uplift import Uplift as Uplift

    __version__: str

# Names are loaded when they are asked for: numba and pandas take seconds to import, and
# `guardband --help` needs neither.
_HOMES = {
    "guardband.agent": (
        "Agent",
        "Budget",
        "Decision",
        "Fleet",
        "Health",
        "Learned",
        "Outlook",
        "StuckWarning",
    ),
    "guardband.algorithms": ("DisLinUCB", "DiscUCB", "DiscUCBUnknown", "GuardUCB"),
    "guardband.contexts": (
        "Discrete",
        "Gaussian",
        "Samples",
        "difference_covariance",
        "expected_features",
        "feature_support",
    ),
    "guardband.data": ("DataError",),
    "guardband.errors": (
        "BudgetSpentError",
        "GuardbandError",
        "InputError",
        "InvalidTypeError",
        "InvalidValueError",
        "OtherVersionError",
        "UnknownDecisionError",
        "UnknownSeriesError",
        "UnknownTaskError",
    ),
    "guardband.features": ("Features", "Hashed"),
    "guardband.live": (
        "JournalError",
        "LiveAgent",
        "OtherRewardError",
        "OtherSettingsError",
        "Refused",
        "SpaceSettings",
        "UnknownSpaceError",
        "Unreachable",
        "connect",
    ),
    "guardband.problems": ("Tabular", "problem"),
    "guardband.sim": ("BoundWarning", "PolicyError", "Replay", "Results", "simulate"),
    "guardband.studies": ("Study", "study"),
    "guardband.uplift": ("Uplift",),
}
_WHERE = {_name: _home for _home, _names in _HOMES.items() for _name in _names}
_ROOMS = ("algorithms", "envs", "problems", "theory")  # `envs` needs the extra `gym`
_INNER = ("agent", "contexts", "live", "seeds", "sim")

__all__ = [*_WHERE]  # noqa: PLE0604 (they are strings)


def __getattr__(name: str) -> _Any:
    """Load what is asked for, once."""
    if name in _ROOMS or name in _INNER:
        return _import_module(f"guardband.{name}")
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("guardband")
    if name not in _WHERE:
        raise AttributeError(f"module 'guardband' has no attribute {name!r}")
    found = getattr(_import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return what there is, loaded or not."""
    return sorted({*globals(), *__all__, *_ROOMS, "__version__"})
