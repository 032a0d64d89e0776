"""Processes to which the system gives no room or no files: they say so, and go on later."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from live.server.driver import SPACE

PORT_FREE = ("127.0.0.1", 0)
JSON = {"Content-Type": "application/json"}
PLAIN = {**os.environ, "RUST_BACKTRACE": "0"}  # to draw one without memory can wait for ever


@contextmanager
def server(folder: Path, limit: int, most: int) -> Iterator[tuple[int, httpx.Client]]:
    """Run `guardband serve` under a limit of the system; yield its number and an admin's client."""
    with socket.socket() as free:
        free.bind(PORT_FREE)
        port = free.getsockname()[1]
    data, out = folder / "gb", folder / "out"
    words = [sys.executable, "-m", "guardband", "serve", "--data", str(data), "--port", str(port)]
    with out.open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env=PLAIN)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url)
        resource.prlimit(process.pid, limit, (most, resource.prlimit(process.pid, limit)[1]))
        token = (data / "admin.token").read_text().strip()
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}) as admin:
            yield process.pid, admin
    finally:
        process.terminate()
        process.wait(timeout=60)
    assert "Traceback" not in out.read_text()
    assert '"trace"' not in out.read_text()


def _wait(url: str) -> None:
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        try:
            if httpx.get(f"{url}/healthz").is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError("the server did not start")


@pytest.mark.slow
def test_a_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    with server(tmp_path, resource.RLIMIT_FSIZE, 1) as (pid, admin):  # no file may grow
        wide = SPACE.as_json() | {"features": [f"feature-{k}" for k in range(100)]}
        answer = admin.post("/v1/spaces", json=wide)
        assert answer.status_code == 503
        assert "send it again" in answer.json()["detail"]
        assert admin.get("/v1/spaces").json() == []
        hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert admin.post("/v1/spaces", json=wide).status_code == 201


@pytest.mark.slow
def test_no_more_files(tmp_path: Path) -> None:
    with server(tmp_path, resource.RLIMIT_NOFILE, 40) as (_, admin):
        assert admin.get("/v1/spaces").status_code == 200
        place = (admin.base_url.host, admin.base_url.port or 0)
        idle = []
        for _ in range(100):
            one = socket.socket()
            one.settimeout(0.2)
            one.connect_ex(place)
            idle.append(one)
        assert admin.get("/v1/spaces").status_code in (200, 503)  # over its own connection
        assert admin.post("/v1/spaces", json=SPACE.as_json()).status_code in (201, 503)
        for one in idle:
            one.close()
        _wait(str(admin.base_url).rstrip("/"))
        assert admin.get("/v1/spaces").status_code == 200
        time.sleep(2.5)  # asyncio accepts again after a second, and minds if it is stopped by then


@pytest.mark.slow
def test_no_memory_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """What cannot be read is not begun: pydantic's parser would end the process."""
    with server(tmp_path, resource.RLIMIT_CORE, 0) as (pid, admin):
        wide = SPACE.as_json() | {"features": [f"feature-{k}" for k in range(600)]}
        assert admin.post("/v1/spaces", json=wide).status_code == 201
        upload = f"/v1/streams/{uuid.uuid4()}/checkpoint"
        assert admin.put(upload, content=b"[]", headers=JSON).status_code == 422
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        most, hard = pages * resource.getpagesize() + 8 * 2**20, resource.RLIM_INFINITY
        resource.prlimit(pid, resource.RLIMIT_AS, (most, hard))
        for many in (b"[],", b'{"a":1},', b"1,"):  # 60 MB and more once they are read
            body = b"[" + many * (2_700_000 // len(many)) + b"1]"
            answer = admin.put(upload, content=body, headers=JSON)
            assert answer.status_code == 503
            assert "send it again later" in answer.json()["detail"]
        assert admin.get("/v1/spaces").status_code == 200
        resource.prlimit(pid, resource.RLIMIT_AS, (hard, hard))
        assert admin.put(upload, content=body, headers=JSON).status_code == 422
    with server(tmp_path, resource.RLIMIT_CORE, 0) as (_, admin):
        assert [each["space"] for each in admin.get("/v1/spaces").json()] == [SPACE.name]
        assert admin.post("/v1/spaces", json=SPACE.as_json() | {"name": "two"}).status_code == 201


AGENT = """
import resource, sys
from pathlib import Path
from live.client.world import agent, live_on, menus
from guardband.live import JournalError

one = agent(Path(sys.argv[1]))
live_on(one, 3)
before = one.counted, one.rounds
free = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, free[1]))
failed = 0
for _ in range(5):
    try:
        one.decide(menus(1)[0], 0)
    except JournalError as error:
        assert "Nothing was changed" in str(error), error
        failed += 1
resource.setrlimit(resource.RLIMIT_FSIZE, free)
assert failed == 5, failed
assert (one.counted, one.rounds) == before
live_on(one, 3)
one.close()
"""


def test_an_agent_whose_disk_is_full_for_a_while(tmp_path: Path) -> None:
    tests = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(tests)}
    words = [sys.executable, "-c", AGENT, str(tmp_path)]
    done = subprocess.run(words, cwd=tests, env=environment, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
