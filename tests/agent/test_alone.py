"""Nobody pools alone: neither a fleet of one, nor a simulation of one agent, nor a live space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import agent, live_on

import guardband as gb
from guardband.live.coordinator import epochs

ROUNDS = 60
THETA = np.array([0.5, 0.3])
KINDS = {
    "guard-ucb": gb.GuardUCB(noise=0.1, context_noise=0.0),
    "disc-ucb": gb.DiscUCB(gate="none", noise=0.1, context_noise=0.0),
}

MORE: dict[str, dict[str, Any]] = {"guard-ucb": {}, "disc-ucb": {"horizon": ROUNDS}}


@pytest.mark.parametrize("agents", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_a_fleet(name: str, agents: int) -> None:
    tasks: dict[str, Any] = {f"task-{m}": None for m in range(agents)}
    fleet = gb.Fleet(tasks, 2, alpha=0.5, algorithm=KINDS[name], seed=0, **MORE[name])
    rng = np.random.default_rng(0)
    for _ in range(ROUNDS):
        for one in fleet.values():
            menu = rng.uniform(0.1, 0.6, (4, 2))
            decision = one.decide(menu, 0, float(menu[0] @ THETA))
            one.observe(decision, float(menu[decision.action] @ THETA))
    # V grew to exp of that when they pooled; nobody asked what it grew to where nobody did.
    assert (fleet.poolings > 0, fleet._group.logdet_pooled > 0.0) == (agents > 1, agents > 1)


@pytest.mark.filterwarnings("ignore::guardband.BoundWarning")
@pytest.mark.parametrize("agents", [1, 2])
def test_a_simulation(agents: int) -> None:
    problem = gb.problem("synthetic-b", agents=agents)
    rivals = [*KINDS.values(), gb.DisLinUCB()]
    results = gb.simulate(problem, rivals, rounds=300, trials=2, alpha=0.5, progress=False)
    for series in results.series:
        assert (series.sync_rounds > 0).tolist() == [agents > 1] * 2
        assert (series.numbers_sent > 0).tolist() == [agents > 1] * 2


@pytest.mark.parametrize("agents", [1, 2])
def test_a_live_space(agents: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    right = epochs._logdet
    monkeypatch.setattr(epochs, "_logdet", lambda *given: asked.append(given) or right(*given))
    crowd = [agent(tmp_path, f"task-{m}", agents=agents) for m in range(agents)]
    for turn in range(3):
        for one in crowd:
            live_on(one, ROUNDS // 3, seed=turn)
            one.sync()
        for one in crowd:
            one.sync()
    assert [one.epoch > 0 for one in crowd] == [agents > 1] * agents
    assert (len(asked) > 0) == (agents > 1)
    assert all(one.status()["acknowledged"] == ROUNDS for one in crowd)  # it sends what it knows
    for one in crowd:
        one.close()
