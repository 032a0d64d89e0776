"""Round by round, Guard-UCB's kernels do what its definition says; and so do library agents."""

from __future__ import annotations

import numpy as np
import pytest
from guard.cases import CASES, algorithm_of, play
from numpy.testing import assert_allclose, assert_array_equal
from reference import guard

from guardband.agent.fleet import fleet_of
from guardband.agent.group import AgentGroup
from guardband.kernels.state import view


@pytest.mark.parametrize("name", CASES)
def test_every_round_equals_the_definition(name: str) -> None:
    case, settings = CASES[name]
    given = {
        k: np.array(v) if k == "alpha" and isinstance(v, tuple) else v for k, v in settings.items()
    }
    ref = guard.simulate(**case, **given)
    runner = play(case, settings)
    trace = runner.record().trace
    assert trace is not None
    assert_array_equal(trace.actions, ref.actions)
    assert_array_equal(trace.conservative, ref.conservative)
    assert_array_equal(trace.sync_rounds, ref.sync_rounds)
    assert_allclose(trace.rewards, ref.rewards, atol=1e-12)
    totals = runner.metrics.totals
    assert_array_equal(totals[:, 8], ref.stuck.sum(axis=0))
    assert_array_equal(totals[:, 9], ref.outside.sum(axis=0))
    assert_array_equal(totals[:, 13], ref.refuted.sum(axis=0))
    learned = view(runner.numbers, case["theta"].size).own.scalars[:, 3].sum()
    assert_allclose(learned, ref.weights.sum(), rtol=1e-7)


def test_the_cases_take_every_branch() -> None:
    traces = {}
    for name, (case, settings) in CASES.items():
        given = {
            k: np.array(v) if isinstance(v, tuple) and k == "alpha" else v
            for k, v in settings.items()
        }
        traces[name] = guard.simulate(**case, **given)
    policy, strict = traces["policy, unknown"], traces["strict, worst"]
    assert policy.joint.any()
    assert (policy.actions == policy.targets)[policy.conservative].any()
    assert strict.stuck.any()
    assert traces["strict, detour"].informative.sum() > 50
    assert traces["strict, worst"].tightened.any()
    assert traces["one agent, empirical"].empirical.all()
    assert traces["wrong reports"].alarm.any()
    assert not traces["biased, anchored"].alarm.any()
    unstated = [traces[name] for name in CASES if "no noise" in name and "optimism" not in name]
    assert all(trace.empirical.all() for trace in unstated)
    assert [bool(trace.weights.max() > 4.2) for trace in unstated] == [False, True, True, True]
    for promise in ("chance", "worst"):
        assert traces[f"strict, {promise}, with the range of rewards"].bounded.sum() > 10
    for mode in ("unknown", "known"):
        assert traces[f"strict, {mode}, with the range of rewards"].bounded.sum() > 10
        assert traces[f"policy, {mode}, with the range of rewards"].joint.sum() > 10
    assert traces["refuted, with the range of rewards"].refuted.any()
    for mode in ("policy", "strict"):
        assert traces[f"one action too well known, {mode}"].replaced.any()


@pytest.mark.parametrize(
    "name",
    [
        "policy, known",
        "policy, unknown",
        "strict, worst",
        "strict, worst, with the range of rewards",
        "strict, anchored",
        "strict, known",
        "policy, unknown, optimism from the residuals",
    ],
)
def test_library_agents_replay_the_simulator(name: str) -> None:
    case, settings = CASES[name]
    runner = play(case, settings)
    trace = runner.record().trace
    assert trace is not None
    rounds = len(case["coin"])
    tasks = {f"task {m}": task for m, task in enumerate(case["tasks"])}
    group = AgentGroup(
        tasks,
        dim=case["theta"].size,
        algorithm=algorithm_of(settings),
        feature_bound=1.0,
        horizon=None,
        reward_floor=None,
        seed=0,
    )
    fleet = fleet_of(group)
    for t in range(rounds):
        support, weights = case["phi"][case["support"][t]], case["weights"][t]
        decisions = []
        psi = np.zeros(support.shape[1:])
        for page, weight in zip(support, weights, strict=True):
            psi += weight * page  # in the kernel's order, for equality to the bit
        for m, agent in enumerate(fleet.values()):
            means = guard.masked(psi, case["tasks"][m]) @ case["theta"]
            baseline = int(np.argsort(-means, kind="stable")[settings["rank"] - 1])
            told = 0.0
            for i in range(case["theta"].size):
                if i in case["tasks"][m]:
                    told += case["theta"][i] * psi[baseline, i]
            group.next_coin[m] = case["coin"][t, m]
            decisions.append(agent.decide(psi, baseline, told, support=support, weights=weights))
        for m, (agent, decision) in enumerate(zip(fleet.values(), decisions, strict=True)):
            assert decision.action == trace.actions[t, m]
            noise = case["reward_noise"][t, m]
            agent.observe(decision.id, trace.rewards[t, m] + noise)
    group.settle(0)
    assert fleet.poolings == len(trace.sync_rounds)
    numbers = view(runner.numbers, case["theta"].size)
    engine = group.engine.group
    for one, other in zip(
        numbers.own + numbers.estimate, engine.own + engine.estimate, strict=True
    ):
        assert_array_equal(one, other)
