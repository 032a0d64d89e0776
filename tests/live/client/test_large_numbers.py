"""Numbers that no float can hold, given to live agents and commands: ordinary errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live.client.world import agent, live_on, menus
from typer.testing import CliRunner

import guardband as gb
from guardband.cli.app import app

LARGE = 10**400
MENU = menus(1)[0]
RUN = CliRunner()


@pytest.mark.parametrize(
    "call",
    [
        lambda one, _: one.decide([[LARGE, 0, 0], [0, 1, 0]], 0),
        lambda one, _: one.decide(MENU, LARGE),
        lambda one, _: one.decide(MENU, 0, LARGE),
        lambda one, _: one.decide(MENU, 0, value=[LARGE, 0, 0, 0]),
        lambda one, _: one.decide(MENU, 0, round=LARGE),
        lambda one, waiting: one.observe(waiting, LARGE),
        lambda one, waiting: one.observe_many([waiting], [LARGE]),
        lambda one, waiting: one.override(waiting, action=LARGE),
        lambda one, _: one.learn([[LARGE, 0, 0]], [0.5]),
        lambda one, _: one.learn([[0.5, 0, 0]], [LARGE]),
    ],
)
def test_a_live_agent_refuses_it_and_changes_nothing(
    tmp_path: Path, call: Callable[[Any, str], Any]
) -> None:
    one = agent(tmp_path)
    live_on(one, 3)
    waiting = one.decide(MENU, 0).id
    before = one.counted, one.pending, one.rounds
    with pytest.raises((gb.GuardbandError, ValueError, TypeError)):
        call(one, waiting)
    assert (one.counted, one.pending, one.rounds) == before
    one.observe(waiting, 0.5)
    one.close()


@pytest.mark.parametrize(
    "words",
    [
        ["run", "toy", "--rounds", str(LARGE)],
        ["run", "toy", "--trials", str(LARGE)],
        ["bounds", "toy", "--rounds", str(LARGE)],
        ["space", "create", "home", "--agents", str(LARGE)],
    ],
)
def test_a_command_refuses_it_in_a_sentence(tmp_path: Path, words: list[str]) -> None:
    more = ["--data", str(tmp_path / "gb")] if words[0] == "space" else []
    result = RUN.invoke(app, [*words, *more])
    assert result.exit_code != 0
    assert not isinstance(result.exception, OverflowError), result.exception


@pytest.mark.parametrize("name", ["alpha", "noise", "agents", "theta_bound", "feature_bound"])
def test_a_file_of_settings_refuses_it(name: str) -> None:
    settings = {"features": ["a"], "agents": 2, name: LARGE}
    with pytest.raises(ValueError, match=name):
        gb.SpaceSettings.from_json(json.loads(json.dumps(settings)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"delta": 1e-150}, "delta must be at least 1e-100, not 1e-150"),
        ({"ridge": 1e-90}, "a ridge of 1e-90 does not fit to feature_bound=1: .* 1e-12 and 1e.12"),
        ({"ridge": 1e90}, "a ridge of 1e.90 does not fit"),
        ({"feature_bound": 1e90}, "a ridge of 1 does not fit to feature_bound=1e.90"),
        ({"feature_bound": 1e-90}, "a ridge of 1 does not fit to feature_bound=1e-90"),
    ],
)
def test_settings_of_which_sums_cannot_be_made_are_refused(
    settings: dict[str, float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        gb.SpaceSettings(features=["a", "b"], agents=2, noise=0.1, **settings)


def test_the_least_delta_is_one_that_agents_can_use(tmp_path: Path) -> None:
    rules = gb.SpaceSettings(
        features=["a", "b", "c"], agents=10**5, noise=0.1, delta=1e-100, contexts="per-request"
    )
    with gb.connect(f"local:{tmp_path}", task="m", settings=rules, background=False) as one:
        one.observe(one.decide(MENU, 0).id, 0.5)
        one.sync()
        assert one.decide(MENU, 0).kind == "baseline"


def test_an_error_about_long_settings_is_short() -> None:
    names = [f"f{k}" for k in range(5_000)]
    with pytest.raises(gb.InvalidValueError, match=r"features .* 1,024 entries at most, not 5,000"):
        gb.SpaceSettings(features=names, agents=2)
    for settings in ({"features": names}, {"features": ["a"], "noise": names}):
        with pytest.raises(gb.InvalidValueError) as found:
            gb.SpaceSettings(agents=2, **settings)
        assert len(str(found.value)) < 400
