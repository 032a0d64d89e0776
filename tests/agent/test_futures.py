"""Possible futures of an agent, beside the definition of what certified plays can teach."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guardband as gb
from guardband.agent.futures import FAR, Past, possible_parameters, run_ahead

ALPHA, NOISE, BOUND = 0.2, 0.05, 1.0


def agent_of(dim: int, **more: object) -> gb.Agent:
    """An agent that certifies by its confidence set alone."""
    stated = {"noise": NOISE, "context_noise": 0.0, "on_refuted": "ellipsoid", "theta_bound": BOUND}
    return gb.Agent(dim=dim, alpha=ALPHA, **{**stated, **more})


def past_of(agent: gb.Agent, menus: list[np.ndarray], baseline: int = 0) -> Past:
    """The past of an agent that was offered these menus and told nothing about rewards."""
    for menu in menus:
        agent.discard(agent.decide(menu, baseline))
    return agent._group.past(0)


def leaves(menus: list[np.ndarray], theta: np.ndarray, **more: object) -> bool:
    past = past_of(agent_of(len(theta), **more), menus)
    return run_ahead(past, theta, np.random.default_rng(0)).rounds < math.inf


def closure(menus: list[np.ndarray], theta: np.ndarray) -> list[set[int]]:
    """What is certified in the end: theta is known on the span of certified features, and no more.

    From the definition, with as many rounds as a future has; the baseline is action 0.
    """
    dim, prior = len(theta), 1.0 / BOUND**2
    level = 2.0 * math.log(math.pi**2 / (3.0 * 1e-3))
    certified: list[set[int]] = [{0} for _ in menus]
    while True:
        rows = [menu[k] for menu, those in zip(menus, certified, strict=True) for k in those]
        W = sum(np.outer(x, x) for x in rows) * (FAR / len(rows) / NOISE**2)
        V = prior * np.eye(dim) + W
        estimate = np.linalg.solve(V, W @ theta)
        growth = np.linalg.slogdet(V / prior)[1]
        beta = math.sqrt(growth + level + prior * BOUND**2)
        more = []
        for menu, those in zip(menus, certified, strict=True):
            gaps = menu - (1.0 - ALPHA) * menu[0]
            widths = np.sqrt(np.einsum("kd,dk->k", gaps, np.linalg.solve(V, gaps.T)))
            more.append(those | {*np.flatnonzero(gaps @ estimate >= beta * widths)})
        if more == certified:
            return certified
        certified = more


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[np.ndarray], np.ndarray]:
    """Menus whose actions have few features each, so that some teach nothing about others."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    dim, actions = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    theta = rng.uniform(0.2, 1.0, dim) / math.sqrt(dim)
    masks = rng.random((actions, dim)) < 0.6
    masks[~masks.any(axis=1), 0] = True
    menus = []
    for _ in range(int(rng.integers(1, 6))):
        menu = masks * rng.uniform(0.2, 1.0, (actions, dim)) / math.sqrt(dim)
        menus.append(menu[np.argsort(menu @ theta)])  # the baseline is the worst
    return menus, theta


@settings(deadline=None, max_examples=60)
@given(problems())
def test_a_future_ends_where_certified_plays_can_lead(
    problem: tuple[list[np.ndarray], np.ndarray],
) -> None:
    menus, theta = problem
    margin = 1.05  # what just is, or just is not, certified after a million rounds says nothing
    ends = {
        any(those > {0} for those in closure([menu * size for menu in menus], theta))
        for size in (1.0, 1.0 / margin, margin)
    }
    if len(ends) == 1:
        assert leaves(menus, theta) is ends.pop()


def test_both_ends_are_met() -> None:
    alone, shared = np.eye(2), np.array([[0.5, 0.5], [0.9, 0.2], [0.2, 0.9]])
    theta = np.array([0.4, 0.8])
    assert not leaves([alone], theta)
    assert not any(those > {0} for those in closure([alone], theta))
    menus = [shared, shared[[1, 2, 0]]]
    assert leaves(menus, theta)
    assert all(those > {0} for those in closure(menus, theta))


@settings(deadline=None, max_examples=25)
@given(problems(), st.integers(0, 1000))
def test_the_order_of_actions_does_not_matter(
    problem: tuple[list[np.ndarray], np.ndarray], seed: int
) -> None:
    menus, theta = problem
    order = np.concatenate([[0], 1 + np.random.default_rng(seed).permutation(len(menus[0]) - 1)])
    assert leaves(menus, theta) == leaves([menu[order] for menu in menus], theta)


@settings(deadline=None, max_examples=25)
@given(problems(), st.integers(0, 1000))
def test_nor_does_the_basis_of_the_features(
    problem: tuple[list[np.ndarray], np.ndarray], seed: int
) -> None:
    menus, theta = problem
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(theta), len(theta))))[0]
    assert leaves(menus, theta) == leaves([menu @ turn for menu in menus], turn.T @ theta)


@settings(deadline=None, max_examples=25)
@given(problems())
def test_more_to_play_safely_never_keeps_an_agent_at_the_baseline(
    problem: tuple[list[np.ndarray], np.ndarray],
) -> None:
    menus, theta = problem
    before = leaves(menus, theta)
    more = [np.vstack([menu, 0.9 * menu[0] + 0.1 * menu[-1]]) for menu in menus]
    assert leaves(more, theta) >= before


def test_rounds_are_about_those_of_a_real_run() -> None:
    theta, rng = np.array([0.1, 0.3, 0.1]), np.random.default_rng(3)
    agent, first, predicted = agent_of(3, noise=0.5), 0, []
    while not first:
        menu = np.column_stack([np.ones(8), rng.random((8, 2))]) / 2.0
        menu = menu[np.argsort(menu @ theta)]
        decision = agent.decide(menu, 0)
        agent.observe(decision, float(rng.random() < menu[decision.action] @ theta))
        if agent.rounds in (100, 200):
            future = run_ahead(agent._group.past(0), theta, rng)
            predicted.append(agent.rounds + future.rounds)
        first = agent.rounds if decision.kind == "learned" else 0
    assert first > 300
    assert all(first / 3 <= rounds <= 3 * first for rounds in predicted)


def test_nothing_of_the_agent_changes() -> None:
    agent = agent_of(2)
    past = past_of(agent, [np.eye(2)])
    before = agent._group.engine.numbers.copy()
    run_ahead(past, np.array([0.3, 0.6]), np.random.default_rng(0))
    run_ahead(past, np.array([0.3, 0.6]), np.random.default_rng(0), uniform=True)
    assert np.array_equal(before, agent._group.engine.numbers)
    assert np.array_equal(before, past.engine.numbers)


def test_possible_parameters_fit_the_data_and_the_range_of_rewards() -> None:
    agent, theta = gb.Agent(dim=3, alpha=ALPHA, noise=0.1, context_noise=0.0), [0.7, 0.1, 0.4]
    rng = np.random.default_rng(0)
    for _ in range(400):
        menu = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
        decision = agent.decide(menu, 0)
        agent.observe(decision, float(menu[decision.action] @ theta + rng.normal(0.0, 0.1)))
    drawn = np.array(list(possible_parameters(agent._group.past(0), 50, rng)))
    assert drawn[:, 0].mean() == pytest.approx(theta[0], abs=0.02)
    assert drawn[:, 0].std() < 0.02
    assert drawn[:, 1].std() > 0.1  # nothing was observed about it
    assert ((drawn @ menu.T > -1e-5) & (drawn @ menu.T < 1.0 + 1e-5)).all()


def test_a_reported_reward_is_believed() -> None:
    agent = gb.Agent(dim=2, alpha=ALPHA)
    agent.decide(np.eye(2), 0, 0.3)
    rng = np.random.default_rng(0)
    assert [t[0] for t in possible_parameters(agent._group.past(0), 5, rng)] == pytest.approx(
        [0.3] * 5, abs=1e-5
    )
