"""`guardband bounds`: the numbers of the theory on the command line."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from guardband import theory
from guardband.cli import bounds as module
from guardband.cli.app import app


def answer(*words: str) -> str:
    result = CliRunner().invoke(app, ["bounds", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_json_has_every_bound_and_what_it_was_told() -> None:
    words = ("--problem", "forecast", "--agents", "4", "--rounds", "5000", "--alpha", "0.3")
    got = json.loads(answer(*words, "--delta", "paper", "--json"))
    assert list(got) == ["problem", "setting", "bounds"]
    setting = got["setting"]
    assert (setting["agents"], setting["horizon"], setting["alpha"]) == (4, 5000, 0.3)
    assert setting["delta"] == pytest.approx(1 / (16 * 5000))
    assert 0 < setting["reward_low"] < setting["reward_high"] < 1
    labels = {bound["label"] for bound in got["bounds"]}
    assert {"confidence", "L7", "T1", "ECC", "unknown_thm", "T1, communication"} <= labels
    (printed,) = [b for b in got["bounds"] if b["what"] == "poolings, as printed"]
    assert printed["value"] == 20  # 2 ceil(5 * 2)


def test_the_table_says_what_is_met_and_what_says_something() -> None:
    text = answer("--problem", "forecast", "--rounds", "20000")
    assert "T1 is not a number here" in text
    assert "The gate cannot open before round" in text
    (row,) = [line for line in text.splitlines() if line.startswith("L5 ")]
    assert row.rstrip().endswith("says nothing")
    given = theory.Setting(agents=1, horizon=2, dim=1, alpha=0.1, reward_low=0.1)
    for bound in theory.all_bounds(given):
        assert bound.what in text


def test_a_narrow_window_gets_a_narrow_table() -> None:
    given = theory.Setting(agents=1, horizon=2, dim=1, alpha=0.1, reward_low=0.1)
    console = Console(width=80, file=StringIO())
    console.print(module._table(theory.all_bounds(given), wide=False))
    lines = console.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "…" not in "".join(lines)
    assert lines[0].split() == ["label", "what", "is", "bounded", "bound", "verdict"]


def test_a_horizon_too_short_for_the_gate_is_said() -> None:
    text = answer("--problem", "synthetic-a", "--rounds", "100")
    assert "and there are 100." in text


def test_a_delta_that_is_none_is_refused() -> None:
    result = CliRunner().invoke(app, ["bounds", "--delta", "small"])
    assert isinstance(result.exception, ValueError)
    assert "delta must be a number or 'paper', not 'small'" in str(result.exception)
