"""Checks of Guard-UCB's settings: what each may be, and which of them go together."""

from __future__ import annotations

from typing import Any

from guardband.checks import check_fraction, check_not_negative, check_positive
from guardband.errors import InvalidValueError
from guardband.facts import Facts

__all__ = ["as_ceiling", "as_holdback", "as_realised", "check_size", "check_tolerance"]

LARGEST = 10_000_000  # numbers that agents in one process may keep beside their own
MOST_HELD_BACK = 0.5


def check_tolerance(settings: Any) -> None:
    """Refuse what is not proved for tasks that may lie, or means nothing."""
    tolerate = settings.tolerate
    if tolerate > 1:
        raise InvalidValueError(
            f"tolerate must be 0 or 1, not {tolerate}: one other task may send anything."
        )
    for name, usual in (
        ("mode", "strict"),
        ("share", True),
        ("anchors", False),
        ("trial_budget", None),
    ):
        value = getattr(settings, name)
        if tolerate and value != usual:
            raise InvalidValueError(
                f"tolerate=1 is for {name}={usual!r}, not {value!r}: leave one of them out."
            )
    if tolerate and settings.radius == "paper":
        raise InvalidValueError("tolerate=1 needs the radii of Guard-UCB, not radius='paper'.")


def check_size(agents: int, facts: Facts) -> None:
    """Refuse a group whose agents here would keep too many numbers, d^2 without each task."""
    here = 1 if facts.size is not None else agents
    numbers = here * agents * facts.dim**2
    if numbers > LARGEST:
        raise InvalidValueError(
            f"tolerate=1 keeps sums without each of {agents} tasks, {numbers:,} numbers for "
            f"{here} of them with {facts.dim} features; {LARGEST:,} are the most: use fewer tasks "
            "or features, or leave tolerate out."
        )


def as_ceiling(value: Any) -> float:
    """Return the ceiling of expected rewards, checked."""
    ceiling = check_positive("reward_ceiling", value)
    if ceiling > 1.0:
        raise InvalidValueError(
            f"reward_ceiling must be at most 1, not {ceiling:g}: expected rewards lie in [0, 1]."
        )
    return ceiling


def as_holdback(value: Any) -> float:
    """Return the share of rounds that are held back, checked."""
    holdback = check_not_negative("holdback", value)
    if holdback > MOST_HELD_BACK:
        raise InvalidValueError(
            f"holdback must be at most {MOST_HELD_BACK:g}, not {holdback:g}: it is the share of "
            "rounds that play the baseline to measure what the others earn, such as 0.05."
        )
    return holdback


def as_realised(value: Any) -> Any:
    """Return what is promised of the context that is drawn, checked."""
    if value is None or value == "worst":
        return value
    if isinstance(value, tuple | list) and len(value) == 2 and value[0] == "chance":
        return ("chance", check_fraction("the chance in realised", value[1]))
    raise InvalidValueError(f"realised must be None, 'worst' or ('chance', eps), not {value!r}.")
