"""A fleet in a process that forks, as web servers do, while its threads are at work."""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest

import guardband as gb

MENU = np.array([[0.5, 0.1], [0.3, 0.4], [0.1, 0.5]])
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def fleet_of(names: str, **settings: Any) -> gb.Fleet:
    features = gb.Features(numbers={"x": (0, 1), "y": (0, 1)}, intercept=False)
    return gb.Fleet(dict.fromkeys(names), features=features, **settings)


def use(agent: gb.Agent) -> gb.Decision:
    rows = [{"x": x, "y": y} for x, y in MENU.tolist()]
    decision = agent.decide(rows, agent.rounds % 3)
    agent.observe(decision, 0.5)
    return decision


def work_in_child(fleet: gb.Fleet, end: Connection) -> None:
    for agent in fleet.values():
        use(agent)
    end.send(sum(agent.rounds for agent in fleet.values()))


def coins_in_child(fleet: gb.Fleet, end: Connection) -> None:
    group = fleet._group
    coins = [*group.next_coin, *group.next_hold]
    end.send([*coins, *(float(each.random()) for each in (*group.coins, *group.holds))])


def in_child(target: Any, fleet: gb.Fleet) -> Any:
    """Return what a forked process sends; it must not take long."""
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=target, args=(fleet, there))
    child.start()
    try:
        assert here.poll(60), "the child hangs"
        return here.recv()
    finally:
        child.kill()
        child.join()


def test_children_of_a_busy_process_do_not_hang() -> None:
    fleet, stop = fleet_of("abc"), threading.Event()

    def work(agent: gb.Agent) -> None:
        while not stop.is_set():
            use(agent)

    for agent in fleet.values():
        use(agent)
    threads = [threading.Thread(target=work, args=(agent,)) for agent in fleet.values()]
    for thread in threads:
        thread.start()
    try:
        for _ in range(24):
            before = sum(agent.rounds for agent in fleet.values())
            assert in_child(work_in_child, fleet) >= before + 3
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_no_two_processes_throw_the_same_coins() -> None:
    fleet = fleet_of("ab", holdback=0.5, seed=3)
    children = [in_child(coins_in_child, fleet) for _ in range(4)]
    group = fleet._group
    seen = [*group.next_coin, *group.next_hold, *(coin for coins in children for coin in coins)]
    assert len(set(seen)) == len(seen) == 4 + 4 * 8


def test_forks_change_nothing_in_the_parent() -> None:
    one, other = fleet_of("ab", mode="policy", seed=1), fleet_of("ab", mode="policy", seed=1)
    made = []
    for _ in range(20):
        made.append([use(agent)[:4] for agent in one.values()])
        in_child(work_in_child, one) if len(made) == 10 else None
    assert made == [[use(agent)[:4] for agent in other.values()] for _ in range(20)]
