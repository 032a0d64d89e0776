"""Choice by value: the kernels do what its definition says, in simulator and library alike."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from guard.cases import CASES, algorithm_of, play
from numpy.testing import assert_allclose, assert_array_equal
from reference import guard, value

import guardband as gb
from guardband.agent.fleet import fleet_of
from guardband.agent.group import AgentGroup
from guardband.kernels.environment import Metric
from guardband.kernels.state import view
from guardband.seeds import stream, trial_seed

NAMES = [
    "policy, known",
    "policy, unknown",
    "one agent, empirical",
    "strict, known",
    "strict, chance",
    "strict, detour",
    "strict, anchored",
    "strict, unknown, with the range of rewards",
    "policy, unknown, with the range of rewards",
    "strict, worst, with the range of rewards",
    "refuted, with the range of rewards",
]
TRIALS = "strict, with trials"


def valued(name: str) -> tuple[dict, dict[str, Any]]:
    """Return a case with values that repeat, so that ties come up."""
    case, settings = CASES["one action too well known, strict" if name == TRIALS else name]
    rng = np.random.default_rng(len(name))
    values = np.round(rng.random(case["phi"].shape[1]), 1)
    if name == TRIALS:
        values[1] = 2.0
    extra = {"allowance": 5.0, "alpha": 0.1} if name == TRIALS else {}
    return {**case, "values": values}, {**settings, **extra}


@cache
def referred(name: str) -> guard.Trace:
    case, settings = valued(name)
    many = isinstance(settings["alpha"], tuple)
    given = {**settings, "alpha": np.array(settings["alpha"])} if many else dict(settings)
    given["chooser"] = value.chooser(case["values"])
    return guard.simulate(**{k: v for k, v in case.items() if k != "values"}, **given)


@pytest.mark.parametrize("name", [*NAMES, TRIALS])
def test_every_round_equals_the_definition(name: str) -> None:
    case, settings = valued(name)
    ref, runner = referred(name), play(case, settings)
    trace, totals = runner.record().trace, runner.metrics.totals
    assert trace is not None
    assert_array_equal(trace.actions, ref.actions)
    assert_array_equal(trace.conservative, ref.conservative)
    assert_array_equal(trace.sync_rounds, ref.sync_rounds)
    assert_array_equal(totals[:, Metric.STUCK], ref.stuck.sum(axis=0))
    assert_array_equal(totals[:, Metric.REFUTED], ref.refuted.sum(axis=0))
    assert_allclose(totals[:, Metric.CHARGED], ref.charges.sum(axis=0), rtol=1e-6)
    assert_allclose(totals[:, Metric.VALUE], case["values"][ref.actions].sum(axis=0))
    learned = view(runner.numbers, case["theta"].size).own.scalars[:, 3].sum()
    assert_allclose(learned, ref.weights.sum(), rtol=1e-7)


def test_the_cases_take_every_branch() -> None:
    traces = {name: referred(name) for name in (*NAMES, TRIALS)}
    assert any(trace.joint.any() for trace in traces.values())
    assert any((trace.rho < 1.0).any() and (trace.partner > 0).any() for trace in traces.values())
    assert any(trace.informative.any() for trace in traces.values())
    assert any(trace.stuck.any() for trace in traces.values())
    assert any(trace.bounded.sum() > 10 for trace in traces.values())
    assert any(trace.refuted.any() for trace in traces.values())
    assert traces[TRIALS].charges.any()
    assert any((~trace.conservative).any() for trace in traces.values())


@pytest.mark.parametrize(
    "name",
    ["policy, known", "policy, unknown", "strict, known", "strict, anchored"],
)
def test_library_agents_replay_the_simulator(name: str) -> None:
    case, settings = valued(name)
    runner = play(case, settings)
    trace = runner.record().trace
    assert trace is not None
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
    for t in range(len(case["coin"])):
        support, weights = case["phi"][case["support"][t]], case["weights"][t]
        psi = np.zeros(support.shape[1:])
        for page, weight in zip(support, weights, strict=True):
            psi += weight * page  # in the kernel's order, for equality to the bit
        decisions = []
        for m, agent in enumerate(fleet.values()):
            means = guard.masked(psi, case["tasks"][m]) @ case["theta"]
            baseline = int(np.argsort(-means, kind="stable")[settings["rank"] - 1])
            told = 0.0
            for i in range(case["theta"].size):
                if i in case["tasks"][m]:
                    told += case["theta"][i] * psi[baseline, i]
            group.next_coin[m] = case["coin"][t, m]
            given = {"support": support, "weights": weights, "value": case["values"]}
            decisions.append(agent.decide(psi, baseline, told, **given))
        for m, (agent, decision) in enumerate(zip(fleet.values(), decisions, strict=True)):
            assert decision.action == trace.actions[t, m]
            assert "compared by the value" in decision.reason
            agent.observe(decision.id, trace.rewards[t, m] + case["reward_noise"][t, m])
    group.settle(0)
    numbers, engine = view(runner.numbers, case["theta"].size), group.engine.group
    for one, other in zip(
        numbers.own + numbers.estimate, engine.own + engine.estimate, strict=True
    ):
        assert_array_equal(one, other)


def test_values_per_context_are_counted_in_their_own_context() -> None:
    rng = np.random.default_rng(3)
    phi = np.abs(rng.standard_normal((4, 5, 3)))
    phi *= 0.5 / np.linalg.norm(phi, axis=2, keepdims=True)
    theta, values = np.array([0.6, 0.6, 0.5]), rng.random((4, 5))
    problem = gb.Tabular(phi, phi, theta, baseline=3, reward_std=0.05, values=values)
    results = gb.simulate(
        problem, gb.GuardUCB(0.1, noise=0.05, context_noise=0.0), rounds=400, trace=True
    )
    series, trace, world = results.series[0], results.trace, problem.build(0)
    drawn = stream(trial_seed(0, 0), "context").random(400)
    contexts = np.minimum((drawn * 4).astype(int), 3)
    played = values[contexts, trace.actions[:, 0]]
    assert_allclose(series.totals["value"], played.sum())
    base = world.baseline[0][contexts]
    assert_allclose(series.totals["baseline_value"], values[contexts, base].sum())
    rewards = (phi @ theta)[contexts]
    safe = rewards >= 0.9 * rewards[np.arange(400), base][:, None] - 1e-12
    best = np.where(safe, values[contexts], -np.inf).max(axis=1)
    assert_allclose(series.totals["value_regret"], (best - played).sum(), atol=1e-9)
