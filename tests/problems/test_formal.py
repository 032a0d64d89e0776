"""The formal model from functions: round by round as a plain NumPy simulation plays it."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import formal

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.problems import ForecastFormal2, Formal
from guardband.seeds import stream, trial_seed
from guardband.sim.draws import TrialDraws

ROUNDS, ALPHA = 200, 0.6
THETA = np.array([0.5, 0.3, 0.4, 0.2, 0.45])
TASKS = [[0, 1, 2, 3, 4], [0, 2, 3], [1, 4], [3]]
HEADS = np.random.default_rng(3).uniform(0.1, 0.6, (4, 9, 5))
BOUNDS = {"noise": 0.01, "context_noise": 0.01, "ridge": 0.01, "theta_bound": 0.9}
NEED_CONTEXTS = ("fed-pe", "dis-lsb")  # and their variants


def phi(agent: int, action: str, context: np.ndarray) -> list[float]:
    """Differs from agent to agent, and bends in the context."""
    return (HEADS[agent, int(action[1:])] * np.tanh(0.4 + context)).tolist()


def affine(agent: int, action: str, context: np.ndarray) -> np.ndarray:
    return HEADS[agent, int(action[1:])] * (0.7 + 0.2 * context)


def actions(agent: int, round: int) -> list[str]:
    """Return sets that differ in agents, in rounds, and in size."""
    return [f"a{(k + round) % 9}" for k in range(2 + agent + round % 3)]


def baseline(agent: int, round: int, psi: np.ndarray) -> int:
    return (agent + round) % len(psi)


def drifting(t: int) -> gb.Discrete:
    """Contexts and probabilities drift; one of them may be impossible."""
    n = 2 + t % 4
    contexts = np.array([[np.sin(0.1 * t + j + i) for i in range(5)] for j in range(n)])
    weights = np.arange(n, dtype=float) + (t % 2)
    return gb.Discrete(0.4 * contexts, weights / weights.sum())


def normal(t: int) -> gb.Gaussian:
    return gb.Gaussian(0.3 * np.sin(0.05 * t + np.arange(5)), 0.02 * (np.eye(5) + 0.5))


@dataclass
class Lamps:
    """A distribution that can be drawn from, and no more."""

    level: float

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.exponential(self.level, (n, 5))


@pytest.fixture
def draws() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    zeta = rng.normal(size=(ROUNDS, 5))
    return {
        "reward_noise": 0.05 * rng.normal(size=(ROUNDS, 4)),
        "rho": rng.uniform(0, 0.2, ROUNDS),
        "zeta": zeta / np.linalg.norm(zeta, axis=1, keepdims=True),
        "coin": rng.random((ROUNDS, 4)),
    }


def compare(results: gb.Results, wanted: formal.Played) -> None:
    trace, (series,) = results.trace, results.series
    assert_array_equal(trace.actions, wanted.actions)
    assert_array_equal(trace.conservative, wanted.conservative)
    assert_array_equal(trace.sync_rounds, wanted.sync_rounds)
    assert_allclose(trace.rewards, wanted.rewards, rtol=0, atol=1e-12)
    for name in wanted._fields[5:]:
        assert_allclose(series.totals[name][0], getattr(wanted, name), atol=1e-10, err_msg=name)


ALGORITHM = {
    "disc-ucb": gb.DiscUCB(ALPHA, gate="none", **BOUNDS),
    "disc-ucb action": gb.DiscUCB(ALPHA, gate="none", mix="action", **BOUNDS),
    "dis-lin-ucb": gb.DisLinUCB(**BOUNDS),
}


@pytest.mark.parametrize("told", ["expected", "realised"])
@pytest.mark.parametrize("name", list(ALGORITHM))
def test_drifting_distributions_round_by_round(
    name: str, told: str, draws: dict[str, np.ndarray]
) -> None:
    """Four agents with other index sets and other action sets, which change with the round."""
    problem = Formal(
        phi, drifting, THETA, tasks=TASKS, actions=actions, baseline=baseline, told=told
    )
    laws = [drifting(t) for t in range(1, ROUNDS + 1)]
    hidden = np.array([len(law.contexts) - 1 - t % 2 for t, law in enumerate(laws)])
    results = gb.simulate(
        problem,
        ALGORITHM[name],
        replay=gb.Replay(hidden, **draws),
        trace=True,
        alpha=ALPHA,
    )
    wanted = formal.simulate(
        phi,
        [(law.contexts, law.weights, law.contexts[c]) for law, c in zip(laws, hidden, strict=True)],
        THETA,
        tasks=TASKS,
        actions=actions,
        baseline=baseline,
        told=told,
        algorithm=name.split(maxsplit=1)[0],
        alpha=ALPHA,
        mix="action" if "action" in name else "vector",
        **draws,
        **BOUNDS,
    )
    compare(results, wanted)
    assert (wanted.conservative.any(), len(wanted.sync_rounds) > 1) == ("disc" in name, True)
    assert (wanted.conservative == 0).any()


def test_continuous_contexts_round_by_round(draws: dict[str, np.ndarray]) -> None:
    """Gaussian contexts and affine features: psi is exact, and phi that of the hidden context."""
    problem = Formal(affine, normal, THETA, tasks=TASKS, actions=actions, baseline=2)
    rng = np.random.default_rng(4)
    laws = [normal(t) for t in range(1, ROUNDS + 1)]
    hidden = np.array([rng.multivariate_normal(law.mean, law.cov) for law in laws])
    results = gb.simulate(
        problem,
        ALGORITHM["disc-ucb"],
        replay=gb.Replay(hidden, **draws),
        trace=True,
        alpha=ALPHA,
    )
    wanted = formal.simulate(
        affine,
        [([law.mean], [1.0], c) for law, c in zip(laws, hidden, strict=True)],
        THETA,
        tasks=TASKS,
        actions=actions,
        baseline=2,
        told="expected",
        algorithm="disc-ucb",
        alpha=ALPHA,
        **draws,
        **BOUNDS,
    )
    compare(results, wanted)
    assert 0 < wanted.conservative.mean() < 1


def test_sampled_contexts_round_by_round() -> None:
    """The seed fixes each round's draws; psi is their mean, and the context is one of them."""
    problem = Formal(
        phi, lambda t: Lamps(0.2 + 0.1 * (t % 3)), THETA, tasks=TASKS, actions=actions,
        baseline=2, samples=7, reward_std=0.05,
    )  # fmt: skip
    results = gb.simulate(
        problem, gb.DisLinUCB(**BOUNDS), rounds=ROUNDS, seed=5, trace=True, alpha=ALPHA
    )
    seed = trial_seed(5, 0)
    picks = (7 * stream(seed, "context").random(ROUNDS)).astype(int)
    rounds = []
    for t in range(1, ROUNDS + 1):
        contexts = stream(seed, "samples", t).exponential(0.2 + 0.1 * (t % 3), (7, 5))
        rounds.append((contexts, np.full(7, 1 / 7), contexts[picks[t - 1]]))
    wanted = formal.simulate(
        phi,
        rounds,
        THETA,
        tasks=TASKS,
        actions=actions,
        baseline=2,
        told="expected",
        algorithm="dis-lin-ucb",
        alpha=ALPHA,
        reward_noise=0.05 * stream(seed, "noise").standard_normal((ROUNDS, 4)),
        rho=np.zeros(ROUNDS),
        zeta=np.zeros((ROUNDS, 5)),
        coin=None,
        **BOUNDS,
    )
    compare(results, wanted)


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


def test_bounds_that_are_exceeded_are_named() -> None:
    problem = Formal(phi, drifting, 3 * THETA, tasks=TASKS, actions=actions, feature_bound=0.2)
    with pytest.warns(gb.BoundWarning, match=r"feature_bound=0.2, but expected features reach"):
        gb.simulate(problem, "dis-lin-ucb", rounds=20)
    with pytest.warns(gb.BoundWarning, match=r"assumes rewards in \[0, 1\], but they reach from"):
        gb.simulate(problem, "guard-ucb", rounds=20)


GOOD: dict[str, Any] = {
    "feature_map": phi,
    "distributions": drifting,
    "theta": THETA,
    "tasks": TASKS,
    "actions": actions,
}


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"feature_map": HEADS}, TypeError, r"give a function .agent, action, context."),
        ({"theta": [1.0, np.nan]}, ValueError, r"theta\[1\] is nan"),
        ({"theta": THETA[:3], "tasks": None}, ValueError, "returned 5 features, but theta has 3"),
        ({"tasks": []}, ValueError, "tasks is empty"),
        ({"tasks": [[7]]}, ValueError, "names feature 7, but features are numbered 0 to 4"),
        ({"actions": []}, ValueError, "actions is empty: give at least one label"),
        ({"actions": "ab"}, TypeError, "actions is 'ab': give a list of labels"),
        ({"actions": [["a1"], ["a2"]]}, ValueError, "2 lists for 4 agents: give one per agent"),
        ({"actions": lambda m, t: []}, ValueError, "agent 0, round 1: actions is empty"),
        ({"distributions": []}, ValueError, "distributions ends with round 0, but round 1"),
        ({"distributions": "rain"}, TypeError, "distributions is 'rain': give a function"),
        ({"distributions": lambda t: [1, 2]}, TypeError, r"round 1 is \[1, 2\]: give a gb.Discr"),
        ({"distributions": normal}, ValueError, r"not affine in .*state samples=\.\.\., how many"),
        ({"distributions": Lamps(1)}, ValueError, r"known by its draws only: state samples=\.\.\."),
        ({"samples": 0}, ValueError, "samples must be at least 1, not 0"),
        ({"baseline": 3}, ValueError, "agent 0, round .: baseline is rank 3, .* only 2 actions"),
        ({"baseline": 0}, ValueError, "baseline must be at least 1, not 0"),
        ({"baseline": lambda m, t, psi: 99}, ValueError, "baseline returned 99; it must .* 0 to"),
        ({"baseline": lambda m, t, psi: None}, ValueError, "baseline returned None; it must"),
        ({"told": "nothing"}, ValueError, "told must be one of 'expected', 'realised'"),
        ({"reward_std": -1}, ValueError, "reward_std must be zero or a positive number"),
        ({"baseline_range": (0, 1)}, ValueError, r"\(0, 1\): give \(r_l, r_h\) with 0 < r_l"),
        ({"feature_bound": 0}, ValueError, "feature_bound must be a positive number"),
        (
            {"feature_map": lambda m, x, c: [np.inf] * 5},
            ValueError,
            r"agent 0, round 1: feature_map\(actions\[0\], contexts\[0\]\)\[0\] is inf",
        ),
    ],
)
def test_bad_input_is_named_with_a_remedy(
    settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        gb.simulate(Formal(**{**GOOD, **settings}), gb.DisLinUCB(), rounds=3)
    assert isinstance(caught.value, gb.InputError)


def test_mistakes_in_later_rounds_say_where() -> None:
    def falls_silent(t: int) -> Any:
        return drifting(t) if t < 5 else normal(t)

    with pytest.raises(ValueError, match=r"round 5 is a Gaussian, that of round 1 is not of its"):
        gb.simulate(Formal(**{**GOOD, "distributions": falls_silent}), gb.DisLinUCB(), rounds=9)
    short = Formal(**{**GOOD, "distributions": [drifting(t) for t in range(1, 8)]})
    with pytest.raises(ValueError, match=r"ends with round 7, but round 8 is to be played"):
        gb.simulate(short, gb.DisLinUCB(), rounds=9)

    def broken(agent: int, action: str, context: Any) -> Any:
        raise ZeroDivisionError("by zero")

    with pytest.raises(ZeroDivisionError) as caught:
        Formal(**{**GOOD, "feature_map": broken})
    assert "agent 0, round 1" in caught.value.__notes__[0]


def test_replays_name_contexts_that_are_possible() -> None:
    replay = gb.Replay(np.full(4, 9), np.zeros((4, 4)), np.zeros(4), np.zeros((4, 5)))
    with pytest.raises(ValueError, match=r"replay.contexts\[0\] is 9, but round 1 has 3 contexts"):
        gb.simulate(Formal(**GOOD), gb.DisLinUCB(), replay=replay)


def test_tables_can_tell_the_expected_reward() -> None:
    rng = np.random.default_rng(0)
    phi, psi = rng.uniform(0, 1, (2, 3, 4, 2))
    for told, table in (("realised", phi), ("expected", psi)):
        world = gb.Tabular(phi, psi, [0.6, 0.4], baseline=2, told=told).build(0)
        rows = world.baseline[0]
        assert_allclose(world.baseline_rewards[:, 0], table[range(3), rows] @ [0.6, 0.4])
        assert world.facts(9).reward_high == world.baseline_rewards.max()
    with pytest.raises(ValueError, match="told must be one of 'expected', 'realised', not 'both'"):
        gb.Tabular(phi, psi, [0.6, 0.4], told="both")
    assert gb.Tabular(phi, psi, [0.6, 0.4]).build(0).told == "realised"


def test_environments_have_one_table_for_all() -> None:
    envs = pytest.importorskip("guardband.envs")
    with pytest.raises(ValueError, match=r"formal has actions and features of its own for each"):
        envs.FleetEnv(Formal(**GOOD), rounds=3, alpha=0.1)
