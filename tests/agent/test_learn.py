"""Learning from logs: rows count as if the agent had decided and observed them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference.guard import gram_of, radius_of

import guardband as gb
from guardband.agent.group import AgentGroup

DIM = 3
THETA = np.array([0.5, 0.3, 0.2])
ALGORITHMS: dict[str, Any] = {
    "clicks": gb.GuardUCB(0.2, reward_ceiling=0.8),
    "noise": gb.GuardUCB(0.2, noise=0.1),
    "no context": gb.GuardUCB(0.2, noise=0.1, context_noise=0.0, mode="policy", delta_alarm=None),
    "bias": gb.GuardUCB(0.2, bias_bound=0.05),
    "disc-ucb": gb.DiscUCB(0.2),
    "dis-lin-ucb": gb.DisLinUCB(),
}


def logs(n: int, seed: int = 0, dim: int = DIM) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.0, 0.5, (n, dim))
    return rows, (rng.random(n) < rows @ THETA[:dim]).astype(float)


def sums(group: AgentGroup) -> list[np.ndarray]:
    """Everything that agents know, without scratch and without the notes of the paper's gate."""
    numbers, d = group.engine.group, group.dim
    estimate = numbers.estimate._replace(scalars=numbers.estimate.scalars[:, :2])
    kept = [*numbers.own, *estimate, numbers.work[:, 4 + d :]]
    return [array.copy() for array in kept]


def assert_same(one: AgentGroup, other: AgentGroup) -> None:
    for a, b in zip(sums(one), sums(other), strict=True):
        assert_array_equal(a, b)


# ---- the same as having decided ------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_learning_equals_deciding_and_observing_bit_for_bit(name: str) -> None:
    rows, rewards = logs(1500)  # past the rebuild after 1,024
    told, did = (gb.Agent(DIM, algorithm=ALGORITHMS[name]) for _ in range(2))
    told.learn(rows, rewards)
    for x, y in zip(rows, rewards, strict=True):
        did.observe(did.decide(x[None], baseline=0), y)
        did._group.due_round = None  # rows are learned between two poolings
    assert_same(told._group, did._group)
    assert (told.rounds, did.rounds) == (0, 1500)
    told._group.due_round = None
    menu = np.random.default_rng(1).uniform(0.0, 0.5, (6, DIM))
    told._group.next_coin[0] = did._group.next_coin[0]
    one, other = told.decide(menu, 2, 0.1), did.decide(menu, 2, 0.1)
    assert repr(one[1:]) == repr(other[1:])
    assert one.certified.tolist() == other.certified.tolist()
    assert repr(one.table) == repr(other.table)


@given(
    st.integers(1, 4),
    st.integers(1, 40),
    st.sampled_from([None, 0.05, 0.5]),
    st.sampled_from([None, 0.0, 0.2]),
    st.floats(0.3, 3.0),
    st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_whatever_the_settings(
    dim: int, n: int, noise: float | None, context: float | None, bound: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows, rewards = rng.uniform(-0.5, 0.5, (n, dim)), rng.random(n)
    given = {"noise": noise, "context_noise": context, "theta_bound": bound}
    given |= {"on_alarm": "warn"}  # rewards need not be as stated
    told, did = (gb.Agent(dim, alpha=0.1, **given) for _ in range(2))
    cut = int(rng.integers(n + 1))
    for part in (slice(cut), slice(cut, n)):
        if len(rows[part]):
            told.learn(rows[part], rewards[part])
    for x, y in zip(rows, rewards, strict=True):
        did.observe(did.decide(x[None], baseline=0), y)
    assert_same(told._group, did._group)


def fleet_of(**settings: Any) -> gb.Fleet:
    return gb.Fleet({"a": [0, 1, 2], "b": [0, 2], "c": [1, 2]}, DIM, alpha=0.2, **settings)


@pytest.mark.parametrize("shared", [True, False])
def test_agents_of_a_fleet_learn_as_if_no_one_had_pooled_meanwhile(shared: bool) -> None:
    algorithm = gb.GuardUCB(0.2, shared_context=shared)
    told, did = (fleet_of(algorithm=algorithm) for _ in range(2))
    for m, (name, size) in enumerate({"a": 3, "b": 2, "c": 2}.items()):
        rows, rewards = logs(50, seed=m, dim=size)
        told[name].learn(rows, rewards)
        for x, y in zip(rows, rewards, strict=True):
            did[name].observe(did[name].decide(x[None], baseline=0), y)
            did._group.due_round = None
    assert_same(told._group, did._group)
    assert told._group.due_round == 0
    decided = told["b"].decide([[0.2, 0.1], [0.1, 0.4]], baseline=0)
    assert told.poolings == 1
    did._group.due_round = 0
    did._group.settle(0)
    assert_same(told._group, did._group)
    told["b"].observe(decided, 1.0)


def test_rows_count_once_and_reach_the_others_at_the_next_pooling() -> None:
    fleet = fleet_of()
    fleet["a"].decide(np.eye(3)[:2] / 2, baseline=0)  # in the middle of a round
    rows, rewards = logs(400)
    fleet["a"].learn(rows, rewards)
    assert not fleet["b"].theta.any()
    fleet["b"].decide([[0.2, 0.1]], baseline=0)  # the round in which "a" learned is not over
    assert fleet.poolings == 0
    fleet["b"].decide([[0.2, 0.1]], baseline=0)
    assert fleet.poolings == 1
    assert_array_equal(fleet["b"].theta, fleet["a"].theta)
    assert fleet._group.pooled.scalars[0] == 400


def test_rows_of_an_agent_that_has_yet_to_act_do_not_pool_within_the_round() -> None:
    fleet = fleet_of()
    menu = np.eye(3)[:2] / 2
    for name in "ab":
        fleet[name].observe(fleet[name].decide(menu, baseline=0), 0.0)
    fleet["a"].observe(fleet["a"].decide(menu, baseline=0), 1.0)  # "b" has yet to act
    before = fleet.poolings
    fleet["b"].learn(*logs(400))
    fleet["b"].decide(menu, baseline=0)
    assert fleet.poolings == before
    fleet["a"].decide(menu, baseline=0)
    assert fleet.poolings == before + 1


def test_a_block_is_what_its_definition_says() -> None:
    rows, rewards = logs(300)
    S, delta, ceiling = 0.9, 0.01, 0.8
    agent = gb.Agent(DIM, theta_bound=S, delta=delta, reward_ceiling=ceiling)
    absorbed = agent._group.learn_rows(0, rows, rewards)
    ridge, weights, guesses = 1.0 / S**2, [], []
    fixed = {"ridge": ridge, "S": S, "delta": delta, "radius": "empirical"}
    for i, x in enumerate(rows):
        past, y, w = rows[:i], rewards[:i], np.array(weights)
        V = gram_of(past, w, ridge)
        mean = x @ np.linalg.solve(V, past.T @ (w * y))
        beta, _ = radius_of(past, y, w, np.array(guesses), **fixed)
        width = beta * np.sqrt(x @ np.linalg.solve(V, x))
        low, high = max(0.0, mean - width), min(ceiling, S * np.linalg.norm(x), mean + width)
        high = max(high, 1e-3)
        middle = min(max(0.5, low), high)
        weights.append(max(1.0 / (middle * (1.0 - middle)), 1.0 / (0.25 + 0.25)))
        guesses.append(min(max(mean, low), high))
    assert_allclose(absorbed.weights, weights, rtol=1e-9)
    assert_allclose(absorbed.guesses, guesses, atol=1e-10)
    beta, _ = radius_of(rows, rewards, np.array(weights), np.array(guesses), **fixed)
    assert absorbed.radius == pytest.approx(beta)


# ---- what is returned ----------------------------------------------------------------------------


def test_widths_are_those_of_decisions() -> None:
    agent, menu = gb.Agent(DIM, alpha=0.2, feature_bound=1.0), np.eye(DIM)
    before = [agent.decide(menu[[k]], 0) for k in range(DIM)]
    learned = agent.learn(*logs(500), menus=[menu, (menu, 1)])
    after = [agent.decide(menu[[k]], 0) for k in range(DIM)]
    half = [[(d.upper - d.lower) / 2 for d in each] for each in (before, after)]
    assert learned.rows == 500
    for one in (learned, *learned.menus):
        assert_allclose(one.before, half[0])
        assert_allclose(one.after, half[1])
    plain, led = learned.menus
    assert (plain.baseline, plain.lead_before, plain.lead_after) == (None, None, None)
    assert led.baseline == 1
    assert led.lead_after[1] == pytest.approx(0.2 * led.after[1])
    assert (led.lead_after < led.lead_before).all()
    assert learned.not_learned == []
    assert "say little" not in str(learned)


def test_logs_that_cannot_help_are_said_to() -> None:
    """One action was always played: nothing is learned about the two others."""
    menu = np.eye(3)
    agent = gb.Agent(3, alpha=0.1)
    rows = np.tile(menu[0], (5000, 1))
    rewards = np.tile([0.0, 1.0], 2500)
    learned = agent.learn(rows, rewards, menus=[(menu, 0)], propensities=[1] * 5000)
    assert learned.not_learned == [1, 2]
    assert learned.menus[0].not_learned == [1, 2]
    assert not learned.helps
    assert learned.always == 1.0
    assert "say little about actions 1, 2 of menu 0:" in str(learned)
    assert "Every row was the only action" in str(learned)
    alone = gb.Agent(3).learn(rows, rewards)
    assert "say little about features 1, 2:" in str(alone)
    both = np.tile(menu[:2], (2500, 1))
    better = gb.Agent(3).learn(both, np.tile([0.0, 1.0], 2500), menus=[(menu, 0)])
    assert better.helps
    assert better.menus[0].not_learned == [2]


def test_what_was_learned_goes_by_the_names_of_features() -> None:
    features = gb.Features(categories={"kind": ["film", "tv"], "hour": [1]}, intercept=False)
    fleet = gb.Fleet({"all": None, "some": ["hour", "kind=tv"]}, features=features, alpha=0.1)
    rows, rewards = [{"kind": "tv", "hour": 2}] * 5000, np.tile([0.0, 1.0], 2500)
    for task, others in (("all", "s kind=film, hour=1"), ("some", " hour=1")):
        learned = fleet[task].learn(rows, rewards)
        assert f"say little about feature{others}:" in str(learned)
        assert "  feature kind=tv: " in str(learned)
        assert learned.names == tuple(features.names[i] for i in learned.features)
        assert all(features.names[i] in others for i in learned.not_learned)


# ---- bad input -----------------------------------------------------------------------------------

GOOD_ROWS, GOOD_REWARDS = logs(4)
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "width": ({"features": np.ones((4, 2))}, r"shape \(n, 3\)"),
    "one row": ({"features": [0.1, 0.2, 0.3]}, "one row per reward; for one reward"),
    "no rows": ({"features": np.zeros((0, 3)), "rewards": []}, "n > 0"),
    "text": ({"features": [["a", "b", "c"]] * 4}, "table of numbers"),
    "NaN": ({"features": np.where(np.arange(12).reshape(4, 3) == 7, np.nan, 0.1)}, "row 2.*finite"),
    "too long": ({"features": np.ones((4, 3))}, "row 0 have length 1.73.*feature_bound"),
    "reward": ({"rewards": [0, 1, 2, 0]}, r"row 2: reward 2 is not in \[0, 1\]"),
    "reward NaN": ({"rewards": [0, np.nan, 0, 0]}, "row 1: reward must be finite"),
    "rewards": ({"rewards": [0, 1]}, "4 rows of features and 2 rewards"),
    "reward kind": ({"rewards": [0.0, "1", 0.0, 1.0]}, "that of row .* is '"),
    "reward masked": ({"rewards": np.ma.masked_array([0, 1, 0, 1], [0, 1, 0, 0])}, "masked"),
    "order": (
        {"features": pd.DataFrame(GOOD_ROWS), "rewards": pd.Series(GOOD_REWARDS, [3, 2, 1, 0])},
        "different indices",
    ),
    "text of ids": ({"ids": "abcd"}, "a sequence, one per row, not 'abcd'"),
    "set of ids": ({"ids": {"a", "b", "c", "d"}}, "ids must be a list or a tuple, not {"),
    "number of ids": ({"ids": 5}, "a sequence, one per row, not 5"),
    "menus": ({"menus": np.eye(3)}, "a list of tables"),
    "reward shape": ({"rewards": np.zeros((4, 1))}, "one number per row"),
    "propensity 0": ({"propensities": [0.5, 0.0, 1, 1]}, "propensity of row 1 is 0"),
    "propensity 2": ({"propensities": [0.5, 0.1, 1, 2]}, "propensity of row 3 is 2"),
    "propensities": ({"propensities": [0.5]}, "1 propensities"),
    "id twice": ({"ids": ["a", "b", "c", "b"]}, "'b' is given twice: of rows 1 and 3"),
    "id again": ({"ids": ["x", "known", "y", "z"]}, "'known', of row 1, was learned before"),
    "ids": ({"ids": ["a"]}, "1 ids"),
    "id kind": ({"ids": [1, 2, None, 3]}, "row 2 is None"),
    "menu": ({"menus": [np.ones((2, 2))]}, r"menus\[0\]: .*shape \(K, 3\)"),
    "menu's baseline": ({"menus": [(np.eye(3), 3)]}, "baseline 3 is not one"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_named_and_changes_nothing(name: str) -> None:
    wrong, message = WRONG[name]
    agent = gb.Agent(DIM)
    agent.learn(GOOD_ROWS[:1], GOOD_REWARDS[:1], ids=["known"])
    before, known = agent._group.engine.numbers.copy(), agent._group.row_ids.digests.copy()
    given: dict[str, Any] = {"features": GOOD_ROWS, "rewards": GOOD_REWARDS} | wrong
    with pytest.raises(gb.InputError, match=message):
        agent.learn(**given)
    assert_array_equal(agent._group.engine.numbers, before)
    assert_array_equal(agent._group.row_ids.digests, known)
    agent.learn(GOOD_ROWS, GOOD_REWARDS, ids=["a", "b", "c", "d"])


def test_ids_are_remembered_in_files_and_by_the_whole_fleet(tmp_path: Path) -> None:
    rows, rewards = logs(3, dim=2)
    fleet = fleet_of()
    fleet["b"].learn(rows, rewards, ids=[1, 2, 3])
    with pytest.raises(gb.InvalidValueError, match="learned before"):
        fleet["c"].learn(rows, rewards, ids=["4", "3", "5"])
    again = gb.Fleet.load(fleet.save(tmp_path / "fleet.npz"))
    with pytest.raises(gb.InvalidValueError, match="id 2, of row 0, was learned before"):
        again["b"].learn(rows[:1], rewards[:1], ids=[2])
    again["b"].learn(rows, rewards, ids=[4, 5, 6])
    fleet["b"].learn(rows, rewards, ids=["4", "5", "6"])
    assert_same(again._group, fleet._group)
    assert again._group.row_ids.digests.size == 6
