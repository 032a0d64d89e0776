"""When agents pool and which rewards count: two parts of a space's settings, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from guardband.checks import nearest
from guardband.live.protocol.types import TINY, WHOLE, Count, Message, Modest, Positive, Seconds

__all__ = ["RewardSettings", "SettingsModel", "SyncSettings", "explain", "invalid"]


class SettingsModel(Message):
    """Settings that say which ones there are where an unknown one is given."""

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        known = list(cls.model_fields)
        for name in given if isinstance(given, Mapping) else ():
            if name not in known:
                raise PydanticCustomError(
                    "unknown_setting",
                    "unknown setting {name}; there are {known}.{hint}",
                    {"name": name, "known": ", ".join(known), "hint": nearest(name, known)},
                )
        return given


class SyncSettings(SettingsModel):
    """When agents pool their sums, and under which rules.

    Attributes
    ----------
    trigger
        "anytime": log(det V / det V_last) (n - n_last) >= n log(Mn + 1) / (dM), on own counts;
        "paper": the same product against `budget`; "ratio": det V >= (1 + growth) det V_last;
        "interval": every `interval_s` seconds.
    deadline_s
        How long an open epoch waits for its live streams.
    min_interval_s
        No epoch opens sooner after the last.
    min_batch
        An upload holds at least so many new observations: fewer would reveal single ones.
    min_streams
        No sum is served before so many tasks are in it.
    live_s
        A stream not heard of for so long is not waited for.
    """

    trigger: Literal["anytime", "paper", "ratio", "interval"] = "anytime"
    budget: Positive = 10.0
    growth: Positive = 1.0
    interval_s: Positive = 60.0
    deadline_s: Seconds = 2.0
    min_interval_s: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    min_batch: Count = 1
    min_streams: Annotated[int, Field(ge=1, le=100_000), WHOLE] = 1
    live_s: Seconds = 75.0


class RewardSettings(SettingsModel):
    """Which rewards are possible, and when they count.

    Attributes
    ----------
    low, high
        Every reward lies between them.
    window_s
        A decision waits so long for its reward.
    default
        What counts where none came in time.
    order
        "window": every decision counts when its window ends, so that what counts, and when, does
        not depend on the reward; "prompt": as soon as all earlier decisions have their reward,
        for rewards whose delay and loss do not depend on their value.
    silence
        What it means that no reward came: "missing" (one was earned and got lost, which is worth
        an alert), or "default" (nothing happened, such as no click, and `default` is the reward).
        Nothing is computed differently.
    """

    low: Modest = 0.0
    high: Modest = 1.0
    window_s: Seconds = 600.0
    default: Modest = 0.0
    order: Literal["window", "prompt"] = "window"
    silence: Literal["missing", "default"] = "missing"

    @model_validator(mode="after")
    def _fits(self) -> RewardSettings:
        if not self.low < self.high:
            raise invalid(f"rewards.low={self.low:g} must be below high={self.high:g}.")
        if not self.low <= self.default <= self.high:
            raise invalid(
                f"rewards.default={self.default:g} is not between {self.low:g} and {self.high:g}."
            )
        return self


def explain(error: ValidationError) -> str:
    """Return in one line which settings cannot be, and why."""
    found = []
    for each in error.errors():
        where = ".".join(map(str, each["loc"]))
        if each["type"] in ("invalid_space", "unknown_setting"):
            found.append(each["msg"])
        elif each["type"] == "missing":
            found.append(f"{where} must be given.")
        elif each.get("ctx", {}).get("gt") == TINY:
            found.append(f"{where} must be a positive number, not {each['input']!r}.")
        else:
            found.append(f"{where}: {each['msg']}, not {each['input']!r}.")
    return " ".join(found)


def invalid(sentence: str) -> PydanticCustomError:
    """Return the error for settings that do not fit together."""
    return PydanticCustomError("invalid_space", "{sentence}", {"sentence": sentence})
