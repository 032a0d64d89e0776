"""What to expect: small problems whose answers follow from algebra."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from guardband.studies import StudyLogs, logs_of_menus
from guardband.studies import expect as expect_module
from guardband.studies.expect import CANT_TELL, MODES, Expectation, Prospect, expect

ROWS = 400


def logs(table: Any, rates: Any, *, uniform: bool = False, total: int | None = None) -> StudyLogs:
    """Clicks on one menu (K, d) with these rates; the first action is the baseline."""
    rng, menu = np.random.default_rng(5), np.array(table, dtype=float)
    played = rng.integers(len(menu), size=ROWS) if uniform else np.zeros(ROWS, int)
    clicks = rng.random(ROWS) < np.array(rates)[played]
    names = [f"f{i}" for i in range(menu.shape[1])]
    zeros = np.zeros(ROWS, int)
    menus = np.broadcast_to(menu, (ROWS, *menu.shape))
    return logs_of_menus(menus, played, clicks, zeros, names=names, total=total)


def found(data: StudyLogs, rounds: int = 1_000, **settings: Any) -> Expectation:
    settings = {"context_noise": 0.0} | settings
    return expect(data, alpha=0.1, rounds=rounds, settings=settings)


def test_one_column_per_action_cannot_leave_but_by_exploring() -> None:
    """No play of the first action says anything about the others."""
    expected = found(logs(np.eye(3), [0.3, 0.6, 0.2], total=4 * ROWS), trial_budget=1e9)
    for prospect in (expected.strict.with_logs, expected.strict.without_logs):
        assert prospect.can_leave is False
        assert prospect.blocked_by == ("f1", "f2")
        assert prospect.first_learned is None
        assert prospect.half_learned is None
        assert prospect.cost == 0.0
        assert "f1 and f2" in prospect.because


def test_shared_features_can_leave() -> None:
    """The second action is worth 9/4 of the first, whatever the one weight is."""
    expected = found(logs([[0.4], [0.9]], [0.32, 0.72]))
    for mode in MODES:
        prospect = getattr(expected, mode).without_logs
        assert prospect.can_leave is True
        assert prospect.blocked_by == ()
        assert prospect.first_learned is not None
        assert 2 <= prospect.first_learned < 200  # round 1 knows nothing
        assert prospect.half_learned is not None
        assert prospect.half_learned >= prospect.first_learned
        assert prospect.cost == 0.0  # nothing here is worse than the baseline


def test_a_baseline_that_is_best_stays() -> None:
    expected = found(logs([[0.9], [0.3]], [0.72, 0.24], total=2 * ROWS))
    for mode in MODES:
        for prospect in (getattr(expected, mode).with_logs, getattr(expected, mode).without_logs):
            assert prospect.can_leave is False
            assert prospect.blocked_by == ()
            assert "best" in prospect.because


def test_logs_of_the_others_let_it_leave_at_once() -> None:
    data = logs(np.eye(2), [0.2, 0.8], uniform=True, total=20 * ROWS)
    expected = found(data)
    assert expected.rows == 19 * ROWS
    assert expected.strict.without_logs.can_leave is False
    assert expected.strict.with_logs.can_leave is True
    assert expected.strict.with_logs.first_learned == 1
    assert expected.strict.with_logs.half_learned == 1


def test_no_rows_left_are_no_logs() -> None:
    expected = found(logs([[0.4], [0.9]], [0.32, 0.72]))
    assert expected.strict.with_logs == expected.strict.without_logs


def test_exploring_costs_what_worse_actions_cost() -> None:
    """Policy mode draws the other action, worth .1 less, in a tenth of the rounds or so."""
    rounds = 500
    expected = found(logs(np.eye(2), [0.3, 0.2], uniform=True), rounds=rounds)
    assert expected.policy.without_logs.can_leave is False
    assert 0.0 < expected.policy.without_logs.cost < 0.2 * rounds
    assert expected.strict.without_logs.cost == 0.0


def test_an_unstated_budget_is_one_per_cent_of_the_baselines_reward() -> None:
    data = logs([[1.0], [0.5]], [0.5, 0.25])
    rate = float(data.rewards.mean())
    assert found(data).budget == pytest.approx(0.01 * 1_000 * rate, rel=0.02)
    assert found(data, trial_budget=7.0).budget == 7.0


def test_one_seed_the_same_answers_and_progress_reaches_all() -> None:
    data, shares = logs([[0.4], [0.9]], [0.32, 0.72]), list[float]()
    settings = {"context_noise": 0.0, "feature_bound": 1.0, "noise": None}
    one = expect(data, alpha=0.1, rounds=300, settings=settings, progress=shares.append)
    assert one == expect(data, alpha=0.1, rounds=300, settings=settings)
    assert sum(shares) == pytest.approx(1.0)


def test_json_is_to_the_letter() -> None:
    written = json.loads(json.dumps(found(logs(np.eye(2), [0.3, 0.6]), rounds=50).to_json()))
    assert list(written) == ["strict", "policy", "trial_budget"]
    for mode in written.values():
        assert list(mode) == ["with_logs", "without_logs"]
        for prospect in mode.values():
            names = ["can_leave", "blocked_by", "first_learned", "half_learned", "cost"]
            assert list(prospect) == names
    assert written["strict"]["without_logs"]["can_leave"] is False
    assert written["strict"]["without_logs"]["first_learned"] is None
    unsure = Prospect(None, (), 7, None, 0.0, "")
    assert unsure.to_json()["can_leave"] == CANT_TELL == "can't tell"


def test_what_takes_too_long_is_looked_at_in_leaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too few rounds that are played one by one, the first learned play is still found."""
    data, stuck = logs([[0.2], [0.21]], [0.1, 0.105]), logs(np.eye(2), [0.3, 0.6])
    exact = found(data, rounds=100_000).strict.without_logs
    assert exact.first_learned is not None
    monkeypatch.setattr(expect_module, "SECONDS", 0.0)
    monkeypatch.setattr(expect_module, "LEAST_HORIZON", 10)
    rough = found(data, rounds=100_000)
    assert rough.strict.without_logs.can_leave is True
    assert rough.strict.without_logs.first_learned is not None
    assert 0.3 < rough.strict.without_logs.first_learned / exact.first_learned < 3.0
    assert any("leaps" in note for note in rough.notes)
    assert found(stuck, rounds=100_000).strict.without_logs.can_leave is False


def test_time_that_is_short_goes_to_first_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the time for whole runs there are as many again that end with their first play."""
    asked: list[bool] = []
    ordinary = expect_module.run_agent

    def noted(*given: Any, whole: bool) -> Any:
        asked.append(whole)
        return ordinary(*given, whole=whole)

    monkeypatch.setattr(expect_module, "run_agent", noted)
    monkeypatch.setattr(expect_module, "SECONDS", 0.02)
    found(logs([[0.4], [0.9]], [0.32, 0.72]), rounds=5_000)
    agents = len(MODES) * 2
    assert agents * expect_module.LEAST_DRAWS <= sum(asked) < agents * expect_module.DRAWS
    assert sum(asked) <= asked.count(False) + agents
    assert asked[: 2 * agents] == [True] * 2 * agents


def test_rows_beyond_what_can_be_learned_in_time_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expect_module, "LEARNING", 0.0)
    expected = found(logs(np.eye(2), [0.2, 0.8], uniform=True, total=20 * ROWS), rounds=20)
    assert any(f"{19 * ROWS:,}" in note for note in expected.notes)
