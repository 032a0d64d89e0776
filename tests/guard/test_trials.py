"""Trials and exploration that are charged: round by round as defined, and never beyond the sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from guard.cases import D3, RANGED, SHORT, TENTH, forecast, one_known, play
from numpy.testing import assert_allclose, assert_array_equal
from reference import guard

import guardband as gb
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.kernels.environment import Metric
from guardband.kernels.state import view


def blocks(seed: int, T: int, means: tuple[float, ...], baseline: int, M: int = 1) -> dict:
    """One feature for each action, and one for all: what is certified hardly teaches the rest."""
    r = np.random.default_rng(seed)
    menu = np.hstack([np.eye(len(means)), np.ones((len(means), 1))])[None] / np.sqrt(2.0)
    return {
        "phi": menu,
        "psi": menu,
        "theta": np.linalg.pinv(menu[0]) @ np.array(means),
        "tasks": [list(range(len(means) + 1))] * M,
        "baseline": np.full((1, M), baseline),
        "r_hat": np.full((1, M), means[baseline]),
        "contexts": np.zeros(T, int),
        "coin": r.random((T, M)),
        "reward_noise": 0.1 * r.standard_normal((T, M)),
    }


FOUR = (0.5, 0.2, 0.45, 0.8)
STRICT = {"mode": "strict", "alpha": 0.2, "context_noise": 0.0, **TENTH}
POLICY = {**STRICT, "mode": "policy"}
CASES: dict[str, tuple[dict, dict[str, Any]]] = {
    "two features": (one_known(18, 300), {**STRICT, "share": False, "allowance": 20.0}),
    "blocks": (blocks(1, 250, FOUR, 0), {**STRICT, "share": False, "allowance": 30.0}),
    "blocks, ranges": (blocks(1, 250, FOUR, 0), {**STRICT, **RANGED, "allowance": 30.0}),
    "soon spent": (blocks(2, 150, FOUR, 0), {**STRICT, **RANGED, "allowance": 3.0}),
    "known baseline": (
        blocks(3, 150, FOUR, 2),
        {**STRICT, **RANGED, "tau": 0.02, "allowance": 20.0},
    ),
    "two agents, a bias": (
        blocks(4, 100, FOUR, 0, M=2),
        {**STRICT, **RANGED, "eps": 0.01, "allowance": 20.0},
    ),
    "no noise stated": (
        blocks(5, 250, FOUR, 0),
        {**STRICT, **RANGED, "sigma": None, "ceiling": 0.9, "allowance": 60.0},
    ),
    "policy, spent": (blocks(6, 150, FOUR, 0), {**POLICY, **RANGED, "allowance": 4.0}),
    "policy, not spent": (blocks(6, 150, FOUR, 0), {**POLICY, **RANGED, "allowance": 100.0}),
    "policy, known baseline": (SHORT, {**POLICY, "rank": 4, "tau": 0.02, "allowance": 1.0}),
    "policy, forecast": (
        forecast(11, **{**D3, "T": 80}),
        {"rank": 4, "mode": "policy", "alpha": 0.2, **RANGED, **TENTH, "allowance": 2.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_round_and_charge_equals_the_definition(name: str) -> None:
    case, settings = CASES[name]
    ref = guard.simulate(**case, **settings)
    runner = play(case, settings)
    trace = runner.record().trace
    assert trace is not None
    assert_array_equal(trace.actions, ref.actions)
    assert_array_equal(trace.sync_rounds, ref.sync_rounds)
    totals = runner.metrics.totals
    assert_array_equal(totals[:, Metric.TRIALS], (ref.charges > 0.0).sum(axis=0))
    assert_array_equal(totals[:, Metric.STUCK], ref.stuck.sum(axis=0))
    assert_allclose(totals[:, Metric.CHARGED], ref.charges.sum(axis=0), atol=1e-6)
    spent = view(runner.numbers, case["theta"].size).spent[:-2, 0]
    assert_array_equal(spent, totals[:, Metric.CHARGED])
    assert (spent <= settings["allowance"]).all()
    assert (totals[:, Metric.SHORTFALL] <= spent).all()
    certified = totals[:, Metric.VIOLATIONS_EXPECTED] - totals[:, Metric.VIOLATIONS_TRIAL]
    assert settings["mode"] == "policy" or not certified.any()


def test_the_cases_take_every_branch() -> None:
    traces = {name: guard.simulate(**case, **settings) for name, (case, settings) in CASES.items()}
    for name, trace in traces.items():
        assert (trace.charges > 0.0).any(), name
    learned = (traces["blocks"].actions == 3) & (traces["blocks"].charges == 0.0)
    assert learned[-20:].all()  # trials have ended: the best action is certified
    spent = traces["soon spent"]
    assert spent.stuck[-20:].all()
    assert not spent.charges[-20:].any()
    assert not traces["blocks"].charges[:5].any()  # the baseline is not known well enough
    assert traces["known baseline"].charges[0] > 0.0
    ended = traces["policy, spent"]
    conservative = ended.conservative[:, 0]
    assert (ended.partner[conservative, 0] == -1).sum() > 20  # no mixture any more
    assert (traces["policy, not spent"].charges > 0.0).sum() > (ended.charges > 0.0).sum()


@pytest.mark.parametrize("mode", ["strict", "policy"])
def test_an_allowance_that_is_never_needed_changes_nothing(mode: str) -> None:
    case = forecast(11, **D3)
    settings = {"rank": 4, "mode": mode, "alpha": 0.2, **RANGED, **TENTH}
    plain = play(case, settings).record().trace
    large = play(case, {**settings, "allowance": 1e9 if mode == "policy" else 0.0}).record().trace
    assert plain is not None
    assert large is not None
    assert_array_equal(plain.actions, large.actions)
    assert_array_equal(plain.rewards, large.rewards)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"trial_budget": -1.0}, InvalidValueError, "trial_budget must be zero or a positive"),
        ({"trial_budget": math.nan}, InvalidValueError, "trial_budget must be zero or a positive"),
        ({"trial_budget": math.inf}, InvalidValueError, "trial_budget must be zero or a positive"),
        ({"trial_budget": True}, InvalidTypeError, "trial_budget must be a number, not True"),
        ({"trial_budget": 5.0, "mode": "policy"}, InvalidValueError, "use max_loss=... there"),
        ({"max_loss": 5.0}, InvalidValueError, "use trial_budget=... there"),
        ({"max_loss": -5.0, "mode": "policy"}, InvalidValueError, "max_loss must be zero or a"),
        ({"max_loss": "5", "mode": "policy"}, InvalidTypeError, "max_loss must be a number"),
    ],
)
def test_allowances_that_make_no_sense_are_refused(
    settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    for make in (gb.GuardUCB, lambda **given: gb.Agent(3, **given)):
        with pytest.raises(error, match=words):
            make(**settings)


def test_trials_are_no_promise_about_the_context_that_is_drawn() -> None:
    with pytest.raises(InvalidValueError, match=r"leave realised=\.\.\. out"):
        gb.GuardUCB(trial_budget=5.0, realised="worst")


def decided(agent: gb.Agent, rounds: int, seed: int = 0) -> list[gb.Decision]:
    """Let an agent decide among four blocks, and tell it a click with the chance of each."""
    menu, r = blocks(0, 1, FOUR, 0)["psi"][0], np.random.default_rng(seed)
    decisions = []
    for _ in range(rounds):
        decision = agent.decide(menu, baseline=0)
        agent.observe(decision, r.random() < FOUR[decision.action])
        decisions.append(decision)
    return decisions


def test_an_agent_says_what_a_trial_is_and_what_is_left() -> None:
    agent = gb.Agent(dim=5, alpha=0.2, trial_budget=40.0)
    decisions = decided(agent, 1500)
    trials = [each for each in decisions if each.kind == "trial"]
    assert trials
    left = 40.0
    for each in decisions:
        if each.kind == "trial":
            assert each.promise == each.certificate == "trial"
            assert not each.certified[each.action]
            assert each.action not in each.safe_actions
            assert each.margin < 0.0
            left += each.margin  # the charge is what it can fall short of the floor by
            assert "trial" in each.reason
        assert each.budget_left == pytest.approx(left, abs=1e-9)
        assert each.budget_left is not None
        assert each.budget_left >= 0.0
    assert decisions[-1].kind == "learned"
    assert decisions[-1].action == 3


def test_policy_mode_with_an_end() -> None:
    agent = gb.Agent(dim=5, alpha=0.2, mode="policy", max_loss=5.0)
    decisions = decided(agent, 1000)
    explored = [each for each in decisions if each.kind == "explored"]
    assert explored
    assert {each.promise for each in explored} == {"policy"}
    last = max(n for n, each in enumerate(decisions) if each.kind == "explored")
    assert all(each.promise in ("play", "baseline") for each in decisions[last + 1 :])
    assert any("max_loss" in each.reason for each in decisions[last + 1 :])
    left = decisions[-1].budget_left
    assert left is not None
    assert 0.0 <= left < 1.0


def test_without_an_allowance_nothing_is_left() -> None:
    (decision,) = decided(gb.Agent(dim=5, alpha=0.2), 1)
    assert decision.budget_left is None


def test_what_was_spent_is_saved(tmp_path: Any) -> None:
    agent = gb.Agent(dim=5, alpha=0.2, trial_budget=10.0)
    decided(agent, 300)
    again = gb.Agent.load(agent.save(tmp_path / "agent.npz"))
    one, other = decided(agent, 50, seed=1), decided(again, 50, seed=1)
    assert [each.budget_left for each in one] == [each.budget_left for each in other]
    assert one[-1].budget_left not in (None, 10.0)


def test_every_task_of_a_fleet_has_its_own_budget() -> None:
    fleet = gb.Fleet({"a": range(5), "b": range(5)}, dim=5, alpha=0.2, trial_budget=15.0)
    decided(fleet["a"], 400)
    spent = fleet["a"].decide(np.eye(5)[:1], baseline=0).budget_left
    (decision,) = decided(fleet["b"], 1)
    assert spent is not None
    assert decision.budget_left is not None
    assert spent < 10.0 < decision.budget_left
