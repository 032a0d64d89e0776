"""Checks of Guard-UCB's settings: what each may be, and which of them go together."""

from __future__ import annotations

from typing import Any

from guardband.checks import check_fraction, check_not_negative, check_positive, check_whole
from guardband.errors import InvalidValueError
from guardband.facts import Facts

__all__ = ["as_ceiling", "as_drift", "as_holdback", "as_realised", "as_window", "check_size"]
__all__ += ["check_tolerance", "check_window"]

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


def check_window(settings: Any) -> None:
    """Refuse what a window does not go with, or means nothing without one."""
    if settings.window is None and settings.drift is not None:
        raise InvalidValueError(
            f"drift={settings.drift:g} is by how much expected rewards may change in a round: say "
            "with window=... for how many rounds data count."
        )
    for name, usual in (("tolerate", 0), ("anchors", False)):
        value = getattr(settings, name)
        if settings.window is not None and value != usual:
            raise InvalidValueError(
                f"window={settings.window} is for {name}={usual!r}, not {value!r}: leave one of "
                "them out."
            )
    taken = ("best", "logdet") if settings.drift is not None else ("best", "logdet", "empirical")
    if settings.window is not None and settings.radius not in taken:
        raise InvalidValueError(
            f"a window, or a drift, is for radius='best', not {settings.radius!r}."
        )


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


def as_window(value: Any) -> int | None:
    """Return for how many rounds data count, checked."""
    return None if value is None else check_whole("window", value, 2)


def as_drift(value: Any) -> float | None:
    """Return by how much an expected reward may change in a round, checked."""
    return None if value is None else check_positive("drift", value)
