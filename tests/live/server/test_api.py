"""The API as agents and people use it, over a real server."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import httpx
import numpy as np
import pytest
from live.server.driver import SPACE, Served, problem, served

from guardband.live.protocol.sums import Sums, matrix_of
from guardband.reasons import sentence


def gram_of(stream) -> np.ndarray:
    return stream.matrix[np.triu_indices(4)]


def test_a_round_from_registration_to_the_sum(server: Served) -> None:
    movies, tv = server.agent("movies"), server.agent("tv")
    first = movies.register()
    assert (first.status_code, movies.register().status_code) == (201, 200)
    assert first.json()["task_index"] == 1
    assert first.json()["delta_share"] == 0.5  # 1 / (1 * 2)
    assert first.json()["config"] == SPACE.as_json()
    assert tv.register().json()["delta_share"] == pytest.approx(1 / 6)

    tv.upload(7)
    opened = movies.upload(5, trigger=True, for_epoch=1)
    assert opened["open"]["epoch"] == 1
    heard = tv.news(after=0, open_after=0, config_version=1).json()
    assert heard["open"]["epoch"] == 1
    closed = tv.put(for_epoch=1).json()
    assert (closed["epoch"], closed["open"]) == (1, None)

    news = movies.news(after=0, open_after=1, config_version=1).json()
    assert news["epoch"] == 1
    assert news["sums"]["n"] == 12
    assert news["own"] == {"n": 5, "version": movies.version}
    in_order = sorted((movies, tv), key=lambda each: each.id)
    expected = np.zeros(10)
    for each in in_order:
        expected = expected + gram_of(each)
    assert news["sums"]["gram"] == expected.tolist()  # bit for bit, also over JSON

    with server.client(server.viewer_token) as viewer:
        epoch = viewer.get("/v1/spaces/home/epochs/1").json()
    assert [line["stream"] for line in epoch["manifest"]] == [each.id for each in in_order]
    total = Sums(**epoch["sums"] | {"gram": np.array(epoch["sums"]["gram"])})
    assert epoch["sha256"] == total.sha256
    assert np.allclose(matrix_of(total), movies.matrix + tv.matrix, atol=1e-15)
    mine = movies.client.get("/v1/spaces/home/epochs/1").json()
    assert [line["task"] for line in mine["manifest"]] == ["movies"]
    assert mine["sums"] == epoch["sums"]


def test_a_poll_waits_and_wakes(server: Served) -> None:
    movies, tv = server.agent("movies"), server.agent("tv")
    movies.register(), tv.register()
    movies.upload()
    known = {"after": 0, "open_after": 0, "config_version": 1}
    started = time.monotonic()
    assert movies.news(wait=0.3, **known).status_code == 204
    assert 0.25 < time.monotonic() - started < 10.0

    heard = []

    def poll() -> None:
        heard.append(movies.news(wait=25, **known))
        heard.append(time.monotonic())

    waiting = threading.Thread(target=poll)
    waiting.start()
    time.sleep(0.5)
    assert not heard
    tv.upload(trigger=True, for_epoch=1)
    uploaded = time.monotonic()
    waiting.join(timeout=20)
    answer, at = heard
    assert answer.json()["open"]["epoch"] == 1
    assert at - uploaded < 2.0  # it was woken, and did not wait for its 25 seconds


def test_an_epoch_closes_at_its_deadline_with_the_late_streams_previous_cut(tmp_path) -> None:
    sync = SPACE.sync.__class__(deadline_s=0.3)
    with served(tmp_path, sync=sync) as server:
        movies, tv = server.agent("movies"), server.agent("tv")
        movies.register(), tv.register()
        tv.upload(3)
        movies.upload(5, trigger=True, for_epoch=1)
        assert tv.put(for_epoch=1).json()["epoch"] == 1
        before = gram_of(tv)
        tv.upload(4)  # stored, but not an answer to epoch 2
        movies.upload(5, trigger=True, for_epoch=2, seen_epoch=1)
        news = movies.news(after=1, open_after=2, config_version=1, wait=20).json()
        assert news["epoch"] == 2
        assert news["sums"]["n"] == 10 + 3
        assert news["sums"]["gram"] == pytest.approx((gram_of(movies) + before).tolist())


def test_the_same_upload_again_changes_nothing(server: Served) -> None:
    movies = server.agent()
    movies.register()
    first = movies.upload(5)
    base = {"n": 0, "version": ""}
    again = movies.put(base=base)
    assert again.status_code == 200
    assert again.json()["revision"] == first["revision"]
    with server.admin() as admin:
        (agent,) = admin.get("/v1/spaces/home/summary").json()["agents"]
    assert agent["n"] == 5


def test_a_conflict_says_what_is_stored(server: Served) -> None:
    movies = server.agent()
    movies.register()
    movies.upload(5)
    stored = dict(movies.base)
    movies.observe()
    refused = movies.put(base={"n": 3, "version": "0" * 32})
    assert refused.status_code == 409
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["code"] == "revision_conflict"
    assert refused.json()["stored"] == stored


def test_a_sealed_stream_takes_nothing_more(server: Served) -> None:
    movies = server.agent()
    movies.register()
    movies.upload(5)
    assert movies.seal().json() == {"done": True}
    movies.observe()
    refused = movies.put()
    assert (refused.status_code, refused.json()["code"]) == (410, "sealed")
    with server.admin() as admin:
        summary = admin.get("/v1/spaces/home/summary").json()
    assert summary["agents"][0]["state"] == "ended"
    assert summary["alerts"] == []


def test_switches(server: Served) -> None:
    movies = server.agent()
    movies.register()
    with server.admin() as admin:
        assert admin.post("/v1/spaces/home/pause", json={"reason": "recall"}).status_code == 200
        news = movies.news(config_version=1).json()
        assert news["paused"] == "recall"
        assert admin.get("/v1/spaces/home/summary").json()["agents"][0]["state"] == "paused"
        assert admin.post("/v1/spaces/home/resume").status_code == 200
        assert movies.news(config_version=2).json()["paused"] is None

        changed = SPACE.changed(alpha=0.05).as_json()
        answer = admin.put("/v1/spaces/home", json={"config": changed})
        assert answer.json()["config_version"] == 4
        assert movies.news(config_version=3).json()["config"]["alpha"] == 0.05
        other = SPACE.changed(noise=2.0).as_json()
        assert (
            admin.put("/v1/spaces/home", json={"config": other}).json()["code"] == "schema_mismatch"
        )

        path = "/v1/spaces/home/agents/movies"
        time.sleep(0.6)  # a picture may be half a second old
        for verb, state in (("quarantine", "quarantined"), ("retract", "retracted")):
            assert admin.post(f"{path}/{verb}", json={"reason": "why"}).status_code == 200
            time.sleep(0.6)
            (agent,) = admin.get("/v1/spaces/home/summary").json()["agents"]
            assert agent["state"] == state
        movies.observe()
        assert movies.put().json()["code"] == "retracted"
        assert admin.post(f"{path}/restore", json={"reason": "why"}).status_code == 200
        assert movies.put().status_code == 200
        unknown = admin.post("/v1/spaces/home/agents/x/retract", json={"reason": "y"})
        assert unknown.json()["code"] == "unknown_task"
        events = admin.get("/v1/spaces/home/summary").json()["events"]
    assert {"paused", "resumed", "config changed"} <= {event["what"] for event in events}
    assert all(event["who"].startswith("admin:") for event in events if event["what"] == "paused")


def test_settings_that_moved_since_they_were_read_are_not_overwritten(server: Served) -> None:
    with server.admin() as admin:
        read = admin.get("/v1/spaces/home").json()
        body = {key: read[key] for key in ("config", "config_version")}

        def put(**settings: Any) -> httpx.Response:
            return admin.put(
                "/v1/spaces/home", json={**body, "config": {**body["config"], **settings}}
            )

        assert put(alpha=0.2).status_code == 200
        answer = put(agents=9)
        assert problem(answer) == (409, "config_changed")
        assert answer.json()["config_version"] == 2
        config = admin.get("/v1/spaces/home").json()["config"]
        assert (config["alpha"], config["agents"]) == (0.2, 4)
        assert (
            admin.put("/v1/spaces/home", json={"config": {**config, "agents": 9}}).status_code
            == 200
        )
        assert admin.put("/v1/spaces/home", json={**body, "config_version": "1"}).status_code == 422
        assert (
            admin.post(
                "/v1/spaces", json={**body["config"], "name": "x", "config_version": 1}
            ).status_code
            == 422
        )


def test_spaces_are_listed_for_those_who_may_see_them(server: Served) -> None:
    other = SPACE.changed(name="ward").as_json()
    with server.admin() as admin:
        assert admin.post("/v1/spaces", json=other).status_code == 201
        assert admin.post("/v1/spaces", json=other).json()["code"] == "space_exists"
        assert [s["space"] for s in admin.get("/v1/spaces").json()] == ["home", "ward"]
    with server.client(server.token("viewer", space="ward")) as viewer:
        assert [s["space"] for s in viewer.get("/v1/spaces").json()] == ["ward"]
        assert viewer.get("/v1/spaces/home").json()["code"] == "wrong_space"
        assert viewer.get("/v1/spaces/ward").json()["config"] == other


def test_summary_and_history_show_reports(server: Served) -> None:
    movies = server.agent()
    movies.register()
    report = {
        "counters": {"decisions": 10, "learned": 6, "explored": 1, "baseline": 3, "observed": 10},
        "sums": {"reward": 4.0, "floor": 3.0},
        "gauges": {"beta": 2.5, "margin_min": 0.01},
        "reasons": {"careful": 3},
        "state": {"mode": "running", "reason": "certified+alarm", "theta": [0.1, 0.2, 0.3]},
    }
    assert movies.client.post(f"/v1/streams/{movies.id}/report", json=report).status_code == 200
    with server.client(server.viewer_token) as viewer:
        summary = viewer.get("/v1/spaces/home/summary").json()
        history = viewer.get("/v1/spaces/home/history").json()
    (agent,) = summary["agents"]
    for part in ("counters", "sums", "gauges", "reasons"):
        assert agent[part].items() >= report[part].items()
    assert agent["why"] == sentence("certified+alarm")
    assert agent["theta"] == [0.1, 0.2, 0.3]
    assert agent["state"] == "ok"
    assert agent["last_seen_s"] < 30
    assert summary["config"] == SPACE.as_json()
    # One task, no epoch yet: delta (1 - 1/2) (1 - 1/2).
    assert summary["delta_spent"] == pytest.approx(SPACE.delta / 4)
    assert list(history["agents"]) == ["movies"]
    assert history["agents"]["movies"]["beta"] == [2.5]
    assert history["agents"]["movies"]["reward_mean"] == [None]
    assert len(history["t"]) == 1


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"gauges": {"baseline_recent": 0.6}}, "conservative"),
        ({"gauges": {"baseline_recent": 0.4}}, "ok"),
        ({"state": {"mode": "shadow"}}, "shadow"),
        ({"state": {"mode": "lease expired"}}, "conservative"),
        ({"state": {"mode": "paused"}}, "paused"),
    ],
)
def test_the_state_of_an_agent_in_a_word(server: Served, said, state) -> None:
    movies = server.agent()
    movies.register()
    movies.client.post(f"/v1/streams/{movies.id}/report", json=said)
    with server.admin() as admin:
        assert admin.get("/v1/spaces/home/summary").json()["agents"][0]["state"] == state


def test_events_are_told_as_they_happen(server: Served) -> None:
    told: list[dict] = []
    ready = threading.Event()

    def listen() -> None:
        with (
            server.client(server.viewer_token) as viewer,
            viewer.stream("GET", "/v1/events", params={"seconds": 20}) as answer,
        ):
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                ready.set()
                if line.startswith("data: "):
                    told.append(json.loads(line[6:]))
                    return

    listener = threading.Thread(target=listen)
    listener.start()
    assert ready.wait(10)
    server.agent().register()
    listener.join(timeout=20)
    assert told == [{"space": "home", "what": "agent"}]
    deadline = time.monotonic() + 10
    while server.service.watchers.taken and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.service.watchers.taken == 0


def test_an_agent_that_left_in_the_middle_of_a_poll_goes_stale(tmp_path) -> None:
    sync = SPACE.sync.__class__(live_s=1.0)
    with served(tmp_path, sync=sync) as server:
        movies = server.agent()
        movies.register()
        known = {"after": 0, "open_after": 0, "config_version": 1, "stream": movies.id, "wait": 25}

        def states() -> str:
            with server.admin() as admin:
                return admin.get("/v1/spaces/home/summary").json()["agents"][0]["state"]

        with server.client(server.token(space="home", task="movies"), timeout=2.5) as client:
            with pytest.raises(httpx.ReadTimeout):
                client.get("/v1/spaces/home/epochs/next", params=known)
            assert states() == "ok"  # it has polled for 2.5 s, which is more than live_s
        deadline = time.monotonic() + 20
        while states() != "stale" and time.monotonic() < deadline:
            time.sleep(0.2)
        assert states() == "stale"
        assert server.service.polls.taken == 0
        with server.admin() as admin:
            (alert,) = admin.get("/v1/spaces/home/summary").json()["alerts"]
        assert (alert["id"], alert["severity"], alert["task"]) == ("stale", "ticket", "movies")


def test_health_pages_and_headers(server: Served) -> None:
    with server.client() as anybody:
        assert anybody.get("/healthz").json() == {"status": "up"}
        assert anybody.get("/readyz").json() == {"status": "ready"}
        page = anybody.get("/")
        assert page.status_code == 200
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert page.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in page.headers
        assert "server" not in page.headers
        document = anybody.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if path.startswith("/v1"):
                assert {"401", "403", "422", "429"} <= set(operation["responses"]), (path, method)
                assert operation["security"], (path, method)


def test_a_server_takes_up_where_it_was(tmp_path) -> None:
    with served(tmp_path) as server:
        movies = server.agent()
        movies.register()
        movies.upload(5, trigger=True, for_epoch=1)
        token = movies.client.headers["Authorization"]
    with served(tmp_path) as server:
        assert server.admin_token  # the first one still holds
        movies.client = server.client(token.removeprefix("Bearer "))
        assert movies.news(after=0, config_version=1).json()["sums"]["n"] == 5
        assert movies.upload(5)["revision"]["n"] == 10


def test_a_server_that_stops_lets_pollers_go_at_once(tmp_path) -> None:
    heard = []
    with served(tmp_path) as server:
        movies = server.agent()
        movies.register()

        def poll() -> None:
            heard.append(movies.news(wait=25, config_version=1).status_code)

        waiting = threading.Thread(target=poll)
        waiting.start()
        time.sleep(0.5)
        started = time.monotonic()
    waiting.join(timeout=10)
    assert heard == [204]
    assert time.monotonic() - started < 8.0
