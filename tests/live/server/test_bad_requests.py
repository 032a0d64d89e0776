"""T9: junk, odd paths and numbers at the edge are refused, and change nothing."""

from __future__ import annotations

import json
import socket
import tracemalloc
import uuid

import numpy as np
import pytest
from live.server.driver import NEXT, SPACE, Served, everything_of, numbers, problem, served, version

from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.types import LARGEST_DIM
from guardband.live.server import Settings


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/../../../../etc/passwd",
        "//etc/passwd",
        "/vendor/..%5c..%5cx",
        "/index.html%00.js",
    ],
)
def test_paths_lead_nowhere_else(shared: Served, path: str) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        sock.settimeout(20)
        answer = b"".join(iter(lambda: sock.recv(65536), b""))
    assert answer.split()[1] in (b"404", b"400")
    assert b"root:" not in answer


def test_names_are_names(shared: Served) -> None:
    with shared.admin() as admin:
        for name in ("..", "%2e%2e", "a%2Fb", "a%00b", "x" * 65, "%F0%9F%92%A9", "a%0Ab", "-x"):
            answer = admin.get(f"/v1/spaces/{name}/summary")
            assert answer.status_code in (404, 422), name
            problem(answer)
        for ident in ("x", "0" * 15, "0" * 17, "G" * 16, "../x"):
            assert admin.delete(f"/v1/tokens/{ident}").status_code in (404, 422)


def _with(key: str, value: str) -> str:
    """An upload as text, in which one value is replaced by raw JSON."""
    sums = {"n": "1", "gram": json.dumps([0.0] * 10), "surprise": "0.0", "weight": "1.0"}
    checkpoint = {"version": f'"{"0" * 32}"', "round": "0"}
    own = {"base": '{"n": 0, "version": ""}'}
    next((part for part in (sums, checkpoint) if key in part), own)[key] = value
    checkpoint["sums"] = _as_text(sums)
    return _as_text(own | {"checkpoint": _as_text(checkpoint)})


def _as_text(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{k}": {v}' for k, v in fields.items()) + "}"


JUNK = [
    ("", 422),
    ("{", 400),
    ("null", 422),
    ("[]", 422),
    ('"x"', 422),
    ("\ufeff{}", 422),
    ("[" * 50_000, 400),
    ('{"a":' * 12_000, 400),  # cut off, as some Pythons follow what is closed
    ("1" * 5_000, 400),
    (_with("n", '"1"'), 422),
    (_with("n", "true"), 422),
    (_with("n", "1.5"), 422),
    (_with("n", "-1"), 422),
    (_with("n", "1" + "0" * 400), 422),
    (_with("n", "1e400"), 422),
    (_with("n", "9007199254740993"), 422),
    (_with("n", "NaN"), 422),
    (_with("weight", "NaN"), 422),
    (_with("weight", "Infinity"), 422),
    (_with("weight", "-Infinity"), 422),
    (_with("weight", "1e999"), 422),
    (_with("weight", "1e308"), 422),
    (_with("weight", '"1"'), 422),
    (_with("weight", "null"), 422),
    (_with("surprise", "1e308"), 422),
    (_with("surprise", "false"), 422),
    (_with("gram", "[]"), 422),
    (_with("gram", "[0,0,0]"), 422),
    (_with("gram", "[1e308,1e308,1e308,1e308,1e308,1e308,1e308,1e308,1e308,1e308]"), 422),
    (_with("gram", "[NaN,0,0,0,0,0,0,0,0,0]"), 422),
    (_with("gram", '["0",0,0,0,0,0,0,0,0,0]'), 422),
    (_with("gram", "[[0],0,0,0,0,0,0,0,0,0]"), 422),
    (_with("gram", "[-1,0,0,0,0,0,0,0,0,0]"), 422),
    (_with("gram", "[0,1,0,0,0,0,0,0,0,0]"), 422),
    (_with("gram", "{}"), 422),
    (_with("version", '"x"'), 422),
    (_with("version", '"\\ud800"'), 422),
    (_with("version", '"\\u0000"'), 422),
    (_with("version", "null"), 422),
    (_with("base", "null"), 422),
    (_with("base", '{"n": 0}'), 422),
    (_with("base", '{"n": 0, "version": "", "x": 1}'), 422),
    (_with("more", "1"), 422),
    (_with("for_epoch", '"1"'), 422),
    (_with("seen_epoch", "9007199254740992"), 422),
    (_with("trigger", "1"), 422),
    (_with("round", "1e17"), 422),
    (_with("report", '{"counters": {"x": -1}}'), 422),
    (_with("report", '{"counters": {"X y": 1}}'), 422),
    (_with("report", '{"gauges": {"x": NaN}}'), 422),
    (_with("report", '{"sums": {"x": "1"}}'), 422),
    (_with("report", json.dumps({"counters": {f"k{i}": 1 for i in range(65)}})), 422),
    (_with("report", json.dumps({"state": {"reason": "x" * 81}})), 422),
    (_with("report", json.dumps({"state": {"theta": [0.0] * (LARGEST_DIM + 1)}})), 422),
    (_with("report", '{"state": {"other": 1}}'), 422),
]


@pytest.mark.parametrize(("body", "status"), JUNK, ids=range(len(JUNK)))
def test_junk_is_refused_and_changes_nothing(shared: Served, body: str, status: int) -> None:
    victim = _victim(shared)
    before = everything_of(shared, victim.id)
    answer = victim.client.put(
        f"/v1/streams/{victim.id}/checkpoint",
        content=body.encode("utf-8", "surrogatepass"),
        headers={"Content-Type": "application/json"},
    )
    assert problem(answer)[0] == status, answer.text
    assert everything_of(shared, victim.id) == before


def _victim(server: Served):
    if "victim" not in server.__dict__:
        server.__dict__["victim"] = server.agent("victim")
        server.__dict__["victim"].register()
    return server.__dict__["victim"]


def test_other_shapes_of_requests(shared: Served) -> None:
    victim = _victim(shared)
    path = f"/v1/streams/{victim.id}/checkpoint"
    for kind in ("text/plain", "application/xml", "application/x-www-form-urlencoded", ""):
        answer = victim.client.put(path, content=b"n=1", headers={"Content-Type": kind})
        assert problem(answer)[0] == 422, kind
    assert problem(victim.client.post(path)) == (405, "method_not_allowed")
    assert victim.client.post(path).headers["allow"] == "PUT"
    assert victim.client.request("PATCH", "/v1/spaces").headers["allow"] == "GET, POST"
    for query in ("after=x", "after=-1", "wait=nan", "wait=-1", "wait=inf", "stream=x"):
        assert victim.client.get(f"{NEXT}?{query}").status_code == 422, query
    for epoch in ("0", "-1", "x", "1.5", "9" * 400):
        assert victim.client.get(f"/v1/spaces/home/epochs/{epoch}").status_code == 422, epoch
    assert problem(victim.client.get("/v1/spaces/home/epochs/7")) == (404, "unknown_epoch")
    unknown = f"/v1/streams/{uuid.uuid4()}/checkpoint"
    assert problem(victim.client.put(unknown, json=victim.body(n=1, version=version()))) == (
        404,
        "unknown_stream",
    )
    with shared.admin() as admin:
        bad = SPACE.as_json() | {"name": "bad", "rewards": {"low": 1.0, "high": 0.0}}
        assert problem(admin.post("/v1/spaces", json=bad)) == (422, "invalid_space")
        twice = SPACE.as_json() | {"name": "bad", "features": ["a", "a"]}
        assert problem(admin.post("/v1/spaces", json=twice)) == (422, "invalid_space")
        assert problem(admin.post("/v1/spaces/home/pause", json={"reason": None}))[0] == 422
        assert problem(admin.get("/v1/spaces/none/summary")) == (404, "unknown_space")
        assert problem(admin.post("/v1/spaces/none/resume")) == (404, "unknown_space")


@pytest.mark.parametrize(
    "extreme",
    [
        {"noise": 1.1e-100, "theta_bound": 1.1e-100, "feature_bound": 9e99},
        {"noise": 9e99, "theta_bound": 9e99, "feature_bound": 1.1e-100},
        {"ridge": 9e99, "feature_bound": 9e49, "delta": 1e-100},
        {"rewards": {"low": -9e99, "high": 9e99}, "noise": 1.1e-100},
        {"algorithm": "disc-ucb", "feature_bound": 1.1e-50, "ridge": 1.1e-100},
        {"sync": {"deadline_s": 1.1e-100, "live_s": 1.1e-100, "min_interval_s": 1e9}},
        {"lease_s": 1.1e-100, "shares": "equal", "agents": 100_000},
    ],
)
def test_a_space_at_the_edge_of_numbers_breaks_nothing(shared: Served, extreme) -> None:
    name = f"edge{next(numbers)}"
    space = SpaceSettings.from_json(SPACE.as_json() | {"name": name} | extreme)
    with shared.admin() as admin:
        assert admin.post("/v1/spaces", json=space.as_json()).status_code == 201
        for task in ("a", "b"):
            stream = shared.agent(task, space=name)
            body = stream.register_body(schema_hash=space.schema_hash)
            assert stream.client.post(f"/v1/spaces/{name}/streams", json=body).status_code == 201
            stream.observe(50)
            for size in (1e-160, 1.0, 1e150, 1e306):
                gram = (size * stream.matrix[np.triu_indices(4)]).tolist()
                sent = stream.body(gram=gram, weight=size, version=version(), trigger=True)
                answer = stream.client.put(f"/v1/streams/{stream.id}/checkpoint", json=sent)
                assert answer.status_code < 500, answer.text
                assert stream.news(wait=0.2, config_version=1).status_code < 500
        for path in (f"/v1/spaces/{name}/summary", f"/v1/spaces/{name}/history", "/metrics"):
            assert admin.get(path).status_code == 200, path


@pytest.mark.parametrize(
    "beyond",
    [
        {"theta_bound": 9e99, "feature_bound": 9e99},
        {"theta_bound": 1.1e-100, "feature_bound": 1.1e-100},
        {"feature_bound": 9e99, "ridge": 1.1e-100},
        {"delta": 5e-324},
    ],
)
def test_a_space_beyond_the_edge_of_numbers_is_refused(shared: Served, beyond) -> None:
    """Sums in which the ridge is lost, or is all there is, would refuse honest data later."""
    space = SPACE.as_json() | {"name": f"edge{next(numbers)}"} | beyond
    with shared.admin() as admin:
        assert problem(admin.post("/v1/spaces", json=space)) == (422, "invalid_space")


@pytest.mark.slow
def test_memory_does_not_grow_with_junk(tmp_path) -> None:
    with served(tmp_path, Settings(requests_per_s=1e6, uploads_per_s=1e6)) as server:
        victim = server.agent("victim")
        victim.register()
        with server.client() as nobody:
            bodies = [body.encode("utf-8", "surrogatepass") for body, _ in JUNK]

            def barrage(count: int) -> None:
                for k in range(count):
                    junk, name = bodies[k % len(bodies)], f"{k}-{uuid.uuid4()}"
                    kind = {"Content-Type": "application/json"}
                    victim.client.put(
                        f"/v1/streams/{victim.id}/checkpoint", content=junk, headers=kind
                    )
                    nobody.get(f"/{name}")
                    nobody.get("/v1/spaces", headers={"Authorization": f"Bearer gb_{name}"})
                    victim.client.get(f"/v1/streams/{uuid.uuid4()}/checkpoint")
                    victim.client.get(f"/v1/spaces/{name}/summary")

            barrage(100)
            tracemalloc.start(1)
            try:
                start, _ = tracemalloc.get_traced_memory()
                barrage(400)  # 2,000 requests
                end, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        assert end - start < 4_000_000
        with server.service.store.reading() as t:
            assert len(t.events("home", 1_000)) < 20  # nor does the audit


@pytest.mark.parametrize("name", ["\\ud800", "noise\\udfff"])
def test_half_of_a_character_in_the_name_of_a_setting_is_refused(shared: Served, name: str) -> None:
    text = json.dumps(SPACE.changed(name="odd").as_json())[:-1] + f', "{name}": 1}}'
    with shared.admin() as admin:
        answer = admin.post(
            "/v1/spaces", content=text, headers={"Content-Type": "application/json"}
        )
    assert problem(answer)[0] == 422
    assert f"unknown setting {name}" in answer.json()["detail"].replace("\\\\", "\\")
