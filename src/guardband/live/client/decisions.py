"""Decisions of a live agent: made with what is known now, and written down.

Nothing here touches the network, and nothing waits for a disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from guardband.agent import Decision, Request, Spending, Verdict
from guardband.checks import check_whole
from guardband.errors import InvalidValueError
from guardband.live.client.agent_state import AgentState
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.decision_id import make_id, mark_of, new_mark
from guardband.live.client.journal import StoredDecision
from guardband.live.client.protocol_client import ProtocolClient
from guardband.reasons import sentence

__all__ = ["Decisions", "request_of", "worth_of"]

LAST_ROUND = 2**52  # a coordinator takes no number beyond 2^53
FRESH = 512  # decisions that need not be read again for their reward


class Decisions:
    """Makes decisions and writes them to the journal.

    Parameters
    ----------
    store
        The agent's state and journal.
    client
        What adopts epochs before a round.
    """

    def __init__(self, store: AgentStore, client: ProtocolClient) -> None:
        self._store, self._client = store, client

    def decide(self, requests: list[Request], round: int | None) -> list[Decision]:
        """Decide for all requests with what is known now; all are written down, or none."""
        return self._store.undamaged(lambda: self._decide_all(requests, self._numbered(round)))

    def _decide_all(self, requests: list[Request], given: int | None) -> list[Decision]:
        with self._store as state:
            number = state.last_round + 1 if given is None else given
            if state.timed:
                self._enter_round(state, number)
            if state.spending is not None:
                state.spending.check(requests)
            # Where requests have contexts of their own, a window's round may have many of them.
            step = 0 if given is not None and state.space.window and not state.shared else 1
            return [self._decide(state, r, number + step * i) for i, r in enumerate(requests)]

    def _numbered(self, given: int | None) -> int | None:
        """Return the number of a round; where others share its context, it must be given.

        A count of one's own decisions says nothing about others: an agent that joined late, or
        skipped a day, would be taken for one that decided long ago. Until the settings of the space
        are known nothing is learned, and the number does not matter.
        """
        if given is None:
            state = self._store.state
            if state.version > 0 and state.timed and state.space.agents > 1:
                if not state.shared:
                    raise InvalidValueError(
                        f"space {state.space.name!r} forgets by rounds, window="
                        f"{state.space.window}: give round=..., its number, which grows with time "
                        "and is the same for all tasks (the hour's number, say)."
                    )
                raise InvalidValueError(
                    f"the tasks of space {state.space.name!r} share contexts: give round=..., the "
                    "number of the round, the same for all tasks (the day's number, say). Where "
                    "every request has a context of its own, declare contexts='per-request'."
                )
            return None
        number = check_whole("round", given)
        if number > LAST_ROUND:
            raise InvalidValueError(f"round {number} is beyond 2^52: number rounds from 1 on.")
        return number

    def _enter_round(self, state: AgentState, number: int) -> None:
        """Adopt the newest epoch that holds no reward of this round, if shared, or a later one."""
        if not state.shared and number < state.last_round:
            raise InvalidValueError(
                f"round {number} is before round {state.last_round}, in which this task decided: "
                "rounds grow with time."
            )
        if state.shared and number <= state.last_round:
            raise InvalidValueError(
                f"round {number} is not after round {state.last_round}, in which this task "
                "decided: where tasks share contexts, each decides once in a round."
            )
        if state.waiting:
            self._client.adopt_before(number if state.shared else number + 1)

    def _decide(self, state: AgentState, request: Request, round: int) -> Decision:
        seq, learner, now = state.last + 1, state.learner, self._store.clock.now()
        if learner.half:
            self._store.enter_round(round)
        coin, hold = learner.coin, learner.hold
        code, shadow_action, why = None if state.free else state.held_back(now), None, None
        if code in (None, "shadow") and not learner.is_prompt(request):
            code = "compiling"
        if code is None:
            v = learner.decide(request, seq, coin, hold)
        else:
            more = state.paused if code == "paused" else None
            v, shadow_action, why = learner.play_baseline(request, seq, coin, code, more)
        mark = new_mark()
        x, careful = v.awaited.x.tobytes(), int(v.awaited.conservative)
        stake, purse, recall = v.awaited.stake, None, learner.recall(request, v.radius)
        if state.spending is not None:
            purse = pack_spending(state.spending)
        cost = learner.pay(request, v)
        self._store.journal.add(
            (
                seq,
                state.stream_id,
                now,
                round,
                state.version,
                state.stream.epoch,
                state.n,
                v.action,
                v.kind,
                v.reason,
                shadow_action,
                request.baseline,
                request.reward,
                coin,
                v.propensity,
                v.mean,
                v.width,
                v.floor,
                v.margin,
                v.promise,
                v.certificate,
                x,
                v.awaited.guess,
                v.awaited.weight,
                careful,
                request.menu.tobytes(),
                pack_extras(request),
                learner.allowance,
                state.spent,
                v.charge,
                *((None,) * 4 if stake is None else (hold, *stake)),
                worth_of(request, v.action),
                worth_of(request, request.baseline),
                request.cost.tobytes() if request.cost.size else None,
                purse,
                cost,
                None,
                None,
                mark,
                v.awaited.declared,
                v.awaited.lower,
            )
        )
        self._store.put_spending()
        learner.draw_coins()
        state.last, state.last_round = seq, round
        if v.charge > 0.0:
            state.spent += v.charge
            state.update_allowance()
        name = make_id(self._store.setup.task, state.stream.stream, mark_of(mark, now), seq)
        state.recalls.add(name, recall)
        _remember(state, name, v, request, cost, now, mark)
        if why is None and self._store.watch.turn:
            why = self._store.watch.reason_of(v)
        if state.alarms.news or state.alarms.followed:
            why = state.alarms.told(why or sentence(v.reason), learner.monitors.plays)
        decision = v.named(name, why, request.label(v.action))
        if state.spending is not None:
            decision = decision._replace(cost=cost, cost_left=state.spending.left)
        return decision


def _remember(
    state: AgentState,
    name: str,
    v: Verdict,
    request: Request,
    cost: float | None,
    now: float,
    mark: int,
) -> None:
    """Keep the newest decision as the journal has it: its reward may come soon."""
    if len(state.fresh) >= FRESH:
        state.fresh.clear()
    lead, share, predicted = v.awaited.stake or (None, None, None)
    stored = StoredDecision(
        state.last,
        state.stream_id,
        now,
        state.last_round,
        state.version,
        v.kind,
        v.floor if v.floor == v.floor else None,
        v.margin if v.margin == v.margin else None,
        v.awaited.x.tobytes(),
        v.awaited.guess,
        v.awaited.weight,
        int(v.awaited.conservative),
        v.awaited.declared,
        v.awaited.lower,
        lead,
        share,
        predicted,
        worth_of(request, v.action),
        worth_of(request, request.baseline),
        cost,
        None,
        None,
        mark,
        *(None,) * 3,
    )
    state.fresh[name] = stored, v.awaited


def worth_of(request: Request, k: int) -> float | None:
    """Return what action k is worth to the caller; None where no values were given."""
    return float(request.value[k]) if request.value.size else None


def pack_spending(spending: Spending) -> bytes:
    """Return what was spent of the budget, and what may be, as a decision's row keeps it."""
    return np.append(spending.numbers, spending.most).tobytes()


def pack_extras(request: Request) -> bytes | None:
    """Return support, weights, covariance and values as bytes, where they were given."""
    if not (request.weights.size or request.covariance.size or request.value.size):
        return None
    head = np.array([len(request.weights), len(request.covariance)], np.float64)
    arrays = (head, request.contexts, request.weights, request.covariance, request.value)
    return b"".join(array.tobytes() for array in arrays)


def request_of(row: Mapping[str, Any], dim: int) -> Request:
    """Return the request of a decision, from its row in the journal."""
    menu = np.frombuffer(row["features"]).reshape(dim, -1).copy()
    contexts, weights, covariance = np.zeros((0, 0, 0)), np.zeros(0), np.zeros((0, 0, 0))
    value = np.zeros(0)
    if row["extras"] is not None:
        numbers = np.frombuffer(row["extras"]).copy()
        n, matrices = (int(each) for each in numbers[:2])
        ends = np.cumsum([2, n * menu.size, n, matrices * dim * dim])
        points, weights, matrix, value = (each.copy() for each in np.split(numbers, ends)[1:])
        if n:
            contexts = points.reshape(n, *menu.shape)
        if matrices:
            covariance = matrix.reshape(matrices, dim, dim)
    cost = np.zeros(0) if row["costs"] is None else np.frombuffer(row["costs"]).copy()
    given = (contexts, weights, covariance, None, value, cost)
    return Request(menu, row["baseline"], row["baseline_reward"], *given)
