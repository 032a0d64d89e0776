"""Possible worlds, and runs of agents in them, beside references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from guardband.agent import Engine, Request
from guardband.algorithms import GuardUCB
from guardband.facts import Facts
from guardband.seeds import stream
from guardband.sim import TrialDraws
from guardband.studies import logs_of_menus, possible
from guardband.studies.possible import ResampledNoise, fit, link, possible_worlds
from guardband.studies.runs import WINDOW, _half_learned, learn_logs, run_agent

NOTHING, NONE = np.zeros((0, 0, 0)), np.zeros(0)


def test_the_fit_has_the_largest_evidence() -> None:
    """scikit-learn's BayesianRidge without hyperpriors maximises the same."""
    ridge = pytest.importorskip("sklearn.linear_model").BayesianRidge
    rng = np.random.default_rng(1)
    rows = rng.normal(0.0, 1.0, (300, 6)) * [1.0, 1.0, 0.5, 0.2, 0.1, 0.01]
    rewards = rows @ [0.3, -0.2, 0.5, 0.1, 0.4, 0.2] + rng.normal(0.0, 0.3, 300)
    none = dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 0.0)
    other = ridge(max_iter=3_000, tol=1e-12, fit_intercept=False, **none).fit(rows, rewards)
    found = fit(rows, rewards)
    assert_allclose(found.mean, other.coef_, rtol=2e-3, atol=1e-5)
    assert_allclose(found.covariance, other.sigma_, rtol=5e-3, atol=1e-6)
    assert found.variance == pytest.approx(1.0 / other.alpha_, rel=1e-3)


def test_directions_that_were_never_seen_keep_the_prior() -> None:
    """Of d = 2 equal weights one is seen: the prior's variance becomes that weight squared."""
    rows = np.tile([1.0, 0.0], (10_000, 1))
    found = fit(rows, np.full(10_000, 0.5) + np.tile([0.1, -0.1], 5_000))
    assert_allclose(found.mean, [0.5, 0.0], atol=1e-4)
    assert found.covariance[1, 1] == pytest.approx(0.25, rel=1e-2)
    assert found.covariance[0, 0] == pytest.approx(0.01 / 10_000, rel=1e-2)


def test_values_of_a_line_stand_for_themselves() -> None:
    rng = np.random.default_rng(2)
    values = rng.uniform(0.1, 0.9, 5_000)
    same = link(values, (rng.random(5_000) < values).astype(float), 1.0)
    assert_allclose(same(np.array([-1.0, 0.2, 0.7, 3.0])), [0.0, 0.2, 0.7, 1.0])


def test_values_of_a_step_stand_for_what_was_seen() -> None:
    values = np.random.default_rng(2).uniform(0.0, 1.0, 5_000)
    bent = link(values, (values > 0.5).astype(float), 1.0)
    assert_allclose(bent(np.array([-1.0, 0.1, 0.3, 0.7, 0.9, 3.0])), [0, 0, 0, 1, 1, 1])


def test_a_few_rows_bend_nothing() -> None:
    values = np.linspace(0.0, 1.0, 30)
    assert_allclose(link(values, (values > 0.5).astype(float), 1.0)(values), values)


def test_noise_is_drawn_from_residuals_about_their_mean() -> None:
    noise = ResampledNoise(np.array([0.1, 0.3, 0.2]))
    drawn = noise.draw(np.random.default_rng(0), (1_000, 2))
    assert set(drawn.round(12).ravel()) == {-0.1, 0.0, 0.1}
    assert noise.std == pytest.approx(math.sqrt(2.0 / 300.0))


def test_menus_keep_their_baselines_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    menus = [rng.uniform(0.0, 0.5, (int(size), 2)) for size in rng.integers(2, 9, 40)]
    baselines = [int(rng.integers(len(menu))) for menu in menus]
    data = logs_of_menus(menus, baselines, rng.random(40), baselines)
    full = possible_worlds(data, 1.0, stream(0, "menus"))
    assert not full.cut
    assert full.tables.shape[1] == max(map(len, menus))
    for (menu, baseline), given_menu, own in zip(full.menus(), menus, baselines, strict=True):
        assert_array_equal(menu.T, given_menu)
        assert baseline == own
    monkeypatch.setattr(possible, "NUMBERS", possible.LEAST * 2 * 3)
    cut = possible_worlds(data, 1.0, stream(0, "menus"))
    assert cut.cut
    assert cut.tables.shape[1] == 3
    for (menu, baseline), given_menu, own in zip(cut.menus(), menus, baselines, strict=True):
        assert menu.shape[1] == min(3, len(given_menu))
        assert_array_equal(menu[:, baseline], given_menu[own])


@given(st.lists(st.booleans(), min_size=1, max_size=400), st.integers(1, 400))
def test_half_of_the_plays(found: list[bool], more: int) -> None:
    rounds = len(found) + more - 1
    window = min(WINDOW, rounds)
    starts = [
        t + 1
        for t in range(len(found) - window + 1)
        if found[t] and 2 * sum(found[t : t + window]) >= window
    ]
    assert _half_learned(np.array(found), rounds) == (starts[0] if starts else math.inf)


@pytest.mark.parametrize("settings", [{}, {"mode": "policy"}, {"trial_budget": 5.0}], ids=str)
@pytest.mark.parametrize("rows", [0, 60])
def test_runs_are_those_of_an_agent(settings: dict, rows: int) -> None:
    """The engine of agents, given the same menus, rewards and coins, learns in the same round."""
    rng, rounds, seed = np.random.default_rng(4), 400, 9
    menus = rng.uniform(0.0, 0.5, (50, 4, 3))
    menus[:, 1:, 2] = 0.0
    worth = menus @ [0.5, 0.9, 0.1]
    baselines = np.argsort(worth, axis=1)[:, 2]
    played = worth[np.arange(50), baselines]
    data = logs_of_menus(menus, baselines, (rng.random(50) < played).astype(float), baselines)
    worlds = possible_worlds(data, 1.0, stream(0, "menus"))
    drawn = worlds.draw(stream(1, "theta"))
    guard = GuardUCB(alpha=0.2, context_noise=0.0, **settings)
    logs = learn_logs(worlds, drawn.world, guard, rows, seed)
    run = run_agent(drawn, guard, rounds, seed, logs)

    engine = Engine(guard, Facts(drawn.world.tasks, 3), [np.arange(3)])
    if logs is not None:
        engine.numbers[...] = logs.numbers
    own = int(stream(seed, 0).integers(1 << 62))
    (chunk,) = TrialDraws(drawn.world, rounds, own, directions=False).chunks()
    kinds = []
    for t, slot in enumerate(chunk.contexts, 1):
        menu, baseline = worlds.tables[slot].T.copy(), int(worlds.baselines[slot])
        request = Request(menu, baseline, None, NOTHING, NONE, NOTHING)
        verdict = engine.decide(0, request, 1, rows + t, float(chunk.coin[t - 1, 0]))
        engine.states[0].spent[0] += verdict.charge
        reward = float(chunk.noise[t - 1, 0] < drawn.expected[slot, verdict.action])
        engine.learn(0, verdict.awaited, reward, 0.0, rows + t, rows + t)
        kinds.append(verdict.kind)
    learned = np.array(kinds) == "learned"
    assert learned.any()
    assert run.first == learned.argmax() + 1
    assert run.half == _half_learned(learned, rounds)
    assert run_agent(drawn, guard, rounds, seed, logs, whole=False).first == run.first
    if settings:
        assert {"explored", "trial"} & set(kinds)
