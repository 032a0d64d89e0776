"""The same draws through the simulator, the fleet and live agents: the same actions everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from live.client.world import coordinator_process

import guardband as gb
from guardband.live.link.http import HttpLink
from guardband.seeds import stream

AGENTS, DIM, CONTEXTS, ACTIONS = 3, 4, 8, 6
NOISE, ALPHA, FLOOR = 0.1, 0.2, 0.2
ROUNDS = 700
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

    def expected(self, t: int, m: int, action: int) -> float:
        phi = self.phi[self.contexts[t], action]
        return sum(float(phi[i]) * float(self.theta[i]) for i in TASKS[m])

    def reward(self, t: int, m: int, action: int) -> float:
        return self.expected(t, m, action) + float(self.noise[t, m])


class Case(NamedTuple):
    """An algorithm, and how a fleet and a space are told the same."""

    algorithm: Any
    space: dict[str, Any]
    fleet: dict[str, Any]
    known: bool = False  # whether the baseline's reward is told
    rho: float = 0.0  # alpha r_l / (S + 1), the chance with which conservative rounds explore


def guard(mode: str, shared: bool) -> Case:
    contexts = "shared" if shared else "per-request"
    return Case(
        gb.GuardUCB(ALPHA, noise=NOISE, mode=mode, shared_context=shared, pooled_set=False),
        {"mode": mode, "alpha": ALPHA, "contexts": contexts, "shares": "equal"},
        {},
    )


def of_paper(name: str, *, known: bool = False, **settings: Any) -> Case:
    """The paper's pooling and confidence set; conservative rounds play real actions."""
    settings |= {"noise": NOISE, "context_noise": 0.05, "ridge": 0.01, "delta": 0.2}
    algorithm = gb.algorithms.ALGORITHMS[name].make(**settings)
    told, rho = {}, 0.0
    if algorithm.constrained:
        algorithm = replace(algorithm, mix="action")
        floor = settings.get("reward_floor", FLOOR)
        told, rho = {"reward_floor": floor}, settings["alpha"] * floor / 2.0
    return Case(
        algorithm,
        {**settings, **told, "algorithm": name, "shares": "paper", "sync": {"horizon": ROUNDS}},
        {**told, "horizon": ROUNDS},
        known,
        rho,
    )


def simulated(draws: TrialDraws, case: Case) -> gb.Results:
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
        np.full(draws.rounds, case.rho),
        np.zeros((draws.rounds, DIM)),
        draws.coin,
    )
    return gb.simulate(problem, case.algorithm, replay=replay, trace=True)


def play(draws: TrialDraws, agents: list[Any], between: Any, known: bool) -> np.ndarray:
    """Let all decide, all observe, and then let messages go around."""
    actions = np.zeros((draws.rounds, AGENTS), int)
    for t in range(draws.rounds):
        made = []
        for m, agent in enumerate(agents):
            told = {"round": t + 1} if isinstance(agent, gb.LiveAgent) else {}
            reward = draws.expected(t, m, 2) if known else None
            made.append(agent.decide(draws.psi[draws.contexts[t]], 2, reward, **told))
            actions[t, m] = made[m].action
        for m, agent in enumerate(agents):
            agent.observe(made[m].id, draws.reward(t, m, made[m].action))
        between()
    return actions


def in_step(agents: list[Any]) -> Any:
    """End windows, and carry messages until an epoch that is due has gone around."""

    def between() -> None:
        for agent in agents:
            if agent.settings.rewards.order == "window":
                clock = agent._store.clock
                clock.not_before(clock.now() + agent.settings.rewards.window_s)
                agent._outcomes.settle()
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


def settings(case: Case) -> gb.SpaceSettings:
    own = case.space.get("contexts") == "per-request"
    rules: dict[str, Any] = {
        "name": "home",
        "features": [f"x{i}" for i in range(DIM)],
        "noise": NOISE,
        "agents": AGENTS,
        "rewards": {"low": -2.0, "high": 3.0, "order": "prompt" if own else "window"},
        **case.space,
    }
    rules["sync"] = {"deadline_s": 60.0, **rules.get("sync", {})}
    return gb.SpaceSettings(**rules)


def fleet_actions(draws: TrialDraws, case: Case) -> tuple[np.ndarray, gb.Fleet]:
    tasks = {f"task{m}": task for m, task in enumerate(TASKS)}
    fleet = gb.Fleet(tasks, dim=DIM, algorithm=case.algorithm, **case.fleet)
    return play(draws, list(fleet.values()), lambda: None, case.known), fleet


def live_agents(folder: Path, given: gb.SpaceSettings) -> list[gb.LiveAgent]:
    return [
        gb.connect(
            f"local:{folder}",
            task=f"task{m}",
            uses=TASKS[m],
            background=False,
            settings=given,
            seed=0,
        )
        for m in range(AGENTS)
    ]


CASES = {
    "guard-ucb": guard("strict", shared=True),
    "guard-ucb, contexts per request": guard("strict", shared=False),
    "guard-ucb, policy": guard("policy", shared=False),
    "disc-ucb": of_paper("disc-ucb", known=True, alpha=0.5, gate="none"),
    "disc-ucb, printed gate": of_paper("disc-ucb", known=True, alpha=0.9),
    "disc-ucb-unknown": of_paper("disc-ucb-unknown", alpha=0.5, gate="none", reward_floor=FLOOR),
    "disc-ucb-unknown, printed gate": of_paper("disc-ucb-unknown", alpha=1.0, reward_floor=0.4),
    "dis-lin-ucb": of_paper("dis-lin-ucb"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_simulator_fleet_and_live_agents_play_the_same(case: Case, tmp_path: Path) -> None:
    draws = TrialDraws(ROUNDS)
    results = simulated(draws, case)
    together, fleet = fleet_actions(draws, case)
    agents = live_agents(tmp_path, settings(case))
    live = play(draws, agents, in_step(agents), case.known)
    assert fleet.poolings >= 3
    assert [agent.epoch for agent in agents] == [fleet.poolings] * AGENTS
    assert len(results.trace.sync_rounds) == fleet.poolings
    np.testing.assert_array_equal(together, results.trace.actions)
    np.testing.assert_array_equal(live, together)
    assert len(np.unique(live)) > 2
    assert not results.trace.conservative.all()
    for agent in agents:
        np.testing.assert_allclose(agent.theta, fleet[agent.name].theta, rtol=1e-9)
        agent.close()


@pytest.mark.parametrize("name", ["disc-ucb", "disc-ucb-unknown"])
def test_every_task_has_its_own_alpha(name: str, tmp_path: Path) -> None:
    """A replay has one rho for all agents, so the simulator cannot take part."""
    draws, case, alphas = TrialDraws(ROUNDS), CASES[name], (0.9, 0.5, 0.3)
    several = case._replace(algorithm=replace(case.algorithm, alpha=alphas))
    together, fleet = fleet_actions(draws, several)
    named = {f"task{m}": alpha for m, alpha in enumerate(alphas)}
    agents = live_agents(tmp_path, settings(case).changed(alphas=named))
    live = play(draws, agents, in_step(agents), case.known)
    np.testing.assert_array_equal(live, together)
    assert agents[0].epoch == fleet.poolings >= 3
    assert (live != fleet_actions(draws, case)[0]).any()
    for agent in agents:
        agent.close()


@pytest.mark.slow
def test_with_a_coordinator_process_too(tmp_path: Path) -> None:
    """The same over HTTP, with `guardband serve` in a process of its own."""
    draws, case = TrialDraws(2_000, seed=6), CASES["guard-ucb"]
    results = simulated(draws, case)
    together, fleet = fleet_actions(draws, case)
    with coordinator_process(tmp_path / "gb") as (address, token):
        link = HttpLink(address, token)
        given = settings(case)
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
        live = play(draws, agents, in_step(agents), case.known)
        np.testing.assert_array_equal(together, results.trace.actions)
        np.testing.assert_array_equal(live, together)
        assert agents[0].epoch == fleet.poolings >= 5
        for agent in agents:
            agent.close()
