"""What the coordinator concludes from totals, against plain least squares."""

from __future__ import annotations

import math

import numpy as np
import pytest

from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums
from guardband.live.server.estimates import estimate_of, heterogeneity

SPACE = SpaceSettings(name="home", features=("a", "b", "c"), agents=3, noise=0.2)


def total_from(theta, n, seed, noise=0.1) -> Sums:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 0.5, (n, 3))
    y = x @ np.asarray(theta) + rng.normal(0, noise, n)
    z = np.column_stack([x, y]) / SPACE.noise  # weights 1 / noise^2
    return Sums(n, (z.T @ z)[np.triu_indices(4)], 0.0, n / SPACE.noise**2)


def test_the_estimate_is_ridge_regression() -> None:
    total = total_from([0.5, 0.3, 0.2], 400, 0)
    found = estimate_of(SPACE, total)
    matrix = np.zeros((4, 4))
    matrix[np.triu_indices(4)] = total.gram
    V = np.eye(3) + np.triu(matrix[:3, :3]) + np.triu(matrix[:3, :3], 1).T
    assert found.theta == pytest.approx(np.linalg.solve(V, matrix[:3, 3]))
    assert found.inverse == pytest.approx(np.linalg.inv(V))
    assert found.logdet == pytest.approx(math.log(np.linalg.det(V)))
    # beta^2 = log det(V / ridge) + 2 log(1 / delta) + ridge S^2, ridge = S = 1
    assert found.beta**2 == pytest.approx(found.logdet + 2 * math.log(1 / SPACE.delta) + 1)
    assert found.halfwidth == pytest.approx(found.beta * np.sqrt(np.diag(np.linalg.inv(V))))


def test_the_papers_radius_where_it_is_the_papers_algorithm() -> None:
    space = SPACE.changed(algorithm="disc-ucb")
    found = estimate_of(space, total_from([0.5, 0.3, 0.2], 400, 0))
    sigma = math.sqrt(1 + 0.2**2)
    expected = sigma * math.sqrt(found.logdet + 2 * math.log(2 / space.delta)) + 1.0
    assert found.beta == pytest.approx(expected)


def test_tasks_with_one_theta_do_not_alarm() -> None:
    for seed in range(20):
        by_task = {
            name: total_from([0.5, 0.3, 0.2], n, 100 * seed + k)
            for k, (name, n) in enumerate([("a", 500), ("b", 3000), ("c", 60)])
        }
        ratios = heterogeneity(SPACE, by_task)
        assert set(ratios) == {"a", "b", "c"}
        assert max(ratios.values()) < 1.0


def test_the_task_that_differs_stands_out() -> None:
    by_task = {
        "a": total_from([0.5, 0.3, 0.2], 3000, 1),
        "b": total_from([0.5, 0.3, 0.2], 3000, 2),
        "liar": total_from([-0.4, 0.3, 0.9], 3000, 3),
    }
    ratios = heterogeneity(SPACE, by_task)
    assert ratios["liar"] > 1.0
    assert ratios["liar"] == max(ratios.values())


def test_too_little_data_is_not_judged() -> None:
    big, small = total_from([0.5, 0.3, 0.2], 500, 1), total_from([-0.5, 0.3, 0.2], 29, 2)
    assert heterogeneity(SPACE, {"big": big, "small": small}) == {}
    assert heterogeneity(SPACE, {"alone": big}) == {}
