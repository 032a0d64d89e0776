"""Reports of problems with values and costs, and researchers' own problems that have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import guardband as gb
from guardband.errors import InvalidValueError
from guardband.report import table, verdict, write_report

PHI = 0.9 * np.eye(3)[None]
THETA = np.array([0.8, 0.79, 0.5]) / 0.9
ROUNDS = 3_000
VALUES, COSTS = np.array([-1.0, -0.4, -0.1]), np.array([1.0, 0.4, 0.1])


def tabular(**more: Any) -> Any:
    return gb.Tabular(PHI, PHI, THETA, baseline=1, reward_std=0.01, **more)


def formal(**more: Any) -> Any:
    return gb.problems.Formal(
        lambda agent, action, context: PHI[0, action],
        gb.Discrete([0.0]),
        THETA,
        actions=[0, 1, 2],
        baseline=1,
        reward_std=0.01,
        **more,
    )


def run(problem: Any, **more: Any) -> Any:
    settings: dict[str, Any] = {"alpha": 0.05, "noise": 0.05, "theta_bound": 1.5}
    guard = gb.GuardUCB(**settings, context_noise=0.0, mode="policy")
    given: dict[str, Any] = {"rounds": ROUNDS, "trials": 2, "progress": False, "workers": 1}
    algorithms = [guard, gb.DisLinUCB(noise=0.05, theta_bound=1.5), "baseline"]
    return gb.simulate(problem, algorithms, **given | more)


def test_the_formal_model_counts_what_tables_count() -> None:
    """The same world twice: once as tables, once as functions."""
    one = run(tabular(values=VALUES, costs=COSTS))
    other = run(formal(values=VALUES, costs=COSTS))
    for mine, its in zip(one.series, other.series, strict=True):
        for name in ("value", "baseline_value", "value_regret", "cost"):
            assert_allclose(mine.totals[name], its.totals[name], atol=1e-9, err_msg=name)
    guard, _, baseline = other.series
    assert_allclose(baseline.totals["value"], -1.0 * ROUNDS)
    assert guard.totals["value"].mean() > -0.8 * ROUNDS
    assert not guard.totals["violations_policy"].any()
    played = other.summary()
    assert_allclose(
        played["value_mean"] + played["value_regret_per_agent"] / ROUNDS, -0.4, atol=1e-9
    )


def test_the_formal_model_keeps_a_budget() -> None:
    results = run(formal(values=-VALUES, costs=[0.0, 0.5, 1.0]), budget=50.0)
    guard = results.series[0]
    assert guard.totals["cost"].max() <= 50.0 + 1e-9
    with pytest.raises(InvalidValueError, match="below what the baseline may cost"):
        run(formal(costs=[0.5, 0.0, 0.0]), budget=50.0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"values": [1.0, 2.0]}, "values has 2 numbers, but there are 3 actions"),
        ({"values": [1.0, 2.0, np.nan]}, "finite"),
        ({"costs": [1.0, 2.0, -1.0]}, "no cost may be negative"),
        ({"costs": [[1.0, 2.0, 3.0]]}, "shape"),
    ],
)
def test_what_does_not_fit_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        formal(**more)


def test_reports_know_values_and_costs(tmp_path: Path) -> None:
    results = run(tabular(values=VALUES, costs=COSTS))
    page = write_report(results, tmp_path).read_text()
    for word in ("<th>value</th>", "<th>value regret</th>", "<th>cost</th>"):
        assert word in page
    assert all((tmp_path / f"{name}.png").exists() for name in ("value", "value_regret", "cost"))
    told = verdict(results)[-1]
    assert "had the most value of those that kept the floor" in told
    assert "against the baseline's \N{MINUS SIGN}1" in told
    names = [str(column.header) for column in table(results).columns]
    assert names == ["algorithm", "below", "held back", "reward", "value", "value regret", "cost"]
    results = run(tabular())
    page = write_report(results, tmp_path).read_text()
    assert "value regret" not in page
    assert not (tmp_path / "value.png").exists()  # of the report before
    with pytest.raises(InvalidValueError, match="has no values"):
        results.plot("value")
    assert "least regret" in " ".join(verdict(results))
