"""A space's settings: what its agents agree on, and what a coordinator holds them to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from guardband.algorithms import ALGORITHMS, Policy
from guardband.errors import InvalidValueError
from guardband.live.protocol.space_rules import (
    RewardSettings,
    SettingsModel,
    SyncSettings,
    explain,
    invalid,
)
from guardband.live.protocol.types import (
    CLOSED,
    LARGEST_DIM,
    UNIQUE,
    WHOLE,
    FeatureName,
    Name,
    Positive,
    Seconds,
    Share,
    Text,
)

__all__ = ["POLICIES", "RewardSettings", "SpaceSettings", "SyncSettings"]

# What live agents can run, by the name on the command line; variants are settings here.
POLICIES = {
    name: entry.kind
    for name, entry in ALGORITHMS.items()
    if "live" in entry.kind.runs and not entry.preset
}
# Names of format 1, by those of today; digests use the old ones. Newer algorithms have one name.
FORMAT_1 = {
    "guard-ucb": "GuardUcb",
    "disc-ucb": "DiscUcb",
    "disc-ucb-unknown": "DiscUcbUnknown",
    "dis-lin-ucb": "DisLinUcb",
}
# Defaults by profile; whatever is given beside it wins.
PROFILES: dict[str, dict[str, Any]] = {
    "platform": {},
    "hospital": {"lease_s": 86_400.0, "sync": {"min_batch": 20, "min_streams": 3}},
}


class SpaceSettings(SettingsModel):
    """One shared parameter, its features, its promise, its rules.

    Attributes
    ----------
    name
        Letters, digits, and ._- inside.
    features
        The features' names, in order; d of them.
    agents
        How many tasks may join. Where contexts are shared, every observation's weight depends on
        it, so it cannot grow unseen.
    contexts
        "shared": tasks may act under one hidden context in a round (f = agents);
        "per-request": every request has a context of its own (f = 1).
    alpha, delta
        The promise; `alphas` has those of single tasks.
    noise, reward_ceiling, theta_bound, feature_bound, context_noise, ridge
        Bounds, as for `gb.GuardUCB`. Without a noise all rewards lie in [0, 1].
    reward_floor
        What the baseline's reward never falls below, as for `gb.Agent`; None: not known.
    mode
        "strict" or "policy", see `gb.GuardUCB`.
    algorithm
        The algorithm, by its name on the command line.
    shares
        How delta is split: "registered" (delta / (i(i + 1) e(e + 1)) for the i-th task in epoch
        e, which needs no number of tasks), or "equal" (6 delta / (pi^2 M e^2), as in `gb.Fleet`).
    baseline
        The name of the baseline policy; another baseline is another space.
    lease_s
        Agents that did not reach the coordinator for so long play the baseline; None: no limit.
    profile
        "platform" or "hospital": which defaults hold for what is not given.
    """

    name: Name = "default"
    features: Annotated[
        tuple[FeatureName, ...],
        Field(strict=False, min_length=1, max_length=LARGEST_DIM, json_schema_extra=UNIQUE),
    ]
    agents: Annotated[int, Field(ge=1, le=100_000), WHOLE]
    contexts: Literal["shared", "per-request"] = "shared"
    alpha: Share = 0.1
    alphas: Annotated[dict[Name, Share], Field(max_length=1_000, json_schema_extra=CLOSED)] = Field(
        default_factory=dict
    )
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    noise: Positive | None = None
    reward_ceiling: Annotated[float, Field(gt=0, le=1)] | None = None
    theta_bound: Positive = 1.0
    feature_bound: Positive = 1.0
    context_noise: Annotated[float, Field(ge=0, lt=1e100)] | None = None
    ridge: Positive | None = None
    reward_floor: Positive | None = None
    mode: Literal["strict", "policy"] = "strict"
    algorithm: Literal[tuple(POLICIES)] = "guard-ucb"  # type: ignore[valid-type]
    shares: Literal["registered", "equal"] = "registered"
    baseline: Annotated[Text, Field(max_length=200)] = "baseline"
    lease_s: Seconds | None = None
    profile: Literal["platform", "hospital"] = "platform"
    sync: SyncSettings = SyncSettings()
    rewards: RewardSettings = RewardSettings()

    if not TYPE_CHECKING:  # type checkers know the parameters from the fields

        def __init__(self, /, **given: Any) -> None:
            try:
                super().__init__(**given)
            except ValidationError as error:
                raise InvalidValueError(explain(error)) from None

        # For pydantic this is its own __init__: it validates messages of the API without it.
        __init__.__pydantic_base_init__ = True

    @model_validator(mode="before")
    @classmethod
    def _with_profile(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        filled = dict(given)
        profile = given.get("profile")
        for name, value in PROFILES.get(profile if isinstance(profile, str) else "", {}).items():
            if isinstance(value, dict) and isinstance(given.get(name), Mapping):
                filled[name] = {**value, **given[name]}
            else:
                filled.setdefault(name, value)
        return filled

    @model_validator(mode="after")
    def _fits(self) -> SpaceSettings:
        if len(set(self.features)) < len(self.features):
            raise invalid("the features' names must differ from each other.")
        if self.by_variance and not 0.0 <= self.rewards.low < self.rewards.high <= 1.0:
            raise invalid(
                "without a stated noise every reward lies in [0, 1], but rewards.low="
                f"{self.rewards.low:g} and rewards.high={self.rewards.high:g}: scale rewards, or "
                "state noise."
            )
        try:
            _ = self._policy  # whatever else the algorithm has against it
        except (ValueError, TypeError, ArithmeticError) as error:
            raise invalid(str(error)) from None
        return self

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return len(self.features)

    @property
    def max_weight(self) -> float:
        """The largest weight that an observation can have."""
        return self._policy.max_weight

    @property
    def by_variance(self) -> bool:
        """Whether observations have weights by variance: no noise is stated to Guard-UCB."""
        return self.noise is None and POLICIES[self.algorithm].weighted

    @property
    def reward_bound(self) -> float:
        """The largest size of a reward."""
        return max(abs(self.rewards.low), abs(self.rewards.high))

    @property
    def penalty(self) -> float:
        """The ridge, lambda, as the algorithm uses it."""
        return self._policy.penalty

    @property
    def schema_hash(self) -> str:
        """A digest of what must be the same for data to be added up, in the words of format 1."""
        own = ("features", "ridge", "feature_bound", "theta_bound", "contexts", "noise", "baseline")
        parts = {name: getattr(self, name) for name in own}
        algorithm = FORMAT_1.get(self.algorithm, self.algorithm)
        parts |= {"spread": self.context_noise, "algorithm": algorithm}
        parts |= {"low": self.rewards.low, "high": self.rewards.high}
        if self.reward_ceiling is not None:
            parts["reward_ceiling"] = self.reward_ceiling
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def learner(self, task: str | None = None, delta: float | None = None) -> Any:
        """Return the algorithm, with the alpha of `task` and `delta` in place of the space's."""
        settings = {
            "alpha": self.alphas.get(task or "", self.alpha),
            "delta": self.delta if delta is None else delta,
            "noise": self.noise,
            "reward_ceiling": self.reward_ceiling,
            "theta_bound": self.theta_bound,
            "feature_bound": self.feature_bound,
            "context_noise": self.context_noise,
            "ridge": self.ridge,
            "mode": self.mode,
            "shared_context": self.contexts == "shared",
        }
        kind = POLICIES[self.algorithm]
        own = kind.settings()
        return kind(**{k: v for k, v in settings.items() if k in own and v is not None})

    @cached_property
    def _policy(self) -> Policy:
        policy: Policy = self.learner()
        return policy

    def as_json(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SpaceSettings:
        """Return what `as_json` describes, also in the words of format 1; ValueError otherwise."""
        given = dict(data)
        if "spread" in given:
            given["context_noise"] = given.pop("spread")
        for new, old in FORMAT_1.items():
            if given.get("algorithm") == old:
                given["algorithm"] = new
        return cls(**given)

    def changed(self, **settings: Any) -> SpaceSettings:
        """Return the space with other settings."""
        return type(self)(**{**dict(self), **settings})
