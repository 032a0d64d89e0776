"""The errors that guardband raises on purpose; all share one base class."""

from __future__ import annotations

__all__ = [
    "BudgetSpentError",
    "GuardbandError",
    "InputError",
    "InvalidTypeError",
    "InvalidValueError",
    "OtherVersionError",
    "UnknownDecisionError",
    "UnknownSeriesError",
    "UnknownTaskError",
]


class GuardbandError(Exception):
    """The base class of all errors that guardband raises on purpose."""


class InputError(GuardbandError):
    """Something that was given cannot be used; the message says what was expected."""


class InvalidValueError(InputError, ValueError):
    """A value that was given is out of range, or does not fit the others."""


class InvalidTypeError(InputError, TypeError):
    """Something of another type was expected."""


class BudgetSpentError(GuardbandError, RuntimeError):
    """Not even the baseline can be paid from what is left of a budget."""


class UnknownDecisionError(InputError, LookupError):
    """No reward is awaited for this decision id."""


class UnknownTaskError(InputError, KeyError):
    """A fleet has no task of this name."""

    __str__ = Exception.__str__  # KeyError shows its message in quotes


class UnknownSeriesError(InputError, KeyError):
    """A comparison has no series of this label."""

    __str__ = Exception.__str__


class OtherVersionError(GuardbandError, RuntimeError):
    """A worker of a cluster has other software, or another processor, than the command."""
