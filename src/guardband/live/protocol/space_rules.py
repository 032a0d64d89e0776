"""When agents pool, which rewards count, what plays may cost: parts of a space's settings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sized
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from guardband.checks import nearest
from guardband.errors import InvalidValueError
from guardband.features import Features
from guardband.live.protocol.types import (
    TINY,
    WHOLE,
    Count,
    Message,
    Modest,
    NotNegative,
    Positive,
    Seconds,
    Whole,
)

if TYPE_CHECKING:
    from guardband.live.protocol.space import SpaceSettings

__all__ = ["GIVEN", "TRIGGERS", "BudgetSettings", "RewardSettings", "SettingsModel"]
__all__ += ["SyncSettings", "UploadSettings", "check_extremes", "explain", "invalid"]
__all__ += ["is_comparable", "read_named"]

GIVEN = "settings=gb.SpaceSettings(...)"  # in errors: how Python gives them; commands name a file
LONGEST_DESCRIPTION = 100_000
SHOWN = 200  # characters of what cannot be
LEAST_DELTA = 1e-100  # each task and each epoch has a part of it, and all parts are numbers
MOST_COMPARED = 1_000_000  # numbers, M^2 d^2, where all ask in an epoch which task is odd
APART = 1e12  # a ridge so far from the square of features is lost in rounding, or outweighs all

# Settings of algorithms that a space does not have, and what to say instead.
NOT_LIVE = {
    "anchors": "no upload holds reported baseline rewards; gb.Fleet can learn from them.",
    "gap": "only a simulation knows the optimum's lead; use gate='printed' or gate='none'.",
    "mix": "agents play real actions, as mix='action' does; leave it out.",
    "pooled_set": "live agents certify by their own views alone; gb.Fleet has the pooled set.",
    "share": "the agents of a space learn together; to keep them apart, give each its own space.",
    "shared_context": "say contexts='shared' or contexts='per-request'.",
}
# What each trigger reads, and its value where none is stated.
TRIGGERS: dict[str, dict[str, float | None]] = {
    "anytime": {},
    "paper": {"budget": 10.0, "horizon": None},
    "ratio": {"growth": 1.0},
    "interval": {"interval_s": 60.0},
}


# What is said of a value of a wrong kind, where pydantic's own words are about its types.
WORDS = {
    "dict_type": "must be a dict",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "model_type": "must be a dict of settings",
    "string_too_short": "must have one character at least",
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "too_short": "must have one entry at least",
    "string_pattern_mismatch": "must have letters, digits and ._- only",
}


class SettingsModel(Message):
    """Settings that say which ones there are where an unknown one is given."""

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        known = list(cls.model_fields)
        for name in given if isinstance(given, Mapping) else ():
            if isinstance(given[name], set | frozenset):
                raise invalid(f"{name} must be a list, not {given[name]!r}: a set has no order.")
            if name in known:
                continue
            if name in NOT_LIVE:
                raise invalid(f"{name}={given[name]!r} cannot be set in a space: {NOT_LIVE[name]}")
            raise PydanticCustomError(
                "unknown_setting",
                "unknown setting {name}: there is no setting of this name, only {known}.{hint}",
                {"name": _plain(name), "known": ", ".join(known), "hint": nearest(name, known)},
            )
        return given


class SyncSettings(SettingsModel):
    """When agents pool their sums, and under which rules.

    Attributes
    ----------
    trigger
        "anytime": log(det V / det V_last) (n - n_last) >= n log(Mn + 1) / (dM), on own counts;
        "paper": the same product against `budget`; "ratio": det V >= (1 + growth) det V_last;
        "interval": every `interval_s` seconds. Where it is not stated, it is the one that reads
        what is: `SyncSettings(horizon=20_000)` has the paper's.
    budget, horizon
        Of "paper": B itself, 10 by default; or T, and B = T log(MT) / (dM), as in the paper.
    growth
        Of "ratio": 1 by default, which is `gb.Fleet`'s rule without a horizon.
    interval_s
        Of "interval": 60 by default.
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
    budget: Positive | None = None
    horizon: Count | None = None
    growth: Positive | None = None
    interval_s: Positive | None = None
    deadline_s: Seconds = 2.0
    min_interval_s: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    min_batch: Count = 1
    min_streams: Annotated[int, Field(ge=1, le=100_000), WHOLE] = 1
    live_s: Seconds = 75.0

    @model_validator(mode="before")
    @classmethod
    def _with_trigger(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and "trigger" not in given:
            for trigger, own in TRIGGERS.items():
                if any(given.get(name) is not None for name in own):
                    return {**given, "trigger": trigger}
        return given

    @model_validator(mode="after")
    def _fits(self) -> SyncSettings:
        for trigger, own in TRIGGERS.items():
            stated = [name for name in own if getattr(self, name) is not None]
            if stated and trigger != self.trigger:
                raise invalid(
                    f"sync.{stated[0]}={getattr(self, stated[0]):g} is read by trigger="
                    f"{trigger!r} only, not by {self.trigger!r}: leave one of them out."
                )
            if len(stated) > 1:
                raise invalid(
                    f"sync.horizon={self.horizon} sets the budget: leave it or sync.budget="
                    f"{self.budget:g} out."
                )
            if trigger == self.trigger and not stated:
                for name, value in own.items():
                    object.__setattr__(self, name, value)
        return self


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
        not depend on the reward; "prompt": when its reward comes, or, where older data are
        forgotten, as soon as all earlier decisions have theirs; for rewards whose delay and loss
        do not depend on their value, and refused for new spaces with shared contexts.
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


class BudgetSettings(SettingsModel):
    """What the plays of each task may cost in all; as `gb.Budget`.

    Attributes
    ----------
    total
        In the units of the costs.
    horizon
        For how many rounds of the task it must last, in all of its state folders together.
    max_cost
        For costs that are only known afterwards: so much is reserved until then.
    """

    total: NotNegative
    horizon: Count
    max_cost: Positive | None = None


class UploadSettings(SettingsModel):
    """What a task can have observed: uploads beyond it are refused.

    Attributes
    ----------
    max_rate
        Observations that a task makes in a second, at most, counted from its first registration;
        None: any number.
    max_logged
        Rows of logs that a task may learn beside them.
    max_streams
        State folders that a task may have in all, those that have ended among them; None: 10,000,
        and 1,000 at a time.
    """

    max_rate: Positive | None = None
    max_logged: Whole = 0
    max_streams: Count | None = None

    @model_validator(mode="after")
    def _fits(self) -> UploadSettings:
        if self.max_logged and self.max_rate is None:
            raise invalid(
                f"uploads.max_logged={self.max_logged} adds to what uploads.max_rate allows: state "
                "that, too, or leave it out."
            )
        return self


def explain(error: ValidationError) -> str:
    """Return in one line which settings cannot be, and why."""
    found = []
    for each in error.errors():
        if each["type"] == "too_short" and each["input"]:
            continue  # its entries are wrong ones, of which the other sentences are
        where = ".".join(map(str, each["loc"]))
        if each["type"] in ("invalid_space", "unknown_setting"):
            found.append(each["msg"])
        elif each["type"] == "missing":
            found.append(f"{where} must be given.")
        elif each["type"] == "too_long" and isinstance(each["input"], Sized):
            most, given = each["ctx"]["max_length"], len(each["input"])
            found.append(f"{where} must have {most:,} entries at most, not {given:,}.")
        elif each.get("ctx", {}).get("gt") == TINY:
            found.append(f"{where} must be a positive number, not {_short(each)}.")
        else:
            said = re.sub("^(Input|String) should ", "must ", each["msg"])
            told = WORDS.get(each["type"], said)
            found.append(f"{where} {told}, not {_short(each)}.")
    return " ".join(found)


def _short(error: Any) -> str:
    """Return what was given, or its beginning where it is long."""
    shown = repr(error["input"])
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."


def invalid(sentence: str) -> PydanticCustomError:
    """Return the error for settings that do not fit together."""
    return PydanticCustomError("invalid_space", "{sentence}", {"sentence": _plain(sentence)})


def _plain(text: str) -> str:
    """Return a text that can be written: JSON may hold halves of characters."""
    return text.encode("utf-8", "backslashreplace").decode()


def read_named(data: Mapping[str, Any]) -> Features:
    """Return the named features that a space's settings describe."""
    try:
        features = Features.from_dict(data)
    except InvalidValueError as error:
        raise invalid(f"named_features: {error}") from None
    if len(features.to_json()) > LONGEST_DESCRIPTION:
        raise invalid(
            f"named_features have more than {LONGEST_DESCRIPTION:,} characters in JSON: list fewer "
            "values, or use gb.Hashed."
        )
    return features


def is_comparable(space: SpaceSettings) -> bool:
    """Tell whether a task that contradicts the others may hear the sums without each of them.

    Where that hides nothing and is not much, and where a task that is odd leaves by itself.
    """
    if space.timed or space.tolerate or space.sync.min_streams > 1 or space.on_alarm == "warn":
        return False
    watched = getattr(space.learner(), "delta_alarm", None) is not None
    return watched and 2 < space.agents <= math.sqrt(MOST_COMPARED) / space.dim


def check_extremes(delta: float, ridge: float, feature_bound: float) -> None:
    """Refuse settings with which sums, or parts of delta, are no numbers that one can use."""
    if delta < LEAST_DELTA:
        raise invalid(f"delta must be at least {LEAST_DELTA:g}, not {delta!r}.")
    square = feature_bound * feature_bound
    if not square / APART <= ridge <= square * APART:
        raise invalid(
            f"a ridge of {ridge:g} does not fit to feature_bound={feature_bound:g}: it must lie "
            f"between {square / APART:g} and {square * APART:g}. Scale the features, or state "
            "another ridge."
        )
