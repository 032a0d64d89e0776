"""What goes into the engine of agents, and what comes out: requests, verdicts, what is awaited."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.agent.decision import Decision
from guardband.kernels.types import Floats
from guardband.reasons import promise_shown, sentence
from guardband.uplift import Stake

__all__ = [
    "NO_CONTEXTS",
    "NO_COVARIANCE",
    "NO_LIMITS",
    "NO_VALUE",
    "NO_WEIGHTS",
    "Absorbed",
    "Awaited",
    "Recall",
    "Request",
    "Verdict",
]

NO_CONTEXTS, NO_WEIGHTS, NO_COVARIANCE = np.zeros((0, 0, 0)), np.zeros(0), np.zeros((0, 0, 0))
NO_VALUE, NO_LIMITS = np.zeros(0), (0.0, math.inf)


class Request(NamedTuple):
    """What one agent is given in one round, checked."""

    menu: Floats  # (d, K)
    baseline: int
    reward: float | None
    contexts: Floats  # (n, d, K) features in each possible context, or none
    weights: Floats  # (n,)
    covariance: Floats  # (K or 1, d, d), or none
    labels: list[Any] | None = None  # of the actions, where they have any
    value: Floats = NO_VALUE  # (K,) what each is worth to the caller, or none
    cost: Floats = NO_VALUE  # (K,) what each costs, or none

    def label(self, action: int) -> Any:
        """Return the label of an action; None where there are none."""
        return None if self.labels is None else self.labels[action]

    def only(self, k: int) -> Request:
        """Return the request with action k alone, as the baseline."""
        one = slice(k, k + 1)
        return self._replace(
            menu=np.ascontiguousarray(self.menu[:, one]),
            baseline=0,
            contexts=np.ascontiguousarray(self.contexts[:, :, one]),
            covariance=self.covariance[one] if len(self.covariance) > 1 else self.covariance,
            labels=None,
            value=NO_VALUE,
            cost=NO_VALUE,
        )


class Awaited(NamedTuple):
    """What must be remembered of a decision until its reward comes."""

    x: Floats
    guess: float
    weight: float
    conservative: bool
    stake: Stake | None = None  # with a holdback
    declared: float = 0.0  # the weight that monitors use; 0: they do not watch it
    lower: float = math.nan  # the certified lower bound of the expected reward, of a learned play
    start: int = 0  # how often sums had been made anew after an alarm when it was decided


class Recall(NamedTuple):
    """A decision as it stood: what an override of it needs."""

    request: Request
    inverse: Floats  # (d, d) V^-1
    theta: Floats  # (d,)
    radius: float  # of the agent's own set


class Absorbed(NamedTuple):
    """What was learned from rows of logs."""

    weights: Floats  # (n,) of every row
    guesses: Floats  # (n,) the predictions, from the rows before
    radius: float  # of the confidence set after the last row
    due: bool  # whether a pooling is


class Verdict(NamedTuple):
    """What the kernels decided, in the words of a `Decision`."""

    action: int
    kind: str
    reason: str  # a code of guardband.reasons
    mean: float
    width: float
    floor: float
    propensity: float
    margin: float
    promise: str
    certificate: str
    certified: NDArray[np.bool_]
    awaited: Awaited
    charge: float  # to the allowance
    budget_left: float | None  # of the allowance, after the charge; None: there is none
    table: Floats | None = None  # (3, K), see `Decision`
    value: Floats | None = None  # (K,)
    radius: float = math.nan  # of the agent's own set
    worth: tuple[float, float] = (0.0, 0.0)  # see `kernels.purse.worth_of_cost`

    def named(self, name: str, reason: str | None = None, label: Any = None) -> Decision:
        """Return the decision that the user sees, with its id and its reason as a sentence."""
        return Decision(
            name,
            self.action,
            self.kind,
            sentence(self.reason) if reason is None else reason,
            self.mean,
            self.mean - self.width,
            self.mean + self.width,
            self.floor,
            self.propensity,
            self.margin,
            promise_shown(self.promise, self.certificate),
            self.certificate,
            self.budget_left,
            self.certified,
            label,
            self.table,
            self.value,
        )
