"""Rewards in [0, 1] and nothing else stated: weights by variance, and sets under attack."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from guard.attack import Attack, failures
from guard.test_certificates import NONE, given_of, learned, terms_of
from hypothesis import given, settings
from hypothesis import strategies as st

import guardband as gb
from guardband.facts import Facts
from guardband.kernels.certify import guard_radius, weigh
from guardband.kernels.state import new_statistic
from guardband.kernels.types import LEAST_RATE

RATES = {0.005: 1500, 0.05: 400, 0.5: 300}  # and rounds: several times 1 / rate


# ---- Lemma V -------------------------------------------------------------------------------------


def log_moment(p: float, a: float) -> float:
    """Return log E exp(a (y - p)) for y = 1 with probability p, else 0: the worst on [0, 1]."""
    return math.log1p(p * math.expm1(a)) - a * p


def most_variance(low: float, high: float) -> float:
    x = min(max(0.5, low), high)
    return x * (1.0 - x)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
@settings(max_examples=500)
def test_lemma_v(one: float, two: float, at: float, guess_at: float) -> None:
    low, high = min(one, two), max(one, two, LEAST_RATE)
    p, guess = low + at * (high - low), low + guess_at * (high - low)
    w = 1.0 / max(most_variance(low, high), 1e-9)
    z = guess - p
    assert log_moment(p, w * z) <= w * z * z / 2.0 + 1e-12


def test_a_larger_weight_breaks_lemma_v() -> None:
    """At p = yhat + 0 the bound is exact: a tenth more weight is too much."""
    low = high = 0.05
    w = 1.1 / most_variance(low, high)
    assert log_moment(0.05, w * 1e-4) > w * 1e-8 / 2.0


# ---- the weights as they are computed ------------------------------------------------------------


@pytest.mark.parametrize("bias", [0.0, 0.02])
@pytest.mark.parametrize("agents", [1, 4])
@pytest.mark.parametrize("ceiling", [None, 0.3])
def test_weights_are_those_of_their_definition(
    agents: int, bias: float, ceiling: float | None
) -> None:
    dim, S = 3, 0.9
    terms = terms_of(
        agents, dim, noise=None, theta_bound=S, reward_ceiling=ceiling, bias_bound=bias
    )
    state, rng = learned(3, dim, terms, 40), np.random.default_rng(5)
    V = np.linalg.inv(state.estimate.inverse)
    seen = set()
    for beta in (0.0, 0.05, 0.4, 3.0):
        for _ in range(30):
            psi = rng.uniform(0.0, 1.0, dim) * rng.choice([0.003, 0.1, 0.5])
            mean = float(psi @ state.estimate.theta)
            width = beta * math.sqrt(psi @ np.linalg.solve(V, psi))
            low = max(0.0, mean - width)
            high = min(1.0, ceiling or 1.0, S * float(np.linalg.norm(psi)), mean + width)
            empty = low > high
            if empty:
                low, high = 0.0, 1.0
            high = max(high, LEAST_RATE)
            v = most_variance(low - bias, high + bias)
            got, guess = weigh(state.estimate, beta, terms, given_of(psi[:, None], 0), 0, mean)
            expected = max(1.0 / (agents * v), 1.0 / (0.25 + agents / 4))
            assert got == pytest.approx(expected, rel=1e-6)
            assert guess == pytest.approx(min(max(mean, low), high))
            seen |= {"empty" if empty else "cut" if guess != pytest.approx(mean) else "plain"}
            assert 4.0 / agents * (1 - 1e-12) <= got <= 1002.0 / agents
    assert seen >= {"plain", "cut"}


def test_a_known_support_may_give_the_larger_weight() -> None:
    """Where many share a context that adds little, sigma = 1/2 and the half range weigh more."""
    dim, n = 2, 3
    terms = terms_of(50, dim, noise=None)
    state = learned(2, dim, terms, 30)
    pages = np.full((n, dim, 1), 0.3) + np.linspace(-0.01, 0.01, n)[:, None, None]
    weights = np.full(n, 1 / n)
    offer = given_of(pages.mean(axis=0), 0, support=(pages, np.arange(n), weights, NONE[3]))
    got, _ = weigh(state.estimate, 0.5, terms, offer, 0, 0.3)
    far = 0.5 * float(np.linalg.norm(pages[0] - pages[-1]))
    assert got >= 1.0 / (0.25 + 50 * far**2) - 1e-9
    assert got > 4.0 / 50


def test_a_context_that_adds_nothing_connects_nobody() -> None:
    facts = Facts(((0, 1),) * 7, 2)
    assert gb.GuardUCB(context_noise=0.0).plan(facts).terms.sharing == 1.0
    assert gb.GuardUCB(context_noise=0.1).plan(facts).terms.sharing == 7.0


def test_who_weighs_by_variance() -> None:
    """No noise stated, or rewards that are known to be bounded; not where log det was asked for."""
    facts = Facts(((0, 1),), 2)
    bounded = replace(facts, bounded=True)
    assert gb.GuardUCB().plan(facts).terms.by_variance
    assert gb.GuardUCB(noise=2.0).plan(bounded).terms.by_variance
    assert gb.GuardUCB(noise=2.0).plan(bounded).terms.variance == 0.25
    assert not gb.GuardUCB(noise=0.1).plan(facts).terms.by_variance
    assert not gb.GuardUCB(radius="logdet").plan(facts).terms.by_variance


# ---- log det is no radius for them ---------------------------------------------------------------


def test_sums_say_whether_log_det_is_a_radius() -> None:
    """The count travels with the sums: in another's pooled data one such weight is enough."""
    dim = 2
    told, untold = terms_of(1, dim, noise=0.3), terms_of(1, dim, noise=None)
    state, pooled = learned(1, dim, told, 30), new_statistic(dim)
    state.own.scalars[2] = 1e6  # predictions were useless: log det is smaller by far
    assert guard_radius(state, pooled, told, 1) < 100
    pooled.scalars[4] = 1.0
    assert guard_radius(state, pooled, told, 1) > 900
    pooled.scalars[4] = 0.0
    assert guard_radius(state, pooled, untold, 1) > 900


def test_sums_that_leave_no_parameter_certify_nothing() -> None:
    dim = 2
    untold = terms_of(1, dim, noise=None)
    state = learned(1, dim, untold, 30)
    state.own.scalars[2] = -1e6
    assert guard_radius(state, new_statistic(dim), untold, 1) == math.inf


def test_agents_count_their_weights_by_variance() -> None:
    for noise, count in ((None, 5.0), (0.5, 0.0)):
        fleet = gb.Fleet({"a": [0, 1], "b": [0]}, dim=2, noise=noise)
        for _ in range(5):
            d = fleet["a"].decide([[0.5, 0.2], [0.1, 0.4]], baseline=0)
            fleet["a"].observe(d, 0.4)
        group = fleet._group
        assert group.states[0].own.scalars[4] + group.pooled.scalars[4] == count


# ---- what agents refuse --------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [-1e-9, 1.0 + 1e-9, 2.0, -3.0])
def test_without_a_noise_rewards_outside_are_refused(reward: float) -> None:
    agent = gb.Agent(dim=1)
    d = agent.decide([[0.5], [0.2]], baseline=0)
    with pytest.raises(ValueError, match=r"not in \[0, 1\].*noise="):
        agent.observe(d, reward)
    agent.observe(d, 1.0)
    stated = gb.Agent(dim=1, noise=0.6)
    d = stated.decide([[0.5], [0.2]], baseline=0)
    stated.observe(d, reward)


@pytest.mark.parametrize("ceiling", [0.0, 1.5, -1.0])
def test_a_ceiling_is_a_rate(ceiling: float) -> None:
    with pytest.raises(ValueError, match="reward_ceiling must be"):
        gb.GuardUCB(reward_ceiling=ceiling)


def test_a_ceiling_makes_first_observations_count_more() -> None:
    weights = []
    for ceiling in (None, 0.1):
        agent = gb.Agent(dim=1, reward_ceiling=ceiling)
        d = agent.decide([[1.0], [0.5]], baseline=0)
        weights.append(agent._group.pending[0][d.id].weight)
    assert weights == pytest.approx([4.0, 1 / 0.09])


def test_simulations_say_where_rewards_are_not_bounded() -> None:
    with pytest.warns(gb.BoundWarning, match="every reward lies in"):
        gb.simulate("forecast", gb.GuardUCB(0.2), rounds=5)


# ---- under attack --------------------------------------------------------------------------------

TIGHT = {0.5: Attack(0, 3, 0, 0), 0.05: Attack(0, 3, 0, 0), 0.005: Attack(0, 0, 0, 0)}


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("rate", RATES)
def test_theta_stays_whatever_one_agent_is_made_to_do(rate: float, dim: int) -> None:
    worst = 0.0
    for features in range(4 if dim > 1 else 1):
        for prediction in range(4):
            for reward in range(3):
                attack = Attack(features, prediction, reward, 0)
                runs = 1000 if attack == TIGHT[rate] else 100
                given = {"rate": rate, "dim": dim, "rounds": RATES[rate], "runs": runs}
                worst = max(worst, failures(attack, reward_ceiling=rate, **given))
    assert worst <= 0.2


@pytest.mark.parametrize("rate", RATES)
def test_weights_three_times_too_large_are_seen_to_fail(rate: float) -> None:
    given: dict[str, Any] = {"rate": rate, "dim": 2, "rounds": RATES[rate], "reward_ceiling": rate}
    attack = TIGHT[rate]
    assert failures(attack, **given) <= 0.2
    assert failures(attack, inflate=3.0, **given) > 0.2


@pytest.mark.parametrize("shared_context", [True, False])
@pytest.mark.parametrize("agents", [3, 50])
@pytest.mark.parametrize("rate", RATES)
def test_theta_stays_in_the_sets_of_many(rate: float, agents: int, shared_context: bool) -> None:
    rounds = RATES[rate] // (5 if agents == 50 else 1)
    given: dict[str, Any] = {"rate": rate, "dim": 2, "rounds": rounds, "reward_ceiling": rate}
    for prediction in (0, 3):
        for pooling in range(3):
            attack = Attack(2, prediction, pooling % 2, pooling)
            runs = 1000 if (prediction, pooling) == (3, 1) else 100
            many = {"agents": agents, "shared_context": shared_context, "runs": runs}
            assert failures(attack, **many, **given) <= 0.2


@pytest.mark.parametrize("agents", [3, 50])
def test_heavy_weights_fail_for_many(agents: int) -> None:
    given: dict[str, Any] = {"rate": 0.5, "dim": 2, "rounds": 120, "shared_context": False}
    assert failures(Attack(0, 3, 0, 0), agents=agents, inflate=3.0, **given) > 0.2


def test_ignoring_that_the_context_is_shared_is_seen_to_fail() -> None:
    given: dict[str, Any] = {"rate": 0.3, "dim": 2, "rounds": 120, "agents": 50, "runs": 400}
    assert failures(Attack(0, 3, 0, 1), **given) <= 0.2
    assert failures(Attack(0, 3, 0, 1), sharing=1.0, **given) > 0.2
