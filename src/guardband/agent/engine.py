"""Calls the kernels for agents, and turns their numbers into decisions with reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from guardband.agent.decision import chosen_words
from guardband.agent.records import (
    NO_LIMITS,
    NO_VALUE,
    NO_WEIGHTS,
    Absorbed,
    Awaited,
    Recall,
    Request,
    Verdict,
)
from guardband.algorithms import Policy
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.alarms import moved_by
from guardband.kernels.leave_out import pool_without, set_without
from guardband.kernels.logs import learn_rows
from guardband.kernels.override import weigh_instead
from guardband.kernels.serve import kernels_of
from guardband.kernels.state import (
    left_out,
    new_group,
    new_left_out,
    new_scratch,
    new_statistic,
    view,
    view_of,
)
from guardband.kernels.sync import pool, set_pooled
from guardband.kernels.types import (
    Certificate,
    Floats,
    Ints,
    LeftOut,
    Realised,
    Reason,
    Rule,
    Terms,
    Trigger,
)
from guardband.uplift import Stake

__all__ = ["Engine"]

CERTIFICATES = tuple(kind.name.lower().replace("_", " ") for kind in Certificate)
# What is promised, by certificate; by all others "play".
PROMISES = {"none": "none", "baseline": "baseline", "mixture": "policy", "trial": "trial"}
GRANTED = ("play", "policy", "trial")  # promises that rest on what was learned
HOLDBACK = "holdback"
REASON_CODES = tuple(reason.name.lower().replace("_", "-") for reason in Reason)
CONFIDENCE, ALLOWANCE = (Terms._fields.index(name) for name in ("confidence", "allowance"))
MOVED = Terms._fields.index("moved")
TRIGGER = [Terms._fields.index(name) for name in ("trigger", "budget", "agents")]
REUSED = 5  # in a statistic's scalars
GUARD = float(Rule.GUARD)
NOT_REALISED = float(Realised.NONE)  # comparing with a member of an enumeration is slow
NO_IDS = np.zeros(0, np.int64)


class Engine:
    """Between agents and the kernels: the numbers of a group of agents, and the calls on them.

    Parameters
    ----------
    algorithm
        What the agents run.
    facts
        What is known of their problem.
    coords
        The features that each agent's task uses.

    Attributes
    ----------
    group
        Named views of the array that holds the numbers of all agents; see `kernels.state`.
    states, pooled
        The same of each agent, and of what they have pooled.
    terms
        The algorithm's settings, but for each agent's own alpha and rho.
    """

    def __init__(self, algorithm: Any, facts: Facts, coords: list[Ints]) -> None:
        # An object of the user's own need not be a `Policy`: it has one rule for all rounds.
        rules = algorithm.agent_rules() if isinstance(algorithm, Policy) else (algorithm, algorithm)
        known, unknown = (rule.plan(facts) for rule in rules)
        self.terms: Terms = known.terms
        self._serve, self._learn = kernels_of(known.terms)
        self._serve_valued = kernels_of(known.terms, valued=True).serve
        self.reports: bool = getattr(algorithm, "reports", False)
        self.ridge, self.coords = known.terms.ridge, coords
        self.holdback = float(known.terms.holdback)
        # Rows of settings, one for each agent: with the baseline's reward known, and without.
        self.known, self.unknown = list(known.settings), list(unknown.settings)
        self._scratch = new_scratch(0)
        here = len(coords)
        self.without = NO_WEIGHTS
        if self.terms.tolerate:
            # Data from elsewhere come without each other task: until then, one has nothing.
            tasks = here if facts.size is None else 2
            self.without = new_left_out(here, tasks, facts.dim, self.ridge)
        self._use(new_group(here, facts.dim, self.ridge), facts.dim)

    def _use(self, numbers: Floats, dim: int) -> None:
        self.numbers, self.group = numbers, view(numbers, dim)
        *self.states, shared = (view_of(self.group, m) for m in range(len(self.coords) + 1))
        self.pooled = shared.own

    def copy(self, settings: Mapping[str, float]) -> Engine:
        """Return an engine with the same numbers; what it learns does not change these.

        `settings` are others than the algorithm's, by the names of `Terms`.
        """
        other = copy(self)
        other._scratch = new_scratch(0)
        other._use(self.numbers.copy(), self.pooled.moment.size)
        if self.terms.tolerate:  # it goes by all data: what tolerance costs, it does not foresee
            other.terms, other.without = self.terms._replace(tolerate=0.0), NO_WEIGHTS
            other._serve, other._learn = kernels_of(other.terms)
        other.known = [row.copy() for row in self.known]
        other.unknown = [row.copy() for row in self.unknown]
        for name, value in settings.items():
            for row in (*other.known, *other.unknown):
                row[Terms._fields.index(name)] = value
        return other

    @property
    def guards(self) -> bool:
        """Whether actions are certified one by one, so that values and budgets can choose."""
        return self.terms.rule == GUARD

    def check(self, request: Request) -> None:
        """Refuse a request that lacks what the promise needs; before anything is changed."""
        if request.value.size and not self.guards:
            raise InvalidValueError(
                "value=... is for Guard-UCB, which certifies actions and plays the most valuable: "
                "use algorithm='guard-ucb'."
            )
        if request.value.size and self.terms.tolerate:
            raise InvalidValueError("value=... is for tolerate=0: leave one of them out.")
        realised = self.terms.realised
        if realised == NOT_REALISED or request.weights.size:
            return
        if realised == Realised.WORST or not request.covariance.size:
            raise InvalidValueError(
                "realised=... certifies against the possible contexts: pass support=(n, K, dim) "
                "features and their weights to decide, see gb.feature_support; or, for a chance, "
                "covariance=..., see gb.difference_covariance."
            )

    def decide(
        self,
        m: int,
        request: Request,
        epoch: int,
        turn: int,
        coin: float,
        cost: Floats = NO_VALUE,
        limits: tuple[float, float] = NO_LIMITS,
        hold: float = 1.0,
    ) -> Verdict:
        """Decide for agent m in its `turn`-th round, with what actions cost where that counts.

        `hold` is the holdback's coin.
        """
        menu, baseline, reward, contexts, weights, covariance, _, value, _ = request
        (dim, actions), n = menu.shape, weights.size
        if self._scratch.shape[1] < max(actions, n):
            self._scratch = new_scratch(actions, n)
        settings, told = (self.unknown[m], math.nan) if reward is None else (self.known[m], reward)
        given = (settings, self.coords[m], menu, contexts, np.arange(n) if n else NO_IDS, weights)
        x, allowed, table = np.empty(dim), np.empty(actions, np.bool_), np.empty((3, actions))
        serve = self._serve_valued if value.size or cost.size else self._serve
        action, conservative, reason, mean, width, floor, *rest = serve(
            self.numbers,
            self.without,
            *given,
            covariance,
            (m, baseline, told, epoch, turn, coin, hold),
            value,
            cost,
            limits,
            self._scratch,
            allowed,
            table,
            x,
        )
        propensity, margin, code, certified, alarm, weight, guess, data, *rest = rest
        charge, left, radius, worth, stake, declared, lower = rest
        staked = Stake(*stake) if self.holdback else None
        certificate = CERTIFICATES[code]
        promise = PROMISES.get(certificate, "play")
        if certified and certificate == "baseline":
            promise = "play"  # as journals have it; see `promise_shown`
        elif promise in GRANTED and self.reused(m):
            promise = "reused"
        kind, why = "baseline" if action == baseline else "explored", REASON_CODES[reason]
        if certified and why != HOLDBACK and not (conservative and action == baseline):
            learned = math.isnan(floor) or data > 0.0
            kind, why = chosen_words(why, itself=action == baseline, known=learned)
        elif certificate == "trial":
            kind = "trial"
        return Verdict(
            action,
            kind,
            why + ("+value" if value.size else "") + ("+alarm" if alarm else ""),
            mean,
            width,
            floor,
            propensity,
            margin,
            promise,
            certificate,
            allowed,
            Awaited(x, guess, weight, conservative, staked, declared, lower),
            charge,
            None if math.isnan(left) else left,
            table,
            value if value.size else None,
            radius,
            worth,
        )

    def instead(self, m: int, recall: Recall, k: int, awaited: Awaited) -> Awaited:
        """Return what is awaited where action k was played instead, by what was known then."""
        if self.terms.tolerate:
            raise InvalidValueError(
                "agents with tolerate=1 take no overrides: discard the decision."
            )
        request, x = recall.request, np.empty(recall.theta.size)
        ids = np.arange(request.weights.size)
        given = (request.menu, request.contexts, ids, request.weights, request.covariance)
        found = weigh_instead(self.known[m], self.coords[m], *given, recall[1:], k, x)
        weight, guess, declared, lower = found
        if k == request.baseline:
            lower = math.nan  # nothing was certified
        # The holdback's coin did not choose it: it says nothing of what choices earn.
        return awaited._replace(
            x=x, guess=guess, weight=weight, stake=None, declared=declared, lower=lower
        )

    def learn(
        self, m: int, awaited: Awaited, y: float, logdet: float, since: int, now: int
    ) -> bool:
        """Learn from a reward; tell whether a pooling is due."""
        seen = (awaited.weight, awaited.guess, awaited.declared, awaited.lower)
        own = (awaited.x, y, seen, awaited.conservative)
        numbers = (self.numbers, self.without)
        due: bool = self._learn(*numbers, self.known[m], m, *own, logdet, since, now)
        return due

    def learn_rows(
        self,
        m: int,
        rows: Floats,
        rewards: Floats,
        epoch: int,
        logdet: float,
        since: int,
        now: int,
        reused: int = 0,
    ) -> Absorbed:
        """Learn (n, d) rows of logs, zeros outside the task, with rewards (n,); see `kernels.logs`.

        `reused` of them had been looked at. Learning no rows tells the radius.
        """
        weights, guesses = np.empty(rewards.size), np.empty(rewards.size)
        given = (self.coords[m], (m, epoch, logdet, since, now), rows, rewards)
        numbers = (self.numbers, self.without)
        radius, due = learn_rows(*numbers, self.known[m], *given, weights, guesses)
        self.states[m].own.scalars[REUSED] += reused
        return Absorbed(weights, guesses, radius, due)

    def reused(self, m: int) -> int:
        """Return how many rows that had been looked at are in the data that agent m relies on."""
        return int(self.states[m].own.scalars[REUSED] + self.pooled.scalars[REUSED])

    def pool(self) -> float:
        """Share out what all agents learned; return log det(V / ridge) of all their data."""
        terms = Terms(*map(float, self.terms))
        if terms.tolerate:
            return float(pool_without(self.group, self.left_out, terms))
        return float(pool(self.group, terms))

    @property
    def left_out(self) -> LeftOut:
        """Named views of what agents know without each task; see `kernels.leave_out`."""
        return left_out(self.without, len(self.coords), self.pooled.moment.size)

    def restore_pooled(self) -> None:
        """Compute from pooled sums that were loaded what a pooling computes from them."""
        shared, terms = view_of(self.group, len(self.states)), Terms(*map(float, self.terms))
        nothing = new_statistic(self.pooled.moment.size)
        if not math.isnan(terms.pooled_confidence):
            set_pooled(shared, nothing, terms)
        for j in range(len(self.states) if terms.tolerate else 0):
            set_without(shared, self.left_out, j, nothing, terms)

    @property
    def confidence(self) -> float:
        """2 log(1 / delta) as it is used now."""
        return float(self.known[0][CONFIDENCE])

    def set_confidence(self, confidence: float) -> None:
        """Let `confidence` stand for 2 log(1 / delta) from now on, in what is called epoch 1."""
        for row in (*self.known, *self.unknown):
            row[CONFIDENCE] = confidence

    def set_allowance(self, allowance: float) -> None:
        """Let `allowance` be what agents may be charged with in all from now on; NaN: none."""
        for row in (*self.known, *self.unknown):
            row[ALLOWANCE] = allowance

    def set_time(self, now: int) -> None:
        """Let `now` be the round, for worlds that move by a declared drift."""
        moved = moved_by(self.terms, now)
        for row in (*self.known, *self.unknown):
            row[MOVED] = moved

    def set_trigger(self, trigger: Trigger, budget: float, agents: int) -> None:
        """Let `learn` call for a pooling by this trigger, among so many agents."""
        for row in self.known:
            row[TRIGGER] = trigger, budget, agents

    def arrays(self) -> dict[str, Floats]:
        """Return views of all numbers under the names that they have in files."""
        group = self.group
        parts: dict[str, Any] = {"own": group.own, "estimate": group.estimate}
        if self.reports:
            parts |= {"reports_own": group.reports, "reports_anchored": group.anchored}
        parts = {name: type(part)(*(array[:-2] for array in part)) for name, part in parts.items()}
        parts["pooled"] = self.pooled
        if self.reports:
            parts["reports_pooled"] = view_of(group, -2).reports
        if self.terms.tolerate:
            parts |= {"without": self.left_out.sums, "without_estimate": self.left_out.views}
        whole = {"work": group.work[:-2], "spent": group.spent[:-2], "watch": group.watch[:-1]}
        return whole | {
            f"{part}_{field}": array
            for part, values in parts.items()
            for field, array in values._asdict().items()
        }
