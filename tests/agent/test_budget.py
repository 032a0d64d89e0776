"""Budgets: never exceeded, the baseline stays affordable, and little is lost by pacing."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from agent.test_value import features, taught
from hypothesis import given, settings
from hypothesis import strategies as st

import guardband as gb
from guardband.errors import BudgetSpentError, InvalidTypeError, InvalidValueError

MENU = np.eye(3) * 0.9
REWARDS = np.array([0.4, 0.5, 0.6])


def knowing(budget: gb.Budget, rows: int = 4_000, **given: Any) -> gb.Agent:
    """An agent that knows the rewards of MENU: what is better than row 0 is certified."""
    algorithm = gb.GuardUCB(0.1, noise=0.05, context_noise=0.0)
    agent = gb.Agent(dim=3, algorithm=algorithm, budget=budget, **given)
    rng = np.random.default_rng(0)
    k = np.arange(rows) % 3
    agent.learn(MENU[k], REWARDS[k] + rng.uniform(-0.05, 0.05, rows))
    return agent


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.floats(0.0, 2.0), st.booleans())
def test_the_total_is_never_exceeded(seed: int, horizon: int, spare: float, valued: bool) -> None:
    rng = np.random.default_rng(seed)
    base = float(rng.choice([0.0, 0.1]))
    budget = gb.Budget(total=horizon * base * 1.0001 + spare, horizon=horizon)
    agent = knowing(budget)
    paid = 0.0
    for _ in range(horizon):
        cost = np.array([base, *rng.random(2)])
        value = rng.random(3) if valued else None
        decision = agent.decide(MENU, 0, value=value, cost=cost)
        paid += cost[decision.action]
        assert decision.cost == cost[decision.action]
        assert decision.cost_left == pytest.approx(budget.total - paid)
        assert paid <= budget.total * (1.0 + 1e-12)
        if rng.random() < 0.5:  # rewards may be late, or lost
            agent.observe(decision, 0.5)


def test_pacing_is_not_far_from_the_best_of_all_sequences() -> None:
    """Against an oracle that tries every sequence, on horizons where that can be done."""
    rng = np.random.default_rng(1)
    earned, best = 0.0, 0.0
    for _ in range(40):
        rounds = 8
        costs = np.column_stack([np.zeros(rounds), rng.random((rounds, 2))])
        values = np.column_stack([np.zeros(rounds), rng.random((rounds, 2))])
        total = 1.5
        every = (np.array(each) for each in product(range(3), repeat=rounds))
        t = np.arange(rounds)
        best += max(values[t, k].sum() for k in every if costs[t, k].sum() <= total)
        agent = knowing(gb.Budget(total, rounds))
        for i in range(rounds):
            decision = agent.decide(MENU, 0, value=values[i], cost=costs[i])
            earned += values[i, decision.action]
    assert 0.6 * best <= earned <= best


def test_the_price_beats_greed_and_the_best_fixed_mix() -> None:
    """Value per cost varies from round to round: a price picks the cheap ones, a mix cannot."""
    rounds, rng = 1_500, np.random.default_rng(2)
    costs = np.column_stack([np.zeros(rounds), rng.random((rounds, 2)) + 0.2])
    values = np.column_stack([np.zeros(rounds), rng.random((rounds, 2))])
    total = 0.2 * rounds
    agent = knowing(gb.Budget(total, rounds))
    earned = sum(
        values[i, agent.decide(MENU, 0, value=values[i], cost=costs[i]).action]
        for i in range(rounds)
    )
    ratio = values.mean(axis=0)[1:] / costs.mean(axis=0)[1:]  # of one dear action and row 0
    assert earned > 1.2 * total * ratio.max()
    spent = 0.0
    greedy = 0.0
    for i in range(rounds):
        k = int(values[i].argmax())
        if spent + costs[i, k] <= total:
            spent, greedy = spent + costs[i, k], greedy + values[i, k]
    assert earned > 1.2 * greedy


def test_without_a_value_the_reward_is_paced() -> None:
    agent = knowing(gb.Budget(total=30.0, horizon=100))
    played = [agent.decide(MENU, 0, cost=[0.0, 0.2, 1.0]).action for _ in range(100)]
    counts = np.bincount(played, minlength=3)
    assert counts @ [0.0, 0.2, 1.0] <= 30.0
    mix = REWARDS @ [0.0, 7 / 8, 1 / 8]  # the best fixed mix: all of it is spent
    assert REWARDS @ counts / 100 >= 0.9 * mix


def test_costs_that_are_known_afterwards_are_reserved() -> None:
    agent = knowing(gb.Budget(total=1.0, horizon=10, max_cost=0.5))
    first = agent.decide(MENU, 0)
    second = agent.decide(MENU, 0)
    assert (first.cost, second.cost, second.cost_left) == (0.5, 0.5, 0.0)
    with pytest.raises(BudgetSpentError, match="used up"):
        agent.decide(MENU, 0)
    with pytest.raises(InvalidValueError, match=r"more than the 0\.5 that was reserved"):
        agent.observe(first, 0.5, cost=0.6)
    with pytest.raises(InvalidValueError, match="zero or a positive number"):
        agent.observe(first, 0.5, cost=-0.1)
    assert agent.pending == 2
    agent.observe(first, 0.5, cost=0.1)
    with pytest.raises(BudgetSpentError, match=r"0\.4 of 1 is left"):
        agent.decide(MENU, 0)
    agent.discard(second)  # lost: what was reserved stays paid


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ([0.0, 0.1], "shape"),
        ([0.0, 0.1, np.nan], "finite"),
        ([0.0, 0.1, -0.2], "negative"),
        (None, "has a budget"),
    ],
)
def test_costs_that_do_not_fit_change_nothing(cost: Any, words: str) -> None:
    agent = knowing(gb.Budget(1.0, 10))
    with pytest.raises(InvalidValueError, match=words):
        agent.decide(MENU, 0, cost=cost)
    with pytest.raises(InvalidValueError, match=words):
        agent.decide_many([MENU, MENU], [0, 0], costs=[[0.0, 0.1, 0.2], cost])
    assert agent.rounds == 0


def test_a_budget_below_the_baseline_is_refused() -> None:
    agent = knowing(gb.Budget(1.0, 10))
    with pytest.raises(InvalidValueError, match=r"below what the baseline must cost: 0\.2 in each"):
        agent.decide(MENU, 0, cost=[0.2, 0.3, 0.4])
    assert agent.rounds == 0
    with pytest.raises(InvalidValueError, match="paid from a budget"):
        taught(0, 10).decide(features(np.random.default_rng(0), 3), 0, cost=[0.0] * 3)
    with pytest.raises(InvalidTypeError, match=r"must be a gb\.Budget"):
        gb.Agent(dim=3, budget=5.0)
    with pytest.raises(InvalidValueError, match="guard-ucb"):
        gb.Agent(dim=3, algorithm="dis-lin-ucb", budget=gb.Budget(1.0, 10))
    for wrong in ({"total": -1.0}, {"total": np.nan}, {"horizon": 0}, {"max_cost": 0.0}):
        with pytest.raises(InvalidValueError):
            gb.Budget(**({"total": 1.0, "horizon": 5} | wrong))


def test_a_free_baseline_is_played_when_all_is_spent() -> None:
    agent = knowing(gb.Budget(total=0.5, horizon=5))
    costs = [[0.0, 0.1, 0.1]] * 40
    played = [agent.decide(MENU, 0, cost=cost) for cost in costs]
    assert sum(d.cost for d in played) <= 0.5
    assert played[-1].action == 0


def test_a_batch_must_be_payable_as_a_whole() -> None:
    agent = knowing(gb.Budget(total=1.0, horizon=2))
    with pytest.raises(BudgetSpentError):
        agent.decide_many([MENU] * 3, [0] * 3, costs=[[0.4, 0.5, 0.5]] * 3)
    assert agent.rounds == 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(1.0, 1.3), st.booleans())
def test_batches_do_not_spend_what_their_own_baselines_cost(
    seed: int, size: int, spare: float, afterwards: bool
) -> None:
    """Baselines that grow dearer within a batch are paid for, whatever else is played in it."""
    rng = np.random.default_rng(seed)
    base = rng.exponential(size=size)
    costs: list[Any] = [np.array([each, 5 * each, 0.5 * each]) for each in base]
    most = float(5 * base.max())
    if afterwards:
        costs[-1] = None
    total = spare * (float(base.sum()) + most * afterwards) + base[0] * 1e-6
    budget = gb.Budget(max(total, most * afterwards), 1, most if afterwards else None)
    agent = knowing(budget)
    try:
        made = agent.decide_many([MENU] * size, [0] * size, costs=costs)
    except (BudgetSpentError, InvalidValueError):
        assert agent.decide(MENU, 0, cost=[0.0, 0.0, 0.0]).cost_left == budget.total
        return
    assert sum(decision.cost for decision in made) <= budget.total * (1.0 + 1e-9)


def test_a_dear_play_of_a_batch_leaves_what_the_next_baseline_costs() -> None:
    agent = knowing(gb.Budget(10.0, 2))
    made = agent.decide_many([MENU] * 2, [0, 0], costs=[[0.0, 0.0, 10.0], [5.0, 5.0, 5.0]])
    assert made[-1].cost_left >= 0.0
    agent = knowing(gb.Budget(20.0, 2, max_cost=10.0))
    made = agent.decide_many([MENU] * 2, [0, 0], costs=[[0.0, 0.0, 10.0], None])
    assert made[-1].cost_left == 0.0


def test_no_value_is_so_large_that_the_price_overflows() -> None:
    """A price of infinity would make all actions alike, those too that cannot be paid."""
    agent = knowing(gb.Budget(10.0, 50))
    with pytest.raises(InvalidValueError, match=r"value\[1\] is 1e\+120: at most 1e\+100"):
        agent.decide(MENU, 0, value=[0.0, 1e120, 0.0], cost=[0.1, 0.1, 0.1])
    agent.decide(MENU, 0, value=[0.0, 1e100, 0.0], cost=[1e-300, 2e-300, 1e-300])
    decision = agent.decide(MENU, 0, value=[0.0, 1.0, 2.0], cost=[0.1, 100.0, 100.0])
    assert decision.action == 0
    assert decision.cost_left >= 9.8


@pytest.mark.parametrize("first", [1.0, 1e-3, 1e-6])
def test_one_small_extra_cost_does_not_stop_spending(first: float) -> None:
    agent = knowing(gb.Budget(100.0, 400))
    spent = 0.0
    for t in range(400):
        extra = first if t == 0 else 1.0
        spent += agent.decide(MENU, 0, value=[0.0, 0.0, 1.0], cost=[0.0, 0.0, extra]).cost
    assert 90.0 <= spent <= 100.0


@pytest.mark.parametrize(("total", "horizon", "base"), [(0.3, 3, 0.1), (7.0, 10, 0.7)])
def test_a_total_that_just_suffices_suffices(total: float, horizon: int, base: float) -> None:
    agent = knowing(gb.Budget(total, horizon))
    for _ in range(horizon):
        assert agent.decide(MENU, 0, cost=[base] * 3).cost == base
    with pytest.raises(BudgetSpentError):
        agent.decide(MENU, 0, cost=[base] * 3)


def test_what_no_play_may_cost_is_checked() -> None:
    with pytest.raises(InvalidValueError, match="not one play could be paid"):
        gb.Budget(1.0, 10, max_cost=5.0)
    agent = knowing(gb.Budget(10.0, 10, max_cost=1.0))
    with pytest.raises(InvalidValueError, match=r"cost\[1\] is 2, more than max_cost=1"):
        agent.decide(MENU, 0, cost=[0.5, 2.0, 0.5])


def test_tasks_have_budgets_of_their_own_and_files_keep_them(tmp_path: Any) -> None:
    algorithm = gb.GuardUCB(0.1, noise=0.05, context_noise=0.0)
    fleet = gb.Fleet({"a": None, "b": None}, 3, algorithm=algorithm, budget=gb.Budget(1.0, 5, 0.5))
    first = fleet["a"].decide(MENU, 0)
    fleet["a"].decide(MENU, 0)
    assert fleet["b"].decide(MENU, 0).cost_left == 0.5
    loaded = gb.Fleet.load(fleet.save(tmp_path / "fleet.npz"))
    with pytest.raises(BudgetSpentError):
        loaded["a"].decide(MENU, 0)
    loaded["a"].observe(first.id, 0.5, cost=0.0)
    assert loaded["a"].decide(MENU, 0).cost_left == 0.0
