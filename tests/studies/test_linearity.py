"""Whether a linear model is good enough: what is linear passes, what is not is seen."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.studies.linear import fit_linear, score
from guardband.studies.linearity import judge_linearity
from guardband.studies.logs import MenuLists, StudyLogs

ALPHA = 0.1


def logs_of(rewards: Any, features: gb.Features, columns: dict[str, Any]) -> StudyLogs:
    """Logs of two actions that nothing distinguishes."""
    count = len(rewards)
    return StudyLogs(
        encoder=features,
        rewards=np.asarray(rewards, float),
        played=features.table(columns),
        actions=np.arange(count) % 2,
        labels=["a", "b"],
        baselines=np.zeros(count, int),
        menus=MenuLists(np.arange(2)),
        numbers=np.arange(count),
        total=2 * count,
        context={name: np.asarray(values) for name, values in columns.items()},
    )


def columns(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    return {
        "u": rng.random(rows),
        "v": rng.random(rows),
        "kind": rng.choice(["x", "y"], rows),
    }


FEATURES = gb.Features(numbers={"u": (0, 1), "v": (0, 1)}, categories={"kind": ["x", "y"]})


def test_the_fit_is_least_squares_and_its_covariance_is_whites() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.random(60)
    fit = fit_linear(x, y)
    theta = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(fit.theta, theta, rtol=1e-9)
    bread = np.linalg.inv(x.T @ x)
    meat = sum(np.outer(r, r) * (v - r @ theta) ** 2 for r, v in zip(x, y, strict=True))
    np.testing.assert_allclose(fit.covariance, 60 / 57 * bread @ meat @ bread, rtol=1e-9)
    ridge = fit_linear(x, y, 2.0).theta
    np.testing.assert_allclose(ridge, np.linalg.solve(x.T @ x + 2 * np.eye(3), x.T @ y), rtol=1e-9)


def test_of_several_fits_the_shortest_is_taken() -> None:
    x = np.repeat([[1.0, 1.0], [2.0, 2.0]], 5, axis=0)
    y = np.repeat([0.2, 0.4], 5)
    assert fit_linear(x, y).theta.tolist() == pytest.approx([0.1, 0.1])
    assert fit_linear(x, y).rank == 1


def test_the_test_refuses_what_is_linear_at_its_level() -> None:
    """z is about normal, whatever the noise of each row."""
    rng, z = np.random.default_rng(1), []
    for _ in range(400):
        x = np.column_stack([np.ones(300), rng.random((300, 2))])
        mean = x @ [0.1, 0.3, 0.4]
        z.append(score(x, (rng.random(300) < mean).astype(float), x[:, 1] * x[:, 2])[0])
    assert abs(np.mean(z)) < 3 / 20
    assert np.std(z) == pytest.approx(1.0, abs=3 / np.sqrt(800))


def test_the_test_keeps_its_level_where_features_are_many() -> None:
    """A fit of 50 features to 100 rows takes half of the noise; the test must not be fooled."""
    rng, refused = np.random.default_rng(6), 0
    for _ in range(1_000):
        x = rng.normal(size=(100, 50))
        refused += score(x, x[:, 0] + rng.normal(size=100), x[:, 1] * x[:, 2])[1] < 0.01
    assert refused <= 10 + 3 * np.sqrt(10)


def test_a_cross_is_found_among_many_columns_and_what_is_left_out_is_said() -> None:
    rng = np.random.default_rng(7)
    data = {f"c{i}": rng.random(6_000) for i in range(14)}
    features = gb.Features(numbers=dict.fromkeys(data, (0, 1)))
    mean = 0.1 + 0.8 * (data["c12"] - 0.5) * (data["c13"] - 0.5) + 0.2 * data["c0"]
    found = judge_linearity(logs_of(mean + rng.normal(0, 0.02, 6_000), features, data), ALPHA, 0)
    assert found.crosses[0][0] == ("c12", "c13")
    assert "Of 91 pairs of columns, the 60 whose" in found.notes[-1]


def test_rewards_that_do_not_vary_need_no_model() -> None:
    data = columns(np.random.default_rng(2), 400)
    found = judge_linearity(logs_of(np.full(400, 0.5), FEATURES, data), ALPHA, 0)
    assert found.good_enough is None
    assert "nothing to explain" in found.because
    assert found.crosses == []


def test_linear_rewards_are_good_enough_where_there_are_rows_enough() -> None:
    rng = np.random.default_rng(2)
    data = columns(rng, 4_000)
    mean = 0.2 + 0.3 * data["u"] + 0.1 * data["v"]
    few = logs_of(
        mean[:60] + rng.normal(0, 0.05, 60), FEATURES, {k: v[:60] for k, v in data.items()}
    )
    assert judge_linearity(few, ALPHA, 0).good_enough is None
    many = judge_linearity(logs_of(mean + rng.normal(0, 0.05, 4_000), FEATURES, data), ALPHA, 0)
    assert many.good_enough is True
    assert many.p > many.level
    assert many.crosses == []
    assert not any(each.surprising for each in many.residuals)


def test_a_product_is_seen_and_named() -> None:
    rng = np.random.default_rng(3)
    data = columns(rng, 4_000)
    slope = np.where(data["kind"] == "x", 0.5, -0.5)
    mean = 0.5 + slope * (data["u"] - 0.5) + 0.1 * data["v"]
    found = judge_linearity(logs_of(mean + rng.normal(0, 0.1, 4_000), FEATURES, data), ALPHA, 0)
    assert found.good_enough is False
    assert found.p < found.level
    # The product's part, 0.5 (u - 1/2) by kind, has the root mean square 0.5 / sqrt(12).
    assert found.misfit == pytest.approx(0.5 / np.sqrt(12), rel=0.1)
    assert [names for names, _ in found.crosses] == [("u", "kind")]
    assert found.explained["with boosted trees"] > found.explained["linear"] + 0.3


def test_a_bend_is_seen_by_its_feature_and_drift_by_time() -> None:
    rng = np.random.default_rng(4)
    data = columns(rng, 4_000)
    mean = 0.2 + 0.5 * (data["u"] > 0.9) + 0.2 * (np.arange(4_000) > 3_800)
    found = judge_linearity(logs_of(mean + rng.normal(0, 0.1, 4_000), FEATURES, data), ALPHA, 0)
    surprising = {(each.kind, each.name) for each in found.residuals if each.surprising}
    assert ("feature", "u, part 10") in surprising
    assert ("time", "span 20") in surprising
    assert not any(kind == "action" for kind, _ in surprising)


def test_without_scikit_learn_a_sentence_stands_for_the_trees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    rng = np.random.default_rng(5)
    found = judge_linearity(logs_of(rng.random(200), FEATURES, columns(rng, 200)), ALPHA, 0)
    assert "with boosted trees" not in found.explained
    assert any("Boosted trees were left out" in note for note in found.notes)


@pytest.mark.slow
def test_few_linear_worlds_are_refused() -> None:
    """At level 1 %, of 100 worlds 5 or more are refused with probability 0.4 % at most."""
    refused = 0
    for seed in range(100):
        rng = np.random.default_rng([6, seed])
        data = columns(rng, 1_000)
        mean = 0.1 + 0.2 * data["u"] + 0.1 * (data["kind"] == "x")
        clicks = rng.random(1_000) < mean
        found = judge_linearity(logs_of(clicks, FEATURES, data), ALPHA, 0)
        refused += found.p < found.level
    assert refused <= 4
