"""Calls the kernels for agents, and turns their numbers into decisions with reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.agent.records import (
    NO_CONTEXTS,
    NO_LIMITS,
    NO_VALUE,
    NO_WEIGHTS,
    Absorbed,
    Awaited,
    Batch,
    KnownThen,
    Recall,
    Request,
    Verdict,
)
from guardband.agent.setting_rows import SettingRows
from guardband.agent.verdicts import WAITS, verdict_of
from guardband.agent.weighed import Weighed
from guardband.algorithms import Policy
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.alarms import moved_by
from guardband.kernels.leave_out import pool_without, set_without
from guardband.kernels.logs import learn_rows
from guardband.kernels.menus import load_menu
from guardband.kernels.override import weigh_instead
from guardband.kernels.serve import SAID, kernels_of, weigh_actions
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
    Floats,
    Ints,
    LeftOut,
    Rule,
    Terms,
)

__all__ = ["Engine"]

REUSED = 5  # in a statistic's scalars
GUARD = float(Rule.GUARD)
NO_IDS = np.zeros(0, np.int64)
BOOL, empty = np.dtype(np.bool_), np.empty  # decisions wait for every name that is looked up
NOTHING = (NO_CONTEXTS, NO_IDS, NO_WEIGHTS)  # beside features
MANY = 400  # actions from which on it pays to weigh them when that is asked for
PROMPT = 5_000  # K d^2; a kernel that runs as it is written takes milliseconds for this work


class Engine(SettingRows):
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
    plain_up_to
        Up to which work, K d^2, decisions and rewards do not wait for kernels that are not compiled
        yet, but run them as they are written.
    """

    def __init__(self, algorithm: Any, facts: Facts, coords: list[Ints]) -> None:
        # An object of the user's own need not be a `Policy`: it has one rule for all rounds.
        rules = algorithm.agent_rules() if isinstance(algorithm, Policy) else (algorithm, algorithm)
        known, unknown = (rule.plan(facts) for rule in rules)
        self.terms: Terms = known.terms
        self._kernels = kernels_of(known.terms)
        self._serve_valued = kernels_of(known.terms, valued=True).serve
        self.reports: bool = getattr(algorithm, "reports", False)
        self.ridge, self.coords = known.terms.ridge, coords
        self.holdback = float(known.terms.holdback)
        self.plain_up_to = float(PROMPT)
        super().__init__(list(known.settings), list(unknown.settings))
        self._said = np.empty(SAID)
        self._make_room(0)
        here = len(coords)
        self.without = NO_WEIGHTS
        if self.terms.tolerate:
            # Data from elsewhere come without each other task: until then, one has nothing.
            tasks = here if facts.size is None else 2
            self.without = new_left_out(here, tasks, facts.dim, self.ridge)
        self._use(new_group(here, facts.dim, self.ridge), facts.dim)

    def _use(self, numbers: Floats, dim: int) -> None:
        self.numbers, self.group, self._square = numbers, view(numbers, dim), dim * dim
        *self.states, shared = (view_of(self.group, m) for m in range(len(self.coords) + 1))
        self.pooled = shared.own

    def copy(self, settings: Mapping[str, float]) -> Engine:
        """Return an engine with the same numbers; what it learns does not change these.

        `settings` are others than the algorithm's, by the names of `Terms`.
        """
        other = copy(self)
        other.plain_up_to = 0.0  # thousands of decisions are worth waiting
        other._said = np.empty(SAID)
        other._make_room(0)
        other._use(self.numbers.copy(), self.pooled.moment.size)
        if self.terms.tolerate:  # it goes by all data: what tolerance costs, it does not foresee
            other.terms, other.without = self.terms._replace(tolerate=0.0), NO_WEIGHTS
            other._kernels = kernels_of(other.terms)
        other.known = [row.copy() for row in self.known]
        other.unknown = [row.copy() for row in self.unknown]
        for name, value in settings.items():
            for row in (*other.known, *other.unknown):
                row[Terms._fields.index(name)] = value
        return other

    def run(self, kernel: Any, *args: Any, actions: int = 1) -> Any:
        """Run a kernel of decisions or rewards: at once, or where it is much, when compiled.

        Of a batch, `actions` are those of its largest menu: until there is machine code, it takes
        as long as its decisions one by one, which is far less than to wait for the compiler.
        """
        prompt = actions * self._square <= self.plain_up_to
        return kernel.at_once(*args) if prompt else kernel.when_ready(*args)

    def rebuild(self, kernel: Any, *args: Any, rows: int = 1) -> Any:
        """Run a kernel that computes anew from sums or rows: it is waited for where it is much."""
        prompt = rows * self._square <= min(self.plain_up_to, PROMPT)
        return kernel.at_once(*args) if prompt else kernel.when_ready(*args)

    def is_prompt(self, actions: float, *, valued: bool = False) -> bool:
        """Tell whether a decision among so many actions takes milliseconds by now."""
        if actions * self._square <= PROMPT:
            return True
        return self.full_speed and (self._serve_valued.ready or not valued)

    @property
    def full_speed(self) -> bool:
        """Whether the kernels of `decide` and `observe` are compiled."""
        return bool(load_menu.ready and self._kernels.serve.ready and self._kernels.learn.ready)

    @property
    def guards(self) -> bool:
        """Whether actions are certified one by one, so that values and budgets can choose."""
        return self.terms.rule == GUARD

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
        known: KnownThen | None = None,
    ) -> Verdict:
        """Decide for agent m in its `turn`-th round, with what actions cost where that counts.

        `hold` is the holdback's coin. With `known`, from which its estimate can be told later, what
        is certified beside the play is computed when it is asked for; not where that takes no
        longer than to remember the estimate.
        """
        menu, baseline, reward, contexts, weights, covariance, _, value, _ = request
        dim, actions = menu.shape
        ids, contexts_here = NO_IDS, weights.size
        if contexts_here:
            ids = np.arange(contexts_here)
        if self._room < actions or self._room < contexts_here:
            self._make_room(max(actions, contexts_here))
        settings, told = (self.unknown[m], math.nan) if reward is None else (self.known[m], reward)
        later = known is not None and actions > MANY and actions > dim
        x, allowed, table = empty(dim), empty(actions, BOOL), empty((3, actions))
        serve = self._kernels.serve
        if value is not NO_VALUE or cost is not NO_VALUE:
            serve = self._serve_valued if value.size or cost.size else serve
        given = (
            self.numbers, self.without, settings, self.coords[m], menu, contexts, ids, weights,
            covariance, (m, baseline, told, epoch, turn, coin, hold), value, cost, limits, later,
            self._scratch, allowed, table, x, self._said,
        )  # fmt: skip
        try:  # what comes between costs more than the kernel
            serve.code(*given)
        except TypeError:  # there is none yet, or none for arguments of these types
            self.run(serve, *given, actions=actions)
        row = self._said.tolist()
        if known is not None and row[WAITS]:
            weighed = self._later(m, request, known, row)
        else:
            weighed = Weighed((allowed, table))
        return verdict_of(row, request, x, weighed, holdback=self.holdback)

    def decide_many(self, m: int, batch: Batch, turns: Floats, known: KnownThen) -> list[Verdict]:
        """Decide for agent m as `decide` does; `turns` (n, 6) are as `serve_many` takes them."""
        menus, ends, requests = batch
        n, dim = len(requests), self.pooled.moment.size
        xs, said = np.empty((n, dim)), np.empty((n, SAID))
        actions, most = int(ends[-1]), int(np.diff(ends, prepend=0).max())
        if self._room < most:
            self._make_room(most)
        allowed, tables = np.empty(actions, np.bool_), np.empty(3 * actions)
        given = (self.known[m], self.unknown[m], self.coords[m], NOTHING, menus, ends, m, turns)
        kept = (self._scratch, allowed, tables, xs, said)
        many = self._kernels.serve_many
        self.run(many, self.numbers, self.without, *given, *kept, actions=most)
        made, start = [], 0
        for row, request, x, stop in zip(said.tolist(), requests, xs, ends.tolist(), strict=True):
            # What is kept of one decision must not keep the numbers of all.
            if row[WAITS]:
                weighed = self._later(m, request, known, row)
            else:
                table = tables[3 * start : 3 * stop].reshape(3, -1)
                weighed = Weighed((allowed[start:stop].copy(), table.copy()))
            made.append(verdict_of(row, request, x.copy(), weighed, holdback=self.holdback))
            start = stop
        return made

    def _make_room(self, numbers: int) -> None:
        """Have scratch for so many actions, or possible contexts."""
        self._scratch = new_scratch(numbers)
        self._room = self._scratch.shape[1]

    def _later(self, m: int, request: Request, known: KnownThen, said: list[float]) -> Weighed:
        known.lent = True
        return Weighed(partial(self._weigh, m, request, known, said))

    def _weigh(
        self, m: int, request: Request, known: KnownThen, said: list[float]
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Return which actions are certified, and the table of all, by what was known."""
        menu, baseline, reward, contexts, weights, covariance, *_ = request
        (dim, actions), n = menu.shape, weights.size
        allowed, table = np.empty(actions, np.bool_), np.empty((3, actions))
        settings, told = (self.unknown[m], math.nan) if reward is None else (self.known[m], reward)
        given = (settings, self.coords[m], menu, contexts, np.arange(n), weights, covariance)
        played = (baseline, told, int(said[0]), said[7], bool(said[9]))
        kept = (new_scratch(actions, n), np.empty(dim), allowed, table)
        with known.owner.lock:  # or they might change meanwhile
            by = (known.inverse, known.theta, said[16])
            self.run(weigh_actions, *given, by, played, *kept, actions=actions)
        return allowed, table

    def instead(self, m: int, recall: Recall, k: int, awaited: Awaited) -> Awaited:
        """Return what is awaited where action k was played instead, by what was known then."""
        if self.terms.tolerate:
            raise InvalidValueError(
                "agents with tolerate=1 take no overrides: discard the decision."
            )
        request, x = recall.request, np.empty(recall.theta.size)
        known = (recall.inverse, recall.theta, recall.radius)
        ids = np.arange(request.weights.size)
        given = (request.menu, request.contexts, ids, request.weights, request.covariance)
        own = (self.known[m], self.coords[m])
        n = request.menu.shape[1]
        found = self.run(weigh_instead, *own, *given, known, k, x, actions=n)
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
        x, guess, weight, careful, _, declared, lower, _ = awaited
        learn, seen = self._kernels.learn, (weight, guess, declared, lower)
        given = (self.numbers, self.without, self.known[m], m, x, y, seen, careful)
        due: bool
        try:  # as in `decide`
            due = learn.code(*given, logdet, since, now)
        except TypeError:
            due = self.run(learn, *given, logdet, since, now)
        return due

    def learn_many(
        self, m: int, awaited: Sequence[Awaited], ys: Floats, logdet: float, since: int, now: int
    ) -> bool:
        """Learn from rewards, one after another; tell whether a pooling is due."""
        xs = np.array([each.x for each in awaited])
        seen = np.array(
            [
                (each.weight, each.guess, each.declared, each.lower, each.conservative)
                for each in awaited
            ]
        )
        given = (self.numbers, self.without, self.known[m], m, xs, ys, seen)
        many = self._kernels.learn_many
        due: bool = self.run(many, *given, logdet, since, now)
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
        declared = np.zeros(rewards.size)
        kept = (weights, guesses, declared)
        radius, due = self.rebuild(
            learn_rows, *numbers, self.known[m], *given, *kept, rows=max(1, rewards.size)
        )
        self.states[m].own.scalars[REUSED] += reused
        return Absorbed(weights, guesses, radius, due, declared)

    def reused(self, m: int) -> int:
        """Return how many rows that had been looked at are in the data that agent m relies on."""
        own, pooled = self.states[m].own.scalars, self.pooled.scalars
        return int(own.item(REUSED) + pooled.item(REUSED))

    def pool(self) -> float:
        """Share out what all agents learned; return log det(V / ridge) of all their data."""
        terms = Terms(*map(float, self.terms))
        if terms.tolerate:
            return float(self.rebuild(pool_without, self.group, self.left_out, terms))
        return float(self.rebuild(pool, self.group, terms))

    @property
    def left_out(self) -> LeftOut:
        """Named views of what agents know without each task; see `kernels.leave_out`."""
        return left_out(self.without, len(self.coords), self.pooled.moment.size)

    def restore_pooled(self) -> None:
        """Compute from pooled sums that were loaded what a pooling computes from them."""
        shared, terms = view_of(self.group, len(self.states)), Terms(*map(float, self.terms))
        nothing = new_statistic(self.pooled.moment.size)
        if not math.isnan(terms.pooled_confidence):
            self.rebuild(set_pooled, shared, nothing, terms)
        for j in range(len(self.states) if terms.tolerate else 0):
            self.rebuild(set_without, shared, self.left_out, j, nothing, terms)

    def set_time(self, now: int) -> None:
        """Let `now` be the round, for worlds that move by a declared drift."""
        self.set_moved(self.run(moved_by, self.terms, now))

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
