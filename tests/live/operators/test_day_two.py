"""Changes while agents run: alpha, tasks, features."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live.client.world import THETA, menus
from live.operators.world import (
    Running,
    a_space,
    close_agents,
    free_port,
    pool,
    refusal,
    run,
    serving,
    sync,
    work,
)

import guardband as gb
from guardband.cli import spaces
from guardband.live.client.journal import Journal
from guardband.live.operators.audit import audit, find_decision
from guardband.live.protocol.messages import Refused


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path / "gb", free_port()) as running:
        running.post("/v1/spaces", a_space().as_json())
        yield running
        close_agents()


def ways(server: Running) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Through the data folder, and through the API."""
    token = (server.data / "admin.token").read_text().strip()
    return ("--data", server.data), ("--url", server.url, "--token", token)


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_alpha_switches_at_a_decision(server: Running) -> None:
    """An agent that waits for news hears of it; every decision has one alpha, and says which."""
    with server.agent("movies", background=True) as one:
        before = work(one, 20)
        wait_for(lambda: one.status()["config_version"] == 1)
        here, there = ways(server)
        assert "config_version 2" in run("space", "set-alpha", "home", 0.6, *here)
        wait_for(lambda: one.status()["config_version"] == 2)
        between = work(one, 10, seed=1)
        run("space", "set-alpha", "home", 0.1, "--task", "movies", *there)
        wait_for(lambda: one.status()["config_version"] == 3)
        after = work(one, 10, seed=2)
        shown = json.loads(run("space", "show", "home", *there))
        assert (shown["alpha"], shown["alphas"], shown["config_version"]) == (
            0.6,
            {"movies": 0.1},
            3,
        )
        menu_of = {
            d.id: m
            for made, seed in ((before, 0), (between, 1), (after, 2))
            for d, m in zip(made, menus(len(made), seed), strict=True)
        }
        for made, alpha in ((before, 0.3), (between, 0.6), (after, 0.1)):
            for decision in made:
                expected = (1.0 - alpha) * float(menu_of[decision.id][0] @ THETA)
                assert decision.floor == pytest.approx(expected, abs=1e-12)
                finding = audit(decision.id, find_decision(decision.id, [server.data]))
                assert finding.result == "same", finding.differences
                assert finding.alpha == alpha
        events = [e["what"] for e in server.summary()["events"]]
        assert events.count("config changed") == 2


def test_what_cannot_be_set(server: Running) -> None:
    here, there = ways(server)
    for way in (here, there):
        said = refusal("space", "set", "home", "features=[1]", *way)
        assert "features" in said or "feature" in said
        said = refusal("space", "set", "home", 'features=["a","b","c"]', *way)
        assert "space revise" in said
        assert "noise" in refusal("space", "set", "home", "noise=0.5", *way)
        assert "no setting" in refusal("space", "set", "home", "nonsense=1", *way)
        assert "KEY=VALUE" in refusal("space", "set", "home", "agents", *way)
        assert "no space" in refusal("space", "set-alpha", "nowhere", 0.2, *way)
        refusal("space", "set-alpha", "home", 1.5, *way)
    assert server.summary()["config_version"] == 1
    run("space", "set", "home", "agents=6", "sync.deadline_s=3", *here)
    config = server.get("/v1/spaces/home")["config"]
    assert (config["agents"], config["sync"]["deadline_s"]) == (6, 3)
    for way, meaning in ((here, "default"), (there, "missing"), (there, "default")):
        run("space", "set", "home", f"rewards.silence={meaning}", *way)
        assert json.loads(run("space", "show", "home", *way))["rewards"]["silence"] == meaning


def test_a_task_more(server: Running) -> None:
    """Full, then extended while the others run; the newcomer learns from all."""
    here, _ = ways(server)
    run("space", "set", "home", "agents=2", *here)
    with server.agent("movies") as one, server.agent("tv") as two:
        work(one, 30), work(two, 30, seed=1)
        pool(one, two)
        with pytest.raises(Refused, match="2 tasks, and all are taken"):
            server.agent("books")
        run("space", "set", "home", "agents=3", *here)
        sync(one, two)
        with server.agent("books") as three:
            assert three.epoch == one.epoch >= 1
            assert three.report().gauges["foreign_n"] == 60
            decided = work(three, 5, seed=2)
            pool(three, one, two)
            assert one.report().gauges["foreign_n"] == 35
        for decision in decided:
            assert audit(decision.id, find_decision(decision.id, [server.data])).result == "same"


def test_a_task_less(server: Running) -> None:
    """Removed: nobody waits, the data stay. Retracted: they go with the next epoch."""
    here, _ = ways(server)
    agents = [server.agent(task) for task in ("movies", "tv", "books")]
    for i, one in enumerate(agents):
        work(one, 20, seed=i)
    pool(*agents)
    one, two, three = agents
    three.close()
    assert "1 stream(s) ended" in run("space", "remove", "home", "books", *here)
    assert "no task 'x'" in refusal("space", "remove", "home", "x", *here)
    work(one, 5, seed=5)
    pool(one, two)
    newest = server.summary()["epoch"]
    record = server.get(f"/v1/spaces/home/epochs/{newest}")
    assert {line["task"]: line["n"] for line in record["manifest"]} == {
        "movies": 25,
        "tv": 20,
        "books": 20,
    }
    assert {e["streams_late"] for e in server.summary()["epochs"]} == {0}

    run("space", "retract", "home", "books", "--reason", "consent withdrawn", *here)
    work(one, 5, seed=6)
    pool(one, two)
    record = server.get(f"/v1/spaces/home/epochs/{newest + 1}")
    assert {line["task"] for line in record["manifest"]} == {"movies", "tv"}
    assert record["n"] == 50
    assert one.report().gauges["foreign_n"] == 20
    with pytest.raises(Refused, match="consent withdrawn"):
        server.agent("books")
    for decision in work(one, 5, seed=7):
        assert audit(decision.id, find_decision(decision.id, [server.data])).result == "same"
    one.close()
    two.close()


def test_a_new_feature_set_is_a_new_space(server: Running) -> None:
    here, there = ways(server)
    with server.agent("movies") as old:
        work(old, 30)
        pool(old)
        said = run("space", "revise", "home", "home-2", "--features", "x0,x1,x2,x3", *there)
        assert "4 features, no data yet" in said
        with server.agent("movies", space="home-2") as new:
            assert (new.epoch, new.counted) == (0, 0)
            decision = new.decide([[0.1, 0.2, 0.3, 0.1], [0.3, 0.1, 0.1, 0.2]], 0, 0.3)
            new.observe(decision.id, 0.3)
            assert new.counted == 1
        work(old, 5, seed=1)  # the old one goes on, and is readable
        pool(old)
        assert server.summary("home")["epoch"] == 2
        assert server.get("/v1/spaces/home/epochs/2")["n"] == 35
    config = server.get("/v1/spaces/home-2")["config"]
    assert (config["alpha"], config["noise"]) == (0.3, 0.1)
    assert "already" in refusal("space", "revise", "home", "home-2", "--features", "a", *here)


def test_other_noise_is_a_new_space(server: Running) -> None:
    here, there = ways(server)
    assert "space revise home NEW" in refusal("space", "set", "home", "noise=0.5", *here)
    run("space", "revise", "home", "home-3", "noise=0.5", "rewards.high=2", *there)
    run("space", "revise", "home", "home-4", "noise=0.6", "--features", "a,b", *here)
    three, four = (server.get(f"/v1/spaces/home-{i}")["config"] for i in (3, 4))
    assert (three["noise"], three["rewards"]["high"], three["alpha"]) == (0.5, 2, 0.3)
    assert three["features"] == server.get("/v1/spaces/home")["config"]["features"]
    assert (four["noise"], four["features"]) == (0.6, ["a", "b"])
    assert "no setting" in refusal("space", "revise", "home", "home-5", "nonsense=1", *here)


def test_two_operators_do_not_undo_each_other(server: Running, monkeypatch: Any) -> None:
    for way in ways(server):
        read = spaces._read

        def slow(target: Any, name: str, read: Any = read, way: Any = way) -> Any:
            found = read(target, name)
            monkeypatch.setattr(spaces, "_read", read)
            run("space", "set-alpha", "home", 0.25, *way)  # somebody else is faster
            return found

        monkeypatch.setattr(spaces, "_read", slow)
        assert "have changed" in refusal("space", "set", "home", "agents=7", *way)
        assert server.get("/v1/spaces/home")["config"]["alpha"] == 0.25
        run("space", "set", "home", "agents=7", "alpha=0.3", *way)
    assert server.summary()["config_version"] == 5


def test_schema_mismatch_says_what_to_do(server: Running, tmp_path: Path) -> None:
    """A state folder of one feature set, a space of another under the same name."""
    with server.agent("movies") as one:
        work(one, 10)
    with pytest.raises(ValueError, match="features"):
        server.agent("movies", settings=a_space(features=["a", "b", "c"]))
    with serving(tmp_path / "other", free_port()) as other:
        other.post("/v1/spaces", a_space(features=["a", "b"]).as_json())
        shutil.copytree(one.state_dir, other.data / "states" / "home" / "movies")
        with pytest.raises(Refused, match="space revise") as caught:
            other.agent("movies")
        assert caught.value.code == "schema_mismatch"
        # The server says the same to whoever comes by another way.
        answer = other.client.post(
            "/v1/spaces/home/streams",
            json={
                "stream": "00000000-0000-4000-8000-000000000000",
                "task": "tv",
                "schema_hash": a_space().schema_hash,
                "uses": [0, 1],
                "library": "0.1.0",
            },
        )
        assert (answer.status_code, answer.json()["code"]) == (409, "schema_mismatch")
        assert "new space" in answer.json()["detail"]
    journal = Journal(one.state_dir / "journal.db")
    assert journal.last()[0] == 10, "and nothing was lost"
    journal.close()


def test_pause_and_resume(server: Running) -> None:
    here, there = ways(server)
    with server.agent("movies") as one:
        work(one, 10)
        run("space", "pause", "home", "--reason", "a recall", *here)
        sync(one)
        paused = work(one, 3, seed=1)
        assert {d.kind for d in paused} == {"baseline"}
        assert all("a recall" in d.reason for d in paused)
        run("space", "resume", "home", *there)
        sync(one)
        assert all("paused" not in d.reason for d in work(one, 3, seed=2))
        for decision in paused:
            finding = audit(decision.id, find_decision(decision.id, [server.data]))
            assert finding.result == "same", finding.differences
            assert "paused" in finding.because


def test_a_live_agent_is_what_connect_makes(server: Running) -> None:
    token = server.post("/v1/tokens", {"role": "agent", "space": "home", "task": "movies"})["token"]
    given = {"space": "home", "task": "movies", "token": token, "background": False}
    with gb.connect(server.url, state_dir=server.data / "mine", **given) as one:
        assert type(one) is gb.LiveAgent
        assert one.state_dir == server.data / "mine"
