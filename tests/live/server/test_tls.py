"""T9: a public address takes TLS and tokens, and an agent trusts no other certificate."""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from live.client.world import menus
from live.server.driver import SPACE, certificate, serving

import guardband as gb

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, str]]:
    """A server with a certificate of its own on a public address: where, which, admin's token."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = certificate(folder / "ours")
    space = folder / "home.json"
    prompt = {"rewards": {"order": "prompt"}, "contexts": "per-request"}
    space.write_text(json.dumps(SPACE.as_json() | prompt))
    words = ("--data", folder / "gb", "--host", "0.0.0.0", "--port", 0, "--space", space)
    with serving(*words, "--tls-cert", cert, "--tls-key", key) as (_, said):
        port = re.findall(r"https://0\.0\.0\.0:(\d+)/", said)[0]
        yield f"https://127.0.0.1:{port}", cert, (folder / "gb" / "admin.token").read_text().strip()


def agent(url: str, token: str, folder: Path) -> Any:
    return gb.connect(
        url,
        space="home",
        task="movies",
        token=token,
        state_dir=folder,
        background=False,
    )


def test_an_agent_over_https(place, tmp_path, monkeypatch) -> None:
    url, cert, admin_token = place
    trusted = ssl.create_default_context(cafile=str(cert))
    headers = {"Authorization": f"Bearer {admin_token}"}
    with httpx.Client(base_url=url, verify=trusted, headers=headers) as admin:
        body = {"role": "agent", "space": "home", "task": "movies"}
        token = admin.post("/v1/tokens", json=body).json()["token"]
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        one = agent(url, token, tmp_path)
        for number, menu in enumerate(menus(3), start=1):
            decision = one.decide(menu, 0, 0.3, round=number)
            one.observe(decision.id, 0.3)
        assert one.sync()
        one.close()
        summary = admin.get("/v1/spaces/home/summary").json()
        assert [(each["task"], each["n"]) for each in summary["agents"]] == [("movies", 3)]


def test_a_certificate_that_is_not_trusted(place, tmp_path, monkeypatch) -> None:
    url, _, _ = place
    other, _ = certificate(tmp_path / "other")
    for trusted in (None, other):
        if trusted is None:
            monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        else:
            monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        with pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            agent(url, "gb_0000000000000000_" + "x" * 43, tmp_path / str(trusted is None))


def test_nothing_is_said_in_the_open(place) -> None:
    url, _, token = place
    host, port = url.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as sock:
        words = f"GET /v1/spaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        sock.sendall(words.encode())
        try:
            said = sock.recv(4096)
        except ConnectionError:
            said = b""
    assert b"home" not in said
    assert not said.startswith(b"HTTP/")


def test_without_tls_a_token_is_still_needed(tmp_path) -> None:
    words = ("--data", tmp_path / "gb", "--host", "0.0.0.0", "--port", 0, "--insecure")
    with serving(*words) as (_, said):
        port = re.findall(r"http://0\.0\.0\.0:(\d+)/", said)[0]
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", transport=httpx.HTTPTransport(retries=20)
        ) as nobody:
            for path in ("/v1/spaces", "/v1/me", "/v1/tokens", "/v1/events", "/metrics"):
                assert nobody.get(path).status_code == 401, path
            assert nobody.post("/v1/tokens", json={"role": "admin"}).status_code == 401
            assert nobody.get("/healthz").status_code == 200
