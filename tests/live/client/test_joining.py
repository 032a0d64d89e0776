"""How agents and spaces come together, and what does not fit."""

from __future__ import annotations

import math
import uuid
from pathlib import Path
from typing import Any

import pytest
from live.client.world import agent, live_on, menus

import guardband as gb
from guardband.live import Refused, SpaceSettings
from guardband.live.client.learner import delta_share
from guardband.live.client.stream_state import Effect, Transition
from guardband.live.link import link_to

MENU = menus(1)[0]


def test_the_first_agent_makes_the_space_and_the_next_joins(tmp_path: Path) -> None:
    one = agent(tmp_path, features=["price", "fresh", "rating"])
    other = gb.LiveAgent(
        coordinator=f"local:{tmp_path / 'gb'}",
        task="tv",
        uses=["rating", "price"],
        background=False,
    )
    assert isinstance(one, gb.Agent)
    assert isinstance(other, gb.Agent)
    assert other._store.setup.uses == (0, 2)
    assert other._store.space.alpha == 0.3
    assert other.decide(MENU[:, :2], 0).kind == "baseline"
    assert one.name == "movies"
    assert one.state_dir == tmp_path / "gb" / "agents" / "default" / "movies"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0.2}, "alpha=0.2 was given, but space 'default' has alpha=0.3"),
        ({"dim": 4}, "dim=4 was given, but space 'default' has dim=3"),
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
    whole = {"coordinator": f"local:{tmp_path / 'gb'}", "task": "tv", "background": False, **given}
    with pytest.raises(ValueError, match=message):
        gb.LiveAgent(**whole)


def test_unknown_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"unknown setting 'nose'.*noise"):
        agent(tmp_path, nose=0.1)
    with pytest.raises(TypeError, match="live agents run guard-ucb"):
        agent(tmp_path, algorithm=gb.algorithms.LinUCB())
    with pytest.raises(ValueError, match=r"anchors=True is not available.*not sent to others"):
        agent(tmp_path, algorithm=gb.GuardUCB(anchors=True, baseline_tolerance=0.1))
    with pytest.raises(ValueError, match=r"optimism=0.5 is not available"):
        agent(tmp_path, algorithm=gb.GuardUCB(optimism=0.5))


def test_an_algorithm_says_what_the_space_is(tmp_path: Path) -> None:
    algorithm = gb.GuardUCB(0.2, noise=0.3, mode="policy", shared_context=False)
    one = gb.LiveAgent(
        3,
        algorithm=algorithm,
        agents=2,
        coordinator=f"local:{tmp_path}",
        task="a",
        background=False,
    )
    space = one._store.space
    assert (space.alpha, space.noise, space.mode, space.contexts) == (
        0.2,
        0.3,
        "policy",
        "per-request",
    )


def test_a_space_needs_a_size(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"say dim=.*agents="):
        gb.LiveAgent(coordinator=f"local:{tmp_path}", task="a", background=False)
    with pytest.raises(ValueError, match="dim=2 but there are 3 features"):
        agent(tmp_path, dim=2, features=["a", "b", "c"])


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
    before = float(one._store.learner.group.engine.settings[0][16])
    with one._store as store:
        store._go_on(Transition(store.whole_chain().anew(str(uuid.uuid4())), Effect.CONFLICT))
    one.sync()  # registers: the second stream, with 1 / (2 * 3) for 1 / 2
    after = float(one._store.learner.group.engine.settings[0][16])
    p = one.epoch + 2
    grown = 2.0 * math.log(p * (p + 1) / ((p - 1) * p)) + 2.0 * math.log(3.0)
    assert after - before == pytest.approx(grown, abs=1e-9)


def test_the_level_is_what_the_kernels_use(tmp_path: Path) -> None:
    """beta^2 = log det V + 2 log(1 / delta_{i,p}) + ridge S^2, delta halved for two radii."""
    one = agent(tmp_path, mode="strict")
    menu = MENU.copy()
    decision = one.decide(menu, 0)
    space = one._store.space
    # First task: w = 1/2; first set: 1/(1 * 2); nobody is left out: 1/2; two radii: 1/2.
    delta = space.delta * 0.5 / (1 * 2) / 2 / 2
    ridge = 1.0
    beta = math.sqrt(2 * math.log(1 / delta) + ridge)
    width = beta * math.sqrt(float(menu[decision.action] @ menu[decision.action]) / ridge)
    assert decision.upper - decision.mean == pytest.approx(width)
    live_on(one, 1)
