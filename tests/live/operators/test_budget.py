"""What audits, exports and metrics say about trials, and what they notice."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from live.client.test_budget import start, work
from live.operators.journals import change, found

from guardband.live.operators.export import export_csv


@pytest.mark.parametrize("policy", [False, True])
def test_charges_come_out_again(tmp_path: Path, policy: bool) -> None:
    given = {"trial_budget": None, "mode": "policy", "max_loss": 6.0} if policy else {}
    one = start(tmp_path, **given)
    made = work(one, 300)
    kinds = set()
    for decision in made[::4]:
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        kinds.add(finding.decision["kind"])
    assert ("explored" if policy else "trial") in kinds


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE decision SET charge = 0.5 * charge WHERE seq = ?",
        "UPDATE decision SET spent = 0 WHERE seq > ?",
        "UPDATE decision SET charge = 0, spent = 0 WHERE seq >= ?",
        "UPDATE decision SET allowance = 0 WHERE seq = ?",
    ],
)
def test_a_charge_that_was_changed_is_noticed(tmp_path: Path, sql: str) -> None:
    one = start(tmp_path)
    made = work(one, 200)
    seq, trial = next((n, d) for n, d in enumerate(made, 1) if n > 50 and d.kind == "trial")
    assert found(tmp_path / "gb", trial.id).result == "same"
    change(one, sql, seq)
    assert found(tmp_path / "gb", trial.id).result == "differs"


def test_an_export_has_charges(tmp_path: Path) -> None:
    one = start(tmp_path)
    made = work(one, 200)
    export_csv([one.state_dir / "journal.db"], tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row, decision in zip(rows, made, strict=True):
        assert row["kind"] == decision.kind
        assert float(row["budget_left"]) == pytest.approx(decision.budget_left)
        assert (float(row["charge"]) > 0.0) == (decision.kind == "trial")
