"""Spaces that keep named features: live agents and the sidecar take rows by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import guardband as gb
from guardband.cli.app import app
from guardband.live.operators.audit import audit, find_decision
from guardband.live.server.run import running
from guardband.live.sidecar import SETTINGS, make_sidecar

FEATURES = gb.Features({"minutes": (5, 240, "log"), "stars": (1, 5)}, {"format": ["film", "tv"]})
OFFERS = pd.DataFrame(
    {"stars": [4.2, 3.1, 4.9], "format": ["film", "tv", "film"], "minutes": [95, 45, 8]},
    index=["Heat", "Dark", "Bao"],
)
TABLE = FEATURES.table(OFFERS)
RULES: dict[str, Any] = {
    "agents": 2,
    "contexts": "per-request",
    "alpha": 0.3,
    "noise": 0.1,
    "rewards": {"order": "prompt"},
}


def space(**given: Any) -> gb.SpaceSettings:
    return gb.SpaceSettings(**{"name": "home", "features": FEATURES} | RULES | given)


def live(folder: Path, settings: gb.SpaceSettings | None = None, **given: Any) -> gb.LiveAgent:
    asked = {"task": "movies", "space": "home", "background": False, "seed": 0} | given
    return gb.connect(f"local:{folder}", settings=settings, **asked)


def test_rows_by_name_are_decided_like_their_tables(tmp_path: Path) -> None:
    named = live(tmp_path / "named", space())
    plain = live(tmp_path / "plain", space(features=list(FEATURES.names)))
    worth = np.linspace(0.1, 0.9, FEATURES.dim)
    for k in range(40):
        rows: Any = OFFERS if k % 2 else OFFERS.to_dict("records")
        one = named.decide(rows, "Dark" if k % 2 else 1)
        other = plain.decide(TABLE, 1)
        assert (one.action, one.kind, one.mean) == (other.action, other.kind, other.mean)
        assert one.label == (OFFERS.index[one.action] if k % 2 else None)
        reward = float(TABLE[one.action] @ worth)
        named.observe(one, reward)
        plain.observe(other, reward)
    batch = named.decide_many([OFFERS, TABLE], ["Bao", "x"], labels=[None, ["x", "y", "z"]])
    assert all(each.label is not None for each in batch)
    found = audit(one.id, find_decision(one.id, [tmp_path / "named"]))
    assert found.result == "same"
    np.testing.assert_array_equal(named.theta, plain.theta)


def test_agents_that_join_have_the_features_of_the_space(tmp_path: Path) -> None:
    first = live(tmp_path, space())
    second = live(tmp_path, task="tv", uses=["intercept", "format"])
    assert second.features == first.features == FEATURES
    assert second.decide(OFFERS, "Dark").label == "Dark"
    assert "3 of 5 features" in repr(second)
    second.close()
    again = live(tmp_path, task="tv")
    assert "3 of 5 features" in repr(again)
    assert again.decide(OFFERS.assign(stars=9), "Heat").label == "Heat"
    assert again.features is not None
    assert again.features.counts["beyond"] == {"stars": 3}
    other = gb.Features({"minutes": (1, 240, "log"), "stars": (1, 5)}, {"format": ["film", "tv"]})
    with pytest.raises(gb.OtherSettingsError, match="named_features"):
        live(tmp_path, space(features=other), task="radio")
    with pytest.raises(gb.InvalidValueError, match=r"no feature 'fromat'.*Did you mean 'format'"):
        live(tmp_path, task="radio", uses=["fromat"])


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    agent = live(tmp_path, space())
    for rows, baseline, message in (
        (OFFERS.assign(stars="x"), "Dark", "column 'stars', row 'Heat': 'x' is not a number"),
        (OFFERS, "Drak", "Did you mean 'Dark'"),
        (OFFERS.drop(columns="stars"), "Dark", "no column 'stars'"),
    ):
        with pytest.raises(gb.InputError, match=message):
            agent.decide(rows, baseline)
    assert agent.rounds == 0
    numbers = live(tmp_path / "other", space(features=list(FEATURES.names)))
    assert numbers.features is None
    with pytest.raises(gb.InvalidTypeError, match="knows no names"):
        numbers.decide(OFFERS.to_dict("records"), 1)


def test_settings_keep_named_features_in_json() -> None:
    made = space()
    assert made.features == FEATURES.names
    assert made.named == FEATURES
    again = gb.SpaceSettings.from_json(json.loads(json.dumps(made.as_json(), sort_keys=True)))
    assert again == made
    assert again.named == FEATURES
    assert made.changed(alpha=0.2).named == FEATURES
    by_data = gb.SpaceSettings(name="home", named_features=FEATURES.to_dict(), **RULES)
    assert by_data.features == FEATURES.names


def test_other_limits_are_another_schema() -> None:
    """Data with other limits cannot be added up; spaces without names have the digest they had."""
    wider = gb.Features({"minutes": (1, 240, "log"), "stars": (1, 5)}, {"format": ["film", "tv"]})
    plain = space(features=list(FEATURES.names))
    digests = {each.schema_hash for each in (space(), space(features=wider), plain)}
    assert len(digests) == 3
    assert plain.as_json()["named_features"] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"named_features": {}}, "named_features: this does not describe features"),
        ({"named_features": {**FEATURES.to_dict(), "version": 9}}, "version 9"),
        ({"named_features": FEATURES.to_dict(), "features": ["a"]}, "are not the names of named"),
        ({"named_features": "FEATURES"}, "named_features"),
        ({"features": gb.Features(categories={"c": ["x" * 70]})}, "at most 64"),
        ({"features": gb.Features(categories={"c": gb.Hashed(1100)})}, "1,024 entries at most"),
    ],
)
def test_settings_that_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(gb.InvalidValueError, match=message):
        gb.SpaceSettings(**{"name": "home", "agents": 2} | given)


def test_the_command_line_makes_such_spaces(tmp_path: Path) -> None:
    file, run = tmp_path / "features.json", CliRunner()
    file.write_text(FEATURES.to_json())
    other = gb.SpaceSettings(name="other", features=["a"], agents=1)
    live(tmp_path / "gb", other, space="other").close()
    made = ["space", "create", "home", "--named-features", str(file), "--agents", "2"]
    done = run.invoke(app, [*made, "--data", str(tmp_path / "gb")])
    assert done.exit_code == 0, done.output
    assert "5 features" in done.output
    assert live(tmp_path / "gb").features == FEATURES
    fewer = gb.Features({"stars": (1, 5)})
    file.write_text(fewer.to_json())
    place = ["--data", str(tmp_path / "gb")]
    for new, more, wanted in (
        ("home-2", ["--named-features", str(file)], fewer),
        ("home-3", ["--features", "a,b"], None),
        ("home-4", ["noise=0.2"], FEATURES),
    ):
        done = run.invoke(app, ["space", "revise", "home", new, *more, *place])
        assert done.exit_code == 0, done.output
        assert live(tmp_path / "gb", space=new).features == wanted


def test_the_sidecar_takes_objects_by_name(tmp_path: Path) -> None:
    agent = live(tmp_path, space())
    rows = OFFERS.to_dict("records")
    with (
        running(make_sidecar(agent, None), settings=SETTINGS) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        names = [*OFFERS.index]
        body = {"features": rows, "baseline": "Dark", "labels": names}
        told = client.post("/v1/decide", json=body).json()
        assert (told["label"], told["action"]) == ("Dark", 1)
        assert client.post("/v1/reward", json={"id": told["id"], "reward": 0.5}).status_code == 200
        told = client.post("/v1/decide", json={"features": rows, "baseline": 2}).json()
        assert told["label"] is None
        told = client.post("/v1/decide", json={"features": TABLE.tolist(), "baseline": 0}).json()
        assert told["action"] in (0, 1, 2)
        wrong = [{**rows[0], "stars": "four"}, *rows[1:]]
        said = client.post("/v1/decide", json={**body, "features": wrong})
        assert said.status_code == 422
        assert "column 'stars', row 'Heat': 'four' is not a number" in said.json()["detail"]
        said = client.post("/v1/decide", json={**body, "baseline": "Drak"})
        assert said.status_code == 422
        assert "Did you mean 'Dark'" in said.json()["detail"]
        lacking = client.post("/v1/decide", json={"features": [{"stars": 1}], "baseline": 0})
        assert lacking.status_code == 422
        assert "has no 'minutes'" in lacking.json()["detail"]
