"""The hospital profile end to end, and what happens with a task that cannot be trusted."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import DIM, Hands, journal_of, link_of, make_due
from live.operators.world import (
    Running,
    a_space,
    close_agents,
    free_port,
    pool,
    run,
    serving,
    sync,
    work,
)

from guardband.live.client.replay import rebuild
from guardband.live.operators.audit import audit, find_decision
from guardband.live.protocol.messages import FIGURES
from guardband.live.protocol.space import SpaceSettings
from guardband.live.server.first_start import DATABASE
from guardband.live.store.sqlite import SqliteStore

WARDS = ("ward-1", "ward-2", "ward-3")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path / "gb", free_port()) as running:
        yield running
        close_agents()


def hospital(server: Running, **settings: Any) -> SpaceSettings:
    space = a_space(profile="hospital", **settings)
    server.post("/v1/spaces", space.as_json())
    return space


def uploads(one: Any) -> list[int]:
    """Watch an agent's link; returns a list that fills with the new observations of uploads."""
    seen: list[int] = []
    link = link_of(one)
    upload = link.upload

    def watched(stream: str, request: Any) -> Any:
        seen.append(request.checkpoint.sums.n - request.base.n)
        return upload(stream, request)

    link.upload = watched
    return seen


def test_the_profile() -> None:
    space = a_space(profile="hospital")
    assert (space.sync.min_batch, space.sync.min_streams, space.lease_s) == (20, 3, 86_400.0)


def test_a_small_batch_is_never_sent_and_would_be_refused(server: Running) -> None:
    space = hospital(server)
    one = server.agent("ward-1")
    sizes = uploads(one)
    for i in range(19):
        work(one, 1, seed=i)
        make_due(one)
        sync(one)
    assert one.counted == 19
    assert all(size == 0 for size in sizes), sizes
    work(one, 1, seed=19)
    pool(one)
    assert [size for size in sizes if size] == [20]
    work(one, 7, seed=20)
    one.close()  # nor at the end
    assert [size for size in sizes if size] == [20]

    # Somebody who sends fewer all the same:
    stream = str(uuid.uuid4())
    body = {
        "stream": stream,
        "task": "ward-2",
        "schema_hash": space.schema_hash,
        "uses": [0, 1, 2],
        "library": "0.1.0",
    }
    server.post("/v1/spaces/home/streams", body)

    def send(n: int, base: dict[str, Any], version: str, rows: int) -> Any:
        rng = np.random.default_rng(0)
        z = np.column_stack([rng.uniform(0, 0.5, (rows, DIM)), rng.uniform(0, 1, rows)])
        gram = (z.T @ z)[np.triu_indices(DIM + 1)].tolist()
        sums = {"n": n, "gram": gram, "surprise": 0.0, "weight": float(n)}
        own = {"checkpoint": {"version": version, "sums": sums}}
        return server.client.put(f"/v1/streams/{stream}/checkpoint", json={"base": base, **own})

    nothing = {"n": 0, "version": ""}
    refused = send(19, nothing, "a" * 32, 19)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_increment")
    assert refused.json()["check"] == "batch"
    assert send(20, nothing, "b" * 32, 20).status_code == 200
    refused = send(39, {"n": 20, "version": "b" * 32}, "c" * 32, 39)
    assert (refused.status_code, refused.json()["check"]) == (422, "batch")


def told_of(server: Running, task: str) -> dict[str, Any]:
    """What the coordinator keeps of a task's last report."""
    store = SqliteStore(server.data / DATABASE)
    try:
        with store.reading() as t:
            return json.loads(next(p.report for p in t.heartbeats("home") if p.task == task))
    finally:
        store.close()


def test_reports_between_uploads_tell_nothing_of_one_patient(server: Running) -> None:
    """From figures before and after one observation its features and reward can be computed."""
    hospital(server)
    one = server.agent("ward-1")
    work(one, 25)
    pool(one)
    before = told_of(server, "ward-1")
    assert before["gauges"]["own_n"] == 25
    assert before["state"]["theta"]
    work(one, 1, seed=7)
    sync(one)
    after = told_of(server, "ward-1")
    assert after["counters"]["decisions"] == 26
    assert after["sums"] == before["sums"]
    assert after["state"]["theta"] == before["state"]["theta"]
    for figure in FIGURES:
        assert after["gauges"].get(figure) == before["gauges"].get(figure), figure
    # Somebody who reports all the same is not listened to.
    link_of(one).report(one.status()["stream"], one.report())
    kept = told_of(server, "ward-1")
    assert (kept["sums"], kept["state"]["theta"]) == ({}, [])
    assert not set(FIGURES) & set(kept["gauges"])
    server.summary()  # people see what is left
    work(one, 24, seed=8)
    pool(one)
    assert told_of(server, "ward-1")["gauges"]["own_n"] == 50


def test_no_sum_before_three_tasks_are_in_it(server: Running) -> None:
    hospital(server)
    one, two = server.agent("ward-1"), server.agent("ward-2")
    work(one, 25), work(two, 25, seed=1)
    pool(one, two)
    for each in (one, two):
        assert (each.epoch, each.report().gauges["foreign_n"]) == (0, 0)
    # A third one is there, but has nothing to give yet.
    three = server.agent("ward-3")
    work(three, 19, seed=2)
    pool(one, two, three)
    assert server.epoch() == 0, "an epoch without a sum is good for nothing"
    assert {each.epoch for each in (one, two, three)} == {0}
    assert {each.report().gauges["foreign_n"] for each in (one, two, three)} == {0}
    work(three, 1, seed=3)
    pool(one, two, three)
    newest = server.epoch()
    assert server.get(f"/v1/spaces/home/epochs/{newest}")["sums"] is not None
    assert [each.report().gauges["foreign_n"] for each in (one, two, three)] == [45, 45, 50]
    # With one of them out there are two again: nothing new is told about either, and the sum with
    # the third one's data in it is no longer used.
    run("space", "quarantine", "home", "ward-3", "--data", server.data)
    sync(one), sync(two), sync(one)
    assert server.epoch() == newest + 1
    assert server.get(f"/v1/spaces/home/epochs/{newest + 1}")["sums"] is None
    for each in (one, two):
        assert (each.epoch, each.report().gauges["foreign_n"]) == (newest + 1, 0)
        alone = work(each, 1, seed=4)[0]
        assert audit(alone.id, find_decision(alone.id, [each.state_dir])).result == "same"
    work(one, 40, seed=5)
    pool(one, two)
    assert server.epoch() == newest + 1
    run("space", "restore-task", "home", "ward-3", "--data", server.data)
    pool(one, two, three)
    assert [each.report().gauges["foreign_n"] for each in (one, two, three)] == [45, 86, 91]


def test_the_lease_is_a_day(server: Running) -> None:
    hospital(server)
    hands = Hands(wall=2e9)
    one = server.agent("ward-1", clock=hands.clock())
    work(one, 2)
    hands.pass_(86_300.0)
    assert "lease" not in work(one, 1, seed=1)[0].reason
    hands.pass_(200.0)
    late = work(one, 2, seed=2)
    assert {d.kind for d in late} == {"baseline"}
    assert all("lease has expired" in d.reason for d in late)
    assert audit(late[0].id, find_decision(late[0].id, [server.data])).result == "same"
    sync(one)
    assert "lease" not in work(one, 1, seed=3)[0].reason


def test_quarantine_retract_restore(server: Running) -> None:
    server.post("/v1/spaces", a_space().as_json())
    agents = [server.agent(ward) for ward in WARDS]
    for i, one in enumerate(agents):
        work(one, 25, seed=i)
    pool(*agents)
    one, two, three = agents

    def manifest() -> dict[str, int]:
        newest = server.epoch()
        lines = server.get(f"/v1/spaces/home/epochs/{newest}")["manifest"]
        return {line["task"]: line["n"] for line in lines}

    assert manifest() == dict.fromkeys(WARDS, 25)
    run("space", "quarantine", "home", "ward-3", "--reason", "odd rewards", "--data", server.data)
    work(one, 5, seed=10), work(three, 5, seed=11)
    pool(one, two, three)
    assert manifest() == {"ward-1": 30, "ward-2": 25}
    states = {a["task"]: a["state"] for a in server.summary()["agents"]}
    assert states["ward-3"] == "quarantined"
    beta_out = one.report().gauges["beta"]

    run("space", "restore-task", "home", "ward-3", "--data", server.data)
    pool(three, one, two)
    assert manifest() == {"ward-1": 30, "ward-2": 25, "ward-3": 30}, "collected meanwhile"

    run("space", "retract", "home", "ward-2", "--reason", "consent", "--data", server.data)
    work(one, 5, seed=12)
    pool(one, three)
    assert manifest() == {"ward-1": 35, "ward-3": 30}
    work(two, 3, seed=13)
    with pytest.raises(Exception, match="consent"):
        two.sync()
    run("space", "restore-task", "home", "ward-2", "--data", server.data)
    sync(two)
    pool(one, two, three)
    assert manifest() == {"ward-1": 35, "ward-2": 28, "ward-3": 30}
    assert beta_out > 0.0
    what = [e["what"] for e in server.summary()["events"]]
    assert [w for w in what if w in ("quarantine", "retract", "restore")] == [
        "restore",
        "retract",
        "restore",
        "quarantine",
    ]


def level(one: Any) -> float:
    """2 log(1 / delta) as the next decision has it, by its journal."""
    work(one, 1, seed=99)
    journal = journal_of(one)
    (seq,) = journal.query("SELECT max(seq) FROM decision")[0]
    return float(rebuild(journal, seq).learner.level)


def test_leaving_a_task_out_by_choice_is_paid_for(server: Running) -> None:
    """A choice that may have looked at rewards: delta is divided among all possible choices."""
    server.post("/v1/spaces", a_space().as_json())
    agents = [server.agent(ward) for ward in WARDS]
    for i, one in enumerate(agents):
        work(one, 25, seed=i)
    pool(*agents)
    one = agents[0]
    plain = level(one)
    run("space", "quarantine", "home", "ward-3", "--data", server.data)
    work(one, 1, seed=9)
    pool(*agents[:2])
    wider = level(one)
    p = one.epoch + one.report().counters["conflicts"] + 1
    grown = 2.0 * np.log(p * (p + 1) / ((p - 1) * p))
    price = (np.e - 1.0) * (4 + 1)  # one of four tasks is out
    assert wider - plain == pytest.approx(2.0 * np.log(price) + grown, abs=1e-9)


def test_a_task_that_is_different_rings_the_bell(server: Running) -> None:
    # Without monitors, which would let it leave by itself.
    server.post("/v1/spaces", a_space(context_noise=0.0, delta_alarm=0.0).as_json())
    honest = [server.agent(ward) for ward in WARDS]
    for i, one in enumerate(honest):
        work(one, 300, seed=i, noise=0.1)
    pool(*honest)
    assert "heterogeneity" not in server.alerts()
    other = server.agent("liar")
    work(other, 300, seed=9, theta=np.array([0.1, 0.0, 1.4]), noise=0.1)
    pool(other, *honest)
    found = [a for a in server.summary()["alerts"] if a["id"] == "heterogeneity"]
    assert "liar" in {alert["task"] for alert in found}
    assert {alert["severity"] for alert in found} == {"page"}
    run("space", "quarantine", "home", "liar", "--data", server.data)
    work(honest[0], 5, seed=20, noise=0.1)
    pool(*honest)
    lines = server.get(f"/v1/spaces/home/epochs/{server.epoch()}")["manifest"]
    assert {line["task"] for line in lines} == set(WARDS)


def test_one_new_observation_reveals_it() -> None:
    """What docs/privacy.md says: with delta-n = 1 the features and the reward can be read off."""
    psi, y, w = np.array([0.2, 0.5, 0.1]), 0.7, 2.5
    before = np.random.default_rng(0).uniform(size=(30, 4))
    z = np.append(psi, y)
    earlier = before.T @ before
    later = earlier + w * np.outer(z, z)
    increment = later - earlier
    values, vectors = np.linalg.eigh(increment)
    assert np.abs(values[:-1]).max() < 1e-9 < values[-1]
    read = vectors[:, -1] * np.sqrt(values[-1] / w)
    np.testing.assert_allclose(read * np.sign(read[-1]), z, atol=1e-9)
