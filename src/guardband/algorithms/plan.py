"""The interface of algorithms, and the plan that one makes for a problem before it runs."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from guardband.algorithms.phases import Phasing
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.environment import Sight
from guardband.kernels.rivals import Method, Solo, UploadRule
from guardband.kernels.types import Floats, Mix, Rule, Terms, pack

__all__ = ["Algorithm", "Plan", "Traffic", "packed", "pooling_traffic", "require_simulation"]

GUARDED = (Rule.KNOWN, Rule.UNKNOWN, Rule.CLEAR, Rule.GUARD)


class Traffic(NamedTuple):
    """What one exchange between agents and server sends, up and down together."""

    messages: int
    numbers: int


class Plan(NamedTuple):
    """What an algorithm runs with on one problem: its terms for the kernels, alpha and rho."""

    terms: Terms
    alpha: Floats  # (M,)
    rho: Floats  # (M,) exploration of conservative rounds
    gap: Floats | None = None  # (M, C), for the gap gate
    sight: int = int(Sight.HIDDEN)
    method: Solo | UploadRule | Phasing | None = None  # a loop of its own; None: the common one
    traffic: Traffic = Traffic(0, 0)

    @property
    def settings(self) -> Floats:
        """(M, TERMS + 2): the terms, alpha and rho of each agent, as the kernels read them."""
        return pack(self.terms, self.alpha, self.rho)

    @property
    def streams(self) -> frozenset[str]:
        """Which draws it needs beside contexts and noise."""
        needed = set()
        spends = isinstance(self.method, Solo) and self.method.method == Method.BUDGET
        if self.terms.rule in GUARDED and not spends and self.terms.mix != Mix.PARTWAY:
            needed.add("coin" if self.terms.mix == Mix.ACTION else "zeta")
        if isinstance(self.method, Solo) and self.method.method == Method.SAMPLE:
            needed.add("normal")
        if isinstance(self.method, UploadRule):
            needed.add("order")
        if self.terms.holdback > 0.0:
            needed.add("hold")
        return frozenset(needed)


class Algorithm(Protocol):
    """The interface of algorithms for the simulator and for agents."""

    @property
    def name(self) -> str:
        """The name in lists, plots and on the command line."""

    @property
    def constrained(self) -> bool:
        """Whether it promises anything about the baseline."""

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""


def packed(dim: int) -> int:
    """Return how many numbers a statistic takes on the wire: half of the symmetric W, and U."""
    return dim * (dim + 1) // 2 + dim


def pooling_traffic(facts: Facts) -> Traffic:
    """Return what a pooling sends: every agent's statistic up, and the sum of all down."""
    return Traffic(2 * facts.agents, 2 * facts.agents * packed(facts.dim))


def require_simulation(facts: Facts, what: str) -> None:
    """Refuse what only the simulator can play."""
    if facts.actions is None or facts.horizon is None:
        raise InvalidValueError(
            f"{what} runs in gb.simulate only: it must know the actions and the horizon "
            "beforehand. `guardband algorithms` says which can run as agents."
        )
