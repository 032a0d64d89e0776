"""How agents and spaces come together, and what does not fit."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import pytest
from live.client.world import agent, another_process, journal_of, live_on, menus, names

import guardband as gb
from guardband.live import Refused, SpaceSettings
from guardband.live.client.levels import delta_share
from guardband.live.client.replay import rebuild
from guardband.live.link import link_to

MENU = menus(1)[0]
CONNECT = set(inspect.signature(gb.connect).parameters)


def test_the_first_agent_makes_the_space_and_the_next_joins(tmp_path: Path) -> None:
    one = agent(tmp_path, features=["price", "fresh", "rating"])
    other = gb.connect(
        f"local:{tmp_path / 'gb'}",
        task="tv",
        uses=["rating", "price"],
        background=False,
    )
    assert isinstance(other, gb.LiveAgent)
    assert other.report().state.uses == (0, 2)
    assert other.settings.alpha == 0.3
    assert other.decide(MENU[:, :2], 0).kind == "baseline"
    assert one.name == "movies"
    assert one.state_dir == tmp_path / "gb" / "agents" / "default" / "movies"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0.2}, "alpha=0.2 was given, but space 'default' has alpha=0.3"),
        ({"dim": 4}, "features=.*was given, but space 'default' has features="),
        ({"noise": 0.2}, "noise=0.2"),
        ({"agents": 9}, "agents=9"),
        ({"contexts": "shared"}, "contexts='shared'"),
        ({"features": ["a", "b", "c"]}, "features="),
        ({"rewards": {"order": "window"}}, "rewards={'order': 'window'}"),
        ({"uses": ["a"]}, "no feature 'a'"),
        ({"uses": [5]}, "uses"),
        ({"task": "a/b"}, "letters, digits"),
        ({"coordinator": "ftp://x"}, "neither"),
        ({"keep_decisions": 0}, "keep_decisions"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_differs_is_named(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    agent(tmp_path).close()
    whole = {"coordinator": f"local:{tmp_path / 'gb'}", "task": "tv", "background": False}
    said = {name: value for name, value in given.items() if name not in CONNECT}
    if said:
        said = {"features": names(said.pop("dim", 3)), "agents": 3} | said
        whole["settings"] = SpaceSettings(name="default", **said)
    with pytest.raises(ValueError, match=message):
        gb.connect(**(whole | {k: v for k, v in given.items() if k in CONNECT}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 2}, "alpha must be .* 1, not 2"),
        ({"noise": 0}, "noise must be a positive number, not 0"),
        ({"algorithm": "sclts"}, "algorithm must be 'guard-ucb'.*, not 'sclts'"),
        ({"rewards": {"order": "now"}}, r"rewards\.order must be .*, not 'now'"),
        ({"features": ["a", "a"]}, "the features' names must differ"),
    ],
)
def test_wrong_settings_are_named_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(gb.InputError, match=f"^{message}"):
        SpaceSettings(**({"features": ["a"], "agents": 1} | given))
    with pytest.raises(gb.InputError, match="features must be given"):
        SpaceSettings()
    with pytest.raises(gb.InputError, match=r"must be a gb\.SpaceSettings"):
        gb.connect("local:gb", task="tv", settings=given)  # type: ignore[arg-type]


def test_unknown_settings_are_named() -> None:
    whole = {"name": "default", "features": names(3), "agents": 3}
    with pytest.raises(ValueError, match=r"unknown setting nose.*noise"):
        SpaceSettings(**whole, nose=0.1)
    with pytest.raises(ValueError, match="guard-ucb"):
        SpaceSettings(**whole, algorithm="lin-ucb")


def test_what_is_not_said_may_be_anything(tmp_path: Path) -> None:
    agent(tmp_path, mode="policy", sync={"trigger": "ratio", "growth": 0.5}).close()
    settings = SpaceSettings(
        name="default", features=names(3), agents=3, noise=0.1, sync={"growth": 0.5}
    )
    one = gb.connect(f"local:{tmp_path / 'gb'}", task="tv", settings=settings, background=False)
    assert (one.settings.mode, one.settings.sync.trigger) == ("policy", "ratio")


def test_settings_name_the_space(tmp_path: Path) -> None:
    home = SpaceSettings(name="home", features=names(3), agents=3)
    with gb.connect(f"local:{tmp_path}", task="a", settings=home, background=False) as one:
        assert one.status()["space"] == one.settings.name == "home"
    with pytest.raises(ValueError, match="space='away' was given, but settings of 'home'"):
        gb.connect(f"local:{tmp_path}", task="a", space="away", settings=home, background=False)


def test_a_space_that_does_not_exist_needs_settings(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"made with settings=.*agents"):
        gb.connect(f"local:{tmp_path}", task="a", background=False)


def test_a_space_has_room_for_so_many_tasks(tmp_path: Path) -> None:
    for task in ("a", "b", "c"):
        agent(tmp_path, task=task).close()
    with pytest.raises(Refused, match="declared for 3 tasks"):
        agent(tmp_path, task="d")
    agent(tmp_path, task="b").close()


def test_a_folder_belongs_to_one_task(tmp_path: Path) -> None:
    agent(tmp_path, state_dir=tmp_path / "mine").close()
    with pytest.raises(ValueError, match=r"belongs to task 'movies', not 'tv'"):
        agent(tmp_path, task="tv", state_dir=tmp_path / "mine")
    with pytest.raises(ValueError, match="belongs to uses"):
        agent(tmp_path, uses=[0], state_dir=tmp_path / "mine")


def test_links_are_named_by_their_kind(tmp_path: Path) -> None:
    assert type(link_to(f"local:{tmp_path}")).__name__ == "LocalLink"
    link = link_to("http://127.0.0.1:1", "gb_x")
    assert type(link).__name__ == "HttpLink"
    link.close()
    with pytest.raises(TypeError):
        link_to(3)  # type: ignore[arg-type]


def test_library_agents_are_what_they_were() -> None:
    one = gb.Agent(2, alpha=0.3)
    assert type(one) is gb.Agent

    class Mine(gb.Agent):
        pass

    assert type(Mine(2)) is Mine
    with pytest.raises(TypeError, match="coordinator"):
        Mine(2, coordinator="local:x")


def test_delta_is_never_overspent() -> None:
    """The shares of all streams, sets of data and choices of tasks add up to delta at most."""
    for shares, most in (("registered", 5), ("equal", 0)):
        space = SpaceSettings(name="s", features=("a",), agents=5, shares=shares, delta=0.01)
        total = sum(
            math.comb(5, out) * delta_share(space, 1.0 / (i * (i + 1)), epoch, out)
            for i in range(1, 6)
            for epoch in range(2_000)
            for out in range(most + 1)
        )
        assert 0.5 * space.delta < total <= space.delta


def test_a_conflict_begins_a_set_of_data_of_its_own(tmp_path: Path) -> None:
    """Delta is used up by it as by an epoch: the radius grows."""
    one = agent(tmp_path)
    live_on(one, 3)
    before = rebuild(journal_of(one), 3).learner.level
    another_process(one).refused(Refused("already_continued", 409, "another went on"))
    one.sync()  # registers: the second stream, with 1 / (2 * 3) for 1 / 2
    live_on(one, 1)
    after = rebuild(journal_of(one), 4).learner.level
    p = one.epoch + 2
    grown = 2.0 * math.log(p * (p + 1) / ((p - 1) * p)) + 2.0 * math.log(3.0)
    assert after - before == pytest.approx(grown, abs=1e-9)


def test_the_level_is_what_the_kernels_use(tmp_path: Path) -> None:
    """beta^2 = log det V + 2 log(1 / delta_{i,p}) + ridge S^2, delta halved for two radii."""
    one = agent(tmp_path, mode="strict")
    menu = MENU.copy()
    decision = one.decide(menu, 0)
    space = one.settings
    # First task: w = 1/2; first set: 1/(1 * 2); nobody is left out: 1/2; two radii: 1/2.
    delta = space.delta * 0.5 / (1 * 2) / 2 / 2
    ridge = 1.0
    beta = math.sqrt(2 * math.log(1 / delta) + ridge)
    width = beta * math.sqrt(float(menu[decision.action] @ menu[decision.action]) / ridge)
    assert decision.upper - decision.mean == pytest.approx(width)
    live_on(one, 1)


def test_settings_without_a_name_describe_the_space_that_is_asked_for(tmp_path: Path) -> None:
    folder = f"local:{tmp_path}"
    settings = gb.SpaceSettings(features=["a", "b"], agents=1)
    with gb.connect(folder, task="one", space="home", settings=settings, background=False) as agent:
        assert agent.status()["space"] == "home"
    with gb.connect(folder, task="one", settings=settings, background=False) as agent:
        assert agent.status()["space"] == "default"
