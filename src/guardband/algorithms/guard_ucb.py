"""Guard-UCB: optimism among actions certified to clear the floor, in strict or policy mode."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from guardband.algorithms.guard_settings import (
    as_ceiling,
    as_drift,
    as_holdback,
    as_realised,
    as_window,
    check_size,
    check_tolerance,
    check_window,
)
from guardband.algorithms.plan import Plan, Traffic, packed
from guardband.algorithms.policy import Policy, Rate
from guardband.algorithms.registry import register
from guardband.checks import (
    as_alpha,
    check_choice,
    check_delta,
    check_fraction,
    check_not_negative,
    check_positive,
    check_whole,
)
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.types import (
    LEAST_RATE,
    Mix,
    Radius,
    Realised,
    Response,
    Rule,
    Terms,
    Trigger,
)

__all__ = ["GuardUCB"]

# Growth of log det V at which an agent that had to be conservative calls for a pooling at once.
# Without the pooled set every pooling costs confidence.
EAGER, RELUCTANT = 0.3, {"strict": 0.7, "policy": math.inf}
RADII = {kind.name.lower(): kind for kind in Radius}
PLANNED_CONTEXT_NOISE = 0.2  # for planning exploration only; safety does not depend on it
RESPONSES = {kind.name.lower(): kind for kind in Response}
ALLOWANCES = {"strict": "trial_budget", "policy": "max_loss"}
PAPER_CONTEXT_NOISE = 1.0  # what the paper assumes of a hidden context


@register(
    "guard-ucb-policy",
    about="the same, certified as a randomised choice: learns faster",
    constraint="stage-wise",
    communication="pools when log det V has grown, no horizon",
    source="guardband",
    reading="own",
    label="Guard-UCB-policy",
    colour="#E69F00",
    mode="policy",
)
@register(
    "guard-ucb",
    about="certified plays, unknown or known baseline; the default",
    constraint="stage-wise",
    communication="pools when log det V has grown, no horizon",
    source="guardband",
    reading="own",
    label="Guard-UCB",
    colour="#D55E00",
)
@dataclass(frozen=True)
class GuardUCB(Policy):
    """Guard-UCB: certificates on differences, weights by noise, no gate and no horizon.

    In strict mode every action played satisfies the constraint, in expectation over the hidden
    context; in policy mode the randomised choice does, and a single play may lie below the floor.
    Both hold for all agents and rounds together with probability 1 - delta, if the bounds stated
    here are true.

    Parameters
    ----------
    alpha
        The share of the baseline's reward that may be lost, in (0, 1]; one number, or one per task.
    noise
        None: every reward lies in [0, 1], and nothing else is known of it; agents refuse others.
        Observations count by the largest variance that the confidence set allows. A number sigma
        above 0: the reward noise is sigma-sub-Gaussian, and rewards may leave [0, 1].
    delta
        The probability with which the promise may fail.
    theta_bound
        S, a bound on the length of theta.
    mode
        "strict" or "policy".
    shared_context
        Whether agents act under one hidden context in a round, as in the paper; then their data
        carry less information, and the set accounts for it (f = M, else f = 1).
    reward_ceiling
        No expected reward is larger, such as 0.1 for click rates; None: 1. With noise=None it
        makes the first observations count more.
    optimism
        gamma: how much of the confidence width counts for the target; None: half of it, and less
        where residuals are smaller than the noise may be. Safety does not depend on it.
    bias_bound
        A bound on a lasting error of the expected features' reward, |E[(phi - psi)'theta]|.
    baseline_tolerance
        tau: reported baseline rewards are right to +-tau; None does not use them at all.
    realised
        None: the promise is an expectation over the hidden context. ("chance", eps): it holds for
        the context drawn with probability 1 - eps. "worst": in every possible context. Both need
        strict mode and the support of the context distribution; ("chance", eps) is content with
        the covariances of the features.
    anchors
        Learn from reported baseline rewards as well; needs baseline_tolerance.
    context_noise
        A bound on half the range (or the sub-Gaussian deviation) of what the hidden context adds
        to a reward; None: from the round's support, or 1/2 where there is none.
    radius
        "best", "logdet", "empirical", or "paper" (the paper's set, for comparison).
    ridge
        lambda; None: 1 / theta_bound^2.
    share
        False keeps the agents apart.
    pooled_set
        Certify by the pooled data alone, too, as one process: it pays for no agents and poolings.
        Agents in one process and simulations have it; live agents keep to their own views.
    on_refuted
        "baseline": certificates also use that every expected reward lies in [0, 1]. Where no
        parameter of the confidence set fits that, the assumptions are refuted, and the baseline is
        played. "ellipsoid": certificates use the confidence set alone, for problems that are known
        to be outside the model.
    trial_budget
        In units of reward, for each task: strict mode may try an action that is not certified,
        where nothing certified teaches about it. A trial is charged with the most that it can fall
        short of the floor by, and trials stop when the next charge does not fit. None: no trials.
    max_loss
        In units of reward, for each task: policy mode stops exploring before its explored plays
        could have cost more against the baseline, and plays certified actions from then on. None:
        it explores for ever.
    tolerate
        1: whatever any one other task sends, no play of this task is below its floor. An action
        is certified only if it is certified without the data of each other task. 0: all tasks are
        trusted. With two tasks each certifies by its own data; one task alone has no others.
    holdback
        h in [0, 0.5]: with this probability a coin of its own plays the baseline, whatever was
        chosen, so that what the choices earn can be measured without a model (`agent.uplift()`).
    on_alarm
        What monitors do when rewards contradict all this: "restart" (forget, and keep to the
        baseline until certified anew), "baseline" (until a person resumes it) or "warn".
    delta_alarm
        The probability with which monitors may ever raise a false alarm; 0 or None: none
        watch. None do with on_refuted="ellipsoid".
    window
        In rounds, for worlds that move: only data of the last half to whole window count. None: all
        data do.
    drift
        With a window: no action's expected reward changes by more in a round. The promise then
        counts what may have changed; None: it holds if nothing changes within a window.

    Examples
    --------
    >>> import guardband as gb
    >>> gb.simulate("forecast", gb.GuardUCB(noise=0.1), rounds=500)["guard-ucb"].violations_expected
    array([[0., 0., 0., 0., 0.]])
    """

    alpha: float | tuple[float, ...] = 0.1
    noise: float | None = None
    delta: float = 1e-3
    theta_bound: float = 1.0
    mode: str = field(default="strict", kw_only=True)
    shared_context: bool = field(default=True, kw_only=True)
    reward_ceiling: float | None = field(default=None, kw_only=True)
    optimism: float | None = field(default=None, kw_only=True)
    bias_bound: float = field(default=0.0, kw_only=True)
    baseline_tolerance: float | None = field(default=None, kw_only=True)
    realised: Any = field(default=None, kw_only=True)
    anchors: bool = field(default=False, kw_only=True)
    context_noise: float | None = field(default=None, kw_only=True)
    radius: str = field(default="best", kw_only=True)
    ridge: float | None = field(default=None, kw_only=True)
    share: bool = field(default=True, kw_only=True)
    pooled_set: bool = field(default=True, kw_only=True)
    on_refuted: str = field(default="baseline", kw_only=True)
    trial_budget: float | None = field(default=None, kw_only=True)
    max_loss: float | None = field(default=None, kw_only=True)
    tolerate: int = field(default=0, kw_only=True)
    holdback: float = field(default=0.0, kw_only=True)
    on_alarm: str = field(default="restart", kw_only=True)
    delta_alarm: float | None = field(default=1e-3, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    drift: float | None = field(default=None, kw_only=True)

    constrained: ClassVar[bool] = True
    runs: ClassVar[frozenset[str]] = frozenset({"agent", "live"})
    weighted: ClassVar[bool] = True
    differences: ClassVar[bool] = True
    anytime: ClassVar[bool] = True
    needs_model: ClassVar[bool] = True
    reports: ClassVar[bool] = True
    watched: ClassVar[bool] = True
    rate: ClassVar[Rate] = Rate(0.2, 0.0, 0.0022)
    keeps: ClassVar[frozenset[str]] = frozenset({"ridge"})  # follows from theta_bound

    @property
    def name(self) -> str:
        """The name in lists, plots and on the command line."""
        return "guard-ucb" if self.mode == "strict" else "guard-ucb-policy"

    def __post_init__(self) -> None:
        numbers = as_alpha(self.alpha)
        set_ = object.__setattr__
        set_(self, "alpha", numbers[0] if np.ndim(self.alpha) == 0 else numbers)
        if self.noise is not None:
            why = "A noise of zero gives infinite weights; state a small one."
            set_(self, "noise", check_positive("noise", self.noise, why))
        if self.reward_ceiling is not None:
            set_(self, "reward_ceiling", as_ceiling(self.reward_ceiling))
        set_(self, "delta", check_delta(self.delta))
        set_(self, "theta_bound", check_positive("theta_bound", self.theta_bound))
        check_choice("mode", self.mode, ("strict", "policy"))
        check_choice("radius", self.radius, tuple(RADII))
        check_choice("on_refuted", self.on_refuted, ("baseline", "ellipsoid"))
        check_choice("on_alarm", self.on_alarm, tuple(RESPONSES))
        # With a probability of 0 there is no false alarm: nothing is watched.
        chance = check_fraction("delta_alarm", self.delta_alarm) if self.delta_alarm else None
        set_(self, "delta_alarm", chance)
        set_(self, "bias_bound", check_not_negative("bias_bound", self.bias_bound))
        for name in ("baseline_tolerance", "context_noise", "optimism", *ALLOWANCES.values()):
            if getattr(self, name) is not None:
                set_(self, name, check_not_negative(name, getattr(self, name)))
        set_(self, "holdback", as_holdback(self.holdback))
        if self.ridge is not None:
            set_(self, "ridge", check_positive("ridge", self.ridge))
        if self.anchors and self.baseline_tolerance is None:
            raise InvalidValueError(
                "anchors=True learns from reported baseline rewards: say how far they may be off "
                "with baseline_tolerance=..."
            )
        if self.radius == "paper" and self.bias_bound > 0:
            raise InvalidValueError("bias_bound widens the radii of Guard-UCB, not radius='paper'.")
        set_(self, "realised", as_realised(self.realised))
        if self.realised is not None and self.mode != "strict":
            raise InvalidValueError(
                "realised=... is a promise about single plays: use mode='strict'."
            )
        for mode, name in ALLOWANCES.items():
            value = getattr(self, name)
            if value is not None and self.mode != mode:
                raise InvalidValueError(
                    f"{name}={value:g} is for mode={mode!r}, not {self.mode!r}: use "
                    f"{ALLOWANCES[self.mode]}=... there."
                )
        set_(self, "tolerate", check_whole("tolerate", self.tolerate, 0))
        set_(self, "window", as_window(self.window))
        set_(self, "drift", as_drift(self.drift))
        check_window(self)
        check_tolerance(self)
        if self.trial_budget is not None and self.realised is not None:
            raise InvalidValueError(
                f"trial_budget={self.trial_budget:g} bounds what trials fall short by in "
                "expectation, not in the context that is drawn: leave realised=... out."
            )

    @property
    def unused(self) -> frozenset[str]:
        """The allowance of the other mode."""
        return frozenset(ALLOWANCES.values()) - {ALLOWANCES[self.mode]}

    @property
    def allowance(self) -> float | None:
        """What trials, or explored plays, may cost in all: trial_budget or max_loss."""
        return self.trial_budget if self.mode == "strict" else self.max_loss

    @property
    def penalty(self) -> float:
        """The ridge, lambda, as it is used."""
        return self.theta_bound**-2 if self.ridge is None else self.ridge

    @property
    def max_weight(self) -> float:
        """The largest weight that an observation can have: 1 / noise^2, or 1 / variance."""
        least = LEAST_RATE * (1.0 - LEAST_RATE) if self.noise is None else self.noise**2
        return 1.0 / least

    @property
    def randomised(self) -> bool:
        """Whether the promise is about a randomised choice, not about single plays."""
        return self.mode == "policy"

    def confidence(self, delta: float) -> float:
        """Return 2 log(1 / level) as the kernels use it; two radii halve the level."""
        best = self.radius == "best" and self.drift is None  # see Proposition 11
        two = self.radius == "paper" or (best and self.noise is not None)
        return 2.0 * math.log((2.0 if two else 1.0) / delta)

    def beta(self, growth: float, delta: float) -> float:
        """Return sqrt(growth + 2 log(1 / delta) + lambda S^2); growth is log det(V / lambda) or G.

        Weights carry the noise.
        """
        return math.sqrt(growth + 2.0 * math.log(1.0 / delta) + self.penalty * self.theta_bound**2)

    def _threshold(self, facts: Facts) -> float:
        """Return log(3 M / delta_alarm), for three monitors of M agents; NaN: none watch.

        A window needs the sums of monitors; infinite: they keep them, and raise no alarm. Agents
        elsewhere have sums of their own that forget.
        """
        known = self.radius != "paper" and self.on_refuted == "baseline"
        if self.delta_alarm is None or not known:
            return math.inf if self.window is not None and facts.size is None else math.nan
        return math.log(3.0 * facts.agents / self.delta_alarm)

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        agents, paper = facts.agents, self.radius == "paper"
        bounded = self.noise is None or facts.bounded
        radius = self.radius if self.drift is None else "logdet"  # see Proposition 11
        by_variance = bounded and radius in ("best", "empirical")
        # What lies in [0, 1] is 1/2-sub-Gaussian.
        stated = math.inf if self.noise is None else self.noise**2
        variance = min(stated, 0.25) if bounded else stated
        radii = 2 if radius == "best" and not by_variance else 1
        # Agents elsewhere pool what was cut by rules that this proof does not cover.
        pooled = self.pooled_set and self.share and agents > 1 and facts.size is None and not paper
        pooled = pooled and self.drift is None
        tolerant = self.tolerate > 0 and agents > 1  # one task alone has no others
        if tolerant:
            check_size(agents, facts)
        alarm = self._threshold(facts)
        # Half is for the first window, and half for all that follow; or for who is left in a pool
        # when some have left, which one that lies can bring about.
        later = self.window is not None or (tolerant and not math.isnan(alarm))
        whole = 0.5 * self.delta if later else self.delta
        delta = 0.5 * whole if pooled else whole
        # Whoever lies may be chosen by looking at rewards: the sets without each task are counted.
        others, sets = (agents - 1, agents) if tolerant else (1, 1)
        # delta_p = 6 delta / (pi^2 M p^2) over the epochs p, halved where two radii are used.
        share = 6.0 * delta / (math.pi**2 * agents * radii * others)
        context_noise = PAPER_CONTEXT_NOISE if paper else self.context_noise
        # Agents that keep their data to themselves never hold two rewards of one context; and a
        # context that adds nothing to rewards does not connect them.
        shared = self.shared_context and self.share and not paper and context_noise != 0.0
        sharing = float(agents) if shared else 1.0
        planned = PLANNED_CONTEXT_NOISE if context_noise is None else context_noise
        kind, chance = Realised.NONE, 0.0
        if self.realised == "worst":
            kind = Realised.WORST
        elif self.realised is not None:
            kind, chance = Realised.CHANCE, self.realised[1]
        terms = Terms(
            rule=int(Rule.GUARD),
            mix=int(Mix.ACTION),  # only real actions are played
            strict=self.mode == "strict",
            # A single agent has no other to pool with, and every epoch uses up part of delta.
            trigger=int(Trigger.ANYTIME if self.share and agents > 1 else Trigger.NEVER),
            eager=EAGER if pooled else RELUCTANT[self.mode],
            radius=int(RADII[radius]),
            realised=int(kind),
            chance=float(chance),
            tail=math.sqrt((1.0 - chance) / chance) if chance > 0 else math.inf,  # Cantelli
            anchors=bool(self.anchors),
            tolerance=-1.0 if self.baseline_tolerance is None else self.baseline_tolerance,
            ridge=self.penalty,
            variance=variance,
            by_variance=by_variance,
            ceiling=1.0 if self.reward_ceiling is None else self.reward_ceiling,
            sharing=sharing,
            context_noise=math.nan if context_noise is None else float(context_noise),
            planned_weight=1.0 / (variance + sharing * planned**2),
            optimism=math.nan if self.optimism is None else self.optimism,
            bias=self.bias_bound,
            use_range=self.on_refuted == "baseline",
            allowance=math.nan if self.allowance is None else self.allowance,
            holdback=self.holdback,
            theta_bound=self.theta_bound,
            confidence=2.0 * math.log(2.0 / self.delta if paper else 1.0 / share),
            pooled_confidence=2.0 * math.log(radii * sets / delta) if pooled else math.nan,
            tolerate=float(tolerant),
            agents=float(agents),
            alarm=alarm,
            on_alarm=int(RESPONSES[self.on_alarm]),
            shares=self.share and agents > 1,
            half=float((self.window or 0) // 2),
            drift=self.drift or 0.0,
        )
        alpha = np.array(as_alpha(self.alpha, agents))
        # n, sum w y^2, H and sum w go with W and U; with anchors, the same of the reports.
        numbers = (2 if self.anchors else 1) * (packed(facts.dim) + 4)
        # Every agent sends its sums and is sent those of all; or those without each task.
        traffic = Traffic(2 * agents, (1 + sets) * agents * numbers)
        return Plan(terms, alpha, np.zeros(agents), traffic=traffic)
