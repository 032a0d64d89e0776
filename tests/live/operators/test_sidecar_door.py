"""Who gets an answer from `guardband agent`: programs with its token, or over its socket file."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest
from live.client.world import agent, menus
from live.operators.test_sidecar import TOKEN, offer, sidecar

from guardband.live.server.run import bind_file, server_for
from guardband.live.sidecar import SETTINGS, make_sidecar, sidecar_token


def test_a_program_must_know_the_token(tmp_path: Path) -> None:
    with sidecar(tmp_path) as (client, one):
        body = offer(menus(1)[0])
        del client.headers["Authorization"]
        for headers, code in (
            ({}, "no_token"),
            ({"Authorization": "Bearer another"}, "unauthorised"),
            ({"Authorization": TOKEN}, "unauthorised"),
        ):
            for path in ("/v1/decide", "/v1/reward", "/v1/override", "/v1/what"):
                answer = client.post(path, json=body, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (401, code)
        assert one.rounds == 0
        assert client.get("/healthz").status_code == 200
        assert client.get("/openapi.json").status_code == 200


def test_the_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    token = sidecar_token(tmp_path)
    assert len(token) > 40
    assert sidecar_token(tmp_path) == token
    assert (tmp_path / "sidecar.token").stat().st_mode & 0o777 == 0o600


def test_a_socket_file_needs_no_token_and_is_for_its_owner_only(tmp_path: Path) -> None:
    path, one = tmp_path / "agent.sock", agent(tmp_path)
    bind_file(path).close()  # as a server that was killed leaves it
    sock = bind_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ValueError, match="another program listens on"):
        bind_file(path)  # and the first goes on, see below
    server = server_for(make_sidecar(one, None), settings=SETTINGS)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        transport = httpx.HTTPTransport(uds=str(path), retries=5)
        with httpx.Client(transport=transport, base_url="http://localhost", timeout=60) as client:
            assert client.post("/v1/decide", json=offer(menus(1)[0])).status_code == 200
            page = {"Origin": "http://localhost"}
            assert client.post("/v1/decide", json={}, headers=page).status_code == 403
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        sock.close()
    (tmp_path / "file").write_text("no socket")
    with pytest.raises(OSError, match="cannot listen"):
        bind_file(tmp_path / "file")
