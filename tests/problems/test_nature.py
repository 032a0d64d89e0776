"""Worlds with features of their own in each round: the kernels against plain NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.kernels.loop import simulate as play_chunk
from guardband.problems import ForecastFormal2, NamedProblem, Round, SyntheticC, round_of
from guardband.seeds import trial_seed
from guardband.sim import draws as drawing
from guardband.sim.draws import TrialDraws

ROUNDS, ALPHA = 300, 0.1
BOUNDS = {"theta_bound": 1.5, "feature_bound": 2.0}
PROBLEMS: dict[str, NamedProblem] = {
    "frozen": SyntheticC(contexts=8, baseline=3, psi_noise=0.1),
    "fresh": SyntheticC(contexts=8, baseline=3, psi_noise=0.1, nature="fresh"),
    "forecast": ForecastFormal2(contexts=15, support=5, agents=3),
}


@pytest.fixture(params=list(PROBLEMS))
def made(request: pytest.FixtureRequest) -> NamedProblem:
    return PROBLEMS[request.param]


def rounds_of(made: NamedProblem, seed: int = 0) -> tuple[list[Round], np.ndarray]:
    """Return the rounds and the noise of the simulator's first trial."""
    number = trial_seed(seed, 0)
    world = made.build(number)
    rounds, noise = [], []
    for draws in TrialDraws(world, ROUNDS, number).chunks():
        rounds += [round_of(world, draws, s) for s in range(draws.contexts.size)]
        noise.append(draws.noise)
    return rounds, np.concatenate(noise)


def test_the_books_are_those_of_the_rounds(made: NamedProblem) -> None:
    results = gb.simulate(
        made, gb.DisLinUCB(**BOUNDS), rounds=ROUNDS, alpha=ALPHA, trace=True, progress=False
    )
    rounds, _ = rounds_of(made)
    agents = np.arange(made.agents)
    sums = {
        name: np.zeros(made.agents)
        for name in (
            "regret",
            "regret_expected",
            "violations_expected",
            "violations_realised",
            "reward",
            "baseline_reward",
        )
    }
    for now, actions in zip(rounds, results.trace.actions, strict=True):
        best = now.expected.argmax(axis=1)
        mean, reward = now.expected[agents, actions], now.realised[agents, actions]
        mean_b, reward_b = now.expected[agents, now.baseline], now.realised[agents, now.baseline]
        sums["regret"] += now.realised[agents, best] - reward
        sums["regret_expected"] += now.expected[agents, best] - mean
        sums["violations_expected"] += mean < (1 - ALPHA) * mean_b - 1e-12
        sums["violations_realised"] += reward < (1 - ALPHA) * reward_b - 1e-12
        sums["reward"] += reward
        sums["baseline_reward"] += reward_b
    (series,) = results.series
    for name, wanted in sums.items():
        assert_allclose(series.totals[name][0], wanted, rtol=1e-9, atol=1e-9, err_msg=name)
    assert series.violations_realised.sum() > 0


def test_agents_learn_from_psi_and_are_paid_by_phi(made: NamedProblem) -> None:
    """LinUCB in a few lines, agents apart, plays the same actions."""
    results = gb.simulate(
        made, gb.DisLinUCB(share=False, **BOUNDS), rounds=ROUNDS, trace=True, progress=False
    )
    rounds, noise = rounds_of(made)
    world = made.build(trial_seed(0, 0))
    deviation, confidence = math.sqrt(2.0), 2 * math.log(2 / 1e-3)
    for m, task in enumerate(world.tasks):
        mask = np.isin(np.arange(world.dim), task)
        V, U = np.eye(world.dim), np.zeros(world.dim)
        for t, now in enumerate(rounds):
            features = now.psi * mask
            logdet = np.linalg.slogdet(V)[1]
            beta = deviation * math.sqrt(logdet + confidence) + BOUNDS["theta_bound"]
            width = np.sqrt(np.einsum("kd,kd->k", features @ np.linalg.inv(V), features))
            k = int((features @ np.linalg.solve(V, U) + beta * width).argmax())
            assert k == results.trace.actions[t, m], (m, t)
            reward = (now.phi[k] * mask) @ world.theta
            assert results.trace.rewards[t, m] == pytest.approx(reward, abs=1e-12)
            V += np.outer(features[k], features[k])
            U += features[k] * (reward + noise[t, m])


def test_the_baseline_and_its_reward_are_told_as_in_the_rounds(made: NamedProblem) -> None:
    results = gb.simulate(
        made, gb.DiscUCB(ALPHA, mix="action", **BOUNDS), rounds=ROUNDS, trace=True, progress=False
    )
    rounds, _ = rounds_of(made)
    trace = results.trace
    stayed = trace.conservative & (trace.actions == np.array([now.baseline for now in rounds]))
    assert trace.conservative.any()
    assert stayed.sum() > 0.9 * trace.conservative.sum()  # the others explored


def test_the_gap_is_that_of_the_round() -> None:
    """A gate that is told the truth opens before the printed one."""
    made = PROBLEMS["forecast"]
    assumed: dict[str, Any] = {"context_noise": 0.01, "noise": 0.01}
    shares = {
        gate: gb.simulate(
            made, gb.DiscUCB(ALPHA, gate=gate, **assumed), rounds=20_000, progress=False
        ).summary()["conservative_share"][0]
        for gate in ("printed", "gap")
    }
    assert shares["gap"] < shares["printed"]


def test_fresh_features_scatter_around_psi() -> None:
    rounds, _ = rounds_of(PROBLEMS["fresh"])
    errors = np.array([now.phi - now.psi for now in rounds])
    assert errors.std() == pytest.approx(0.1, rel=0.02)
    assert abs(errors.mean()) < 4 * 0.1 / math.sqrt(errors.size)
    assert (errors[0] != errors[1]).all()
    assert all(now.baseline_reward[0] == now.expected[0, now.baseline[0]] for now in rounds)


def test_chunks_do_not_change_what_is_drawn(
    made: NamedProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, noise = rounds_of(made)
    monkeypatch.setattr(drawing, "CHUNK_NUMBERS", 1)  # the shortest chunks there are
    pieces, noise_again = rounds_of(made)
    assert_array_equal(noise, noise_again)
    for one, two in zip(whole, pieces, strict=True):
        for a, b in zip(one, two, strict=True):
            assert_array_equal(a, b)


def test_algorithms_of_a_comparison_meet_the_same_rounds(made: NamedProblem) -> None:
    alone = gb.simulate(made, gb.algorithms.Baseline(), rounds=ROUNDS, alpha=ALPHA, progress=False)
    both = gb.simulate(
        made,
        [gb.DisLinUCB(**BOUNDS), gb.algorithms.Baseline()],
        rounds=ROUNDS,
        alpha=ALPHA,
        progress=False,
    )
    assert_array_equal(alone["baseline"].totals["reward"], both["baseline"].totals["reward"])


def test_all_natures_share_one_compiled_loop() -> None:
    for made in PROBLEMS.values():
        gb.simulate(made, gb.DisLinUCB(**BOUNDS), rounds=10, progress=False)
    assert len(getattr(play_chunk, "signatures", [None])) == 1


@pytest.mark.parametrize("name", ["fresh", "forecast"])
def test_rounds_with_features_of_their_own_cannot_be_replayed(name: str) -> None:
    made = PROBLEMS[name]
    dim = made.sizes["features"]
    replay = gb.Replay(np.zeros(4, int), np.zeros((4, made.agents)), np.zeros(4), np.ones((4, dim)))
    with pytest.raises(ValueError, match=r"draws some in each round .F(resh|orecast).: replay a"):
        gb.simulate(made, gb.DiscUCB(ALPHA, **BOUNDS), replay=replay, progress=False)
