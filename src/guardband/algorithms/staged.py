"""Single-task methods with a stage-wise constraint: SCLTS, SCLUCB and SEGE.

Each runs as M independent copies in the coordinates of the tasks. All three choose among the
actions that the whole confidence ellipsoid certifies, psi'theta-hat - beta norm(psi)_{V^-1} >=
(1 - alpha) r_b, and learn from their conservative rounds too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from guardband.algorithms.base import SIGHTS, Careful, Floored
from guardband.algorithms.gated import GATES, Gated
from guardband.algorithms.plan import Plan, require_simulation
from guardband.checks import check_not_negative, check_positive
from guardband.facts import Facts
from guardband.kernels.rivals import Method, Solo
from guardband.kernels.types import Gate, Mix, Rule

__all__ = ["SCLTS", "SCLUCB", "SEGE"]

# A mixed vector lies in the task's own coordinates: the copy knows no others.
OWN_MIXES = {"vector": Mix.TASK_VECTOR, "action": Mix.ACTION}


@dataclass(frozen=True)
class _Scl(Gated, Floored):
    """What SCLTS and SCLUCB have in common."""

    constant: str = field(default="source", kw_only=True)
    known_baseline: bool = field(default=True, kw_only=True)

    stem: ClassVar[str]
    method: ClassVar[Method]
    mixes: ClassVar[tuple[str, ...]] = tuple(OWN_MIXES)

    @property
    def name(self) -> str:
        """The name in lists, plots and on the command line."""
        return f"{self.stem}-gap-oracle" if self.gate == "gap" else self.stem

    def _share_of_delta(self, facts: Facts) -> float:
        """Return by how much the level is divided, for the union over rounds."""
        return 1.0

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        low, high, gate = self._low(facts), facts.reward_high, GATES[self.gate]
        if not self.known_baseline:
            high = None
            if gate == Gate.PRINTED and not (low is not None and low > 0):
                gate = Gate.SHUT
        rule = Rule.KNOWN if self.known_baseline else Rule.UNKNOWN
        mix = OWN_MIXES[self.mix]
        floor = low or 0.0
        terms = self._terms(facts, rule, share=False, gate=gate, mix=mix, reward_floor=floor)
        level = self._sigma(facts)[1] / self._share_of_delta(facts)
        return Plan(
            terms,
            self._alpha(facts),
            self._rho(facts, low, high),
            self._told_gap(facts),
            sight=int(SIGHTS[self.context]),
            method=Solo(int(self.method), math.log(1.0 / level), pace=0.0),
        )


@dataclass(frozen=True)
class SCLTS(_Scl):
    """SCLTS: Thompson sampling among the certified actions (Moradipari et al., 2020).

    Parameters
    ----------
    alpha, mix
        See `Careful`; directions of "vector" lie in the task's own coordinates.
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`; by default it ignores the hidden context, as the
        authors' does.
    gate, gap
        See `Gated`; an unknown baseline has 2 (2 - alpha) and r_l in the place of 2 and r_b.
    known_baseline
        False bounds the baseline's reward by the confidence set, too.
    reward_floor
        r_l, for the unknown baseline's gate; None takes the problem's own.
    parts
        The radius is taken at level delta / (parts T).
    """

    parts: float = field(default=4.0, kw_only=True)

    stem: ClassVar[str] = "sclts"
    method: ClassVar[Method] = Method.SAMPLE

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "parts", check_positive("parts", self.parts))

    def _share_of_delta(self, facts: Facts) -> float:
        return self.parts * (facts.horizon or 1)


@dataclass(frozen=True)
class SCLUCB(_Scl):
    """SCLUCB: optimism among the certified actions (Moradipari et al., 2020).

    Parameters
    ----------
    alpha, mix
        See `Careful`; directions of "vector" lie in the task's own coordinates.
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`; by default it ignores the hidden context, as the
        authors' does.
    gate, gap
        See `Gated`; an unknown baseline has 2 (2 - alpha) and r_l in the place of 2 and r_b.
    known_baseline
        False bounds the baseline's reward by the confidence set, too.
    reward_floor
        r_l, for the unknown baseline's gate; None takes the problem's own.
    """

    stem: ClassVar[str] = "scl-ucb"
    method: ClassVar[Method] = Method.OPTIMISM


@dataclass(frozen=True)
class SEGE(Careful):
    """SEGE: safe exploration, then greed among the certified actions (Khezeli and Bitar, 2020).

    Parameters
    ----------
    alpha, mix
        See `Careful`; directions of "vector" lie in the task's own coordinates.
    ridge, noise, context_noise, delta, theta_bound, feature_bound, constant, context
        The confidence set, see `Confidence`; by default it ignores the hidden context, as the
        authors' does.
    pace
        c: round t is greedy only if lambda_min(V) >= c sqrt(t).
    """

    constant: str = field(default="source", kw_only=True)
    pace: float = field(default=1.0, kw_only=True)

    name: ClassVar[str] = "sege"
    mixes: ClassVar[tuple[str, ...]] = tuple(OWN_MIXES)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pace", check_not_negative("pace", self.pace))

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        terms = self._terms(facts, Rule.KNOWN, share=False, mix=OWN_MIXES[self.mix])
        level = math.log(1.0 / self._sigma(facts)[1])
        return Plan(
            terms,
            self._alpha(facts),
            self._rho(facts, facts.reward_low, facts.reward_high),
            sight=int(SIGHTS[self.context]),
            method=Solo(int(Method.GREEDY), level, self.pace),
        )
