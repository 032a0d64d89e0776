"""What monitors noticed, as `guardband audit` and `guardband export` show it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from live.client.test_health import AFTER, noticed, work
from live.client.world import agent, live_on
from live.operators.journals import found
from typer.testing import CliRunner

from guardband.cli.app import app
from guardband.reasons import sentence

RUN = CliRunner()


def said(*words: object) -> str:
    result = RUN.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_audits_and_exports_show_alarms_until_somebody_has_looked(tmp_path: Path) -> None:
    one = noticed(tmp_path)
    (alarm,) = one.health.alarms
    before = work(one, 1, AFTER, seed=7)[0]
    one.resume()
    after = work(one, 2, AFTER, seed=8)[-1]
    one.close()
    told = {each.id: found(tmp_path / "gb", each.id) for each in (before, after)}
    health = told[before.id].health
    assert (health["ok"], health["watched"]) == (False, ["assumptions", "certificates"])
    ((kind, round_, evidence),) = [
        (each["kind"], each["round"], each["evidence"]) for each in health["alarms"]
    ]
    assert (kind, round_, evidence) == alarm
    assert told[before.id].because == before.reason
    assert sentence("assumptions") in before.reason
    assert told[after.id].health["ok"]
    assert told[after.id].because == after.reason
    assert told[after.id].health["alarms"][0]["looked_at"] is not None

    state = ("--state", tmp_path / "gb")
    text = said("audit", before.id, *state)
    assert f"an alarm of assumptions after decision {alarm.round}" in text
    assert "nobody had looked at it" in text
    assert "looked at" in said("audit", after.id, *state)
    assert json.loads(said("audit", before.id, "--json", *state))["health"]["ok"] is False

    out = tmp_path / "all.csv"
    text = said("export", *state, "--out", out, "--csv")
    assert "1 alarm(s) of monitors" in text
    with out.open() as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert rows[before.id]["alarms"] == "assumptions"
    assert rows[after.id]["alarms"] == ""
    assert sum(row["alarms"] != "" for row in rows.values()) == 1


def test_what_was_never_wrong_is_said_as_well(tmp_path: Path) -> None:
    watched, blind = agent(tmp_path / "a"), agent(tmp_path / "b", delta_alarm=0)
    (one,), (other,) = live_on(watched, 1), live_on(blind, 1)
    text = said("audit", one.id, "--state", tmp_path / "a")
    assert "ok; watched: assumptions, certificates, fit" in text
    assert "nothing was watched" in said("audit", other.id, "--state", tmp_path / "b")
    out = tmp_path / "all.csv"
    assert "raised no alarm" in said("export", "--state", tmp_path / "a", "--out", out, "--csv")
