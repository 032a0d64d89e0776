"""What the agents of a space agree on, and what a coordinator holds them to."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from guardband.algorithms import DiscUCB, DiscUCBUnknown, DisLinUCB, GuardUCB
from guardband.checks import (
    check_choice,
    check_fraction,
    check_not_negative,
    check_positive,
    check_whole,
    nearest,
)

__all__ = ["PROFILES", "RewardSettings", "SpaceSettings", "SyncSettings"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
ALGORITHMS: dict[str, Any] = {
    "guard-ucb": GuardUCB,
    "disc-ucb": DiscUCB,
    "disc-ucb-unknown": DiscUCBUnknown,
    "dis-lin-ucb": DisLinUCB,
}
# How spaces of the first format name their algorithm; digests are taken of these for ever.
FIRST_NAMES = {
    "guard-ucb": "GuardUcb",
    "disc-ucb": "DiscUcb",
    "disc-ucb-unknown": "DiscUcbUnknown",
    "dis-lin-ucb": "DisLinUcb",
}
NEW_NAMES = {old: new for new, old in FIRST_NAMES.items()}
TRIGGERS = ("anytime", "paper", "ratio", "interval")
MAX_DIM = 256  # a total must fit into one message


@dataclass(frozen=True, kw_only=True)
class SyncSettings:
    """When agents pool, and under which rules.

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

    trigger: str = "anytime"
    budget: float = 10.0
    growth: float = 1.0
    interval_s: float = 60.0
    deadline_s: float = 2.0
    min_interval_s: float = 0.0
    min_batch: int = 1
    min_streams: int = 1
    live_s: float = 75.0

    def __post_init__(self) -> None:
        check_choice("sync.trigger", self.trigger, TRIGGERS)
        for name in ("budget", "growth", "interval_s", "deadline_s", "live_s"):
            check_positive(f"sync.{name}", getattr(self, name))
        check_not_negative("sync.min_interval_s", self.min_interval_s)
        check_whole("sync.min_batch", self.min_batch)
        check_whole("sync.min_streams", self.min_streams)


@dataclass(frozen=True, kw_only=True)
class RewardSettings:
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

    low: float = 0.0
    high: float = 1.0
    window_s: float = 600.0
    default: float = 0.0
    order: str = "window"
    silence: str = "missing"

    def __post_init__(self) -> None:
        for name in ("low", "high", "default"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"rewards.{name} must be finite, not {getattr(self, name)}.")
        if not self.low < self.high:
            raise ValueError(f"rewards.low={self.low:g} must be below high={self.high:g}.")
        if not self.low <= self.default <= self.high:
            raise ValueError(
                f"rewards.default={self.default:g} is not between {self.low:g} and {self.high:g}."
            )
        check_positive("rewards.window_s", self.window_s)
        check_choice("rewards.order", self.order, ("window", "prompt"))
        check_choice("rewards.silence", self.silence, ("missing", "default"))


@dataclass(frozen=True, kw_only=True)
class SpaceSettings:
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
    noise, theta_bound, feature_bound, spread, ridge
        Bounds, as for `gb.GuardUCB`.
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
        "platform" or "hospital": which defaults were asked for.
    """

    name: str
    features: tuple[str, ...]
    agents: int
    contexts: str = "shared"
    alpha: float = 0.1
    alphas: dict[str, float] = field(default_factory=dict)
    delta: float = 1e-3
    noise: float = 1.0
    theta_bound: float = 1.0
    feature_bound: float = 1.0
    spread: float | None = None
    ridge: float | None = None
    mode: str = "strict"
    algorithm: str = "guard-ucb"
    shares: str = "registered"
    baseline: str = "baseline"
    lease_s: float | None = None
    profile: str = "platform"
    sync: SyncSettings = field(default_factory=SyncSettings)
    rewards: RewardSettings = field(default_factory=RewardSettings)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"a space's name has letters, digits and ._- only, not {self.name!r}.")
        if not 1 <= len(self.features) <= MAX_DIM:
            raise ValueError(f"a space has 1 to {MAX_DIM} features, not {len(self.features)}.")
        if len(set(self.features)) < len(self.features):
            raise ValueError("the features' names must differ from each other.")
        check_whole("agents", self.agents)
        check_choice("contexts", self.contexts, ("shared", "per-request"))
        check_choice("mode", self.mode, ("strict", "policy"))
        check_choice("algorithm", self.algorithm, tuple(ALGORITHMS))
        check_choice("shares", self.shares, ("registered", "equal"))
        check_choice("profile", self.profile, tuple(PROFILES))
        check_fraction("delta", self.delta)
        for name in ("noise", "theta_bound", "feature_bound"):
            check_positive(name, getattr(self, name))
        for alpha in (self.alpha, *self.alphas.values()):
            if not 0.0 < alpha <= 1.0:
                raise ValueError(f"alpha must be in (0, 1], not {alpha:g}.")
        if self.lease_s is not None:
            check_positive("lease_s", self.lease_s)
        self.learner()  # whatever else the algorithm has against it

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return len(self.features)

    @property
    def max_weight(self) -> float:
        """The largest weight that an observation can have."""
        return 1.0 / self.noise**2 if self.algorithm == "guard-ucb" else 1.0

    @property
    def reward_bound(self) -> float:
        """The largest size of a reward."""
        return max(abs(self.rewards.low), abs(self.rewards.high))

    @property
    def penalty(self) -> float:
        """The ridge, lambda, as the algorithm uses it."""
        if self.ridge is not None:
            return self.ridge
        return 1.0 / self.theta_bound**2 if self.algorithm == "guard-ucb" else 1.0

    @property
    def schema_hash(self) -> str:
        """A digest of what must be the same for data to be added up."""
        own = ("features", "ridge", "feature_bound", "theta_bound", "spread", "contexts")
        parts = {name: getattr(self, name) for name in (*own, "noise", "baseline", "algorithm")}
        parts["algorithm"] = FIRST_NAMES[self.algorithm]
        parts |= {"low": self.rewards.low, "high": self.rewards.high}
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def learner(self, task: str | None = None, delta: float | None = None) -> Any:
        """Return the algorithm, with the alpha of `task` and `delta` in place of the space's."""
        kind = ALGORITHMS[self.algorithm]
        settings: dict[str, Any] = {
            "alpha": self.alphas.get(task or "", self.alpha),
            "delta": self.delta if delta is None else delta,
            "noise": self.noise,
            "theta_bound": self.theta_bound,
            "feature_bound": self.feature_bound,
            "context_noise": self.spread,
            "ridge": self.ridge,
            "mode": self.mode,
            "shared_context": self.contexts == "shared",
        }
        own = {f.name for f in fields(kind)}
        given = {k: v for k, v in settings.items() if k in own}
        if kind is not GuardUCB:
            given = {k: v for k, v in given.items() if v is not None}
        return kind(**given)

    def as_json(self) -> dict[str, Any]:
        """Return the space as plain data.

        What came later is left out where it is as before: older agents refuse unknown settings.
        """
        data = {**asdict(self), "features": list(self.features)}
        if self.rewards.silence == "missing":
            del data["rewards"]["silence"]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SpaceSettings:
        """Return the space that `as_json` describes; anything that does not fit raises."""
        given = dict(data)
        profile = PROFILES.get(given.get("profile", "platform"), {})
        sync = {**profile.get("sync", {}), **given.pop("sync", {})}
        rewards = {**profile.get("rewards", {}), **given.pop("rewards", {})}
        rest = {k: v for k, v in profile.items() if k not in ("sync", "rewards")}
        given = {**rest, **given}
        if given.get("algorithm") in NEW_NAMES:
            given["algorithm"] = NEW_NAMES[given["algorithm"]]
        if "features" in given:
            given["features"] = tuple(given["features"])
        for kind, settings, before in (
            (cls, given, ""),
            (SyncSettings, sync, "sync."),
            (RewardSettings, rewards, "rewards."),
        ):
            known = [f.name for f in fields(kind)]
            for name in settings:
                if name not in known:
                    raise ValueError(
                        f"unknown setting {before}{name}; there are {', '.join(known)}."
                        f"{nearest(name, known)}"
                    )
        return cls(**given, sync=SyncSettings(**sync), rewards=RewardSettings(**rewards))

    def changed(self, **settings: Any) -> SpaceSettings:
        """Return the space with other settings."""
        return replace(self, **settings)


# Defaults by profile; whatever is given beside it wins.
PROFILES: dict[str, dict[str, Any]] = {
    "platform": {},
    "hospital": {"lease_s": 86_400.0, "sync": {"min_batch": 20, "min_streams": 3}},
}
