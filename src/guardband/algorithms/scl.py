"""SCLTS and SCLUCB: single-task methods with a stage-wise constraint.

Each runs as M independent copies in the coordinates of the tasks. Both choose among the actions
that the whole confidence ellipsoid certifies, psi'theta-hat - beta norm(psi)_{V^-1} >=
(1 - alpha) r_b, and learn from their conservative rounds too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from guardband.algorithms.base import OWN_MIXES, SIGHTS, Floored
from guardband.algorithms.gated import GATES, Gated
from guardband.algorithms.plan import Plan, require_simulation
from guardband.algorithms.policy import Rate
from guardband.algorithms.registry import register
from guardband.checks import check_positive
from guardband.facts import Facts
from guardband.kernels.rivals import Method, Solo
from guardband.kernels.types import Gate, Rule

__all__ = ["SCLTS", "SCLUCB"]


@dataclass(frozen=True)
class _Scl(Gated, Floored):
    """What SCLTS and SCLUCB have in common."""

    constant: str = field(default="source", kw_only=True)
    known_baseline: bool = field(default=True, kw_only=True)

    rate: ClassVar[Rate] = Rate(0.25, 0.02, 0.001)
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


@register(
    "sclts",
    about="safe Thompson sampling, every task alone",
    constraint="stage-wise",
    communication="none",
    source="Moradipari et al., NeurIPS 2020",
    colour="#009E73",
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


@register(
    "scl-ucb",
    about="safe optimism, every task alone",
    constraint="stage-wise",
    communication="none",
    source="Moradipari et al., NeurIPS 2020",
)
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
