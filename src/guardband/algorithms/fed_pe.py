"""Fed-PE: federated phased elimination, one client per agent and context."""

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
from guardband.checks import check_positive
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.rivals import Mode
from guardband.kernels.types import Floats, Ints

__all__ = ["FedPE", "width_factor"]


def width_factor(clients: int, arms: int, phases: int, delta: float, dim: int) -> float:
    """Return Fed-PE's alpha, by which norm(z)_V becomes the half-width of a test.

    alpha^2 = min{2 log(2 clients K H / delta), 2 log(arms H / delta) + d log k + d}, where k is the
    least of 1.1, 1.2, ... with k d >= the second term. `clients` counts pairs of a client and an
    arm, and `arms` the arms of one client, over all its contexts.

    Examples
    --------
    >>> round(width_factor(clients=100 * 10, arms=10, phases=17, delta=0.1, dim=3), 2)
    4.91
    """
    first = 2.0 * math.log(2.0 * clients * phases / delta)
    known = 2.0 * math.log(arms * phases / delta) + dim
    step = 11
    while step / 10 * dim < known + dim * math.log(step / 10):
        step += 1
    return math.sqrt(min(first, known + dim * math.log(step / 10)))


class Clients(Phases):
    """Survivors of every virtual client, with quotas from the joint design."""

    def __init__(self, features: Floats, group: Ints, *, factor: float, base: float) -> None:
        self.factor, self.base = factor, base
        super().__init__(Mode.QUOTAS, features, group)

    @property
    def length(self) -> int:
        """How many rounds the present phase has: f for every context."""
        return self.alive.shape[1] * self._plays

    @property
    def _plays(self) -> int:
        """f, the plays of every virtual client in this phase."""
        return math.ceil(self.base**self.number)

    def _eliminate(self, gram: Floats, moment: Floats) -> None:
        mean, norm = self._fit(gram, moment)
        width = self.factor * norm
        leader = np.where(self.alive, mean, -np.inf).argmax(axis=2)
        lowest = np.take_along_axis(mean - width, leader[:, :, None], axis=2)
        self.alive &= mean + width >= lowest
        self.phase.leader[...] = leader

    def _write(self) -> None:
        shares = self._design().shares.reshape(self.alive.shape)
        # A share that the design has all but given up is rounded to none, not up to one play.
        self.phase.target[...] = np.where(shares < 1e-10, 0.0, np.ceil(shares * self._plays))
        if self.number == 1:
            self.phase.leader[...] = shares.argmax(axis=2)


@setting("fed-pe-tuned", "the same with delta = 0.5", delta=0.5)
@register(
    "fed-pe",
    about="federated elimination, a client per agent and context",
    constraint="none",
    communication="pools at the end of each phase",
    source="Huang et al., NeurIPS 2021",
    label="Fed-PE",
)
@dataclass(frozen=True)
class FedPE(Assumptions):
    """Fed-PE: federated phased elimination, shared parameter (Huang et al., 2021).

    Every pair of an agent and a context is a virtual client with features of its own; it acts
    when its context comes up.

    Parameters
    ----------
    noise, context_noise, delta, constant, context
        See `Assumptions`; by default it ignores the hidden context, as the authors' does.
    base
        Phase p has base^p plays for each virtual client.
    """

    delta: float = field(default=0.1, kw_only=True)
    constant: str = field(default="source", kw_only=True)
    base: float = field(default=2.0, kw_only=True)

    rate: ClassVar[Rate] = Rate(0.3, 0.0, 0.003, 0.15)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not check_positive("base", self.base) > 1.0:
            raise InvalidValueError(
                f"base must be above 1, so that phases grow, not {self.base!r}."
            )
        object.__setattr__(self, "base", float(self.base))

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        contexts = require_contexts(
            facts, self.name, self.context, "use gb.algorithms.DisLSB(option='B')"
        )
        actions, phases = facts.actions or 1, math.ceil(math.log2(max(facts.horizon or 2, 2)))
        pairs = facts.agents * contexts * actions
        alpha = width_factor(pairs, contexts * actions, phases, self.delta, facts.dim)
        factor = alpha * self._sigma(facts)[0]
        return Plan(
            idle_terms(facts),
            np.ones(facts.agents),
            np.zeros(facts.agents),
            sight=int(SIGHTS[self.context]),
            method=Phasing(partial(Clients, factor=factor, base=self.base)),
            traffic=Traffic(2 * facts.agents, 2 * facts.agents * packed(facts.dim)),
        )
