"""Certificates that leave one task out, against the definition, and against tasks that lie."""

from __future__ import annotations

import numpy as np
import pytest
from guard.liar_attack import failures
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import leave_out as reference

import guardband as gb
from guardband.agent.fleet import fleet_of
from guardband.agent.group import AgentGroup
from guardband.kernels.types import Floats


def make(rules: reference.Rules, dim: int, *, shared: bool) -> gb.Fleet:
    algorithm = gb.GuardUCB(
        rules.alpha,
        noise=rules.sigma,
        delta=rules.delta,
        context_noise=rules.context_noise,
        shared_context=shared,
        tolerate=1,
        delta_alarm=None,  # monitors act on lies: see test_health_tolerant
    )
    group = AgentGroup(
        {f"task{m}": range(dim) for m in range(rules.M)},
        dim=dim,
        algorithm=algorithm,
        feature_bound=1.0,
        horizon=None,
        reward_floor=None,
        seed=0,
    )
    return fleet_of(group)


def menus(rng: np.random.Generator, K: int, dim: int, hidden: int) -> Floats:
    """Return features in possible contexts, (n, K, d)."""
    menu = np.abs(rng.standard_normal((K, dim)))
    menu *= (rng.uniform(0.3, 1.0, K) / np.linalg.norm(menu, axis=1))[:, None]
    return menu * rng.uniform(0.5, 1.0, (hidden, 1, dim))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    M=st.integers(2, 4),
    dim=st.integers(1, 3),
    K=st.integers(2, 5),
    hidden=st.sampled_from([0, 2]),
    stated=st.booleans(),
    lies=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_every_round_equals_the_definition(
    seed: int, M: int, dim: int, K: int, hidden: int, stated: bool, lies: float
) -> None:
    """Action by action, weight by weight; the last task's rewards are those of another theta."""
    rng = np.random.default_rng(seed)
    theta, false = (np.abs(v) / np.linalg.norm(v) for v in rng.standard_normal((2, dim)))
    rules = reference.Rules(
        M=M,
        sigma=0.05 if stated else None,
        delta=0.1,
        f=M if hidden else 1,
        context_noise=None if hidden else 0.0,
    )
    fleet = make(rules, dim, shared=bool(hidden))
    group, log, t_last = fleet._group, [], 0
    for t in range(1, 31):
        first = group.poolings
        for m, agent in enumerate(fleet.values()):
            points = menus(rng, K, dim, max(1, hidden))
            F = points.mean(axis=0) if hidden else points[0]
            b, toss = int(np.argsort(-(F @ theta))[K // 2]), float(rng.random())
            group.next_coin[m] = toss
            support = {"support": points, "weights": np.full(hidden, 1 / hidden)} if hidden else {}
            decision = agent.decide(F, b, **support)
            if m == 0 and group.poolings > first:
                t_last = t - 1
            epoch, some = group.poolings + 1, points if hidden else None
            found = reference.choose(log, m, t, t_last, epoch, rules, F, b, toss, some)
            awaited = group.pending[m][decision.id]
            assert (decision.action, awaited.conservative) == (found.action, found.conservative)
            assert awaited.weight == pytest.approx(found.w, rel=1e-6)
            assert awaited.guess == pytest.approx(found.guess, rel=1e-6, abs=1e-9)
            used = false if m == M - 1 and rng.random() < lies else theta
            y = float(F[decision.action] @ used)
            y += rng.normal(0, 0.05) if stated else (rng.random() - 0.5) * min(y, 1 - y)
            agent.observe(decision, y)
            x = np.asarray(awaited.x)
            log.append(reference.Row(m, t, x, y, awaited.weight, awaited.guess))


ATTACKS = {
    # What the liar says rewards are like, when it says so, and how much of it.
    "rare from the beginning": (0.01, 1, 1e6),
    "sure from the beginning": (0.99, 1, 1e6),
    "rare from some day on": (0.01, 60, 1e6),
    "a little at a time": (0.05, 1, 30.0),
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("dim", [1, 2])
def test_honest_data_hold_theta_whatever_one_task_sends(name: str, dim: int) -> None:
    """At delta = 0.2, adversaries that know theta and everything that was pooled."""
    rate, since, number = ATTACKS[name]
    left = failures(rate=rate, since=since, number=number, dim=dim, runs=400)
    assert left <= 0.2


def test_weights_from_the_poisoned_pool_fail() -> None:
    """The control: l and u from all data, the lies among them, as without tolerance."""
    rate, since, number = ATTACKS["rare from the beginning"]
    left = failures(rate=rate, since=since, number=number, dim=1, runs=400, poisoned=True)
    assert left > 0.3
