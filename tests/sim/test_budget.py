"""Budgets in simulations: never exceeded, and paid as library agents pay them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import guardband as gb
from guardband.errors import InvalidValueError

ROUNDS = 300
PHI = 0.9 * np.eye(3)[None]
THETA = np.array([0.4, 0.5, 0.6]) / 0.9
COSTS = np.array([0.1, 0.3, 1.0])
ALGORITHM = gb.GuardUCB(0.1, noise=0.05, context_noise=0.0, theta_bound=1.2)


def tabular(**given: object) -> gb.Tabular:
    return gb.Tabular(PHI, PHI, THETA, baseline=3, reward_std=0.05, **given)  # type: ignore[arg-type]


def test_the_budget_is_kept_in_every_trial_and_used() -> None:
    total = 0.3 * ROUNDS
    results = gb.simulate(
        tabular(costs=COSTS),
        [ALGORITHM, gb.DisLinUCB(noise=0.05)],
        rounds=ROUNDS,
        trials=50,
        history=(2_000, "uniform"),
        budget=total,
    )
    paid, other = (series.totals["cost"] for series in results.series)
    assert (paid <= total * (1.0 + 1e-12)).all()
    assert paid.mean() > 0.9 * total
    assert other.mean() > total  # it does not know the budget
    assert results.series[0].violations_expected.sum() == 0
    # The best fixed mix in hindsight plays the second action, and the third with what is left.
    share = (total / ROUNDS - COSTS[1]) / (COSTS[2] - COSTS[1])
    mix = (1.0 - share) * 0.5 + share * 0.6
    assert results.series[0].totals["reward"].mean() / ROUNDS >= 0.9 * mix
    assert results.summary()["cost_mean"][0] == pytest.approx(paid.mean() / ROUNDS)


def test_library_agents_pay_as_the_simulator_does() -> None:
    total, coin = 40.0, np.random.default_rng(0).random((ROUNDS, 1))
    noise = np.random.default_rng(1).uniform(-0.05, 0.05, (ROUNDS, 1))
    values = np.array([0.0, 0.5, 1.0])
    replay = gb.Replay(np.zeros(ROUNDS, int), noise, np.zeros(ROUNDS), np.zeros((ROUNDS, 3)), coin)
    algorithm = gb.GuardUCB(0.1, noise=0.05, context_noise=0.0, theta_bound=1.2, trial_budget=50.0)
    results = gb.simulate(
        tabular(costs=COSTS, values=values), algorithm, replay=replay, budget=total, trace=True
    )
    agent = gb.Agent(dim=3, algorithm=algorithm, budget=gb.Budget(total, ROUNDS))
    paid = 0.0
    for t in range(ROUNDS):
        agent._group.next_coin[0] = coin[t, 0]
        decision = agent.decide(PHI[0], 0, value=values, cost=COSTS)
        assert decision.action == results.trace.actions[t, 0]
        paid += COSTS[decision.action]
        agent.observe(decision, float(PHI[0, decision.action] @ THETA + noise[t, 0]))
    assert len(set(results.trace.actions[:, 0])) == 3
    assert_allclose(results.series[0].totals["cost"], paid)


def test_budgets_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="whose actions have costs"):
        gb.simulate(tabular(), ALGORITHM, rounds=10, budget=1.0)
    with pytest.raises(InvalidValueError, match="below what the baseline may cost"):
        gb.simulate(tabular(costs=COSTS), ALGORITHM, rounds=100, budget=1.0)
    with pytest.raises(InvalidValueError, match="negative"):
        tabular(costs=-COSTS)
    with pytest.raises(InvalidValueError, match="shape"):
        tabular(values=[1.0])
