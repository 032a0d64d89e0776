"""Published numbers of rivals, in their papers' own settings."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import guardband as gb
from bench.anchors import FED_LIN_UCB, ROFUL, fed_lin_ucb, roful
from guardband.facts import Facts


def test_roful_in_figure_2a() -> None:
    ((mean, std, worst),) = roful("2a", 1_000).values()
    assert (mean, std) == pytest.approx(ROFUL["2a"].found[1_000], abs=6e-4)
    assert worst <= 0.0


@pytest.mark.slow
@pytest.mark.parametrize("figure", ROFUL)
def test_roful_to_the_end_of_the_figure(figure: str) -> None:
    published = ROFUL[figure].found
    for t, (mean, std, worst) in roful(figure, max(published)).items():
        assert (mean, std) == pytest.approx(published[t], abs=6e-3)
        assert worst <= 1e-12


def test_the_phases_of_delb() -> None:
    """As in the comparison of Salgia and Zhao: d = 20, M = 10, T = 10^6; C = 600 ends none."""
    facts = Facts(tuple(tuple(range(20)) for _ in range(10)), 20, horizon=10**6)
    lengths = gb.algorithms.DisLSB(pulls=10.0)._lengths(facts, 1.0)
    ends = list(accumulate(lengths(phase) for phase in (1, 2, 3)))
    assert ends == pytest.approx([2.6e4, 1.29e5, 5.4e5], rel=0.01)
    assert gb.algorithms.DisLSB()._lengths(facts, 1.0)(1) == pytest.approx(1.55e6, rel=0.01)


@pytest.mark.slow
def test_fed_lin_ucb_as_its_authors_run_it() -> None:
    """Their 20 stored runs and 20 of ours: within three standard errors of the difference."""
    regret, std, messages = fed_lin_ucb(0.0)
    theirs, their_std, their_messages = FED_LIN_UCB
    assert abs(regret - theirs) < 3.0 * ((std**2 + their_std**2) / 20) ** 0.5
    assert messages == pytest.approx(their_messages, rel=0.03)


def known_lead(seed: int) -> tuple[gb.Tabular, float]:
    """50 contexts of 20 actions in the plane, the 6th best as baseline; and its least lead."""
    rng = np.random.default_rng(seed)
    phi = np.abs(rng.normal(size=(50, 20, 2)))
    phi *= rng.uniform(0.4, 1.0, (50, 20, 1)) / np.linalg.norm(phi, axis=2, keepdims=True)
    theta = np.array([0.9, 0.4])
    theta *= 0.98 / np.linalg.norm(theta)
    reward = phi @ theta
    baseline = np.argsort(-reward, axis=1)[:, 5]
    lead = reward.max(axis=1) - np.take_along_axis(reward, baseline[:, None], axis=1)[:, 0]
    problem = gb.Tabular(phi, phi, theta, tasks=[[0, 1]], baseline=baseline[None], reward_std=0.1)
    return problem, float(lead.min())


def test_roful_and_the_gates_of_scl_ucb_where_an_independent_run_has_numbers() -> None:
    """Regret and restrained rounds in 20,000, four seeds; nobody falls below the floor."""
    found = []
    for seed in range(4):
        problem, kappa = known_lead(seed)
        told: dict[str, Any] = {"noise": 0.1, "ridge": 1.0}
        made = [
            gb.algorithms.ROFUL(0.2, **told),
            gb.algorithms.SCLUCB(0.2, **told),
            gb.algorithms.SCLUCB(0.2, kappa_l=kappa, **told),
            gb.algorithms.SCLUCB(0.2, gate="none", **told),
        ]
        results = gb.simulate(problem, made, rounds=20_000, seed=seed, alpha=0.2)
        assert not any(each.violations_expected.any() for each in results.series)
        found.append([(e.regret_expected.sum(), e.conservative.sum()) for e in results.series])
    regret, restrained = np.mean(found, axis=0).T
    assert regret == pytest.approx([17, 1767, 755, 21], rel=0.1)
    assert restrained == pytest.approx([65, 6831, 2953, 47], rel=0.15)
