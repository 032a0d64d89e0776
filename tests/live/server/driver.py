"""A server to talk to, and clients that send what agents send."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from guardband.live.protocol.space import SpaceSettings
from guardband.live.server import Settings, make_app
from guardband.live.server.first_start import DATABASE, first_tokens, read_token
from guardband.live.server.run import running
from guardband.live.server.service import Service
from guardband.live.store.sqlite import SqliteStore

SPACE = SpaceSettings(name="home", features=("a", "b", "c"), agents=4, noise=1.0)
NEXT = "/v1/spaces/home/epochs/next"
numbers = itertools.count(1)


def version() -> str:
    return f"{random.Random(next(numbers)).getrandbits(128):032x}"


@dataclass
class Served:
    """A running server."""

    url: str
    admin_token: str
    viewer_token: str
    service: Service
    data: Path
    clients: list[httpx.Client] = field(default_factory=list)

    def client(self, token: str | None = None, timeout: float = 60.0) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.clients.append(httpx.Client(base_url=self.url, headers=headers, timeout=timeout))
        return self.clients[-1]

    def admin(self) -> httpx.Client:
        return self.client(self.admin_token)

    def token(self, role: str = "agent", **scope: str) -> str:
        with self.admin() as admin:
            answer = admin.post("/v1/tokens", json={"role": role, **scope})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    def agent(self, task: str = "movies", space: str = SPACE.name) -> Stream:
        return Stream(self.client(self.token(space=space, task=task)), task, space)


@contextmanager
def served(data: Path, settings: Settings | None = None, **space: Any) -> Iterator[Served]:
    """Serve a space called home on a free port."""
    settings = settings or Settings()
    store = SqliteStore(data / DATABASE)
    first_tokens(store, data, now=1.0)
    app = make_app(store, settings=settings)
    admin, viewer = read_token(data), read_token(data, "viewer")
    assert admin
    assert viewer
    with running(app, settings=settings) as url:
        server = Served(url, admin, viewer, app.state.service, data)
        with server.admin() as client:
            body = SPACE.changed(**space).as_json()
            assert client.post("/v1/spaces", json=body).status_code in (201, 409)
        yield server
    for each in server.clients:
        each.close()


@dataclass
class Stream:
    """A stream with honest data."""

    client: httpx.Client
    task: str
    space: str = SPACE.name
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    uses: list[int] = field(default_factory=lambda: [0, 1, 2])
    theta: Any = (0.5, 0.3, 0.2)
    n: int = 0
    version: str = ""
    matrix: Any = field(default_factory=lambda: np.zeros((4, 4)))
    base: dict[str, Any] = field(default_factory=lambda: {"n": 0, "version": ""})
    seed: int = field(default_factory=lambda: next(numbers))

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def register_body(self, **changes: Any) -> dict[str, Any]:
        own = {"stream": self.id, "task": self.task, "uses": self.uses, "library": "0.1.0"}
        return {**own, "schema_hash": SPACE.schema_hash, **changes}

    def register(self) -> httpx.Response:
        return self.client.post(f"/v1/spaces/{self.space}/streams", json=self.register_body())

    def observe(self, count: int = 5) -> None:
        for _ in range(count):
            x = np.zeros(3)
            x[self.uses] = self.rng.uniform(0.0, 0.5, len(self.uses))
            z = np.append(x, float(np.clip(x @ np.array(self.theta), 0, 1)))
            self.matrix = self.matrix + np.outer(z, z)
        self.n += count
        self.version = version()

    def body(self, **changes: Any) -> dict[str, Any]:
        sums = {
            "n": self.n,
            "gram": self.matrix[np.triu_indices(4)].tolist(),
            "surprise": 0.0,
            "weight": float(self.n),
        }
        sums |= {key: changes.pop(key) for key in sums if key in changes}
        checkpoint = {"version": self.version, "sums": sums}
        checkpoint |= {key: changes.pop(key) for key in ("version", "round") if key in changes}
        return {"base": self.base, "checkpoint": checkpoint, **changes}

    def put(self, **changes: Any) -> httpx.Response:
        answer = self.client.put(f"/v1/streams/{self.id}/checkpoint", json=self.body(**changes))
        if answer.status_code == 200:
            self.base = {"n": self.n, "version": self.version}
        return answer

    def upload(self, count: int = 5, **changes: Any) -> dict[str, Any]:
        self.observe(count)
        answer = self.put(**changes)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def news(self, **query: Any) -> httpx.Response:
        asked = {"stream": self.id, **query}
        return self.client.get(f"/v1/spaces/{self.space}/epochs/next", params=asked)

    def seal(self) -> httpx.Response:
        return self.client.post(f"/v1/streams/{self.id}/seal", json=self.base)


def everything_of(server: Served, stream: str) -> bytes:
    """What is stored of a stream and of its space's epoch."""
    with server.service.store.reading() as t:
        row, space = t.stream(stream), t.space("home")
    assert row is not None
    assert space is not None
    return repr((row, space.epoch, space.config)).encode()


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Return status and code of an answer that must be a well-formed refusal."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["type"] == f"urn:guardband:problem:{body['code']}"
    assert body["title"]
    assert body["detail"]
    return body["status"], body["code"]


def certificate(folder: Path) -> tuple[Path, Path]:
    """A new certificate for this machine, signed by itself, and its key."""
    folder.mkdir(parents=True, exist_ok=True)
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    more = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert]
    subprocess.run(["openssl", *words, *map(str, more)], check=True, capture_output=True)
    return cert, key


@contextmanager
def serving(*words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and what it printed."""
    command = [sys.executable, "-m", "guardband", "serve", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("data in"):
                break
        assert "dashboard" in said, process.stderr.read()
        yield process, said
    finally:
        process.kill()
        process.communicate()
