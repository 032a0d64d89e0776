"""Checks of what users pass to agents: numbers, rewards, ids, batches."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.agent.decision import Decision
from guardband.checks import beyond_unit, check_ordered
from guardband.errors import InvalidTypeError, InvalidValueError

__all__ = [
    "as_batch",
    "as_id",
    "as_number",
    "as_plain_array",
    "as_reward",
    "as_row",
    "no_numbers",
    "reward_range",
]

SLACK = 1.0 + 1e-9  # bounds are met up to rounding


def as_id(decision: str | Decision) -> str:
    """Return the id of a decision that was given as itself, or by its id."""
    return decision.id if isinstance(decision, Decision) else decision


def as_list(name: str, given: Any) -> list[Any]:
    """Return what was given for a batch, one for each of its decisions."""
    check_ordered(name, given)
    try:
        return list(given)
    except TypeError:
        raise InvalidTypeError(
            f"{name} must be a list, one for each decision of the batch, not {given!r}."
        ) from None


def as_batch(
    decisions: Sequence[str | Decision],
    rewards: Sequence[float],
    allowed: tuple[float, float],
    costs: Sequence[float | None] | None,
) -> tuple[list[str], list[float], list[float | None]]:
    """Return ids, rewards and costs of a batch, if they fit together and no id is given twice."""
    names = [as_id(each) for each in as_list("decisions", decisions)]
    values = [as_reward(y, allowed) for y in as_list("rewards", rewards)]
    if len(names) != len(values):
        raise InvalidValueError(f"{len(names)} decisions and {len(values)} rewards do not fit.")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InvalidValueError(f"decision {twice!r} is in the batch twice.")
    paid: list[float | None] = [None] * len(names)
    if costs is not None:
        paid = as_list("costs", costs)
    if len(paid) != len(names):
        raise InvalidValueError(f"{len(names)} decisions and {len(paid)} costs do not fit.")
    return names, values, paid


def as_plain_array(features: Any) -> NDArray[Any]:
    """Return features as an array, whatever its kind; masks are refused."""
    if isinstance(features, np.ma.MaskedArray):
        raise InvalidValueError(
            "features are a masked array: leave out what is masked, or fill it."
        )
    try:
        return np.asarray(features)
    except ValueError:
        raise InvalidValueError(
            "features must be a table of numbers, one row per action, all of one length: these "
            "have different lengths."
        ) from None


def no_numbers(table: NDArray[Any], each: str) -> InvalidValueError:
    """Return the error for a table of features with something in it that is no number."""
    wrong = [value for value in table.ravel().tolist() if type(value) not in (int, float)]
    if not wrong:  # as objects of Python, such as what a frame of several kinds becomes
        rest = ", not of Python's objects: pass features.astype(float)."
    else:
        rest = f": {wrong[0]!r} is no number." if table.ndim else f", not {wrong[0]!r}."
    return InvalidValueError(f"features must be a table of numbers, one row per {each}{rest}")


def as_number(name: str, value: Any) -> float:
    """Return a number that was given as one, not as a text; a yes is 1, a no 0."""
    if type(value) is float:
        return value
    if not isinstance(value, (str, bytes, complex)):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
        except OverflowError:  # a whole number; whoever asks wants a finite one
            return math.inf
    raise InvalidTypeError(f"{name} must be a number, not {value!r}.")


def reward_range(algorithm: Any) -> tuple[float, float]:
    """Return the rewards that agents take: up to 6 times the stated noise outside [0, 1].

    Without a stated noise they take none outside [0, 1].
    """
    reach = beyond_unit(getattr(algorithm, "noise", math.inf)) * SLACK
    return -reach, 1.0 + reach


def as_reward(value: float, allowed: tuple[float, float]) -> float:
    """Return a finite reward within the allowed range, see `reward_range`."""
    low, high = allowed
    if type(value) is float and low <= value <= high:
        return value
    reward = as_number("reward", value)
    if not math.isfinite(reward):
        raise InvalidValueError(f"reward must be finite, not {reward}.")
    if not low <= reward <= high and high == 1.0:
        raise InvalidValueError(
            f"reward {reward:g} is not in [0, 1], as every reward must be where no noise is "
            "stated: scale rewards to [0, 1] by (reward - least) / (greatest - least), or state "
            "noise=..., the sub-Gaussian constant of the reward noise."
        )
    if not low <= reward <= high:
        raise InvalidValueError(
            f"reward {reward:g} is farther outside [0, 1] than 6 times the stated noise: with "
            f"noise={(high - 1.0) / 6.0:.4g} rewards lie between {low:.4g} and {high:.4g}. "
            "Scale rewards to [0, 1] by (reward - least) / (greatest - least), and divide noise "
            "by the same number; or state a larger noise."
        )
    return reward


def as_row(baseline: Any, actions: int) -> int:
    """Return the row of the baseline's action, one of `actions`."""
    if type(baseline) is int and 0 <= baseline < actions:
        return baseline
    try:
        row = operator.index(baseline)
    except TypeError:
        row = None
    if row is None or isinstance(baseline, bool):
        raise InvalidTypeError(f"baseline must be the row of an action, not {baseline!r}.")
    if not 0 <= row < actions:
        raise InvalidValueError(f"baseline {row} is not one of the {actions} actions.")
    return row
