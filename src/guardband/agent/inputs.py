"""What an agent is given, as the numbers it needs; or an error that names what was given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.agent.decision import Decision
from guardband.errors import InvalidTypeError, InvalidValueError

__all__ = ["as_batch", "as_id", "as_number", "as_plain_array", "as_reward"]


def as_id(decision: str | Decision) -> str:
    """Return the id of a decision that was given as itself, or by its id."""
    return decision.id if isinstance(decision, Decision) else decision


def as_batch(
    decisions: Sequence[str | Decision], rewards: Sequence[float], limit: float
) -> tuple[list[str], list[float]]:
    """Return the ids and rewards of a batch, if they fit together and no id is given twice."""
    names, values = [as_id(each) for each in decisions], [as_reward(y, limit) for y in rewards]
    if len(names) != len(values):
        raise InvalidValueError(f"{len(names)} decisions and {len(values)} rewards do not fit.")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InvalidValueError(f"decision {twice!r} is in the batch twice.")
    return names, values


def as_plain_array(features: Any) -> NDArray[Any]:
    """Return features as an array, whatever its kind; masks are refused."""
    if isinstance(features, np.ma.MaskedArray):
        raise InvalidValueError(
            "features are a masked array: leave out what is masked, or fill it."
        )
    try:
        return np.asarray(features)
    except ValueError:  # rows of different lengths
        raise InvalidValueError(
            "features must be a table of numbers, one row per action."
        ) from None


def as_number(name: str, value: Any) -> float:
    """Return a number that was given as one, not as a text; a yes is 1, a no 0."""
    if not isinstance(value, str | bytes | complex):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise InvalidTypeError(f"{name} must be a number, not {value!r}.")


def as_reward(value: float, limit: float) -> float:
    """Return a finite reward within what the stated bounds allow."""
    reward = as_number("reward", value)
    if not math.isfinite(reward):
        raise InvalidValueError(f"reward must be finite, not {reward}.")
    if abs(reward) > limit:
        raise InvalidValueError(
            f"reward {reward:g} contradicts the stated bounds: with feature_bound, theta_bound and "
            f"noise as they are, none exceeds {limit:.6g}. Rescale rewards, or state larger bounds."
        )
    return reward
