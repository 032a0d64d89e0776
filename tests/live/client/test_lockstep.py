"""The same draws through the simulator, the fleet and live agents: the same actions everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import coordinator_process

import guardband as gb
from guardband.live.link.http import HttpLink
from guardband.seeds import stream

AGENTS, DIM, CONTEXTS, ACTIONS = 3, 4, 8, 6
NOISE, ALPHA = 0.1, 0.2
TASKS = [[0, 1, 2, 3], [0, 2, 3], [1, 2, 3]]


class TrialDraws:
    """Contexts, coins and noise, drawn before anybody plays."""

    def __init__(self, rounds: int, seed: int = 5) -> None:
        rng = np.random.default_rng(seed)
        self.phi = rng.uniform(0.0, 0.5, (CONTEXTS, ACTIONS, DIM))
        self.psi = self.phi + rng.normal(0.0, 0.01, self.phi.shape)
        self.theta = np.array([0.6, 0.3, 0.5, 0.4])
        self.contexts = rng.integers(0, CONTEXTS, rounds)
        self.noise = NOISE * rng.standard_normal((rounds, AGENTS))
        # The coins that agents with seed 0 toss by themselves.
        coins = [stream(0, "coin", f"task{m}").random(rounds) for m in range(AGENTS)]
        self.coin = np.column_stack(coins)
        self.rounds = rounds

    def reward(self, t: int, m: int, action: int) -> float:
        phi = self.phi[self.contexts[t], action]
        expected = sum(float(phi[i]) * float(self.theta[i]) for i in TASKS[m])
        return expected + float(self.noise[t, m])


def simulated(draws: TrialDraws, mode: str, shared: bool) -> gb.Results:
    problem = gb.Tabular(
        draws.phi,
        draws.psi,
        draws.theta,
        tasks=TASKS,
        baseline=np.full((AGENTS, CONTEXTS), 2),
        reward_std=gb.problems.GaussianNoise(NOISE),
    )
    replay = gb.Replay(
        draws.contexts,
        draws.noise,
        np.zeros(draws.rounds),
        np.zeros((draws.rounds, DIM)),
        draws.coin,
    )
    algorithm = gb.GuardUCB(ALPHA, noise=NOISE, mode=mode, shared_context=shared)
    return gb.simulate(problem, algorithm, replay=replay, trace=True)


def play(draws: TrialDraws, agents: list[Any], between: Any) -> np.ndarray:
    """Let all decide, all observe, and then let messages go around."""
    actions = np.zeros((draws.rounds, AGENTS), int)
    for t in range(draws.rounds):
        made = []
        for m, agent in enumerate(agents):
            told = {"round": t + 1} if isinstance(agent, gb.LiveAgent) else {}
            made.append(agent.decide(draws.psi[draws.contexts[t]], 2, **told))
            actions[t, m] = made[m].action
        for m, agent in enumerate(agents):
            agent.observe(made[m].id, draws.reward(t, m, made[m].action))
        between()
    return actions


def in_step(agents: list[Any]) -> Any:
    """Carry messages until an epoch that is due has gone around."""

    def between() -> None:
        if not any(agent.status()["due"] for agent in agents):
            return
        before = max(agent.epoch for agent in agents)
        for _ in range(4):
            for agent in agents:
                agent.sync()
            if all(agent.epoch > before for agent in agents):
                return
        raise AssertionError("the epoch did not go around")

    return between


def settings(mode: str, shared: bool) -> gb.SpaceSettings:
    return gb.SpaceSettings(
        name="home",
        features=[f"x{i}" for i in range(DIM)],
        alpha=ALPHA,
        noise=NOISE,
        mode=mode,
        agents=AGENTS,
        contexts="shared" if shared else "per-request",
        shares="equal",
        rewards={"low": -2.0, "high": 3.0, "order": "prompt"},
        sync={"deadline_s": 60.0},
    )


def fleet_actions(draws: TrialDraws, mode: str, shared: bool) -> tuple[np.ndarray, gb.Fleet]:
    algorithm = gb.GuardUCB(ALPHA, noise=NOISE, mode=mode, shared_context=shared)
    tasks = {f"task{m}": task for m, task in enumerate(TASKS)}
    fleet = gb.Fleet(tasks, dim=DIM, algorithm=algorithm)
    return play(draws, list(fleet.values()), lambda: None), fleet


@pytest.mark.parametrize(
    ("mode", "shared"), [("strict", True), ("strict", False), ("policy", False)]
)
def test_simulator_fleet_and_live_agents_play_the_same(
    mode: str, shared: bool, tmp_path: Path
) -> None:
    draws = TrialDraws(700)
    results = simulated(draws, mode, shared)
    together, fleet = fleet_actions(draws, mode, shared)
    agents = [
        gb.connect(
            f"local:{tmp_path}",
            task=f"task{m}",
            uses=TASKS[m],
            background=False,
            settings=settings(mode, shared),
            seed=0,
        )
        for m in range(AGENTS)
    ]
    live = play(draws, agents, in_step(agents))
    assert fleet.poolings >= 3
    assert [agent.epoch for agent in agents] == [fleet.poolings] * AGENTS
    assert len(results.trace.sync_rounds) == fleet.poolings
    np.testing.assert_array_equal(together, results.trace.actions)
    np.testing.assert_array_equal(live, together)
    assert len(np.unique(live)) > 2
    for agent in agents:
        np.testing.assert_allclose(agent.theta, fleet[agent.name].theta, rtol=1e-9)
        agent.close()


@pytest.mark.slow
def test_with_a_coordinator_process_too(tmp_path: Path) -> None:
    """The same over HTTP, with `guardband serve` in a process of its own."""
    draws = TrialDraws(2_000, seed=6)
    results = simulated(draws, "strict", True)
    together, fleet = fleet_actions(draws, "strict", True)
    with coordinator_process(tmp_path / "gb") as (address, token):
        link = HttpLink(address, token)
        given = settings("strict", True)
        link.create_space(given)
        link.close()
        agents = [
            gb.connect(
                address,
                token=token,
                task=f"task{m}",
                uses=TASKS[m],
                background=False,
                state_dir=tmp_path / f"agent{m}",
                settings=given,
                seed=0,
            )
            for m in range(AGENTS)
        ]
        live = play(draws, agents, in_step(agents))
        np.testing.assert_array_equal(together, results.trace.actions)
        np.testing.assert_array_equal(live, together)
        assert agents[0].epoch == fleet.poolings >= 5
        for agent in agents:
            agent.close()
