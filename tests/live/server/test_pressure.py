"""A server that lacks something for a while: 503 with a sentence, no trace, and then it goes on."""

from __future__ import annotations

import errno
import io
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from live.server.driver import SPACE, Served, served

from guardband.live.server import Settings
from guardband.live.server.logs import log_lines


@contextmanager
def logged() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The lines of the log, as the command writes them."""
    stream = io.StringIO()
    with log_lines(stream):
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


class Failing:
    """A connection on which statements fail."""

    def __init__(self, real: Any, word: str, error: type[Exception]) -> None:
        self._real, self._word, self._error = real, word, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if self._word in statement:
            raise self._error("injected")
        return self._real.execute(statement, *values)


KINDS = [
    (apsw.FullError, "disk is full"),
    (apsw.ReadOnlyError, "may not be written"),
    (apsw.CantOpenError, "too many files may be open"),
    (apsw.IOError, "does not read or write"),
    (apsw.BusyError, "held it for too long"),
    (apsw.NoMemError, "not enough memory"),
]


@pytest.mark.parametrize("word", ["begin", "commit", "insert into", "select"])
@pytest.mark.parametrize(("error", "why"), KINDS)
def test_a_store_under_pressure(
    shared: Served, error: type[Exception], why: str, word: str
) -> None:
    movies = shared.agent(f"{error.__name__}-{word.replace(' ', '-')}")
    assert movies.register().status_code == 201
    movies.observe()
    store: Any = shared.service.store
    real = store._connection
    with logged() as lines:
        store._connection = Failing(real, word, error)
        try:
            answer = movies.put()
        finally:
            store._connection = real
        assert answer.status_code == 503, answer.text
        told = answer.json()
        assert told["code"] == "store_unavailable"
        assert why in told["detail"]
        assert int(answer.headers["Retry-After"]) == 1
        assert movies.put().status_code == 200
        assert not [line for line in lines() if "trace" in line]


def test_a_file_that_cannot_grow(tmp_path: Path) -> None:
    """SQLite itself says that there is no room, as on a full disk."""
    with served(tmp_path) as server:
        connection = server.service.store._connection  # type: ignore[attr-defined]
        connection.pragma("max_page_count", int(connection.pragma("page_count")))
        wide = SPACE.as_json() | {"features": [f"feature-{k}" for k in range(200)]}
        with server.admin() as admin:
            full = {admin.post("/v1/spaces", json=wide | {"name": f"s{k}"}) for k in range(9)}
            assert {answer.status_code for answer in full} <= {201, 503}
            assert "disk is full" in next(each.json()["detail"] for each in full if each.is_error)
            connection.pragma("max_page_count", 10**6)
            assert admin.post("/v1/spaces", json=wide | {"name": "room"}).status_code == 201


def test_a_file_that_may_not_be_written(tmp_path: Path) -> None:
    with served(tmp_path) as server, logged() as lines:
        movies = server.agent()
        assert movies.register().status_code == 201
        movies.observe()
        connection = server.service.store._connection  # type: ignore[attr-defined]
        connection.pragma("query_only", 1)
        answers = [movies.put() for _ in range(20)]
        connection.pragma("query_only", 0)
        assert {answer.status_code for answer in answers} == {503}
        assert "may not be written" in answers[0].json()["detail"]
        assert movies.put().status_code == 200
        assert not [line for line in lines() if "trace" in line]


@pytest.mark.parametrize(
    "error",
    [MemoryError(), OSError(errno.EMFILE, "Too many open files"), OSError(errno.ENOSPC, "x")],
)
def test_a_process_without_memory_or_files(
    shared: Served, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    movies = shared.agent(f"short-{type(error).__name__}-{getattr(error, 'errno', 0)}")

    def fail(*_: Any, **__: Any) -> None:
        raise error

    with logged() as lines:
        with monkeypatch.context() as patch:
            patch.setattr(shared.service.coordinator, "register", fail)
            answer = movies.register()
        assert (answer.status_code, answer.json()["code"]) == (503, "pressure")
        assert movies.register().status_code == 201
        assert [line["event"] for line in lines() if line["level"] == "error"] == ["pressure"]
        assert not [line for line in lines() if "trace" in line]


def test_idle_connections_lock_nobody_out(tmp_path: Path) -> None:
    settings = Settings(connections=40, strangers=5, header_s=60.0)
    with served(tmp_path, settings) as server:
        host, port = server.url.removeprefix("http://").split(":")
        place = (host, int(port))
        one = server.agent()  # it holds its connection
        assert one.register().status_code == 201
        idle = []
        for _ in range(200):
            idle.append(socket.create_connection(place, source_address=("127.0.0.2", 0)))
        time.sleep(0.5)
        started = time.monotonic()
        assert one.upload(5)["revision"]["n"] == 5
        for k in range(8):  # others come, from elsewhere
            assert server.agent(f"tv-{k}").register().status_code in (201, 409)
        assert time.monotonic() - started < 20.0
        for each in idle:
            each.close()


def test_garbage_leaves_few_lines(tmp_path: Path) -> None:
    with served(tmp_path) as server, logged() as lines:
        host, port = server.url.removeprefix("http://").split(":")
        for k in range(300):
            with socket.create_connection((host, int(port)), timeout=20) as sock:
                junk = (b"\x16\x03\x01 junk\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"\0" * 999)[k % 3]
                sock.sendall(junk)
                try:
                    sock.recv(1000)
                except OSError:
                    continue
        with server.client() as stranger:
            for _ in range(100):
                assert stranger.get("/v1/spaces").status_code == 401
        written = [line for line in lines() if line["event"] != "epoch"]
        assert len(written) < 10
        assert not [line for line in written if "trace" in line]
