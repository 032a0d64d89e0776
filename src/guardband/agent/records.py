"""What goes into the engine of agents, and what comes out: requests, verdicts, what is awaited."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.agent.decision import Decision
from guardband.agent.weighed import Weighed
from guardband.forks import ForkSafe
from guardband.kernels.types import Estimate, Floats, Ints
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
    "Batch",
    "KnownThen",
    "Recall",
    "Request",
    "Verdict",
    "new",
    "plain_request",
]

NO_CONTEXTS, NO_WEIGHTS, NO_COVARIANCE = np.zeros((0, 0, 0)), np.zeros(0), np.zeros((0, 0, 0))
NO_VALUE, NO_LIMITS = np.zeros(0), (0.0, math.inf)
new = tuple.__new__  # of named tuples: their own takes as long again, and decisions wait for it


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


def plain_request(
    menu: Floats, baseline: int, reward: float | None, labels: list[Any] | None = None
) -> Request:
    """Return a request with nothing but features and the baseline's reward."""
    given = (menu, baseline, reward, NO_CONTEXTS, NO_WEIGHTS, NO_COVARIANCE, labels)
    return new(Request, (*given, NO_VALUE, NO_VALUE))


class Batch(NamedTuple):
    """Requests with nothing but features and the baseline's reward, for one call of a kernel."""

    menus: Floats  # those of all requests, one after another
    ends: Ints  # (n,) where the actions of each end, of all together
    requests: list[Request]

    def part(self, start: int, stop: int) -> Batch:
        """Return the requests from `start` to before `stop`."""
        before = int(self.ends[start - 1]) if start else 0
        ends = self.ends[start:stop] - before
        dim, actions = self.menus.size // int(self.ends[-1]), int(ends[-1])
        menus = self.menus[dim * before : dim * (before + actions)]
        return Batch(menus, ends, self.requests[start:stop])


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


class KnownThen:
    """V^-1 (d, d) and theta-hat (d,) as they were: the agent's own arrays until `keep` copies them.

    They change under the lock of their `owner`. They are many numbers, and decisions until the next
    reward share them. Where nobody needs them any more, nothing is copied: `users` counts the
    decisions that could be overridden, and others that need them hold this object, which is then
    `lent`.
    """

    __slots__ = ("__weakref__", "inverse", "lent", "owner", "size", "theta", "users")

    def __init__(self, estimate: Estimate, owner: ForkSafe) -> None:
        self.inverse, self.theta, self.owner = estimate.inverse, estimate.theta, owner
        self.size = self.inverse.size + self.theta.size
        self.users, self.lent = 0, False

    def keep(self) -> KnownThen:
        """Copy the arrays: the agent's own are about to change."""
        self.inverse, self.theta = self.inverse.copy(), self.theta.copy()
        return self


class Recall(NamedTuple):
    """A decision as it stood: what an override of it needs."""

    request: Request
    known: KnownThen
    radius: float  # of the agent's own set

    @property
    def inverse(self) -> Floats:
        """V^-1 (d, d)."""
        return self.known.inverse

    @property
    def theta(self) -> Floats:
        """theta-hat (d,)."""
        return self.known.theta


class Absorbed(NamedTuple):
    """What was learned from rows of logs."""

    weights: Floats  # (n,) of every row
    guesses: Floats  # (n,) the predictions, from the rows before
    radius: float  # of the confidence set after the last row
    due: bool  # whether a pooling is
    declared: Floats  # (n,) the weights that monitors use; 0: they do not watch


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
    weighed: Weighed
    awaited: Awaited
    charge: float  # to the allowance
    budget_left: float | None  # of the allowance, after the charge; None: there is none
    value: Floats | None = None  # (K,)
    radius: float = math.nan  # of the agent's own set
    worth: tuple[float, float] = (0.0, 0.0)  # see `kernels.purse.worth_of_cost`

    @property
    def certified(self) -> NDArray[np.bool_]:
        """(K,): whether each action is certified to clear the floor."""
        return self.weighed.certified

    def named(self, name: str, reason: str | None = None, label: Any = None) -> Decision:
        """Return the decision that the user sees, with its id and its reason as a sentence."""
        (
            action, kind, code, mean, width, floor, propensity, margin, promise, certificate,
            weighed, _, _, left, value, _, _,
        ) = self  # fmt: skip
        said = (
            name, action, kind, sentence(code) if reason is None else reason,
            mean, mean - width, mean + width, floor, propensity, margin,
            promise_shown(promise, certificate), certificate, left, weighed, label, value,
            None, None,
        )  # fmt: skip
        return new(Decision, said)
