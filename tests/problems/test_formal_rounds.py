"""The formal model from functions: round by round as a plain NumPy simulation plays it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems.formal_functions import (
    ALPHA,
    BOUNDS,
    ROUNDS,
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
from guardband.problems import Formal
from guardband.seeds import stream, trial_seed


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
