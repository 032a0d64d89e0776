"""One algorithm, written once: the simulator and library agents agree to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES, Case
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.agent.fleet import fleet_of
from guardband.agent.group import AgentGroup
from guardband.kernels import loop, menus
from guardband.kernels import serve as serving
from guardband.kernels.environment import Metric
from guardband.kernels.state import RHO, view
from guardband.reasons import REASONS
from guardband.sim.draws import TrialDraws
from guardband.sim.runners import CommonRunner
from guardband.sim.trial import checkpoint_rounds

KINDS: dict[str, Any] = {
    "disc-ucb": gb.DiscUCB,
    "disc-ucb-unknown": gb.DiscUCBUnknown,
    "dis-lin-ucb": gb.DisLinUCB,
}
NAMES = [
    name
    for name, case in CASES.items()
    if case.algorithm in KINDS and case.settings.get("gate") != "gap"
]


def simulated(case: Case, algorithm: Any, rho: float) -> tuple[gb.Results, CommonRunner]:
    """Run the simulator on the case's draws, with one rho for all rounds."""
    draws, rounds = case.draws, len(case.draws["contexts"])
    replay = gb.Replay(
        draws["contexts"],
        draws["reward_noise"],
        np.full(rounds, rho),
        draws["zeta"],
        draws["coin"],
    )
    problem = gb.Tabular(case.phi, case.psi, case.theta, tasks=case.tasks, baseline=case.baseline)
    results = gb.simulate(problem, algorithm, replay=replay, trace=True)
    world = problem.build(0)
    plan = algorithm.plan(world.facts(rounds))
    runner = CommonRunner(
        world, plan, np.full(len(case.tasks), 0.5), checkpoint_rounds(rounds), rounds
    )
    (chunk,) = TrialDraws(world, rounds, 0, replay=replay).chunks()
    runner.play(chunk)
    return results, runner


@pytest.mark.parametrize("together", [True, False], ids=["all decide, all observe", "in turn"])
@pytest.mark.parametrize("name", NAMES)
def test_library_agents_replay_the_simulator(name: str, together: bool) -> None:
    case = CASES[name]
    settings = dict(case.settings)
    if KINDS[case.algorithm].constrained:
        settings["mix"] = "action"
    rounds, agents = case.draws["reward_noise"].shape
    floor = settings.get("reward_floor", 0.5)
    if case.algorithm == "disc-ucb-unknown":
        settings["reward_floor"] = floor
    algorithm = KINDS[case.algorithm](**settings)
    tasks = {f"task {m}": task for m, task in enumerate(case.tasks)}
    group = AgentGroup(
        tasks,
        dim=case.theta.size,
        algorithm=algorithm,
        feature_bound=algorithm.feature_bound,
        horizon=rounds,
        reward_floor=floor,
        seed=0,
    )
    fleet = fleet_of(group)
    rho = group.engine.known[0][RHO]
    for row in (*group.engine.known, *group.engine.unknown):
        row[RHO] = rho
    results, runner = simulated(case, algorithm, rho)
    trace = results.trace
    known = case.algorithm == "disc-ucb"
    for t in range(rounds):
        c = case.draws["contexts"][t]
        decisions = {}

        def act(m: int, t: int = t, c: int = c, decisions: dict = decisions) -> None:
            baseline = int(case.baseline[m, c])
            group.next_coin[m] = case.draws["coin"][t, m]
            reward = runner.env.realised[c, runner.env.group[m], baseline] if known else None
            decisions[m] = fleet[f"task {m}"].decide(case.psi[c], baseline, reward)

        def hear(m: int, t: int = t, c: int = c, decisions: dict = decisions) -> None:
            decision = decisions[m]
            assert decision.action == trace.actions[t, m]
            preferred = decision.kind == "learned" or decision.reason == REASONS["itself"]
            assert preferred != trace.conservative[t, m]
            earned = runner.env.realised[c, runner.env.group[m], decision.action]
            # Some of these rewards are farther outside [0, 1] than `observe` takes.
            awaited = group.pending[m].pop(decision.id)
            group.learn(m, awaited, earned + case.draws["reward_noise"][t, m])

        for m in range(agents):
            act(m)
            if not together:
                hear(m)
        for m in range(agents if together else 0):
            hear(m)
    # The simulator pools at the end of a round, the fleet when the next one starts.
    group.settle(0)
    simulator, library = view(runner.numbers, case.theta.size), group.engine.group
    for numbers in (simulator, library):
        # When lambda_min was last computed is a note to oneself: describing a decision needs it
        # more often than making one.
        numbers.estimate.scalars[:, 2:] = 0.0
    for one, other in zip(
        simulator.own + simulator.estimate, library.own + library.estimate, strict=True
    ):
        assert_array_equal(one, other)
    assert fleet.poolings == len(trace.sync_rounds)
    assert trace.conservative.any() == algorithm.constrained


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("odd-task", {}),
        ("drift-abrupt", {}),
        ("odd-task", {"tolerate": 1}),
        ("drift-abrupt", {"tolerate": 1}),
        ("drift-slow", {"window": 150}),
        ("drift-slow", {"window": 150, "drift": 1e-4}),
    ],
)
def test_restarts_leaving_the_pool_and_windows_replay_the_simulator(
    name: str, told: dict[str, Any]
) -> None:
    rounds, tasks = 400, ("a", "b", "c")
    problem = gb.problem(name, agents=3)
    algorithm = gb.GuardUCB(0.2, noise=0.1, context_noise=0.0, **told)
    world = problem.build(11)
    plan = algorithm.plan(world.facts(rounds))
    runner = CommonRunner(world, plan, np.full(3, 0.2), checkpoint_rounds(rounds), rounds)
    (chunk,) = TrialDraws(world, rounds, 11).chunks()
    runner.play(chunk)
    assert runner.metrics.totals[:, Metric.NOTICED].any() == ("window" not in told)
    fleet = gb.Fleet(dict.fromkeys(tasks), 5, algorithm=algorithm)
    group, tables = fleet._group, chunk.tables
    for t in range(rounds):
        for m, task in enumerate(tasks):
            group.next_coin[m] = chunk.coin[t, m]
            menu = np.ascontiguousarray(tables.menu[m, t].T)
            decision = fleet[task].decide(menu, int(tables.baseline[t, m]))
            assert decision.action == runner.trace.actions[t, m]
            fleet[task].observe(
                decision, tables.realised[t, m, decision.action] + chunk.noise[t, m]
            )
    group.settle(0)
    simulator, library = view(runner.numbers, 5), group.engine.group
    for one, other in zip(simulator.own, library.own, strict=True):
        assert_array_equal(one, other)
    assert_array_equal(simulator.watch, library.watch)
    # What is known without each other task; nothing where all are believed.
    assert bool(runner.without.size) == bool(told.get("tolerate"))
    assert_array_equal(runner.without, group.engine.without)
    assert fleet.poolings == runner.clock.ints[2]
    for m, task in enumerate(tasks):
        alarms = fleet[task].health.alarms
        first = alarms[0].round if alarms else 0
        assert first == runner.metrics.totals[m, Metric.NOTICED]


def test_every_kernel_is_compiled_once() -> None:
    """A second specialisation would stall a live agent for seconds, and could differ."""
    agents = (*serving.GUARDED, *serving.UNGUARDED)
    for kernel in (*agents, menus.load_menu, loop.GUARDED, loop.UNGUARDED):
        assert len(kernel.compiled.signatures) <= 1, kernel
