"""Agents of one process that learn together: their states, and when they pool."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from guardband.agent.alarms import heed, kinds_watched, move_window, to_be_seen_to
from guardband.agent.budget import Budget, Purse
from guardband.agent.coins import Coins
from guardband.agent.decision import Decision
from guardband.agent.engine import Engine
from guardband.agent.futures import Past
from guardband.agent.health import AlarmLog
from guardband.agent.looked_at import LookedAt
from guardband.agent.others import adopt_others, hand_in_to_others
from guardband.agent.outlook import StuckWarning, Watch
from guardband.agent.recall import Recalls
from guardband.agent.records import (
    NO_LIMITS,
    NO_VALUE,
    Absorbed,
    Awaited,
    KnownThen,
    Recall,
    Request,
    Verdict,
    new,
)
from guardband.agent.room import room_for
from guardband.agent.row_ids import RowIds
from guardband.agent.seen import Seen, is_kept
from guardband.algorithms import Algorithm
from guardband.checks import (
    as_index_set,
    check_not_negative,
    check_positive,
    check_seed,
    check_whole,
)
from guardband.errors import InvalidTypeError, InvalidValueError, UnknownDecisionError
from guardband.facts import Facts
from guardband.features import Features
from guardband.kernels.holdback import gain_of
from guardband.kernels.monitors import Note
from guardband.kernels.ridge import exact_eigenvalue, refresh
from guardband.kernels.sync import add_statistic, clear_statistic
from guardband.kernels.types import Floats, Statistic
from guardband.reasons import sentence
from guardband.uplift import GainSums, Uplift, reach_of, uplift_of

__all__ = ["AgentGroup"]

PLAYS = int(Note.PLAYS)


class AgentGroup(Coins):
    """Agents in one process: their states, the pooled data, and when to pool.

    A pooling that fell due in an agent's n-th round is carried out when an agent that has n rounds
    behind it decides again. Agents that take turns, one decision each per round, thus pool between
    rounds and never within one: no decision uses a reward that was earned under the same hidden
    context. Agents whose counts differ are not in step, and their rounds cannot be matched by
    counting: let them have contexts of their own (shared_context=False).

    With `size` these are some of so many agents, whose data come from elsewhere: `adopt`
    and `hand_in` take the place of `settle`. With `features` they take rows by name.
    """

    def __init__(
        self,
        tasks: Mapping[str, Sequence[int]],
        *,
        dim: int,
        algorithm: Algorithm,
        feature_bound: float,
        horizon: int | None,
        reward_floor: float | None,
        seed: int,
        size: int | None = None,
        features: Features | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.dim = check_whole("dim", dim)
        if not tasks:
            raise InvalidValueError(
                "tasks is empty: give at least one, such as {'movies': [0, 1, 2]}."
            )
        for name in tasks:
            if not isinstance(name, str):
                raise InvalidTypeError(f"a task's name must be a text, not {name!r}.")
        self.names = tuple(tasks)
        self.tasks = tuple(as_index_set(f"task {n!r}", s, dim) for n, s in tasks.items())
        self.algorithm = algorithm
        self.feature_bound = check_positive("feature_bound", feature_bound)
        self.horizon = None if horizon is None else check_whole("horizon", horizon)
        if reward_floor is not None:
            reward_floor = check_not_negative("reward_floor", reward_floor)
        self.reward_floor = reward_floor
        self.seed = check_seed(seed)
        self.size, self.features = size, features
        self.budget = budget
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidTypeError(f"budget must be a gb.Budget(total, horizon), not {budget!r}.")

        agents = len(self.names)
        facts = Facts(self.tasks, self.dim, self.horizon, reward_low=reward_floor, size=size)
        self.coords = [np.array(task, np.int64) for task in self.tasks]
        with room_for(agents, self.dim):
            self.engine = Engine(algorithm, facts, self.coords)
        self.states, self.pooled = self.engine.states, self.engine.pooled
        super().__init__(self.names, self.seed, self.engine.holdback)
        self.rounds = [0] * agents
        self.rows = [0] * agents  # of logs; each counts as a round that was not decided here
        self.rounds_pooled = [0] * agents
        self.logdet_pooled = 0.0
        self.poolings = 0
        self.due_round: int | None = None
        self.gains = [GainSums() for _ in self.names]
        self.pending: list[dict[str, Awaited]] = [{} for _ in self.names]
        self.recalls = [Recalls() for _ in self.names]
        self.purses = [None if budget is None else Purse(budget) for _ in self.names]
        if budget is not None and self.engine.terms.tolerate:
            raise InvalidValueError("a budget is for tolerate=0: leave one of them out.")
        if budget is not None and not self.engine.guards:
            raise InvalidValueError(
                f"a budget is for Guard-UCB, not for {algorithm.name}: use algorithm='guard-ucb'."
            )
        self.row_ids = RowIds()
        self.looked_at: LookedAt | None = None  # rows of logs that may not be learned
        self.seen = [Seen() for _ in self.names]
        self.watches = [Watch(self.engine.terms) for _ in self.names]
        self.watched = kinds_watched(self.engine)
        self.alarms = [AlarmLog() for _ in self.names]
        self.starts = 0  # how often sums were made anew after an alarm
        self.calls = False  # whether it is a pooling that is due, and not only alarms
        self.looks = [False] * agents  # of whom it is time to see whether they fit

    def settle(self, agent: int) -> None:
        """Do what is due, if `agent` has finished the round in which it fell due.

        That is to pool, to heed alarms, and then to look for tasks that do not fit.
        """
        if self.due_round is None or self.rounds[agent] < self.due_round:
            return
        self.due_round, calls, self.calls = None, self.calls, False
        if calls:
            self.before_change()
            self.note_pooling(self.engine.pool())
        if self.watched:
            heed(self, calls)

    def before_change(self) -> None:
        """Let decisions that wait for a reward remember what was known: it is about to change."""
        for recalls in self.recalls:
            recalls.before_change()

    def note_pooling(self, logdet: float) -> bool:
        """Note that agents pooled, and V grew to `logdet`; NaN: they did not. Tell whether."""
        if math.isnan(logdet):
            return False
        self.logdet_pooled = logdet
        self.rounds_pooled = [self.passed(m) for m in range(len(self.rounds))]
        self.poolings += 1
        return True

    def awaited(self, agent: int, decision_id: str) -> Awaited:
        """Return what is remembered of a decision until its reward comes, or say why none is."""
        found = self.pending[agent].get(decision_id)
        if found is not None:
            return found
        task, _, count = str(decision_id).rpartition("-")
        name, rounds = self.names[agent], self.rounds[agent]
        if task == name and count.isdecimal() and 0 < int(count) <= rounds:
            raise UnknownDecisionError(f"decision {decision_id!r} was observed or given up before.")
        raise UnknownDecisionError(
            f"{decision_id!r} is no decision of task {name!r}; give the id of one of its own."
        )

    def check(self, requests: Sequence[Request], agent: int) -> None:
        """Refuse what cannot be paid, and look ahead, before decisions change anything."""
        purse, watch, rounds = self.purses[agent], self.watches[agent], self.rounds[agent]
        if purse is not None:
            purse.check(requests)
        # To look ahead takes thousands of rounds.
        if 0 < watch.turn <= rounds + 1 and self.engine.full_speed:
            text = watch.look(self.names[agent], self.past(agent), rounds)
            if text:
                warnings.warn(text, StuckWarning, stacklevel=4)  # where `decide` is called

    def decide(self, agent: int, request: Request) -> Decision:
        """Decide for an agent; its id has the task's name and the number of the round."""
        turn, engine = self.rounds[agent] + 1, self.engine
        if self.due_round is not None:
            self.settle(agent)
        if engine.terms.half:
            move_window(self, agent)
        if is_kept(turn):
            self.seen[agent].add(request)
        number, coin, hold = turn + self.rows[agent], self.next_coin[agent], self.next_hold[agent]
        purse, cost, limits, state = self.purses[agent], NO_VALUE, NO_LIMITS, self.states[agent]
        if purse is not None:
            cost, limits = purse.costs(request)[0], purse.limits(request)
        known = self.recalls[agent].known(state.estimate, self)
        epoch = self.poolings + 1
        verdict = engine.decide(agent, request, epoch, number, coin, cost, limits, hold, known)
        if verdict.charge:
            state.spent[0] += verdict.charge
        self.draw_coins(agent)
        return self.note(agent, turn, request, verdict, known)

    def note(
        self, agent: int, turn: int, request: Request, verdict: Verdict, known: KnownThen
    ) -> Decision:
        """Note a decision, and return it."""
        purse, watch, reason, label = self.purses[agent], self.watches[agent], None, None
        self.rounds[agent] = turn
        name, awaited = f"{self.names[agent]}-{turn}", verdict.awaited
        self.pending[agent][name] = awaited._replace(start=self.starts) if self.starts else awaited
        self.recalls[agent].add(name, new(Recall, (request, known, verdict.radius)))
        if purse is not None:
            purse.pay(name, request, verdict.action, verdict.worth)
        if request.labels is not None:
            label = request.labels[verdict.action]
        if watch.turn:
            reason = watch.reason_of(verdict)
        log = self.alarms[agent]
        if log.followed or log.looked_at < len(log.alarms):
            plays = self.states[agent].watch.item(PLAYS)
            reason = log.told(reason or sentence(verdict.reason), plays)
        decision = verdict.named(name, reason, label)
        if purse is not None:
            decision = decision._replace(cost=purse.charged[name], cost_left=purse.left)
        return decision

    def past(self, agent: int) -> Past:
        """Return what an outlook of an agent starts from."""
        seen = [list(each) for each in self.seen]
        names = () if self.features is None else self.features.names
        rounds = self.passed(agent)
        engine = self.engine.copy({"alarm": math.nan})
        engine.group.watch[:, Note.HOLD] = 0.0
        return Past(engine, agent, self.poolings + 1, rounds, seen, names)

    def forget(self, agent: int, name: str, less: float = 0.0) -> None:
        """Wait for a decision no more; `less` is what it cost less than was reserved."""
        del self.pending[agent][name]
        self.recalls[agent].drop(name)
        purse = self.purses[agent]
        if purse is not None:
            purse.release(name, less)

    def refund(self, agent: int, name: str, cost: float | None) -> float:
        """Return what a decision cost less than was reserved, or refuse what does not fit."""
        purse = self.purses[agent]
        if purse is not None:
            return purse.settled(name, cost)
        if cost is not None:
            raise InvalidValueError(
                "cost=... is paid from a budget: make the agent with budget=gb.Budget(...)."
            )
        return 0.0

    def override(self, agent: int, name: str, action: int) -> None:
        """Let a decision stand for another action of its menu, as it stood when it was made."""
        awaited, recall = self.awaited(agent, name), self.recalls[agent].get(name)
        k, actions = check_whole("action", action, 0), recall.request.menu.shape[1]
        if k >= actions:
            raise InvalidValueError(f"action {k} is not one of the {actions} actions.")
        purse = self.purses[agent]
        if purse is not None:
            purse.exchange(name, recall.request, k)
        self.pending[agent][name] = self.engine.instead(agent, recall, k, awaited)

    def learn(self, agent: int, awaited: Awaited, reward: float) -> None:
        """Learn a reward; note it if that makes a pooling due, or raises an alarm.

        One of a decision before the last alarm counts for the uplift alone: its weight may rest on
        a wrong set.
        """
        if awaited.stake is not None:
            self.count_gain(agent, awaited, reward)
        if awaited.start != self.starts:
            return
        self.recalls[agent].before_change()
        now = self.rounds[agent] + self.rows[agent]
        since = now - self.rounds_pooled[agent]
        due = self.engine.learn(agent, awaited, reward, self.logdet_pooled, since, now)
        if to_be_seen_to(self, agent, 1) or due:
            self.note_due(agent, pool=due)

    def count_gain(self, agent: int, awaited: Awaited, reward: float) -> None:
        """Count what a reward says of what choices earn, where a holdback's coin was thrown."""
        if awaited.stake is not None:
            self.gains[agent] = self.gains[agent].plus(1.0, *gain_of.at_once(awaited.stake, reward))

    @property
    def reach(self) -> float:
        """The most that a round can surprise the holdback; see `reach_of`."""
        return reach_of(self.engine.holdback, getattr(self.algorithm, "noise", None))

    def uplift(self, agents: Sequence[int], level: float) -> Uplift:
        """Return what the choices of some agents earn over the baseline, all rounds together."""
        with self.lock:
            sums = reduce(lambda one, m: one.plus(*self.gains[m]), agents, GainSums())
        return uplift_of(sums, self.reach, level)

    def learn_rows(self, agent: int, rows: Floats, rewards: Floats, reused: int = 0) -> Absorbed:
        """Learn rows of logs between two rounds; note it if that makes a pooling due.

        None is carried out here: the other agents may be in the middle of a round. `reused` of the
        rows had been looked at.
        """
        if rewards.size and self.engine.terms.half:
            raise InvalidValueError(
                "learn(...) is for agents without a window: rows of logs are of another time."
            )
        self.recalls[agent].before_change()
        now = self.passed(agent)
        given = (self.poolings + 1, self.logdet_pooled, now - self.rounds_pooled[agent], now)
        absorbed = self.engine.learn_rows(agent, rows, rewards, *given, reused)
        self.rows[agent] += rewards.size
        if to_be_seen_to(self, agent, rewards.size) or absorbed.due:
            self.note_due(agent, pool=absorbed.due)
        return absorbed

    def passed(self, agent: int) -> int:
        """Return how many rounds an agent has behind it, rows of logs among them."""
        return self.rounds[agent] + self.rows[agent]

    def note_due(self, agent: int, *, pool: bool) -> None:
        """Note that a pooling, an alarm of an agent, or whether it fits, is to be seen to."""
        # An agent that is a round behind may be in the middle of a round in which others have
        # earned rewards: the pooling waits for its end. But where agents are not in step, a fast
        # one that stops must not hold up the others.
        self.calls = self.calls or bool(pool)
        due = min(max(self.rounds), self.rounds[agent] + 1)
        self.due_round = due if self.due_round is None else min(self.due_round, due)

    def adopt(
        self,
        pooled: Statistic,
        handed_in: Statistic,
        own: Statistic,
        without: Sequence[Statistic] = (),
    ) -> None:
        """Take over sums from elsewhere; for a group of one.

        Parameters
        ----------
        pooled
            What all agents share.
        handed_in
            What this agent has handed in, beyond its part of `pooled`.
        own
            What it has learned since.
        without
            What all agents share without each other task, where one of them may lie; none: no other
            task has a part in it.
        """
        state, ridge, anew = self.states[0], self.engine.ridge, self.engine.rebuild
        self.before_change()
        _copy(pooled, self.pooled)
        anew(clear_statistic, state.own)
        state.work[...] = 0.0
        anew(refresh, state, self.pooled, ridge)
        self.logdet_pooled = float(state.estimate.scalars[0])
        if handed_in.scalars[0] + own.scalars[0] > 0.0:
            anew(add_statistic, self.pooled, handed_in)
            _copy(own, state.own)
            anew(refresh, state, self.pooled, ridge)
        # V may have shrunk: data can be withdrawn.
        anew(exact_eigenvalue, state, self.pooled, ridge)
        if self.engine.terms.tolerate:
            adopt_others(self.engine, without or [pooled], handed_in)

    def hand_in(self) -> None:
        """Count what the only agent learned among the pooled data; its estimate stays as it is."""
        own = self.states[0].own
        if self.engine.terms.tolerate:
            hand_in_to_others(self.engine)
        self.engine.rebuild(add_statistic, self.pooled, own)
        self.engine.rebuild(clear_statistic, own)


def _copy(source: Statistic, target: Statistic) -> None:
    for one, other in zip(source, target, strict=True):
        other[...] = one
