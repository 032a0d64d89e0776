"""Budgets for costs of live agents: never exceeded, and all of it can be spent."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from live.client.world import Away, Switch, agent, journal_of, link_of
from live.operators.journals import change, found
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.errors import BudgetSpentError, InvalidValueError
from guardband.kernels._jit import Kernel
from guardband.kernels.serve import GUARDED, VALUED
from guardband.live.client.replay import rebuild
from guardband.live.link.local import LocalLink

MENU = 0.9 * np.eye(3)
REWARDS = np.array([0.5, 0.6, 0.7])
SETTINGS: dict[str, Any] = {"alpha": 0.1, "noise": 0.05, "context_noise": 0.0, "delta": 0.1}


def start(folder: Path, total: float, horizon: int = 100, **given: Any) -> gb.LiveAgent:
    """An agent that knows rewards well, with a budget."""
    budget = gb.Budget(total, horizon, given.pop("max_cost", None))
    usual = folder / "gb" / "agents" / "default" / given.get("task", "movies")
    known = (given.get("state_dir", usual) / "journal.db").exists()
    one = agent(folder, **{**SETTINGS, "budget": budget, "delta_alarm": 0.0, **given})
    if not known:
        one.learn(*log_of(one))
    return one


def log_of(one: Any) -> tuple[np.ndarray, np.ndarray]:
    """A log of an agent's own: none counts twice in a space."""
    k = np.arange(900) % 3
    return MENU[k], REWARDS[k] + 1e-13 * crc32(str(one.state_dir).encode())


def work(one: Any, rounds: int, costs: Any = (0.0, 0.2, 1.0), every: int = 5) -> list[gb.Decision]:
    made = []
    for n in range(rounds):
        decision = one.decide(MENU, 0, cost=costs)
        one.observe(decision, float(REWARDS[decision.action]))
        made.append(decision)
        if n % every == 0:
            one.sync()
    return made


def paid(one: Any) -> float:
    """What all decisions in an agent's journal cost, or are reserved for."""
    journal = journal_of(one)
    ((total,),) = journal.query("SELECT total(coalesce(paid, cost)) FROM decision")
    journal.close()
    return float(total)


def spent(one: Any) -> float:
    """What an agent believes that it has spent."""
    with one._store as state:
        return float(state.spending.spent)


def test_full_speed_waits_for_the_kernels_of_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = set()

    def at_once(kernel: Kernel, *args: Any) -> Any:
        asked.add(kernel)
        return kernel(*args)

    monkeypatch.setattr(Kernel, "at_once", at_once)
    plain = agent(tmp_path / "a", **SETTINGS)
    assert GUARDED.serve in asked
    assert VALUED.serve not in asked
    paying = agent(tmp_path / "b", **SETTINGS, budget=gb.Budget(30.0, 100))
    assert VALUED.serve in asked
    monkeypatch.setattr(Kernel, "ready", property(lambda kernel: kernel is not VALUED.serve))
    assert plain.full_speed
    assert not paying.full_speed


def test_the_whole_total_is_used_and_no_more(tmp_path: Path) -> None:
    one = start(tmp_path, 30.0)
    made = work(one, 100)
    assert 0.9 * 30.0 < paid(one) <= 30.0
    assert math.fsum(d.cost for d in made) == pytest.approx(paid(one))
    mix = REWARDS @ [0.0, 7 / 8, 1 / 8]  # the best fixed mix
    assert np.mean([REWARDS[d.action] for d in made]) >= 0.9 * mix
    later = work(one, 50)
    assert paid(one) <= 30.0
    assert later[-1].action == 0  # the baseline is free
    assert one.report().gauges["cost_left"] == pytest.approx(later[-1].cost_left)
    assert one.report().sums["cost"] == pytest.approx(paid(one))


def test_decisions_are_those_of_an_agent_in_a_process(tmp_path: Path) -> None:
    """While what is granted does not bind, the same prices and the same choices."""
    one = start(tmp_path, 30.0, agents=1, shares="equal")
    plain = gb.Agent(dim=3, **SETTINGS, budget=gb.Budget(30.0, 100))
    plain.learn(*log_of(one))
    mine, its = work(one, 100), []
    for _ in range(100):
        its.append(plain.decide(MENU, 0, cost=[0.0, 0.2, 1.0]))
        plain.observe(its[-1], float(REWARDS[its[-1].action]))
    assert [d.action for d in mine] == [d.action for d in its]
    assert_array_equal(one._store.state.spending.numbers, plain._group.purses[0].numbers)


@pytest.mark.parametrize("max_cost", [None, 1.5])
def test_decisions_come_out_again(tmp_path: Path, max_cost: float | None) -> None:
    one = start(tmp_path, 12.0, max_cost=max_cost)
    rng, made = np.random.default_rng(0), []
    for n in range(60):
        told = max_cost is not None and n % 3 == 0
        costs, value = np.append(0.0, rng.random(2)), rng.random(3)
        try:
            decision = one.decide(MENU, 0, cost=None if told else costs, value=value)
        except BudgetSpentError:
            one.sync()
            continue
        if n % 5 == 0:
            with contextlib.suppress(BudgetSpentError):
                one.override(decision, action=int(rng.integers(3)))
        if max_cost is not None:
            assert decision.cost is not None
            one.observe(decision, 0.5, cost=0.5 * min(decision.cost, float(costs.min())))
        else:
            one.observe(decision, 0.5)
        made.append(decision)
        one.sync()
    journal = journal_of(one)
    for decision in made:
        again = rebuild(journal, int(decision.id.rpartition("-")[2])).decide()
        assert (again.action, again.reason) == (decision.action, again.reason)
    journal.close()
    for decision in made[::6]:
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        assert finding.choices[decision.action].why == "played"


def test_a_batch_leaves_what_its_own_baselines_cost(tmp_path: Path) -> None:
    """Baselines that grow dearer in a batch are paid for, and audits know what was set aside."""
    one = start(tmp_path, 30.0, 20)
    rng, made = np.random.default_rng(0), []
    for _ in range(4):
        base = rng.exponential(0.2, 5)
        costs = [[each, 3.0 * each, 2.0] for each in base]
        made += one.decide_many([MENU] * 5, [0] * 5, costs=costs)
        for decision in made[-5:]:
            one.observe(decision, float(REWARDS[decision.action]))
        one.sync()
        assert paid(one) == pytest.approx(spent(one))
        assert one._store.state.spending.left >= 0.0
    assert len({decision.action for decision in made}) > 1
    for decision in made:
        assert found(tmp_path / "gb", decision.id).result == "same"


def test_a_restart_goes_on_with_what_was_spent(tmp_path: Path) -> None:
    one = start(tmp_path, 20.0)
    work(one, 40)
    numbers = one._store.state.spending.numbers.copy()
    one.close()
    again = start(tmp_path, 20.0)
    assert numbers[2] > 1.0
    assert_array_equal(again._store.state.spending.numbers, numbers)
    assert again.decide(MENU, 0, cost=[0.0, 0.2, 1.0]).cost_left <= 20.0 - numbers[2]


def test_processes_with_one_folder_share_it(tmp_path: Path) -> None:
    one, other = start(tmp_path, 10.0), start(tmp_path, 10.0)
    for _ in range(30):
        work(one, 2)
        work(other, 2)
    assert 9.0 < paid(one) <= 10.0


def test_folders_of_a_task_share_it(tmp_path: Path) -> None:
    one, two = start(tmp_path, 16.0), start(tmp_path, 16.0, state_dir=tmp_path / "two")
    for _ in range(60):
        work(one, 2)
        work(two, 2)
    assert 12.0 < paid(one) + paid(two) <= 16.0
    tv = start(tmp_path, 16.0, task="tv")
    assert work(tv, 1)[0].cost_left > 4.0  # every task has its own


def test_without_a_coordinator_only_what_was_granted_is_spent(tmp_path: Path) -> None:
    one = start(tmp_path, 16.0)
    switch = link_of(one)
    one.close()
    switch = Switch(LocalLink(tmp_path / "gb"))
    one = start(tmp_path, 16.0, link=switch)
    switch.to = Away()
    for _ in range(100):
        one.decide(MENU, 0, cost=[0.0, 0.2, 1.0])
    assert paid(one) <= 8.0  # a half was granted
    dear = [[0.5, 0.5, 1.0]] * 100
    with pytest.raises(BudgetSpentError, match="of which 8 is granted so far"):
        one.decide_many([MENU] * 100, [0] * 100, costs=dear)
    assert paid(one) <= 8.0


def test_costs_known_afterwards_are_reserved_and_given_back(tmp_path: Path) -> None:
    one = start(tmp_path, 4.0, max_cost=1.0)
    first, second = one.decide(MENU, 0), one.decide(MENU, 0)
    assert (first.cost, second.cost, second.cost_left) == (1.0, 1.0, 0.0)  # of the first half
    with pytest.raises(BudgetSpentError, match="used up"):
        one.decide(MENU, 0)
    with pytest.raises(InvalidValueError, match="more than the 1 that was reserved"):
        one.observe(first, 0.5, cost=1.5)
    with pytest.raises(InvalidValueError, match="zero or a positive number"):
        one.observe(first, 0.5, cost=-0.5)
    with pytest.raises(InvalidValueError):
        one.observe(first, 0.5, cost=math.nan)
    assert one.pending == 2
    one.observe(first, 0.5, cost=0.25)
    one.observe(first, 0.5, cost=0.25)  # again: nothing changes
    with pytest.raises(InvalidValueError, match=r"has the cost 0\.25 already"):
        one.observe(first, 0.5, cost=0.5)
    assert paid(one) == 1.25
    one.discard(second)  # never answered: what was reserved stays paid
    one.close()
    again = start(tmp_path, 4.0, max_cost=1.0)
    assert spent(again) == 1.25
    assert again.report().sums["cost"] == 1.25


def test_a_batch_of_costs_is_taken_in_whole_or_not_at_all(tmp_path: Path) -> None:
    one = start(tmp_path, 8.0, max_cost=1.0)
    made = one.decide_many([MENU] * 3, [0] * 3)
    with pytest.raises(InvalidValueError, match="more than"):
        one.observe_many(made, [0.5] * 3, costs=[0.5, 0.5, 2.0])
    assert paid(one) == spent(one) == 3.0
    with pytest.raises(InvalidValueError, match="costs do not fit"):
        one.observe_many(made, [0.5] * 3, costs=[0.5])
    one.observe_many(made, [0.5] * 3, costs=[0.5, None, 0.0])
    assert paid(one) == spent(one) == 1.5


def test_an_override_is_paid_for(tmp_path: Path) -> None:
    one = start(tmp_path, 4.0, 2)
    decision = one.decide(MENU, 0, cost=[0.1, 0.4, 2.5])
    one.override(decision, action=1)
    assert paid(one) == pytest.approx(spent(one)) == pytest.approx(0.4)
    with pytest.raises(BudgetSpentError, match=r"2\.1 more"):
        one.override(decision, action=2)
    assert paid(one) == pytest.approx(0.4)
    one.override(decision, action=0)
    assert paid(one) == pytest.approx(spent(one)) == pytest.approx(0.1)


@pytest.mark.parametrize("cost", [[0.0, 0.1], [0.0, 0.1, np.nan], [0.0, 0.1, -0.2], None])
def test_costs_that_do_not_fit_change_nothing(tmp_path: Path, cost: Any) -> None:
    one = start(tmp_path, 4.0)
    with pytest.raises(InvalidValueError):
        one.decide(MENU, 0, cost=cost)
    with pytest.raises(InvalidValueError):
        one.decide_many([MENU, MENU], [0, 0], costs=[[0.0, 0.1, 0.2], cost])
    with pytest.raises(InvalidValueError, match="below what the baseline must cost"):
        one.decide(MENU, 0, cost=[0.2, 0.3, 0.4])
    assert one.rounds == 0
    assert paid(one) == 0.0


def test_spaces_that_cannot_have_a_budget_say_so() -> None:
    given: dict[str, Any] = {"features": ["a"], "agents": 2}
    with pytest.raises(InvalidValueError, match="a budget is for guard-ucb"):
        gb.SpaceSettings(**given, algorithm="dis-lin-ucb", budget=gb.Budget(1.0, 2))
    with pytest.raises(InvalidValueError, match="a budget is for guard-ucb"):
        gb.SpaceSettings(**given, tolerate=1, budget={"total": 1.0, "horizon": 2})
    for wrong in ({"total": -1.0}, {"horizon": 0}, {"max_cost": 0.0}, {"most": 1.0}):
        with pytest.raises(InvalidValueError):
            gb.SpaceSettings(**given, budget={"total": 1.0, "horizon": 5} | wrong)


def test_an_audit_finds_changed_costs(tmp_path: Path) -> None:
    one = start(tmp_path, 10.0)
    decision = next(each for each in work(one, 20) if each.cost)
    seq = int(decision.id.rpartition("-")[2])
    change(one, "UPDATE decision SET cost = cost / 2 WHERE seq = ?", seq)
    differences = found(tmp_path / "gb", decision.id).differences
    assert any("cost comes out as" in each for each in differences)
    assert any("was spent of the budget, but decisions cost" in each for each in differences)
