"""The formal model from functions: what algorithms are told, given and promise there."""

from __future__ import annotations

import tracemalloc
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems.formal_functions import (
    ALPHA,
    HEADS,
    NEED_CONTEXTS,
    TASKS,
    THETA,
    Lamps,
    actions,
    affine,
    baseline,
    drifting,
    normal,
    phi,
)
from reference import formal

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.problems import ForecastFormal2, Formal
from guardband.seeds import trial_seed
from guardband.sim.draws import TrialDraws


def as_formal(made: ForecastFormal2, rounds: int, seed: int) -> Formal:
    """Return a forecast problem's trial as functions; contexts by number, as lists of rounds."""
    number = trial_seed(seed, 0)
    world = made.build(number)
    (chunk,) = TrialDraws(world, rounds, number).chunks()
    laws = [gb.Discrete(c.tolist(), w) for c, w in zip(chunk.support, chunk.weights, strict=True)]
    return Formal(
        lambda agent, action, context: world.phi[context, action],
        laws,
        world.theta,
        tasks=world.tasks,
        actions=list(range(world.shape[1])),
        baseline=made.baseline,
        reward_std=made.reward_std,
    )


@pytest.mark.parametrize(
    "name", ["guard-ucb", "guard-ucb-policy", "disc-ucb-unknown", "sege", "sclts", "fed-lin-ucb"]
)
def test_a_forecast_in_functions_is_played_like_the_forecast(name: str) -> None:
    """The same seeds give the same contexts, noise, directions and coins, and so the same plays."""
    made, rounds = ForecastFormal2(contexts=12, support=4, actions=6, agents=3, baseline=3), 60
    algorithm = ALGORITHMS[name].informed(dict(made.assumptions()))
    one, other = (
        gb.simulate(problem, algorithm, rounds=rounds, seed=2, trace=True, alpha=0.2)
        for problem in (made, as_formal(made, rounds, 2))
    )
    # A forecast bounds r_l and r_h over all contexts; what depends on them may differ.
    if name in ("guard-ucb", "guard-ucb-policy", "fed-lin-ucb"):
        assert_array_equal(one.trace.actions, other.trace.actions)
        assert_allclose(one.trace.rewards, other.trace.rewards, atol=1e-12)
    baselines = (results.series[0].totals["baseline_reward"] for results in (one, other))
    assert_allclose(*baselines, atol=1e-9)


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_algorithm_plays_actions_that_are_on_offer(name: str) -> None:
    problem = Formal(
        phi, drifting, THETA, tasks=TASKS, actions=actions, baseline=2, reward_std=0.05
    )
    algorithm = ALGORITHMS[name].informed(dict(problem.assumptions()), alpha=ALPHA)
    if name.startswith(NEED_CONTEXTS):
        with pytest.raises(ValueError, match="here every round brings its own"):
            gb.simulate(problem, algorithm, rounds=20)
        return
    trace = gb.simulate(problem, algorithm, rounds=60, trace=True, alpha=ALPHA).trace
    offered = [[len(actions(m, t)) for m in range(4)] for t in range(1, 61)]
    assert (trace.actions < offered).all()


class First:
    """A policy in plain Python that plays the first row, and remembers what it was given."""

    name = "first"
    seen: ClassVar[list[tuple[Any, ...]]] = []

    def choose(self, agent, round, features, baseline, baseline_reward):  # type: ignore[no-untyped-def]
        self.seen.append((agent, round, features.copy(), baseline, baseline_reward))
        return 0

    def update(self, agent, features, action, reward):  # type: ignore[no-untyped-def]
        pass


def test_policies_in_plain_python_are_given_the_agents_own_tables() -> None:
    problem = Formal(
        phi, drifting, THETA, tasks=TASKS, actions=actions, baseline=baseline, told="realised"
    )
    First.seen.clear()
    gb.simulate(problem, [First(), "guard-ucb"], rounds=6, alpha=ALPHA)
    assert len(First.seen) == 24
    for m, t, features, row, told in First.seen:
        law = drifting(t)
        psi, _, _, _ = formal.offer(
            phi, m, actions(m, t), TASKS[m], THETA, law.contexts, law.weights, law.contexts[0]
        )
        assert_allclose(features, psi, atol=1e-15)
        assert row == baseline(m, t, psi)
        possible = [
            np.where(np.isin(range(5), TASKS[m]), phi(m, actions(m, t)[row], c), 0) @ THETA
            for c, w in zip(law.contexts, law.weights, strict=True)
            if w > 0
        ]
        assert min(abs(told - each) for each in possible) < 1e-12


def test_chunks_do_not_change_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Formal(phi, drifting, THETA, tasks=TASKS, actions=actions, baseline=2, samples=3)

    def run() -> gb.Results:
        return gb.simulate(problem, "guard-ucb", rounds=40, trace=True, alpha=ALPHA)

    whole = run()
    monkeypatch.setattr("guardband.sim.draws.CHUNK_NUMBERS", 1)
    assert_array_equal(run().trace.rewards, whole.trace.rewards)


def test_memory_does_not_grow_with_the_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardband.sim.draws.CHUNK_NUMBERS", 5000)
    problem = Formal(phi, drifting, THETA, tasks=TASKS, actions=actions, baseline=2)

    def peak(rounds: int) -> int:
        tracemalloc.start()
        for _ in TrialDraws(problem.build(0), rounds, 0).chunks():
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(100)
    assert peak(1200) < 1.5 * peak(300)


def test_features_of_a_distribution_that_comes_again_are_not_made_again() -> None:
    calls, days = [], [gb.Discrete([[0.1 * j] * 5, [0.3] * 5]) for j in range(7)]

    def counted(agent: int, action: str, context: Any) -> list[float]:
        calls.append(action)
        return phi(agent, action, np.array(context))

    problem = Formal(
        counted, lambda t: days[(t - 1) % 7], THETA, actions=["a1", "a2", "a3"], baseline=2
    )
    calls.clear()
    gb.simulate(problem, "guard-ucb", rounds=200)
    assert len(calls) <= 2 * 7 * 3 * 2  # one more world is built to be looked at


def test_algorithms_are_told_the_range_of_the_baseline() -> None:
    made = {"tasks": TASKS, "actions": actions, "baseline": baseline}
    wanted = {"expected": [], "realised": []}
    for t in range(1, 51):
        law = drifting(t)
        for m, task in enumerate(TASKS):
            for c, w in zip(law.contexts, law.weights, strict=True):
                given = (law.contexts, law.weights, c)
                psi, _, mean, drawn = formal.offer(phi, m, actions(m, t), task, THETA, *given)
                b = baseline(m, t, psi)
                wanted["expected"].append(mean[b])
                wanted["realised"] += [drawn[b]] if w > 0 else []
    for told, rewards in wanted.items():
        facts = Formal(phi, drifting, THETA, told=told, **made).build(0).facts(50)
        assert facts.reward_low == pytest.approx(min(r for r in rewards if r > 0))
        assert facts.reward_high == pytest.approx(max(rewards))
        assert facts.actions == 7
    stated = Formal(phi, drifting, THETA, baseline_range=(0.1, 0.9), **made).build(0).facts(50)
    assert (stated.reward_low, stated.reward_high) == (0.1, 0.9)
    unbounded = Formal(affine, normal, THETA, told="realised", **made).build(0).facts(50)
    assert unbounded.reward_low is None


def test_context_noise_is_the_true_one() -> None:
    """Of a Gaussian its standard deviation, as draws show it; of finitely many, half the range."""
    law = gb.Gaussian(np.zeros(5), 0.02 * (np.eye(5) + 0.5))
    world = Formal(affine, law, THETA, actions=["a0", "a1"]).build(0)
    drawn = np.random.default_rng(0).multivariate_normal(law.mean, law.cov, 40_000)
    stds = [np.std([affine(0, x, c) @ THETA for c in drawn]) for x in ("a0", "a1")]
    assert world.facts(3).context_noise == pytest.approx(max(stds), rel=0.02)
    two = gb.Discrete([np.zeros(5), np.ones(5)], [0.9, 0.1])
    half = max(0.5 * abs(HEADS[0, k] @ THETA) * 0.2 for k in (0, 1))
    facts = Formal(affine, two, THETA, actions=["a0", "a1"]).build(0).facts(3)
    assert facts.context_noise == pytest.approx(half)


def test_the_sampling_error_is_that_of_psi() -> None:
    problem = Formal(phi, Lamps(0.3), THETA, actions=["a0", "a1", "a2"], samples=50)
    means = [problem.build(seed).round(1).features[0].psi @ THETA for seed in range(300)]
    assert problem.sampling_error() == pytest.approx(np.std(means, axis=0).max(), rel=0.3)
    finer = Formal(phi, Lamps(0.3), THETA, actions=["a0", "a1", "a2"], samples=800)
    assert finer.sampling_error() == pytest.approx(problem.sampling_error() / 4, rel=0.3)
    assert Formal(affine, normal, THETA, actions=["a0"]).sampling_error() == 0.0
    assert Formal(phi, drifting, THETA, actions=["a0"]).sampling_error() == 0.0


def test_a_class_of_distributions_is_a_function_of_the_round() -> None:
    made = {"actions": ["a0"], "samples": 5}
    one, other = (Formal(phi, given, THETA, **made) for given in (Lamps, lambda t: Lamps(1.0 * t)))
    for t in (1, 2):
        laws = (problem.build(0).round(t).law for problem in (one, other))
        assert_array_equal(*(np.stack(law.contexts) for law in laws))  # type: ignore[union-attr]


def test_draws_stand_for_a_gaussian_where_samples_are_stated() -> None:
    world = Formal(phi, normal, THETA, actions=["a0"], samples=5000).build(3)
    assert world.announces_contexts
    law = world.round(2).law
    assert isinstance(law, gb.Samples)
    assert_allclose(np.mean(law.contexts, axis=0), normal(2).mean, atol=0.01)
    assert_allclose(np.cov(np.stack(law.contexts).T), normal(2).cov, atol=0.003)
    again = Formal(phi, normal, THETA, actions=["a0"], samples=5000).build(3).round(2).law
    assert_array_equal(np.stack(law.contexts), np.stack(again.contexts))  # type: ignore[union-attr]


def test_the_oracle_breaks_the_realised_constraint_only() -> None:
    problem = Formal(phi, drifting, THETA, tasks=TASKS, actions=actions, baseline=2)
    results = gb.simulate(problem, "oracle", rounds=300, alpha=0.05)
    (series,) = results.series
    assert series.violations_expected.sum() == 0 < series.violations_realised.sum()
    assert_allclose(series.regret_expected, 0, atol=1e-12)


def test_promises_about_the_drawn_context_need_announced_ones() -> None:
    guard = gb.GuardUCB(ALPHA, noise=0.05, realised="worst")
    made = {"tasks": TASKS, "actions": actions, "baseline": 2}
    kept = gb.simulate(Formal(phi, drifting, THETA, **made), guard, rounds=60)
    assert kept.series[0].violations_realised.sum() == 0
    with pytest.raises(ValueError, match=r"of a Gaussian, one with samples=\.\.\."):
        gb.simulate(Formal(affine, normal, THETA, **made), guard, rounds=60)
