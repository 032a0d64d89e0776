"""A space's settings: what its agents agree on, and what a coordinator holds them to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from guardband.algorithms import ALGORITHMS, Policy
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.features import Features
from guardband.live.protocol.space_rules import (
    TRIGGERS,
    BudgetSettings,
    RewardSettings,
    SettingsModel,
    SyncSettings,
    UploadSettings,
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

__all__ = ["POLICIES", "RewardSettings", "SpaceSettings", "SyncSettings", "UploadSettings"]

# What live agents can run, by the name on the command line; variants are settings here.
POLICIES = {
    name: entry.kind
    for name, entry in ALGORITHMS.items()
    if "live" in entry.kind.runs and not entry.preset
}
# What each has settings for; the features' length is checked by agents, whatever they run.
SETTINGS = {
    name: {*kind.settings(), *kind.told, "feature_bound"} for name, kind in POLICIES.items()
}
# What only others have settings for.
FOREIGN = {name: set().union(*SETTINGS.values()) - own for name, own in SETTINGS.items()}
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
        if self.shares == "paper" and policy.anytime:
            raise invalid(
                f"shares='paper' does not split delta, but what {self.algorithm} promises needs a "
                "split: use shares='registered' or shares='equal'."
            )
        if self.tolerate:
            self._check_tolerance()
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
        return self._only_unit_rewards and self.radius not in ("logdet", "paper")

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
        for name in ("reward_ceiling", "radius", "constant", "context", "named_features"):
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
        return kind(**{name: value for name, value in own.items() if value is not None})

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
        """Return what `as_json` wrote, in this version or an earlier one; ValueError otherwise.

        Earlier ones wrote settings that the algorithm, or the trigger, did not have, and did not
        use them.
        """
        given = dict(data)
        if "spread" in given:
            given["context_noise"] = given.pop("spread")
        for new, old in FORMAT_1.items():
            if given.get("algorithm") == old:
                given["algorithm"] = new
                given.setdefault("on_refuted", "ellipsoid")  # the range of rewards was not used
                given.setdefault("optimism", 1.0)
        unused = FOREIGN.get(given.get("algorithm", "guard-ucb"), set())
        unused = {*unused, "alphas"} if "alpha" in unused else unused
        sync = given.get("sync")
        if isinstance(sync, Mapping) and "trigger" in sync:
            other = {
                name for each in TRIGGERS if each != sync["trigger"] for name in TRIGGERS[each]
            }
            given["sync"] = {name: value for name, value in sync.items() if name not in other}
        return cls(**{name: value for name, value in given.items() if name not in unused})

    def changed(self, **settings: Any) -> SpaceSettings:
        """Return the space with other settings."""
        stated = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**{**stated, **settings})
