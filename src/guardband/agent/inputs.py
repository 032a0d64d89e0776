"""What an agent is given, as the numbers it needs; or an error that names what was given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.agent.decision import Decision

__all__ = ["as_id", "as_number", "as_plain_array", "as_reward"]


def as_id(decision: str | Decision) -> str:
    """Return the id of a decision that was given as itself, or by its id."""
    return decision.id if isinstance(decision, Decision) else decision


def as_plain_array(features: Any) -> NDArray[Any]:
    """Return features as an array, whatever its kind; masks are refused."""
    if isinstance(features, np.ma.MaskedArray):
        raise ValueError("features are a masked array: leave out what is masked, or fill it.")
    try:
        return np.asarray(features)
    except ValueError:  # rows of different lengths
        raise ValueError("features must be a table of numbers, one row per action.") from None


def as_number(name: str, value: Any) -> float:
    """Return a number that was given as one, not as a text; a yes is 1, a no 0."""
    if not isinstance(value, str | bytes | complex):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise TypeError(f"{name} must be a number, not {value!r}.")


def as_reward(value: float, limit: float) -> float:
    """Return a finite reward within what the stated bounds allow."""
    reward = as_number("reward", value)
    if not math.isfinite(reward):
        raise ValueError(f"reward must be finite, not {reward}.")
    if abs(reward) > limit:
        raise ValueError(
            f"reward {reward:g} contradicts the stated bounds: with feature_bound, theta_bound and "
            f"noise as they are, none exceeds {limit:.6g}. Rescale rewards, or state larger bounds."
        )
    return reward
