"""T9: too large, too slow, too many, too often; whoever does it harms only itself."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
import uuid
from contextlib import suppress

import pytest
from live.server.driver import SPACE, Served, problem, served

from guardband.live.protocol.types import LARGEST_DIM
from guardband.live.server import Settings


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
        f"/v1/streams/{movies.id}/checkpoint",
        content=body,
        headers={"Content-Type": "application/json"},
    )
    assert problem(answer) == (413, "too_large")
    assert answer.json()["limit"] == 64 * 1024
    assert movies.upload(1)["revision"]["n"] == 1


@pytest.mark.parametrize("dim", [100, LARGEST_DIM])
def test_a_large_space_may_send_its_totals(tmp_path, dim: int) -> None:
    """The longest names, and the longest numbers: of both matrices' triangle, and of theta."""
    with served(tmp_path) as server, server.admin() as admin:
        assert server.service.upload_bytes == 64 * 1024
        features = [f"f{k:063}" for k in range(dim)]
        wide = SPACE.as_json() | {"name": "wide", "features": features}
        assert admin.post("/v1/spaces", json=wide).status_code == 201
        numbers = (dim + 1) * (dim + 2) // 2 + dim
        assert server.service.upload_bytes > len(json.dumps([-math.pi * 1e-300] * numbers))


def test_an_endless_body_is_cut_off(tmp_path) -> None:
    with served(tmp_path, Settings(header_s=0.5, body_s=0.5)) as server:
        token = server.token(space="home", task="x")
        with socket.create_connection(server.url.removeprefix("http://").split(":")) as sock:
            sock.settimeout(20)
            head = f"PUT /v1/streams/{uuid.uuid4()}/checkpoint HTTP/1.1\r\nHost: x\r\n"
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
        assert movies.upload(5)["revision"]["n"] == 5
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
        assert tv.upload(5)["revision"]["n"] == 5
        time.sleep(limited[-1].json()["retry_after_s"] + 0.2)
        assert movies.put().status_code == 200


def test_new_streams_have_a_rate_of_their_own(tmp_path) -> None:
    with served(tmp_path, Settings(streams_per_s=0.01, stream_burst=2)) as server:
        movies = server.agent()
        assert [movies.register().status_code for _ in range(3)] == [201, 200, 429]
        assert movies.upload(5)["revision"]["n"] == 5


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
