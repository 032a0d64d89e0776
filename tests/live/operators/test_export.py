"""`guardband export`: one row per decision, with propensities, and what they are good for."""

from __future__ import annotations

import csv
import json
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import Hands, agent, live_on, menus
from typer.testing import CliRunner

from guardband.cli.app import app
from guardband.live.operators.export import COLUMNS, VALID_USE, export_parquet, journals_under

RUN = CliRunner()
parquet = pytest.importorskip("pyarrow.parquet")


def exported(*words: object) -> str:
    result = RUN.invoke(app, ["export", *(str(word) for word in words)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def refusal(*words: object) -> str:
    result = RUN.invoke(app, ["export", *(str(word) for word in words)])
    assert result.exception is not None
    return str(result.exception)


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, list[Any], list[Any]]:
    """Two agents in one folder, one of them with every kind of ending."""
    hands = Hands()
    one = agent(tmp_path, mode="policy", clock=hands.clock())
    other = agent(tmp_path, task="tv", uses=[0, 2])
    mine, its = live_on(one, 40), live_on(other, 10, seed=3)
    menu = menus(1)[0]
    late, discarded, pending = (one.decide(menu, 0, 0.4) for _ in range(3))
    one.discard(discarded.id)
    hands.pass_(599.0)
    mine += [late, discarded, pending]
    hands.pass_(2.0)
    one.observe(late.id, 0.25)
    one.sync()
    hands.pass_(1.0)
    mine.append(one.decide(menu, 0, 0.4))
    one.close()
    other.close()
    return tmp_path / "gb", mine, its


def test_every_decision_has_a_row(made: Any, tmp_path: Path) -> None:
    folder, mine, its = made
    out = tmp_path / "all.parquet"
    said = exported("--state", folder, "--out", out)
    table = parquet.read_table(out)
    assert table.num_rows == len(mine) + len(its) == 54
    rows = {row["id"]: row for row in table.to_pylist()}
    assert set(rows) == {decision.id for decision in [*mine, *its]}
    random = 0
    for decision in [*mine, *its]:
        row = rows[decision.id]
        assert row["action"] == decision.action
        assert row["propensity"] == decision.propensity
        assert (row["promise"], row["certificate"]) == (decision.promise, decision.certificate)
        assert row["random"] == (decision.propensity < 1.0)
        assert row["lower"] == decision.lower
        assert row["margin"] == pytest.approx(decision.margin, nan_ok=True)
        assert row["actions"] == 5
        np.testing.assert_array_equal(row["features"][row["action"]], row["x"])
        assert row["alpha"] == 0.3
        random += row["random"]
    assert random > 0
    assert f"{random} were drawn by a coin" in said
    for menu, decision in zip(menus(40), mine, strict=False):
        np.testing.assert_array_equal(rows[decision.id]["features"], menu)
    ends = [rows[decision.id]["outcome"] for decision in mine[-4:]]
    assert ends == ["defaulted", "discarded", "defaulted", "pending"]
    assert rows[mine[-4].id]["reward"] == 0.0
    assert rows[mine[-4].id]["late_reward"] == 0.25
    assert rows[mine[-3].id]["reward"] is None
    assert rows[mine[-1].id]["ended_at"] is None
    counted = [row["counted_as"] for row in rows.values() if row["counted_as"] is not None]
    assert sorted(counted) == sorted([*range(1, 43), *range(1, 11)])


def test_values_costs_and_overrides_are_exported(tmp_path: Path) -> None:
    budget = {"total": 20.0, "horizon": 10, "max_cost": 2.0}
    one, menu, value = agent(tmp_path, budget=budget), menus(1)[0], [5.0, 4.0, 3.0, 2.0, 1.0]
    cost = [0.0, 0.1, 0.2, 0.3, 0.4]
    first, second = one.decide(menu, 0, value=value, cost=cost), one.decide(menu, 0)
    one.override(first, action=2)
    one.observe(first, 0.25)
    one.observe(second, 0.5, cost=1.5)
    one.close()
    export_parquet(journals_under([tmp_path / "gb"]), tmp_path / "all.parquet")
    mine, other = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert (mine["override"], mine["value"], mine["baseline_value"]) == (2, 3.0, 5.0)
    assert (mine["values"], mine["costs"], mine["cost"], mine["paid"]) == (value, cost, 0.2, None)
    assert mine["x"] == menu[2].tolist()
    nothing = ("override", "value", "baseline_value", "values", "costs")
    assert {other[name] for name in nothing} == {None}
    assert (other["cost"], other["paid"]) == (2.0, 1.5)


def test_the_file_explains_itself(made: Any, tmp_path: Path) -> None:
    out = tmp_path / "all.parquet"
    said = exported("--state", made[0], "--out", out)
    schema = parquet.read_schema(out)
    assert schema.names == [column.name for column in COLUMNS]
    for column in COLUMNS:
        assert schema.field(column.name).metadata[b"description"].decode() == column.about
    assert schema.metadata[b"valid_use"].decode() == VALID_USE
    assert json.loads(schema.metadata[b"columns"])["propensity"]
    for words in ("no overlap", "deterministic", "missing", "biased"):
        assert words in VALID_USE
        assert words in said
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_inverse_propensities_are_right_where_there_is_overlap(tmp_path: Path) -> None:
    """The mean of [coin-chosen] / propensity is 1 for each of two actions, as it must be."""
    one = agent(tmp_path, mode="policy")
    menu = menus(1)[0]
    total = np.zeros(5)
    count = 0
    for _ in range(300):
        decision = one.decide(menu, 0, 0.4)
        one.discard(decision.id)
        if decision.propensity < 1.0:
            total[decision.action] += 1.0 / decision.propensity
            count += 1
    assert count > 100
    played = total[total > 0] / count
    assert played.size == 2
    # Nothing is learned, so every round is the same: a mean of count bounded terms.
    assert np.abs(played - 1.0).max() < 5.0 / np.sqrt(count) / 0.3


def test_csv_has_the_same_rows(made: Any, tmp_path: Path) -> None:
    exported("--state", made[0], "--out", tmp_path / "a.parquet")
    exported("--state", made[0], "--out", tmp_path / "a.csv", "--csv")
    rows = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    with (tmp_path / "a.csv").open(newline="") as file:
        texts = list(csv.DictReader(file))
    assert len(texts) == len(rows)
    for text, row in zip(texts, rows, strict=True):
        assert text["id"] == row["id"]
        assert float(text["propensity"]) == row["propensity"]
        assert json.loads(text["features"]) == row["features"]
        assert text["at"] == row["at"].isoformat()
        assert (text["reward"] == "") == (row["reward"] is None)


def test_what_is_refused(made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "all.parquet"
    exported("--state", made[0], "--out", out)
    assert "exists already" in refusal("--state", made[0], "--out", out)
    assert "no journal" in refusal(
        "--state", tmp_path / "gb" / "agents" / "none", "--out", "x"
    ) or ("there is no" in refusal("--state", tmp_path / "gb" / "agents" / "none", "--out", "x"))
    for file, more in ((out / "a.parquet", ()), (out / "a.csv", ("--csv",))):
        told = refusal("--state", made[0], "--out", file, *more)
        assert f"'{file}': no export can be written there; choose another file (" in told
    (tmp_path / "empty").mkdir()
    assert "no journal" in refusal("--state", tmp_path / "empty", "--out", tmp_path / "x")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = refusal("--state", made[0], "--out", tmp_path / "b.parquet")
    assert "pip install 'guardband[parquet]'" in said
    assert not (tmp_path / "b.parquet").exists()
    with pytest.raises(ModuleNotFoundError, match=r"guardband\[parquet\]") as missing:
        export_parquet([], tmp_path / "b.parquet")
    assert missing.value.name == "pyarrow"
    exported("--state", made[0], "--out", tmp_path / "b.csv", "--csv")


def test_where_journals_are(made: Any, tmp_path: Path) -> None:
    folder = made[0]
    both = journals_under([folder])
    assert [path.parent.name for path in both] == ["movies", "tv"]
    assert journals_under([both[0]]) == journals_under([both[0].parent]) == both[:1]
    assert journals_under([tmp_path / "nowhere"]) == []


def test_a_running_agent_is_not_in_the_way(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 5)
    exported("--state", one.state_dir, "--out", tmp_path / "a.parquet")
    live_on(one, 5, seed=1)
    assert parquet.read_table(tmp_path / "a.parquet").num_rows == 5
