"""Compiling ahead: small agents play as plain functions, and what they call is then compiled.

Machine code depends on the types of arguments, not on the number of actions or features.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from guardband.agent.alarms import heed, let_back, note_raised
from guardband.agent.budget import Budget
from guardband.agent.fleet import Fleet
from guardband.agent.group import AgentGroup
from guardband.agent.records import Request
from guardband.agent.requests import RequestReader
from guardband.algorithms import DiscUCB, GuardUCB
from guardband.kernels.alarms import contradiction
from guardband.kernels.monitors import AlarmCode, Note, begin, monitor_of, watch
from guardband.kernels.ridge import count_reward
from guardband.kernels.start.background import collected
from guardband.kernels.state import new_statistic
from guardband.progress import ProgressBar

__all__ = ["ROLES", "ask_for_kernels", "warm_up"]

MENU = np.array([[0.3, 0.1], [0.1, 0.3], [0.1, 0.1]])  # more actions than features
NOTHING: Any = np.zeros((0, 0, 0))
TASKS = {"one": None, "two": None}
ROUNDS = 5
PENDING, APART = int(Note.PENDING), int(Note.APART)
ALARMS = (AlarmCode.CERTIFICATES, AlarmCode.ASSUMPTIONS)
# What agents can be, and the settings of some that call all that such agents call.
ROLES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "guard-ucb": ({"holdback": 0.1}, {"window": 4, "drift": 0.01}),
    "value": ({"budget": Budget(100.0, horizon=100)},),
    "tolerate": ({"algorithm": GuardUCB(tolerate=1)},),
    "others": ({"algorithm": DiscUCB(), "horizon": 100},),
}


def warm_up(roles: Iterable[str] = ROLES, bar: ProgressBar | None = None) -> int:
    """Compile what agents in these roles call; return how many kernels that are."""
    with collected() as wanted:
        rehearse(roles)
    from guardband.kernels.start.machine_code import alone, load  # noqa: PLC0415 - imports Numba

    if bar is not None:
        bar.expect(len(wanted))
    for request in wanted:
        with alone():
            load(*request)
        if bar is not None:
            bar.advance(1)
    return len(wanted)


def rehearse(roles: Iterable[str] = ROLES) -> None:
    """Let small agents in these roles do all that agents do."""
    for role in roles:
        for settings in ROLES[role]:
            _play(Fleet(TASKS, 2, **settings))


def ask_for_kernels(group: AgentGroup, *, valued: bool = False) -> None:
    """Have the kernels of decisions and rewards compiled for such agents, before the first one.

    `valued`: of decisions with values, or costs, too.
    """
    small = _live(group, group.size)
    table, _ = RequestReader(small).read_menu([[0.5, 0.5]])
    request = Request(table.T.copy(), 0, None, NOTHING, np.zeros(0), NOTHING, None, np.zeros(0))
    verdict = small.engine.decide(0, request, 1, 1, 0.5)
    if valued:
        verdict = small.engine.decide(0, request._replace(value=np.zeros(1)), 1, 1, 0.5)
    small.engine.learn(0, verdict.awaited, 0.5, 0.0, 1, 1)
    _compare(small)


def _live(group: AgentGroup, size: int | None) -> AgentGroup:
    """Return a small agent of this kind, one of so many."""
    return AgentGroup(
        {"task": (0, 1)},
        dim=2,
        algorithm=group.algorithm,
        feature_bound=1.0,
        horizon=group.horizon,
        reward_floor=group.reward_floor,
        seed=0,
        size=size,
    )


def _play(fleet: Fleet) -> None:
    group = fleet._group
    engine, cost = group.engine, [1.0] * len(MENU) if group.budget else None
    for t in range(ROUNDS):
        for agent in fleet.values():
            made = agent.decide(MENU, 0, cost=cost)
            if t and engine.guards and not engine.terms.tolerate:
                agent.override(made, action=1)
            agent.observe(made, 0.5)
            many = agent.decide_many([MENU, MENU], [0, 0], costs=cost and [cost, cost])
            agent.observe_many(many, [0.5, 0.5])
            _ = [each.certified for each in (made, *many)]
    group.note_pooling(engine.pool())
    engine.restore_pooled()
    if not engine.terms.half:
        agent.learn(MENU, [0.5] * len(MENU))
    _take_over(_live(group, len(TASKS)))
    for code in ALARMS if group.watched else ():
        group.states[0].watch[PENDING] = code
        note_raised(group, 0)
        heed(group, True)
    if group.states[0].watch[APART]:
        let_back(group, 0, forget=False)  # of no rewards: nothing contradicts
        group.states[0].watch[APART] = 1.0
        let_back(group, 0, forget=True)


def _take_over(live: AgentGroup) -> None:
    """Let an agent use sums from elsewhere, as live ones do."""
    sums = new_statistic(live.dim)
    sums.scalars[0] = 1.0
    live.adopt(sums, sums, sums, [sums])
    live.engine.run(count_reward, sums, np.zeros(live.dim), 0.5, 1.0, 0.5)
    live.hand_in()
    _compare(live)


def _compare(live: AgentGroup) -> None:
    """Let an agent watch a reward by itself, and compare its data with others'."""
    if not live.watched:
        return
    engine, state = live.engine, live.states[0]
    monitor, terms = monitor_of.plain(state.watch, live.dim), engine.terms_now
    if engine.terms.half:
        engine.run(begin, monitor, terms)
        engine.run(watch, state, terms, np.zeros(live.dim), 0.5, 1.0, 0.5)
    if "fit" in live.watched:
        engine.run(contradiction, monitor, new_statistic(live.dim), terms, state.work)
