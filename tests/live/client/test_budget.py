"""What trials and exploration of live agents are charged with, across restarts and copies."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import Away, agent, another_process, journal_of

import guardband as gb

MENU = np.hstack([np.eye(3), np.ones((3, 1))]) / np.sqrt(2.0)  # one feature each, and one for all
RATES = (0.5, 0.2, 0.9)
SETTINGS: dict[str, Any] = {"dim": 4, "alpha": 0.1, "noise": None, "delta": 0.1}


def start(folder: Path, **given: Any) -> gb.LiveAgent:
    return agent(folder, **{**SETTINGS, "trial_budget": 40.0, **given})


def work(one: gb.LiveAgent, rounds: int, seed: int = 0) -> list[gb.Decision]:
    """Let an agent decide and hear of clicks; it exchanges its messages now and then."""
    rng, made = np.random.default_rng(seed), []
    for n in range(rounds):
        decision = one.decide(MENU, 0)
        one.observe(decision.id, float(rng.random() < RATES[decision.action]))
        made.append(decision)
        if n % 50 == 49:
            one.sync()
    return made


def charged(one: gb.LiveAgent) -> list[float]:
    """What every decision in an agent's journal was charged with."""
    journal = journal_of(one)
    rows = journal.query("SELECT charge FROM decision ORDER BY seq")
    journal.close()
    return [charge for (charge,) in rows]


def test_trials_are_charged_in_the_journal(tmp_path: Path) -> None:
    one = start(tmp_path)
    made = work(one, 600)
    trials = [each for each in made if each.kind == "trial"]
    assert trials
    charges = charged(one)
    assert [charge > 0.0 for charge in charges] == [each.kind == "trial" for each in made]
    assert sum(charges) <= 40.0
    for each, charge in zip(made, charges, strict=True):
        assert charge == pytest.approx(max(0.0, -each.margin) if each.kind == "trial" else 0.0)
        assert each.budget_left >= 0.0
    counters = one.report().counters
    assert counters["trial"] == len(trials)
    assert one.report().gauges["budget_left"] == pytest.approx(made[-1].budget_left)


def test_more_is_granted_where_half_is_spent(tmp_path: Path) -> None:
    one = start(tmp_path, trial_budget=4.0)
    (first,) = work(one, 1)
    assert first.budget_left == 2.0  # half of the budget
    made = work(one, 600)
    assert 3.0 < sum(charged(one)) <= 4.0
    assert made[-1].budget_left < 1.0


def test_a_restart_goes_on_with_what_was_spent(tmp_path: Path) -> None:
    one = start(tmp_path)
    before = work(one, 300)
    spent = sum(charged(one))
    assert spent > 0.0
    one.close()
    again = start(tmp_path)
    (after,) = work(again, 1)
    assert before[-1].budget_left - after.budget_left == pytest.approx(charged(again)[-1])


def test_processes_with_one_folder_share_the_budget(tmp_path: Path) -> None:
    one = start(tmp_path, trial_budget=6.0)
    other = start(tmp_path, trial_budget=6.0)
    for seed in range(40):
        mine, theirs = work(one, 10, seed)[-1], work(other, 10, seed + 100)[-1]
        one.sync()
        assert theirs.budget_left <= mine.budget_left + 3.0  # more may be granted meanwhile
    assert 3.0 < math.fsum(charged(one)) <= 6.0


def test_a_copy_spends_nothing_twice(tmp_path: Path) -> None:
    one = start(tmp_path)
    work(one, 60)
    spent = math.fsum(charged(one))
    one.close()
    shutil.copytree(one.state_dir, tmp_path / "copy")
    one, copy = start(tmp_path), start(tmp_path, state_dir=tmp_path / "copy")
    (decision,) = work(copy, 1)
    assert decision.budget_left <= 0.25 * 40.0
    work(one, 500, seed=1)
    work(copy, 500, seed=2)
    both = math.fsum(charged(one)) + math.fsum(charged(copy)) - spent
    assert math.fsum(charged(copy)) > spent
    assert both <= 40.0


def test_a_folder_that_was_put_back_spends_nothing_twice(tmp_path: Path) -> None:
    one = start(tmp_path, trial_budget=8.0)
    one.close()
    shutil.copytree(one.state_dir, tmp_path / "old")
    total = 0.0
    for seed in range(5):
        one = start(tmp_path, trial_budget=8.0)
        work(one, 300, seed)
        total += math.fsum(charged(one))
        one.close()
        shutil.rmtree(one.state_dir)
        shutil.copytree(tmp_path / "old", one.state_dir)
    assert 4.0 < total <= 8.0


def test_a_second_folder_gets_a_part_of_the_rest(tmp_path: Path) -> None:
    one, two = start(tmp_path), start(tmp_path, state_dir=tmp_path / "two")
    ((first,), (second,)) = work(one, 1), work(two, 1)
    assert (first.budget_left, second.budget_left) == (20.0, 10.0)
    tv = start(tmp_path, task="tv")
    (other,) = work(tv, 1)
    assert other.budget_left == 20.0  # every task has a budget of its own


def test_without_a_coordinator_nothing_is_tried(tmp_path: Path) -> None:
    one = start(tmp_path)
    one.close()
    away = start(tmp_path, state_dir=tmp_path / "new", link=Away())
    made = work_alone(away, 100)
    assert {each.kind for each in made} == {"baseline"}


def work_alone(one: gb.LiveAgent, rounds: int) -> list[gb.Decision]:
    made = []
    for _ in range(rounds):
        made.append(one.decide(MENU, 0))
        one.observe(made[-1].id, 0.5)
    return made


def test_shadow_mode_spends_nothing(tmp_path: Path) -> None:
    one = start(tmp_path, shadow=True)
    work(one, 200)
    assert not any(charged(one))


def test_policy_mode_ends_its_exploration(tmp_path: Path) -> None:
    one = start(tmp_path, trial_budget=None, mode="policy", max_loss=4.0)
    made = work(one, 800)
    explored = [n for n, each in enumerate(made) if each.kind == "explored"]
    assert explored
    assert 2.0 < sum(charged(one)) <= 4.0
    last = made[explored[-1] + 1 :]
    assert all(each.promise in ("play", "baseline") for each in last)
    assert one.report().reasons["spent"] > 0


def test_without_a_budget_none_is_left(tmp_path: Path) -> None:
    one = start(tmp_path, trial_budget=None)
    (decision,) = work(one, 1)
    assert decision.budget_left is None
    assert "budget_left" not in one.report().gauges


def test_another_process_knows_what_was_spent(tmp_path: Path) -> None:
    one = start(tmp_path)
    made = work(one, 300)
    state = another_process(one).state
    assert state.learner.allowance - state.spent == pytest.approx(made[-1].budget_left)
