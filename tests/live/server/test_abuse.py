"""T9: what strangers, thieves and broken clients may try; none of it changes what isn't theirs."""

from __future__ import annotations

import json
import socket
import threading
import time
import tracemalloc
import uuid
from contextlib import suppress

import httpx
import numpy as np
import pytest
from live.server.driver import SPACE, Served, numbers, served, version

from guardband.live.server import Settings
from guardband.live.space import Space

NEXT = "/v1/spaces/home/epochs/next"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with served(tmp_path_factory.mktemp("abuse"), agents=100) as server:
        with server.admin() as admin:
            other = SPACE.changed(name="elsewhere").as_json()
            assert admin.post("/v1/spaces", json=other).status_code == 201
        yield server


def everything_of(server: Served, stream: str) -> bytes:
    """What is stored of a stream and of its space's epoch."""
    with server.site.store.reading() as t:
        row, space = t.stream(stream), t.space("home")
    assert row is not None
    assert space is not None
    return repr((row, space.epoch, space.config)).encode()


def problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["type"] == f"urn:guardband:problem:{body['code']}"
    assert body["title"]
    assert body["detail"]
    return body["status"], body["code"]


def test_no_token_a_wrong_one_and_a_revoked_one(shared: Served) -> None:
    with shared.client() as nobody:
        assert problem(nobody.get("/v1/spaces")) == (401, "no_token")
        assert problem(nobody.get("/metrics")) == (401, "no_token")
        assert problem(nobody.get("/v1/no/such/thing")) == (401, "no_token")
    token = shared.token("viewer")
    head, ident, secret = token.split("_", 2)
    swapped = ("a" if secret[0] != "a" else "b") + secret[1:]
    for wrong in ("x", f"{head}_{ident}_{swapped}", f"gb_{'0' * 16}_{secret}", token + "\t x"):
        with shared.client(wrong) as thief:
            assert problem(thief.get("/v1/spaces")) == (401, "unknown_token")
    with shared.client(token) as viewer, shared.admin() as admin:
        assert viewer.get("/v1/spaces").status_code == 200
        assert admin.delete(f"/v1/tokens/{ident}").status_code == 204
        assert problem(viewer.get("/v1/spaces")) == (401, "unknown_token")
        assert problem(admin.delete(f"/v1/tokens/{ident}")) == (404, "unknown_token")


def test_rotation_keeps_the_rights_and_the_old_token_until_it_is_deleted(shared: Served) -> None:
    old = shared.token(space="home", task="rotated")
    with shared.admin() as admin:
        made = admin.post(f"/v1/tokens/{old.split('_')[1]}/rotate").json()
        assert (made["role"], made["space"], made["task"]) == ("agent", "home", "rotated")
        for token in (old, made["token"]):
            assert shared.client(token).get("/v1/spaces").status_code == 200
        listed = admin.get("/v1/tokens").text
        assert made["id"] in listed
        assert made["token"] not in listed
    raw = (shared.data / "coordinator.db").read_bytes()
    wal = (shared.data / "coordinator.db-wal").read_bytes()
    assert made["token"].split("_", 2)[2].encode() not in raw + wal  # only its digest is there


def test_the_last_admin_stays(tmp_path) -> None:
    with served(tmp_path) as server, server.admin() as admin:
        ident = server.admin_token.split("_")[1]
        assert problem(admin.delete(f"/v1/tokens/{ident}")) == (409, "last_admin")


def test_tokens_in_the_wrong_role(shared: Served) -> None:
    agent, viewer = shared.agent("role"), shared.client(shared.viewer_token)
    assert agent.register().status_code == 201
    only_admins = [
        ("POST", "/v1/spaces", SPACE.changed(name="x").as_json()),
        ("PUT", "/v1/spaces/home", SPACE.as_json()),
        ("POST", "/v1/spaces/home/pause", {"reason": "x"}),
        ("POST", "/v1/spaces/home/resume", None),
        ("POST", "/v1/spaces/home/agents/role/quarantine", {"reason": "x"}),
        ("POST", "/v1/spaces/home/agents/role/retract", {"reason": "x"}),
        ("POST", "/v1/spaces/home/agents/role/restore", {"reason": "x"}),
        ("POST", "/v1/spaces/home/agents/role/end", None),
        ("GET", "/v1/tokens", None),
        ("POST", "/v1/tokens", {"role": "admin"}),
        ("DELETE", f"/v1/tokens/{'0' * 16}", None),
        ("POST", f"/v1/tokens/{'0' * 16}/rotate", None),
    ]
    for method, path, body in only_admins:
        for client in (agent.client, viewer):
            assert problem(client.request(method, path, json=body)) == (403, "wrong_role"), path
    for path in ("/v1/spaces/home/summary", "/v1/spaces/home/history", "/v1/events", "/metrics"):
        assert problem(agent.client.get(path)) == (403, "wrong_role"), path
    not_viewers = [
        ("POST", "/v1/spaces/home/streams", agent.register_body()),
        ("PUT", f"/v1/streams/{agent.id}/total", agent.body(version=version(), n=1)),
        ("POST", f"/v1/streams/{agent.id}/report", {}),
        ("POST", f"/v1/streams/{agent.id}/seal", {"n": 0, "version": ""}),
        ("GET", f"{NEXT}?stream={agent.id}", None),
    ]
    for method, path, body in not_viewers:
        assert problem(viewer.request(method, path, json=body)) == (403, "wrong_role"), path


def test_an_admin_of_one_space_rules_there_only(shared: Served) -> None:
    with shared.client(shared.token("admin", space="elsewhere")) as admin:
        assert problem(admin.get("/v1/spaces/home")) == (403, "wrong_space")
        assert problem(admin.post("/v1/spaces", json=SPACE.as_json())) == (403, "wrong_space")
        assert problem(admin.post("/v1/tokens", json={"role": "admin"})) == (403, "wrong_space")
        body = {"role": "agent", "space": "home", "task": "x"}
        assert problem(admin.post("/v1/tokens", json=body)) == (403, "wrong_space")
        others = shared.admin_token.split("_")[1]
        assert problem(admin.delete(f"/v1/tokens/{others}")) == (404, "unknown_token")
        assert admin.get("/v1/tokens").json()[0]["space"] == "elsewhere"
        assert problem(admin.get("/metrics")) == (403, "wrong_space")


def test_a_viewer_of_one_space_sees_nothing_else(shared: Served) -> None:
    with shared.client(shared.token("viewer", space="elsewhere")) as viewer:
        for path in ("", "/summary", "/history", "/epochs/1", "/epochs/next"):
            answer = viewer.get(f"/v1/spaces/home{path}")
            assert problem(answer) == (403, "wrong_space"), path
        assert problem(viewer.get("/metrics")) == (403, "wrong_space")
        assert [each["space"] for each in viewer.get("/v1/spaces").json()] == ["elsewhere"]
        with viewer.stream("GET", "/v1/events", params={"seconds": 1}) as heard:
            lines = heard.iter_lines()
            next(lines)
            agent = shared.agent("seen")
            agent.register()
            agent.upload(5)
            assert "home" not in "".join(lines)


def test_an_agent_changes_its_token_without_a_pause(shared: Served) -> None:
    movies = shared.agent("changing")
    movies.register()
    movies.upload(5)
    old = movies.client.headers["Authorization"].split("_")[1]
    with shared.admin() as admin:
        new = admin.post(f"/v1/tokens/{old}/rotate").json()["token"]
        movies.upload(5)  # while the new one is on its way
        late, movies.client = movies.client, shared.client(new)
        movies.upload(5)
        assert admin.delete(f"/v1/tokens/{old}").status_code == 204
        assert problem(late.get("/v1/me")) == (401, "unknown_token")
        assert movies.upload(5)["n"] == 20
        events = admin.get("/v1/spaces/home/summary").json()["events"]
    ids = (old, new.split("_")[1])
    whats = [event["what"] for event in events if event["detail"].get("token") in ids]
    assert whats == ["token revoked", "token created", "token created"]


def test_false_claims_about_lost_epochs_stop_nobody(tmp_path) -> None:
    with served(tmp_path) as server, server.admin() as admin:
        liar, honest = server.agent("liar"), server.agent("honest")
        liar.register(), honest.register()
        liar.observe()
        for seen in range(1, 60):
            assert liar.put(seen_epoch=seen).status_code == 200
        answer = liar.put(seen_epoch=10**6)
        assert problem(answer) == (422, "invalid_epoch")
        summary = admin.get("/v1/spaces/home/summary").json()
        restores = [event for event in summary["events"] if event["what"] == "server restore"]
        assert len(restores) == 1
        opened = honest.upload(5, trigger=True)["open"]["epoch"]  # it has seen none of them
        assert opened <= 20
        honest.upload(5, for_epoch=opened)
        liar.put(for_epoch=opened)
        news = honest.news(wait=10, open_after=opened, config_version=1).json()
        assert (news["epoch"], news["own"]["n"]) == (opened, 10)


def test_another_agents_stream(shared: Served) -> None:
    mine, theirs = shared.agent("mine"), shared.agent("theirs")
    mine.register(), theirs.register()
    theirs.upload(5)
    before = everything_of(shared, theirs.id)
    theirs.observe()
    thief = mine.client
    assert problem(thief.put(f"/v1/streams/{theirs.id}/total", json=theirs.body())) == (
        403,
        "wrong_task",
    )
    for path, body in (("report", {}), ("seal", theirs.base)):
        assert problem(thief.post(f"/v1/streams/{theirs.id}/{path}", json=body)) == (
            403,
            "wrong_task",
        )
    assert problem(thief.get(NEXT, params={"stream": theirs.id})) == (403, "wrong_task")
    as_theirs = mine.register_body(task="theirs", stream=str(uuid.uuid4()))
    path = "/v1/spaces/home/streams"
    assert problem(thief.post(path, json=as_theirs)) == (403, "wrong_task")
    assert problem(thief.post(path, json=mine.register_body(stream=theirs.id))) == (
        409,
        "stream_taken",
    )
    heir = {"stream": theirs.id, **theirs.base}
    body = mine.register_body(stream=str(uuid.uuid4()), continue_of=heir)
    assert problem(thief.post(path, json=body)) == (409, "stream_taken")
    with shared.client(shared.token(space="elsewhere", task="theirs")) as foreigner:
        answer = foreigner.put(f"/v1/streams/{theirs.id}/total", json=theirs.body())
        assert problem(answer) == (403, "wrong_space")
        assert problem(foreigner.get(NEXT)) == (403, "wrong_space")
    assert everything_of(shared, theirs.id) == before


def test_a_replayed_upload_counts_once(shared: Served) -> None:
    movies = shared.agent("replayed")
    movies.register()
    movies.observe()
    body = movies.body()
    path = f"/v1/streams/{movies.id}/total"
    assert movies.client.put(path, json=body).status_code == 200
    before = everything_of(shared, movies.id)
    for _ in range(5):
        assert movies.client.put(path, json=body).status_code == 200
    assert everything_of(shared, movies.id) == before
    movies.base = {"n": movies.n, "version": movies.version}
    movies.upload(5)
    old = movies.client.put(path, json=body)  # an old one, after newer ones
    assert problem(old) == (409, "chain_conflict")


@pytest.mark.parametrize("lengthless", [False, True])
def test_oversize(shared: Served, lengthless: bool) -> None:
    movies = shared.agent(f"big-{lengthless}")
    movies.register()
    junk = b'{"gram": [' + b"0," * 60_000 + b"0]}"

    def parts():
        for start in range(0, len(junk), 4096):
            yield junk[start : start + 4096]

    body = parts() if lengthless else junk
    answer = movies.client.put(
        f"/v1/streams/{movies.id}/total",
        content=body,
        headers={"Content-Type": "application/json"},
    )
    assert problem(answer) == (413, "too_large")
    assert answer.json()["limit"] == 64 * 1024
    assert movies.upload(1)["n"] == 1


def test_a_large_space_may_send_its_totals(tmp_path) -> None:
    with served(tmp_path) as server, server.admin() as admin:
        assert server.site.upload_bytes == 64 * 1024
        features = [f"f{k}" for k in range(100)]
        wide = SPACE.as_json() | {"name": "wide", "features": features}
        assert admin.post("/v1/spaces", json=wide).status_code == 201
        assert server.site.upload_bytes > 5151 * 20  # (101)(102)/2 numbers


def test_an_endless_body_is_cut_off(tmp_path) -> None:
    with served(tmp_path, Settings(header_s=0.5, body_s=0.5)) as server:
        token = server.token(space="home", task="x")
        with socket.create_connection(server.url.removeprefix("http://").split(":")) as sock:
            sock.settimeout(20)
            head = f"PUT /v1/streams/{uuid.uuid4()}/total HTTP/1.1\r\nHost: x\r\n"
            head += f"Authorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
            sock.sendall(head.encode())
            sent = 0
            with suppress(OSError):
                for _ in range(100_000):
                    sock.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                    sent += 4096
            assert sent < 400_000_000
            with suppress(OSError):
                assert b"413" in sock.recv(65536)


def test_half_a_request_blocks_nobody_and_is_let_go(tmp_path) -> None:
    with served(tmp_path, Settings(header_s=1.0, body_s=1.0)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        heads = [socket.create_connection((host, int(port))) for _ in range(50)]
        bodies = [socket.create_connection((host, int(port))) for _ in range(20)]
        token = server.token(space="home", task="x")
        for sock in heads:
            sock.sendall(b"GET /v1/spaces HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        head = "POST /v1/spaces/home/streams HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        for sock in bodies:
            sock.sendall(f"{head}Authorization: Bearer {token}\r\n\r\n{{".encode())
        started = time.monotonic()
        movies = server.agent()
        assert movies.register().status_code == 201
        assert movies.upload(5)["n"] == 5
        assert time.monotonic() - started < 5.0
        for sock in heads:
            sock.settimeout(20)
            with suppress(ConnectionError):
                assert sock.recv(1024) == b""  # let go without a word
        for sock in bodies:
            sock.settimeout(20)
            answer = sock.recv(4096)
            assert answer.startswith(b"HTTP/1.1 408")
        for sock in heads + bodies:
            sock.close()


def test_a_client_that_leaves_in_the_middle_is_no_error(shared: Served, caplog) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    token = shared.token(space="home", task="leaver")
    head = "POST /v1/spaces/home/streams HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    with caplog.at_level("INFO", logger="guardband.server"):
        with socket.create_connection((host, int(port))) as sock:
            sock.sendall(f"{head}Authorization: Bearer {token}\r\n\r\n{{".encode())
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            done = [r.fields for r in caplog.records if r.getMessage() == "request"]
            if any(fields["status"] == 499 for fields in done):
                break
            time.sleep(0.05)
    assert any(fields["status"] == 499 for fields in done)
    assert not [r for r in caplog.records if r.levelname == "ERROR"]


def test_drops_do_not_keep_a_connection_for_ever(tmp_path) -> None:
    with served(tmp_path, Settings(header_s=0.5)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as sock:
            started = time.monotonic()
            with suppress(OSError):
                sock.sendall(b"GET / HTTP/1.1\r\n")
                while time.monotonic() - started < 20:
                    sock.sendall(b"X: y\r\n")
                    time.sleep(0.05)
            assert time.monotonic() - started < 15


def test_more_connections_than_allowed_are_closed(tmp_path) -> None:
    with served(tmp_path, Settings(connections=20)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        socks = [socket.create_connection((host, int(port))) for _ in range(60)]
        time.sleep(0.5)
        closed = 0
        for sock in socks:
            sock.settimeout(0.02)
            try:
                closed += sock.recv(1) == b""
            except TimeoutError:
                pass
            except ConnectionError:
                closed += 1
            sock.close()
        assert closed >= 40
        time.sleep(0.3)
        assert server.client().get("/healthz").status_code == 200


def test_ten_times_the_rate_is_refused_and_others_are_not(tmp_path) -> None:
    settings = Settings(uploads_per_s=10.0, upload_burst=20)
    with served(tmp_path, settings) as server:
        movies, tv = server.agent("movies"), server.agent("tv")
        movies.register(), tv.register()
        movies.observe()
        started = time.monotonic()
        answers = [movies.put() for _ in range(100)]
        seconds = time.monotonic() - started
        limited = [answer for answer in answers if answer.status_code == 429]
        assert len(answers) - len(limited) <= 21 + 10 * seconds
        assert limited
        assert problem(limited[0]) == (429, "rate_limited")
        assert int(limited[0].headers["Retry-After"]) >= 1
        assert tv.upload(5)["n"] == 5
        time.sleep(limited[-1].json()["retry_after_s"] + 0.2)
        assert movies.put().status_code == 200


def test_new_streams_have_a_rate_of_their_own(tmp_path) -> None:
    with served(tmp_path, Settings(streams_per_s=0.01, stream_burst=2)) as server:
        movies = server.agent()
        assert [movies.register().status_code for _ in range(3)] == [201, 200, 429]
        assert movies.upload(5)["n"] == 5


def test_polls_and_watchers_run_out(tmp_path) -> None:
    settings = Settings(polls=3, polls_per_token=2, watchers=1)
    with served(tmp_path, settings) as server:
        movies = server.agent()
        movies.register()
        threads = [
            threading.Thread(target=movies.news, kwargs={"wait": 3, "config_version": 1})
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        assert problem(movies.news(wait=3, config_version=1)) == (503, "too_many_polls")
        assert server.agent("tv").register().status_code == 201
        with server.admin() as admin, admin.stream("GET", "/v1/events") as held:
            lines = held.iter_lines()
            next(lines)
            other = server.admin().get("/v1/events", params={"seconds": 1})
            assert problem(other) == (503, "too_many_watchers")
        for thread in threads:
            thread.join(timeout=20)
        assert movies.news(wait=0.1, config_version=1).status_code == 204


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
    own = {
        "base": '{"n": 0, "version": ""}',
        "n": "1",
        "version": f'"{"0" * 32}"',
        "gram": json.dumps([0.0] * 10),
        "surprise": "0.0",
        "weight": "1.0",
    }
    own[key] = value
    return "{" + ", ".join(f'"{k}": {v}' for k, v in own.items()) + "}"


JUNK = [
    ("", 422),
    ("{", 400),
    ("null", 422),
    ("[]", 422),
    ('"x"', 422),
    ("\ufeff{}", 422),
    ("[" * 50_000, 400),
    ('{"a":' * 5_000 + "1" + "}" * 5_000, 400),
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
    (_with("report", json.dumps({"state": {"why": "x" * 501}})), 422),
    (_with("report", json.dumps({"state": {"theta": [0.0] * 257}})), 422),
    (_with("report", '{"state": {"other": 1}}'), 422),
]


@pytest.mark.parametrize(("body", "status"), JUNK, ids=range(len(JUNK)))
def test_junk_is_refused_and_changes_nothing(shared: Served, body: str, status: int) -> None:
    victim = _victim(shared)
    before = everything_of(shared, victim.id)
    answer = victim.client.put(
        f"/v1/streams/{victim.id}/total",
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
    path = f"/v1/streams/{victim.id}/total"
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
    unknown = f"/v1/streams/{uuid.uuid4()}/total"
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
        {"noise": 1.1e-100, "theta_bound": 9e99, "feature_bound": 9e99},
        {"noise": 9e99, "theta_bound": 1.1e-100, "feature_bound": 1.1e-100},
        {"ridge": 1.1e-100, "feature_bound": 9e99, "delta": 5e-324},
        {"rewards": {"low": -9e99, "high": 9e99}, "noise": 1.1e-100},
        {"algorithm": "DiscUcb", "feature_bound": 9e99, "ridge": 1.1e-100},
        {"sync": {"deadline_s": 1.1e-100, "live_s": 1.1e-100, "min_interval_s": 1e9}},
        {"lease_s": 1.1e-100, "shares": "equal", "agents": 100_000},
    ],
)
def test_a_space_at_the_edge_of_numbers_breaks_nothing(shared: Served, extreme) -> None:
    name = f"edge{next(numbers)}"
    space = Space.from_json(SPACE.as_json() | {"name": name} | extreme)
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
                answer = stream.client.put(f"/v1/streams/{stream.id}/total", json=sent)
                assert answer.status_code < 500, answer.text
                assert stream.news(wait=0.2, config_version=1).status_code < 500
        for path in (f"/v1/spaces/{name}/summary", f"/v1/spaces/{name}/history", "/metrics"):
            assert admin.get(path).status_code == 200, path


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
                    victim.client.put(f"/v1/streams/{victim.id}/total", content=junk, headers=kind)
                    nobody.get(f"/{name}")
                    nobody.get("/v1/spaces", headers={"Authorization": f"Bearer gb_{name}"})
                    victim.client.get(f"/v1/streams/{uuid.uuid4()}/total")
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
        with server.site.store.reading() as t:
            assert len(t.events("home", 1_000)) < 20  # nor does the audit
