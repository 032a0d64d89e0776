"""`guardband agent`: a task's agent for programs in any language."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx
import numpy as np
import pytest
from live.client.world import THETA, agent, menus
from typer.testing import CliRunner

from guardband.cli.agent import CURL
from guardband.cli.app import app
from guardband.kernels._jit import Kernel
from guardband.live import sidecar as sidecar_module
from guardband.live.operators.audit import audit, find_decision
from guardband.live.protocol.types import LARGEST_DIM
from guardband.live.server.run import running
from guardband.live.sidecar import (
    BODY_BYTES,
    SETTINGS,
    is_loopback,
    make_sidecar,
)

RUN = CliRunner()
JSON = {"Content-Type": "application/json"}
TOKEN = "a secret"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def sidecar(folder: Path, **settings: Any) -> Iterator[tuple[httpx.Client, Any]]:
    one = agent(folder, **settings)
    with (
        running(make_sidecar(one, TOKEN), settings=SETTINGS) as url,
        httpx.Client(base_url=url, timeout=60, headers=BEARER) as client,
    ):
        yield client, one


def offer(menu: np.ndarray, **more: Any) -> dict[str, Any]:
    return {"features": menu.tolist(), "baseline": 0, **more}


def test_decide_and_reward(tmp_path: Path) -> None:
    """What comes over HTTP is what the library says; the journal can be audited."""
    with sidecar(tmp_path) as (client, _):
        ids = []
        for menu in menus(25):
            body = offer(menu, baseline_reward=float(menu[0] @ THETA))
            answer = client.post("/v1/decide", json=body)
            assert answer.status_code == 200, answer.text
            told = answer.json()
            ids.append(told["id"])
            sent = {"id": told["id"], "reward": float(menu[told["action"]] @ THETA)}
            assert (
                client.post("/v1/reward", json=sent).json()
                == {**sent, "status": "kept"} | {"id": told["id"]}
                or client.post("/v1/reward", json=sent).json()["status"] == "kept"
            )
        assert len(told["certified"]) == 5
        assert told["propensity"] in (0.5, 1.0)
        health = client.get("/healthz").json()
        assert (health["decisions"], health["counted"], health["pending"]) == (25, 25, 0)
        assert (health["task"], health["mode"], health["trouble"]) == ("movies", "running", None)
    twin = agent(tmp_path / "twin")
    for ident, menu in zip(ids, menus(25), strict=True):
        decision = twin.decide(menu, 0, float(menu[0] @ THETA))
        finding = audit(ident, find_decision(ident, [tmp_path / "gb"]))
        assert finding.result == "same"
        assert finding.decision["action"] == decision.action
        twin.observe(decision.id, float(menu[decision.action] @ THETA))


def test_the_same_reward_again_another_reward_and_void(tmp_path: Path) -> None:
    with sidecar(tmp_path) as (client, one):
        menu = menus(1)[0]
        first, second = (client.post("/v1/decide", json=offer(menu)).json()["id"] for _ in "ab")
        for _ in range(2):
            assert client.post("/v1/reward", json={"id": first, "reward": 0.5}).status_code == 200
        other = client.post("/v1/reward", json={"id": first, "reward": 0.6})
        assert (other.status_code, other.json()["code"]) == (409, "other_reward")
        discarded = client.post(
            "/v1/reward", json={"id": second, "discard": "the page was never shown"}
        )
        assert discarded.json() == {"id": second, "status": "discarded"}
        gone = client.post("/v1/reward", json={"id": second, "reward": 0.6})
        assert (gone.status_code, gone.json()["code"]) == (404, "unknown_decision")
        assert gone.headers["content-type"] == "application/problem+json"
        assert one.counted == 1


def test_values_costs_and_overrides(tmp_path: Path) -> None:
    budget = {"total": 4.0, "horizon": 4, "max_cost": 1.0}
    with sidecar(tmp_path, budget=budget) as (client, one):
        menu = menus(1)[0]
        told = client.post("/v1/decide", json=offer(menu, value=[1, 2, 3, 4, 5])).json()
        assert (told["cost"], told["cost_left"]) == (1.0, 1.0)
        certified = [k for k, sure in enumerate(told["certified"]) if sure]
        assert [each["value"] for each in told["choices"]] == [k + 1 for k in certified[::-1]]
        answer = client.post("/v1/override", json={"id": told["id"], "action": 4})
        assert answer.json() == {"id": told["id"], "status": "overridden"}
        body = {"id": told["id"], "reward": 0.5, "cost": 0.25}
        assert client.post("/v1/reward", json=body).status_code == 200
        answer = client.post("/v1/override", json={"id": told["id"], "action": 1})
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_decision")
        told = client.post("/v1/decide", json=offer(menu, cost=[0, 0, 0, 0, 0])).json()
        assert (told["cost"], told["cost_left"]) == (0.0, 1.75)
        answer = client.post("/v1/override", json={"id": told["id"], "action": 5})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
        for wrong in ({"cost": [0, 0]}, {"cost": [-1, 0, 0, 0, 0]}, {"value": [0]}):
            assert client.post("/v1/decide", json=offer(menu, **wrong)).status_code == 422
        assert one.rounds == 2
        finding = audit(told["id"], find_decision(told["id"], [tmp_path / "gb"]))
        assert finding.result == "same", finding.differences


def test_support_weights_covariance_and_rounds(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    pages = rng.uniform(0.05, 0.55, (4, 5, 3))
    weights = np.array([0.25] * 4)
    psi = np.einsum("n,nkd->kd", weights, pages)
    with sidecar(tmp_path, contexts="shared") as (client, _):
        more = {
            "support": pages.tolist(),
            "weights": weights.tolist(),
            "covariance": np.tile(0.01 * np.eye(3), (5, 1, 1)).tolist(),
        }
        assert client.post("/v1/decide", json=offer(psi, round=7, **more)).status_code == 200
        again = client.post("/v1/decide", json=offer(psi, round=7, **more))
        assert again.status_code == 422
        assert "round 7" in again.json()["detail"]


JUNK: list[tuple[str, bytes]] = [
    ("not JSON", b"{"),
    ("not text", b"\xff\xfe\x00"),
    ("no object", b"[]"),
    ("deep", b"[" * 100_000),
    ("empty", b"{}"),
    ("no body", b""),
    ("no actions", b'{"features": [], "baseline": 0}'),
    ("ragged", b'{"features": [[0.1, 0.2, 0.3], [0.1]], "baseline": 0}'),
    ("wrong dim", b'{"features": [[0.1, 0.2]], "baseline": 0}'),
    ("text", b'{"features": [["0.1", 0.2, 0.3]], "baseline": 0}'),
    ("true", b'{"features": [[true, 0.2, 0.3]], "baseline": 0}'),
    ("NaN", b'{"features": [[NaN, 0.2, 0.3]], "baseline": 0}'),
    ("infinite", b'{"features": [[1e999, 0.2, 0.3]], "baseline": 0}'),
    ("long vector", b'{"features": [[1e300, 0.2, 0.3]], "baseline": 0}'),
    ("huge whole", b'{"features": [[1' + b"0" * 400 + b', 0.2, 0.3]], "baseline": 0}'),
    ("huge baseline", b'{"features": [[0.1, 0.2, 0.3]], "baseline": 1' + b"0" * 5000 + b"}"),
    ("no such baseline", b'{"features": [[0.1, 0.2, 0.3]], "baseline": 1}'),
    ("negative", b'{"features": [[0.1, 0.2, 0.3]], "baseline": -1}'),
    ("reward too large", b'{"features": [[0.1,0.2,0.3]], "baseline": 0, "baseline_reward": 1e9}'),
    ("weights alone", b'{"features": [[0.1, 0.2, 0.3]], "baseline": 0, "weights": [1.0]}'),
    ("covariance", b'{"features": [[0.1,0.2,0.3]], "baseline": 0, "covariance": [[[1e308]]]}'),
    (
        "covariance too large",
        b'{"features": [[0.1,0.2,0.3]], "baseline": 0, "covariance": '
        b"[[[1e308,1e308,0],[1e308,-1e308,0],[0,0,0]]]}",
    ),
    ("unknown field", b'{"features": [[0.1, 0.2, 0.3]], "baseline": 0, "x": 1}'),
    ("round 0", b'{"features": [[0.1, 0.2, 0.3]], "baseline": 0, "round": 0}'),
]


def test_junk_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    with sidecar(tmp_path) as (client, one):
        for name, body in JUNK:
            answer = client.post("/v1/decide", content=body, headers=JSON)
            assert answer.status_code in (400, 422), (name, answer.text)
            told = answer.json()
            assert told.keys() >= {"type", "title", "status", "detail", "code"}
        for body in (b"{}", b'{"id": "x"}', b'{"id": "x", "reward": 1, "discard": "y"}', b"null"):
            answer = client.post("/v1/reward", content=body, headers=JSON)
            assert answer.status_code == 422
        for ident in ("x", "movies-00000000-1", "movies-" + "9" * 150, "é" * 50):
            answer = client.post("/v1/reward", json={"id": ident, "reward": 0.5})
            assert answer.status_code == 404, ident
        made = client.post("/v1/decide", json=offer(menus(1)[0])).json()["id"]
        for reward in (7.0, -0.1):
            answer = client.post("/v1/reward", json={"id": made, "reward": reward})
            assert answer.status_code == 422
        assert client.get("/v1/decide").status_code == 405
        assert client.get("/v2").status_code == 404
        assert one.rounds == 1
        assert one.counted == 0


def test_only_what_no_check_of_ours_said_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request with bad values is the sender's affair; an error that nobody foresaw is ours."""
    caplog.set_level(logging.WARNING, "guardband.server")
    with sidecar(tmp_path) as (client, one):
        for _, body in JUNK:
            client.post("/v1/decide", content=body, headers=JSON)
        made = client.post("/v1/decide", json=offer(menus(1)[0])).json()["id"]
        assert client.post("/v1/reward", json={"id": made, "reward": 7.0}).status_code == 422
        assert caplog.records == []
        for broken in (lambda *_: int("x"), lambda *_: np.linalg.inv(np.zeros((2, 2)))):
            monkeypatch.setattr(one, "observe", broken)
            answer = client.post("/v1/reward", json={"id": made, "reward": 0.5})
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
            (record,) = caplog.records
            assert record.levelno == logging.WARNING
            assert record.exc_info is not None
            assert record.exc_info[0] is not None
            caplog.clear()


def test_health_without_http(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        one.decide(menus(1)[0], 0)
        health = one.status()
    assert (health["task"], health["mode"], health["pending"]) == ("movies", "running", 1)
    assert health["trouble"] is None
    source = Path(sidecar_module.__file__).read_text()
    assert not re.search(r"agent\._|one\._", source), "the sidecar keeps to what is public"


def test_a_long_body_is_not_read(tmp_path: Path) -> None:
    with sidecar(tmp_path) as (client, _):
        place = (client.base_url.host, client.base_url.port)
        head = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\n"
        head += b"Authorization: Bearer %s\r\n" % TOKEN.encode()
        with socket.create_connection(place, timeout=60) as one:
            one.sendall(head + b"Content-Length: %d\r\n\r\n" % (BODY_BYTES + 1))
            assert one.recv(100).startswith(b"HTTP/1.1 413")
        with socket.create_connection(place, timeout=60) as one:
            one.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(OSError):  # it stops listening in the middle
                for _ in range(BODY_BYTES // 65_536 + 2):
                    one.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n")
            assert one.recv(100).startswith(b"HTTP/1.1 413")


def test_pages_from_elsewhere_get_no_answer(tmp_path: Path) -> None:
    with sidecar(tmp_path) as (client, one):
        body = offer(menus(1)[0])
        for headers, code in (
            ({"Host": "evil.example"}, "wrong_host"),
            ({"Host": "[bad"}, "wrong_host"),
            ({"Origin": "https://evil.example"}, "wrong_origin"),
            ({"Origin": "null"}, "wrong_origin"),
            ({"Origin": "http://127.0.0.1:3000"}, "wrong_origin"),
            ({"Origin": "http://localhost"}, "wrong_origin"),
        ):
            answer = client.post("/v1/decide", json=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, code)
        assert one.rounds == 0
        headers = {"Host": "localhost:8711"}
        assert client.post("/v1/decide", json=body, headers=headers).status_code == 200


@pytest.mark.slow
def test_a_journal_that_cannot_be_written(tmp_path: Path) -> None:
    with sidecar(tmp_path) as (client, _):
        file = tmp_path / "gb" / "agents" / "default" / "movies" / "journal.db"
        lock = apsw.Connection(str(file))
        lock.execute("BEGIN IMMEDIATE")
        answer = client.post("/v1/decide", json=offer(menus(1)[0]))
        assert (answer.status_code, answer.json()["code"]) == (503, "journal")
        lock.execute("ROLLBACK")
        lock.close()
        assert client.post("/v1/decide", json=offer(menus(1)[0])).status_code == 200


def test_it_says_when_it_is_at_full_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sidecar(tmp_path) as (client, _):
        assert client.get("/readyz").json() == {"status": "full speed"}
        monkeypatch.setattr(Kernel, "ready", property(lambda _: False))
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "compiling")
        assert client.post("/v1/decide", json=offer(menus(1)[0])).status_code == 200
        assert client.get("/healthz").status_code == 200


def test_the_openapi_document(tmp_path: Path) -> None:
    with sidecar(tmp_path) as (client, _):
        document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {
        "/v1/decide",
        "/v1/reward",
        "/v1/override",
        "/v1/resume",
        "/healthz",
        "/readyz",
    }
    for path in document["paths"].values():
        for operation in path.values():
            for status, answer in operation["responses"].items():
                kind = "application/json" if status == "200" else "application/problem+json"
                assert kind in answer["content"]
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_loopback_only(tmp_path: Path) -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "10.0.0.1", "gb.example", "", "::")))
    words = ["agent", "--space", "home", "--task", "x", "--coordinator", f"local:{tmp_path}"]
    result = RUN.invoke(app, [*words, "--host", "0.0.0.0"])
    assert isinstance(result.exception, ValueError)
    assert "127.0.0.1" in str(result.exception)
    result = RUN.invoke(app, [*words, "--port", "0"])
    assert "no space 'home' yet" in str(result.exception)


@pytest.mark.slow
def test_the_command_and_real_curl(tmp_path: Path) -> None:
    """What --help and the documentation show, typed by somebody."""
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl")
    file = tmp_path / "space.json"
    file.write_text(
        json.dumps(
            {
                "name": "home",
                "features": ["price", "fresh", "rating"],
                "agents": 3,
                "contexts": "per-request",
                "rewards": {"order": "prompt"},
            }
        )
    )
    words = ["--space", "home", "--task", "movies", "--port", "0", "--space-file", str(file)]
    command = [sys.executable, "-m", "guardband", "agent", *words, "--coordinator", "local:gb"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        token = process.stdout.readline().split(None, 2)[2].strip()
        found = re.search(r"http://127\.0\.0\.1:\d+", said)
        assert found is not None, process.stderr and process.stderr.read()
        secret = (tmp_path / token).read_text().strip()
        shown = CURL.replace("$(cat STATE/sidecar.token)", secret)
        decide, reward = (part.replace("\\\n", "") for part in shown.split("\n\n"))
        here = decide.replace("http://127.0.0.1:8711", found[0])
        retry = "--retry 30 --retry-connrefused --retry-delay 1 "
        ran = subprocess.run(
            shlex.split(here.replace("-s ", f"-s {retry}", 1)), capture_output=True, check=True
        )
        ident = json.loads(ran.stdout)["id"]
        there = reward.replace("http://127.0.0.1:8711", found[0]).replace('"ID"', f'"{ident}"')
        ran = subprocess.run(shlex.split(there), capture_output=True, check=True)
        assert json.loads(ran.stdout) == {"id": ident, "status": "kept"}
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        assert out.endswith("stopped.\n")
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
    result = RUN.invoke(app, ["audit", ident, "--state", str(tmp_path / "gb")])
    assert result.exit_code == 0, result.output
    helped = RUN.invoke(app, ["agent", "--help"]).output
    assert "/v1/decide" in helped
    assert "curl" in helped


def test_rows_have_as_many_features_as_spaces(tmp_path: Path) -> None:
    with sidecar(tmp_path, dim=LARGEST_DIM, uses=[0]) as (client, _):
        assert client.post("/v1/decide", json=offer(np.eye(2, LARGEST_DIM))).status_code == 200
        long = client.post("/v1/decide", json=offer(np.eye(2, LARGEST_DIM + 1)))
        assert (long.status_code, "1024" in long.text) == (422, True)
