"""Guarded: an unconstrained algorithm, restricted to actions that are certified."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from guardband.algorithms.base import MIXES, safe_rho
from guardband.algorithms.dis_lin_ucb import DisLinUCB
from guardband.algorithms.fed_lin_ucb import FedLinUCB
from guardband.algorithms.lin_ucb import LinUCB
from guardband.algorithms.plan import Plan, require_simulation
from guardband.algorithms.policy import Policy
from guardband.checks import as_alpha, check_choice
from guardband.errors import InvalidTypeError
from guardband.facts import Facts
from guardband.kernels.types import Rule

__all__ = ["Guarded"]


@dataclass(frozen=True)
class Guarded(Policy):
    """An unconstrained rival, restricted to actions whose lower bound clears the floor.

    Among the actions with psi'theta-hat - beta norm(psi)_{V^-1} >= (1 - alpha) r_b the rival
    chooses as ever; where there is none, the round is conservative. There is no gate.

    What that guarantees: while an agent's confidence set holds, which has probability 1 - delta
    for each agent if sigma covers the noise (constant="paper" or "tight") and the stated bounds
    are true, no round's *expected* reward psi'theta is below (1 - alpha) r_b, whatever the rival
    does. Rivals that pool take the noise of different agents for independent; one hidden context
    for all agents of a round makes it correlated, which their sets do not count. It guarantees
    nothing about the realised reward phi'theta, and not that the rival ever leaves the baseline:
    its bound on the regret is lost.

    Parameters
    ----------
    rival
        `DisLinUCB`, `LinUCB` or `FedLinUCB`. Elimination methods test with the accuracy that
        their designs ensure; were other actions played, the tests would mean nothing.
    alpha, mix
        The promise, and what conservative rounds play, see `Conservative`.
    """

    rival: DisLinUCB | LinUCB | FedLinUCB
    alpha: float | tuple[float, ...] = 0.1
    mix: str = field(default="vector", kw_only=True)

    constrained: ClassVar[bool] = True

    def __post_init__(self) -> None:
        given: object = self.rival
        if not isinstance(given, DisLinUCB | LinUCB | FedLinUCB):
            named = getattr(given, "name", repr(given))
            raise InvalidTypeError(
                f"{named} has no confidence set to guard by; give gb.DisLinUCB(), "
                "gb.algorithms.LinUCB() or gb.algorithms.FedLinUCB()."
            )
        numbers = as_alpha(self.alpha)
        object.__setattr__(self, "alpha", numbers[0] if np.ndim(self.alpha) == 0 else numbers)
        check_choice("mix", self.mix, tuple(MIXES))

    @property
    def name(self) -> str:
        """The name in lists and plots."""
        return f"guarded-{self.rival.name}"

    @property
    def feature_bound(self) -> float:
        """The rival's bound on the length of expected features."""
        return self.rival.feature_bound

    @property
    def theta_bound(self) -> float:
        """The rival's bound on the length of theta."""
        return self.rival.theta_bound

    def plan(self, facts: Facts) -> Plan:
        """Return the terms for a problem of which `facts` are known."""
        require_simulation(facts, self.name)
        free = self.rival.plan(facts)
        alpha = np.array(as_alpha(self.alpha, facts.agents))
        return free._replace(
            terms=free.terms._replace(rule=int(Rule.CLEAR), mix=int(MIXES[self.mix])),
            alpha=alpha,
            rho=safe_rho(alpha, facts.reward_low, facts.reward_high, self.theta_bound, self.mix),
        )
