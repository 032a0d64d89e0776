"""What the paper's bounds depend on, and what a bound is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from guardband.checks import (
    as_alpha,
    check_choice,
    check_fraction,
    check_not_negative,
    check_positive,
    check_whole,
)
from guardband.errors import InvalidValueError

__all__ = ["Bound", "Setting", "root"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The constants of a problem that bounds depend on, and the settings of DiSC-UCB.

    Parameters
    ----------
    agents, horizon, dim
        M, T and d.
    alpha
        The share of the baseline's reward that may be lost, in (0, 1].
    reward_low, reward_high
        r_l <= r_b <= r_h, the range of the baseline's reward.
    gap_low, gap_high
        kappa_l <= kappa_b <= kappa_h, the range of the optimum's lead over the baseline.
    noise
        sigma: the reward noise is sigma-sub-Gaussian.
    context_noise
        What stands beside it for the hidden context; 1 in the paper.
    delta
        None: 1 / (M^2 T), as in the last sentence of `T1`.
    ridge
        lambda.
    theta_bound, feature_bound
        S and L, bounds on the lengths of theta and of features; 1 in the paper.
    rho
        The weight of exploration in a conservative round; None: the largest that `L3` (known
        baseline) or `L3_2` (unknown) allows.
    shared_context
        Whether agents act under one hidden context in a round, as in the paper.
    """

    agents: int
    horizon: int
    dim: int
    alpha: float
    reward_low: float
    reward_high: float = 1.0
    gap_low: float = 0.0
    gap_high: float = 1.0
    noise: float = 1.0
    context_noise: float = 1.0
    delta: float | None = None
    ridge: float = 1.0
    theta_bound: float = 1.0
    feature_bound: float = 1.0
    rho: float | None = None
    shared_context: bool = True

    def __post_init__(self) -> None:
        for name in ("agents", "horizon", "dim"):
            check_whole(name, getattr(self, name))
        (alpha,) = as_alpha(self.alpha)
        checked = {"alpha": alpha}
        if self.delta is not None:
            checked["delta"] = check_fraction("delta", self.delta)
        for name in ("noise", "context_noise", "reward_low", "reward_high"):
            checked[name] = check_not_negative(name, getattr(self, name))
        for name in ("ridge", "theta_bound", "feature_bound"):
            checked[name] = check_positive(name, getattr(self, name))
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.reward_low > self.reward_high:
            raise InvalidValueError(
                f"reward_low is {self.reward_low:g}, above reward_high, {self.reward_high:g}: "
                "they are the least and the largest reward of the baseline."
            )
        if self.rho is not None and not 0.0 <= self.rho < 1.0:
            raise InvalidValueError(f"rho must lie in [0, 1), not {self.rho!r}.")

    @property
    def level(self) -> float:
        """delta, whether it was given or follows from M and T."""
        return 1.0 / (self.agents**2 * self.horizon) if self.delta is None else self.delta

    @property
    def observations(self) -> int:
        """M T: how many rewards all agents see together."""
        return self.agents * self.horizon

    @property
    def log_all(self) -> float:
        """log(M T)."""
        return math.log(self.observations)

    def mixed(self, *, unknown: bool = False) -> float:
        """Return rho: as given, or the largest safe one for a known or unknown baseline."""
        if self.rho is not None:
            return self.rho
        high = 1.0 if unknown else self.reward_high
        return self.alpha * self.reward_low / (self.theta_bound + high)

    def information(self, observations: int | None = None) -> float:
        """Return d log(1 + n L^2 / (lambda d)), which log det(V / lambda) never exceeds (`LT2`)."""
        n = self.observations if observations is None else observations
        return self.dim * math.log1p(n * self.feature_bound**2 / (self.ridge * self.dim))

    def start(self, *, printed: bool = False) -> float:
        """Return beta before the first round.

        The algorithm's: sqrt(context_noise^2 + sigma^2) sqrt(2 log(2 / delta)) + sqrt(lambda) S.
        As printed in `L7` and in the footnote of `T1`: sigma sqrt(2 log(1 / delta)) +
        sqrt(lambda), which is smaller: the algorithm never has that radius.
        """
        if printed:
            return self.noise * math.sqrt(2.0 * math.log(1.0 / self.level)) + math.sqrt(self.ridge)
        return self.radius(0.0)

    def radius(self, logdet: float | None = None) -> float:
        """Return beta(sqrt(context_noise^2 + sigma^2), delta / 2) of `eq:conf`.

        `logdet` is log det(V / lambda); None: its bound after M T observations, so that the
        result is a bound on beta_T.
        """
        grown = self.information() if logdet is None else check_not_negative("logdet", logdet)
        sigma = math.hypot(self.context_noise, self.noise)
        width = math.sqrt(grown + 2.0 * math.log(2.0 / self.level))
        return sigma * width + math.sqrt(self.ridge) * self.theta_bound

    def reach(self) -> float:
        """Return lambda + M T L^2 / d, which lambda_min(V) never exceeds: it is at most trace / d.

        Needs no proof: the trace of V grows by at most L^2 with every observation.
        """
        return self.ridge + self.observations * self.feature_bound**2 / self.dim

    def need(self, baseline_reward: float, beta: float, *, unknown: bool = False) -> float:
        """Return what lambda_min(V) must reach for the gate to open.

        (2 L beta / (alpha r_b))^2, line `cons`; unknown baseline: (2 (2 - alpha) L beta /
        (alpha r_l))^2, `UBR_2`. Infinity where the baseline is worth nothing.
        """
        if baseline_reward <= 0.0:
            return math.inf
        factor = 2.0 * (2.0 - self.alpha) if unknown else 2.0
        return (factor * self.feature_bound * beta / (self.alpha * baseline_reward)) ** 2


@dataclass(frozen=True)
class Bound:
    """What a lemma or theorem says about a setting.

    Attributes
    ----------
    label
        Its label in the paper's source.
    what
        What is bounded.
    value
        The bound; NaN where the printed formula takes the root of a negative number.
    holds
        Whether the validity condition is met.
    condition
        The condition, in words.
    trivial
        What is true without any proof (no more regret than M T); infinity: nothing is.
    side
        "upper" or "lower".
    most
        What a lower bound cannot exceed: more conservative rounds than there are rounds would be
        a contradiction.
    terms
        The parts of the value, and what else it depends on.
    """

    label: str
    what: str
    value: float
    holds: bool
    condition: str
    trivial: float = math.inf
    side: str = "upper"
    most: float = math.inf
    terms: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("side", self.side, ("upper", "lower"))

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than what is true anyway."""
        if math.isnan(self.value):
            return True
        if self.side == "upper":
            return self.value >= self.trivial
        return self.value <= self.trivial

    @property
    def verdict(self) -> str:
        """In words: what it is worth here."""
        if math.isnan(self.value):
            return "not a number"
        if self.value > self.most:
            return "impossible"
        if not self.holds:
            return "proves nothing"
        return "says nothing" if self.vacuous else "says something"


def root(number: float) -> float:
    """Return the square root, NaN of a negative number."""
    return math.sqrt(number) if number >= 0.0 else math.nan
