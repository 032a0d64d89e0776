"""A space's settings: what its agents agree on, and what a coordinator holds them to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from guardband.algorithms import Policy
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.features import Features
from guardband.live.protocol.space_formats import FOREIGN, FORMAT_1, POLICIES, upgraded
from guardband.live.protocol.space_rules import (
    BudgetSettings,
    RewardSettings,
    SettingsModel,
    SyncSettings,
    UploadSettings,
    check_extremes,
    explain,
    invalid,
    read_named,
)
from guardband.live.protocol.types import (
    CLOSED,
    LARGEST_DIM,
    UNIQUE,
    WHOLE,
    Digest,
    FeatureName,
    Fraction,
    Name,
    NotNegative,
    Positive,
    Seconds,
    Share,
    Text,
)

__all__ = ["RewardSettings", "SpaceSettings", "SyncSettings", "UploadSettings"]

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
        The features' names, in order; d of them. Or a `gb.Features`, which has names and more.
    named_features
        How rows by name become features, as `gb.Features.to_dict` writes it; with it `features`
        may be left out. None: agents take features by number only.
    agents
        How many tasks may join. Where contexts are shared, every observation's weight depends on
        it, so it cannot grow unseen.
    contexts
        "shared": tasks may act under one hidden context in a round (f = agents);
        "per-request": every request has a context of its own (f = 1).
    alpha, delta
        The promise; `alphas` has those of single tasks. Algorithms without a promise have no alpha.
    noise, reward_ceiling, theta_bound, feature_bound, context_noise, ridge
        Bounds, as for `gb.GuardUCB`. Without a noise all rewards lie in [0, 1].
    reward_floor
        What the baseline's reward never falls below, as for `gb.Agent`; None: not known.
    algorithm
        The algorithm, by its name on the command line.
    mode, radius, optimism, bias_bound, baseline_tolerance, realised, on_refuted
        Settings of `gb.GuardUCB`. None stands for the algorithm's own value; a setting that the
        algorithm does not have is refused.
    trial_budget, max_loss
        The same; each task has its own, which its state folders share. The coordinator grants
        them parts of it that never come back.
    budget
        What plays may cost each task in all, as a `gb.Budget` or {"total", "horizon", "max_cost"};
        its state folders share it in the same way. For Guard-UCB.
    tolerate
        The same: 1 lets any one task send anything. Then agents are told the sums without each
        other task, from which every task's own follow.
    holdback
        The same; where it changes, agents begin to measure anew.
    window, drift
        The same, by the number of the round that agents are told, the same for all tasks. All
        weights are declared ones.
    on_alarm, delta_alarm
        The same; `delta_alarm` is for all tasks together.
    gate, constant, context
        The same of `gb.DiscUCB` and `gb.DiscUCBUnknown`; the last two of `gb.DisLinUCB` as well.
    shares
        How delta is split: "registered" (delta / (i(i + 1) e(e + 1)) for the i-th task in epoch
        e, which needs no number of tasks), "equal" (6 delta / (pi^2 M e^2), as `gb.Fleet` does it
        for Guard-UCB), or "paper" (all of delta for every task and epoch, as `gb.Fleet` does it for
        the paper's algorithms: then its promise is the paper's).
    baseline
        The name of the baseline policy; another baseline is another space.
    looked_at
        The SHA-256 of a record of rows of logs that were looked at when the settings were chosen;
        the coordinator keeps it, and agents refuse such rows. None: none were.
    lease_s
        Agents that did not reach the coordinator for so long play the baseline; None: no limit.
    profile
        "platform" or "hospital": which defaults hold for what is not given.

    Examples
    --------
    >>> import guardband as gb
    >>> space = gb.SpaceSettings(features=["match"], agents=3, profile="hospital")
    >>> space.alpha, space.lease_s
    (0.1, 86400.0)
    """

    name: Name = "default"
    features: Annotated[
        tuple[FeatureName, ...],
        Field(strict=False, min_length=1, max_length=LARGEST_DIM, json_schema_extra=UNIQUE),
    ]
    named_features: dict[str, Any] | None = None
    agents: Annotated[int, Field(ge=1, le=100_000), WHOLE]
    contexts: Literal["shared", "per-request"] = "shared"
    alpha: Share | None = None
    alphas: Annotated[dict[Name, Share], Field(max_length=1_000, json_schema_extra=CLOSED)] = Field(
        default_factory=dict
    )
    delta: Fraction = 1e-3
    noise: Positive | None = None
    reward_ceiling: Share | None = None
    theta_bound: Positive = 1.0
    feature_bound: Positive = 1.0
    context_noise: NotNegative | None = None
    ridge: Positive | None = None
    reward_floor: Positive | None = None
    algorithm: Literal[tuple(POLICIES)] = "guard-ucb"  # type: ignore[valid-type]
    mode: Literal["strict", "policy"] | None = None
    radius: Literal["best", "logdet", "empirical", "paper"] | None = None
    optimism: NotNegative | None = None
    bias_bound: NotNegative | None = None
    baseline_tolerance: NotNegative | None = None
    realised: (
        Literal["worst"] | Annotated[tuple[Literal["chance"], Fraction], Field(strict=False)] | None
    ) = None
    on_refuted: Literal["baseline", "ellipsoid"] | None = None
    trial_budget: NotNegative | None = None
    max_loss: NotNegative | None = None
    budget: BudgetSettings | None = None
    tolerate: Annotated[int, Field(ge=0, le=1), WHOLE] | None = None
    holdback: NotNegative | None = None
    window: Annotated[int, Field(ge=2, le=2**31), WHOLE] | None = None
    drift: NotNegative | None = None
    on_alarm: Literal["restart", "baseline", "warn"] | None = None
    delta_alarm: Annotated[float, Field(ge=0, lt=1)] | None = None
    gate: Literal["printed", "none"] | None = None
    constant: Literal["source", "paper"] | None = None
    context: Literal["hidden", "observed"] | None = None
    shares: Literal["registered", "equal", "paper"] = "registered"
    baseline: Annotated[Text, Field(max_length=200)] = "baseline"
    looked_at: Digest | None = None
    lease_s: Seconds | None = None
    profile: Literal["platform", "hospital"] = "platform"
    sync: SyncSettings = SyncSettings()
    rewards: RewardSettings = RewardSettings()
    uploads: UploadSettings = UploadSettings()

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
    def _with_names(cls, given: Any) -> Any:
        """Let `features` be an object that has names, and a budget one of an agent in a process."""
        if not isinstance(given, Mapping):
            return given
        if is_dataclass(given.get("budget")):
            given = {**given, "budget": vars(given["budget"])}
        if isinstance(given.get("features"), Features):
            given = {**given, "named_features": given["features"].to_dict()}
            del given["features"]
        if isinstance(given.get("named_features"), Mapping) and "features" not in given:
            return {**given, "features": read_named(given["named_features"]).names}
        return given

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
        if self.named is not None and self.named.names != self.features:
            raise invalid(
                f"features={list(self.features)} are not the names of named_features, "
                f"{list(self.named.names)}: leave features out."
            )
        if self._only_unit_rewards and not 0.0 <= self.rewards.low < self.rewards.high <= 1.0:
            raise invalid(
                "without a stated noise every reward lies in [0, 1], but rewards.low="
                f"{self.rewards.low:g} and rewards.high={self.rewards.high:g}: scale rewards, or "
                "state noise."
            )
        self._check_owner()
        try:
            policy = self._policy  # whatever else the algorithm has against it
        except (ValueError, TypeError, ArithmeticError) as error:
            raise invalid(str(error)) from None
        check_extremes(self.delta, policy.penalty, self.feature_bound)
        if self.shares == "paper" and policy.anytime:
            raise invalid(
                f"shares='paper' does not split delta, but what {self.algorithm} promises needs a "
                "split: use shares='registered' or shares='equal'."
            )
        if self.tolerate:
            self._check_tolerance()
        if self.window is not None:
            self._check_window()
        if self.budget is not None and (self.tolerate or not policy.differences):
            raise invalid("a budget is for guard-ucb with tolerate=0: leave one of them out.")
        for name in ("alpha", "mode"):  # what is promised is always said
            object.__setattr__(self, name, getattr(policy, name, None))
        return self

    def _check_tolerance(self) -> None:
        """Refuse what sums without each task would undo, or are too large for."""
        if self.sync.min_streams > 1:
            raise invalid(
                f"tolerate=1 tells agents the sums without each task, and sync.min_streams="
                f"{self.sync.min_streams} keeps single tasks' sums from them: leave one of them "
                "out."
            )
        try:
            self.learner().plan(Facts(((0,),), self.dim, size=self.agents))
        except ValueError as error:
            raise invalid(str(error)) from None

    def _check_window(self) -> None:
        """Refuse what would hide single tasks or rewards that half windows show."""
        for name in ("min_streams", "min_batch"):
            least = getattr(self.sync, name)
            if least > 1:
                raise invalid(
                    f"window={self.window} tells the sums of the newest half window apart, in "
                    f"which there may be less than sync.{name}={least} asks for: leave one of them "
                    "out."
                )

    @cached_property
    def timed(self) -> bool:
        """Whether rounds have numbers, the same for all tasks: by context, or to forget by."""
        return self.contexts == "shared" or self.window is not None

    def half_at(self, round: int) -> int:
        """Return the number of the half window of a round, from 1 on; 0: there is no window."""
        return 0 if self.window is None else (max(round, 1) - 1) // (self.window // 2) + 1

    def first_round(self, half: int) -> int:
        """Return the first round of a half window; 0: all rounds count."""
        return 0 if self.window is None or half < 1 else (half - 1) * (self.window // 2) + 1

    @property
    def others(self) -> int:
        """How many other tasks may be the one that lies, of which each has a part of delta."""
        return self.agents - 1 if self.tolerate and self.agents > 1 else 1

    def _check_owner(self) -> None:
        """Refuse what is stated, but is a setting of other algorithms only."""
        stated = {**dict(self), "alpha": self.alpha or self.alphas or None}
        for name in sorted(set(stated) & FOREIGN[self.algorithm]):
            if stated[name] is not None:
                raise invalid(
                    f"{self.algorithm} has no setting {name}={stated[name]!r}: leave it out "
                    f"({name}=null on the command line), or choose an algorithm that has it."
                )

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return len(self.features)

    @cached_property
    def named(self) -> Features | None:
        """The named features, where the space has them."""
        return None if self.named_features is None else read_named(self.named_features)

    @property
    def max_weight(self) -> float:
        """The largest weight that an observation can have."""
        return self._policy.max_weight

    @property
    def by_variance(self) -> bool:
        """Whether observations have weights by variance: no noise is stated to Guard-UCB.

        Its radii from log det V are not valid for such weights: with them it has none.
        """
        by_volume = self.radius in ("logdet", "paper") or self.drift is not None
        return self._only_unit_rewards and not by_volume

    @property
    def _only_unit_rewards(self) -> bool:
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
    def allowance(self) -> float | None:
        """What trials, or exploration, may cost a task in all: trial_budget or max_loss."""
        return self.max_loss if self.mode == "policy" else self.trial_budget

    @property
    def schema_hash(self) -> str:
        """A digest of what must be the same for data to be added up, in the words of format 1."""
        own = ("features", "ridge", "feature_bound", "theta_bound", "contexts", "noise", "baseline")
        parts = {name: getattr(self, name) for name in own}
        algorithm = FORMAT_1.get(self.algorithm, self.algorithm)
        parts |= {"spread": self.context_noise, "algorithm": algorithm}
        parts |= {"low": self.rewards.low, "high": self.rewards.high}
        # Format 1 had none of these. They say what an observation is worth.
        newer = ("reward_ceiling", "radius", "constant", "context", "named_features")
        for name in (*newer, "window", "drift"):
            if getattr(self, name) is not None:
                parts[name] = getattr(self, name)
        if self.tolerate:
            parts["tolerate"] = self.tolerate
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def learner(self, task: str | None = None, delta: float | None = None) -> Any:
        """Return the algorithm, with the alpha of `task` and `delta` in place of the space's."""
        kind = POLICIES[self.algorithm]
        settings = {
            **dict(self),
            "alpha": self.alphas.get(task or "", self.alpha),
            "delta": self.delta if delta is None else delta,
            "shared_context": self.contexts == "shared",
        }
        own = {name: settings.get(name) for name in kind.settings()}
        given = {name: value for name, value in own.items() if value is not None}
        return kind(**given)

    def alpha_of(self, task: str) -> float:
        """Return a task's alpha; 1 where nothing is promised."""
        alpha = self.alphas.get(task, self.alpha)
        return 1.0 if alpha is None else alpha

    @cached_property
    def _policy(self) -> Policy:
        policy: Policy = self.learner()
        return policy

    def as_json(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SpaceSettings:
        """Return what `as_json` wrote, in this version or an earlier one; ValueError otherwise."""
        return cls(**upgraded(data))

    def changed(self, **settings: Any) -> SpaceSettings:
        """Return the space with other settings."""
        stated = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**{**stated, **settings})
