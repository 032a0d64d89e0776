"""`guardband learn`: CSV and Parquet, all or nothing, and each row once."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from live.client.logs import logged, own_sums, some_log
from live.client.world import agent
from typer.testing import CliRunner

from guardband.cli import log_file
from guardband.cli.app import app

RUN = CliRunner()
ROWS = 40
X, Y = some_log(ROWS)


@pytest.fixture
def table() -> pd.DataFrame:
    found = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    found["reward"], found["id"], found["propensity"] = Y, [f"r{i}" for i in range(ROWS)], 0.5
    found["page"] = "ignored, whatever it is"
    return found[["page", "id", "reward", "x2", "x0", "x1", "propensity"]]


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An agent that goes on running while its log is learned."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(log_file, "BLOCK", 16)
    return agent(tmp_path)


def written(table: pd.DataFrame, name: str = "log.csv") -> str:
    (table.to_parquet if name.endswith("parquet") else table.to_csv)(name, index=False)
    return name


def learn(*words: str) -> Any:
    given = ["--coordinator", "local:gb", "--space", "default", "--task", "movies"]
    return RUN.invoke(app, ["learn", *given, *words])


def learned(*words: str) -> str:
    result = learn(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return re.sub(r" +", " ", result.output)


def refused(*words: str) -> str:
    result = learn(*words)
    assert result.exception is not None
    return str(result.exception)


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_file_is_learned_as_its_rows_are(
    one: Any, table: pd.DataFrame, name: str, tmp_path: Path
) -> None:
    said = learned(written(table, name))
    assert "40 rows learned, 0 known before." in said
    lines = {line.split()[0]: line.split()[1:] for line in said.splitlines() if " " in line}
    for feature in ("x0", "x1", "x2"):
        before, after = map(float, lines[feature])
        assert after < before
    other = agent(tmp_path / "other")
    other.learn(X, Y, ids=[f"r{i}" for i in range(ROWS)])
    other.sync()
    assert [row[1:4] + row[6:] for row in logged(one)] == [
        row[1:4] + row[6:] for row in logged(other)
    ]
    assert one.counted == ROWS
    one.sync()  # it runs, so it sends what was learned
    assert one.status()["acknowledged"] == ROWS
    assert "0 rows learned, 40 known before." in learned(name)


def test_a_longer_file_adds_its_new_rows(one: Any, table: pd.DataFrame) -> None:
    others = table.assign(reward=1.0 - table["reward"]).drop(columns="id")
    for log in (table, others):
        learned(written(log[:25]))
        said = learned(written(log))
        assert "15 rows learned, 25 known before." in said
    assert "No ids: a row is known by its number" in said
    assert one.counted == 2 * ROWS


def test_columns_may_have_other_names(one: Any, table: pd.DataFrame) -> None:
    other = table.rename(columns={"reward": "clicked", "id": "request", "x1": "price"})
    file = written(other.rename(columns={"propensity": "chance"}))
    words = ("--reward", "clicked", "--id", "request", "--propensity", "chance")
    assert "40 rows learned" in learned(file, *words, "--feature", "x1=price")
    assert {row[2] for row in logged(one)} == set(table["id"])
    assert "the task has no feature 'y'" in refused(file, *words, "--feature", "y=price")
    assert "NAME=COLUMN" in refused(file, *words, "--feature", "price")


def changed(table: pd.DataFrame, column: str, row: int, value: Any) -> pd.DataFrame:
    table = table.astype({column: object})
    table.loc[row, column] = value
    return table


def test_bad_files_are_refused_and_nothing_is_learned(one: Any, table: pd.DataFrame) -> None:
    before = own_sums(one)
    for bad, said in (
        (table.drop(columns="x1"), "no column 'x1'"),
        (table.rename(columns={"reward": "rewrd"}), "Did you mean 'rewrd'?"),
        (changed(table, "x0", 29, np.nan), "row 30, column 'x0': no value"),
        (changed(table, "x0", 29, "much"), "row 30, column 'x0': 'much' is no finite number"),
        (changed(table, "reward", 17, np.inf), "row 18, column 'reward': inf is no finite number"),
        (changed(table, "reward", 17, 1.9), "row 18: reward 1.9"),
        (changed(table, "x2", 39, 5.0), "features of row 40 have length"),
        (changed(table, "propensity", 39, 0.0), "the propensity of row 40 is 0"),
        (changed(table, "id", 30, None), "row 31, column 'id': no id"),
        (changed(table, "id", 30, "r3"), "rows 4 and 31 have the same id, 'r3'"),
        (changed(table, "id", 3, "r2"), "'r2' is given twice: of rows 3 and 4"),
        (table[:0], "has no rows"),
    ):
        for name in ("bad.csv", "bad.parquet"):
            if name == "bad.parquet" and "much" in said:
                continue  # one column has one type there
            problem = refused(written(bad, name))
            assert said in problem, (name, problem)
            assert name in problem
            assert (own_sums(one), logged(one)) == (before, [])
    assert "there is no file" in refused("missing.csv")


def test_files_that_were_cut_short_are_refused(one: Any, table: pd.DataFrame) -> None:
    whole = Path(written(table)).read_bytes()
    lines = whole.splitlines(keepends=True)
    last = len(whole) - len(lines[-1])
    for end in (len(whole) - 1, len(whole) - 5, last + 9):
        Path("cut.csv").write_bytes(whole[:end])
        assert "does not end with a line break" in refused("cut.csv")
    Path("cut.csv").write_bytes(whole[: last + 9] + b"\n")
    assert "row 40" in refused("cut.csv")
    Path("more.csv").write_bytes(whole + b"a,b,c,1,2,3,4,5\n")
    assert "is no table of comma-separated values" in refused("more.csv")
    Path("empty.csv").write_bytes(b"")
    assert "is no table of comma-separated values" in refused("empty.csv")
    whole = Path(written(table, "log.parquet")).read_bytes()
    for size in (0, 100, len(whole) - 3):
        Path("cut.parquet").write_bytes(whole[:size])
        assert "is no Parquet file, or it is cut short" in refused("cut.parquet")
    assert logged(one) == []


def test_values_of_a_known_id_may_not_change(one: Any, table: pd.DataFrame) -> None:
    learned(written(table))
    value = 0.25 if table["reward"][35] != 0.25 else 0.5
    assert "row 36: id 'r35' was learned before with the reward" in refused(
        written(changed(table, "reward", 35, value))
    )
    assert one.counted == ROWS


def test_parquet_without_pyarrow_names_the_extra(
    one: Any, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(table, "log.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'guardband[parquet]'" in refused(file)


def test_a_task_may_use_some_features_only(one: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    tv = agent(tmp_path, task="tv", uses=["x0", "x2"])
    file = written(table.drop(columns="x1"))
    given = ["--coordinator", "local:gb", "--space", "default", "--task", "tv"]
    result = RUN.invoke(app, ["learn", file, *given])
    assert result.exit_code == 0, result.exception
    assert tv.counted == ROWS


def test_another_task_may_not_learn_the_same_file(one: Any, table: pd.DataFrame) -> None:
    file = written(table)
    learned(file)
    words = ["learn", file, "--coordinator", "local:gb", "--space", "default", "--task", "tv"]
    assert "task 'movies' has learned a log with these rewards" in str(
        RUN.invoke(app, words).exception
    )
