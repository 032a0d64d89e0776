"""Batches: an agent decides, or learns, many times in one call of a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from guardband.agent.alarms import to_be_seen_to
from guardband.agent.decision import Decision
from guardband.agent.group import AgentGroup
from guardband.agent.records import Awaited, Batch, Request
from guardband.agent.seen import is_kept
from guardband.kernels.types import Floats

__all__ = ["decide_batch", "learn_batch"]


def decide_batch(group: AgentGroup, agent: int, batch: Batch) -> list[Decision]:
    """Decide for an agent as its group would, one request after another."""
    made: list[Decision] = []
    engine, recalls, count = group.engine, group.recalls[agent], len(batch.requests)
    charged = group.purses[agent] is not None or not math.isnan(engine.allowance)
    if charged or engine.terms.half or not batch.ends.size:  # each depends on the one before
        return [group.decide(agent, request) for request in batch.requests]
    while len(made) < count:
        group.settle(agent)
        here, rounds = batch.part(len(made), count), group.rounds[agent]
        if group.due_round is not None:  # after so many rounds something is to be settled
            here = here.part(0, max(1, group.due_round - rounds))
        known = recalls.known(group.states[agent].estimate, group)
        verdicts = engine.decide_many(agent, here, _turns(group, agent, here.requests), known)
        pairs = zip(here.requests, verdicts, strict=True)
        for turn, (request, verdict) in enumerate(pairs, rounds + 1):
            if is_kept(turn):
                group.seen[agent].add(request)
            made.append(group.note(agent, turn, request, verdict, known))
    return made


def _turns(group: AgentGroup, agent: int, requests: Sequence[Request]) -> Floats:
    """Return what `serve_many` takes beside menus, (n, 6), and throw the coins for it."""
    n, turns, passed = len(requests), np.empty((len(requests), 6)), group.passed(agent)
    turns[:, 0] = [request.baseline for request in requests]
    turns[:, 1] = [math.nan if each.reward is None else each.reward for each in requests]
    turns[:, 2] = group.poolings + 1
    turns[:, 3] = np.arange(passed + 1, passed + n + 1)
    for i in range(n):
        turns[i, 4], turns[i, 5] = group.next_coin[agent], group.next_hold[agent]
        group.draw_coins(agent)
    return turns


def learn_batch(
    group: AgentGroup, agent: int, awaited: Sequence[Awaited], rewards: Sequence[float]
) -> None:
    """Learn rewards as an agent's group would, one after another."""
    counted: list[Awaited] = []
    ys: list[float] = []
    for each, reward in zip(awaited, rewards, strict=True):
        group.count_gain(agent, each, reward)
        if each.start == group.starts:
            counted.append(each)
            ys.append(reward)
    if not counted:
        return
    group.recalls[agent].before_change()
    now = group.passed(agent)
    given = (group.logdet_pooled, now - group.rounds_pooled[agent], now)
    due = group.engine.learn_many(agent, counted, np.array(ys), *given)
    if to_be_seen_to(group, agent, len(ys)) or due:
        group.note_due(agent, pool=due)
