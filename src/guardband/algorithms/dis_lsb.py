"""DisLSB: distributed elimination on expected features."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import SIGHTS, Assumptions, idle_terms
from guardband.algorithms.phases import Phases, Phasing, require_contexts
from guardband.algorithms.plan import Plan, Traffic, packed, require_simulation
from guardband.algorithms.policy import Rate
from guardband.algorithms.registry import register, setting
from guardband.checks import check_choice, check_positive
from guardband.facts import Facts
from guardband.kernels.rivals import Mode
from guardband.kernels.types import Floats, Ints

__all__ = ["DisLSB"]


@dataclass(frozen=True)
class Lengths:
    """How long the phases are: scale 4^l, or scale 4^l log(arms l (l + 1))."""

    scale: float
    arms: float | None = None

    def __call__(self, phase: int) -> int:
        """Return the number of rounds of a phase, counted from 1."""
        rounds = self.scale * 4.0**phase
        if self.arms is not None:
            rounds *= math.log(self.arms * phase * (phase + 1))
        return math.ceil(rounds)


class Survivors(Phases):
    """Option A: survivors of every task and context, played in the proportions of the design."""

    def __init__(self, features: Floats, group: Ints, *, lengths: Lengths) -> None:
        self.lengths = lengths
        super().__init__(Mode.SHARES, features, group)

    @property
    def length(self) -> int:
        """How many rounds the present phase has."""
        return self.lengths(self.number)

    def _eliminate(self, gram: Floats, moment: Floats) -> None:
        mean, width = self._fit(gram, moment)
        known = self.alive & np.isfinite(width)
        top = np.where(known, mean, -np.inf).max(axis=2, keepdims=True)
        self.alive &= ~known | (mean >= top - 2.0 ** (1 - self.number))

    def _write(self) -> None:
        self.phase.target[...] = self._design().shares.reshape(self.alive.shape)


class PastTests(Phases):
    """Option B: no memory of contexts; past tests are applied to each round's own actions."""

    def __init__(self, features: Floats, group: Ints, *, lengths: Lengths) -> None:
        self.lengths = lengths
        super().__init__(Mode.TESTS, features[:, :0], group)

    @property
    def length(self) -> int:
        """How many rounds the present phase has."""
        return self.lengths(self.number)

    def _eliminate(self, gram: Floats, moment: Floats) -> None:
        self._fit(gram, moment)
        q = self.phase.passed[0]
        self.phase.tests[q] = self.theta
        self.phase.slack[q] = 2.0 ** (1 - self.number)
        self.phase.passed[0] = q + 1

    def _write(self) -> None:
        """Do nothing: the recorded tests are the plan."""


@setting("dis-lsb-tuned", "the same with C = 0.001", pulls=0.001)
@setting("dis-lsb-authors", "the same with C = 10, as others have run it", pulls=10.0)
@register(
    "dis-lsb",
    about="distributed elimination on expected features",
    constraint="none",
    communication="pools at the end of each phase",
    source="Lin and Moothedath, ACC",
    reading="partly read",
    colour="#8C6D31",
)
@dataclass(frozen=True)
class DisLSB(Assumptions):
    """DisLSB: elimination by a shared estimate, phase by phase (Lin and Moothedath).

    Parameters
    ----------
    noise, context_noise, delta, constant, context
        See `Assumptions`; they set the length of phases where `pulls` is None.
    option
        How it meets changing contexts. "A": every agent has survivors of its own in each context,
        and plays them in the proportions of a joint optimal design; needs contexts that are known
        beforehand. "B": it keeps the past estimates only, and plays the least known among the
        round's actions that pass all past tests.
    pulls
        C: phase l has C 4^l d^2 log(M T) / M rounds. The source's 600 makes the first phase longer
        than most runs; from 0.1 to 10 it learns within 20,000 rounds. None: the rule for finitely
        many arms, 4 d sigma^2 4^l log(2 K N M l (l + 1) / delta) / M.
    """

    delta: float = field(default=0.1, kw_only=True)
    option: str = field(default="A", kw_only=True)
    pulls: float | None = field(default=600.0, kw_only=True)

    rate: ClassVar[Rate] = Rate(0.2, 0.0, 0.0016, 0.1)
    made_for_hidden: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("option", self.option, ("A", "B"))
        if self.pulls is not None:
            object.__setattr__(self, "pulls", check_positive("pulls", self.pulls))

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        by_context = self.option == "A"
        if by_context:
            require_contexts(facts, self.name, self.context, "use gb.algorithms.DisLSB(option='B')")
        kind = Survivors if by_context else PastTests
        sigma = self._sigma(facts)[0]
        return Plan(
            idle_terms(facts),
            np.ones(facts.agents),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
            method=Phasing(partial(kind, lengths=self._lengths(facts, sigma))),
            traffic=Traffic(2 * facts.agents, facts.agents * (packed(facts.dim) + facts.dim)),
        )

    def _lengths(self, facts: Facts, sigma: float) -> Lengths:
        rounds, agents = facts.horizon or 1, facts.agents
        if self.pulls is not None:
            return Lengths(self.pulls * facts.dim**2 * math.log(agents * rounds) / agents)
        # Where every round has a menu of its own, there are as many as rounds.
        menus = rounds if facts.contexts is None else facts.contexts
        arms = 2.0 * (facts.actions or 1) * menus * agents / self.delta
        return Lengths(4.0 * facts.dim * sigma**2 / agents, arms)
