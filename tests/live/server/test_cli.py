"""`guardband serve`, `space` and `token`, as an operator types them."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time

import httpx
import pytest
from live.server.driver import SPACE, Served, Stream, certificate, served, serving
from typer.testing import CliRunner

from guardband.cli.app import app
from guardband.demo.scenario import run_demo
from guardband.live.protocol.space import SyncSettings
from guardband.live.server import Settings, logs
from guardband.live.server.first_start import only_server
from guardband.live.server.run import Server
from guardband.live.store.sqlite import SqliteStore

RUN = CliRunner()


def run(*words: object) -> str:
    """The output of a command that works."""
    result = RUN.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def refusal(*words: object) -> str:
    """What a command that fails has against it."""
    result = RUN.invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, ValueError | OSError), result.output
    return str(result.exception)


def when_up(url: str, verify=True) -> None:
    for _ in range(400):
        try:
            httpx.get(url + "/healthz", verify=verify)
            return
        except httpx.ConnectError:
            time.sleep(0.05)
    raise AssertionError("it does not answer")


@pytest.mark.slow
@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
def test_the_first_start_and_a_clean_end(tmp_path, way) -> None:
    data = tmp_path / "gb"
    file = tmp_path / "space.json"
    file.write_text(json.dumps(SPACE.as_json()))
    with serving("--data", data, "--port", 0, "--space", file) as (process, said):
        url = re.findall(r"dashboard +(http://127\.0\.0\.1:\d+)/\n", said)[0]
        when_up(url)
        token = (data / "admin.token").read_text().strip()
        assert "gb_" not in said  # what is no terminal may be a log that many read
        assert f"tokens     {data / 'admin.token'} (made now, on the first start)\n" in said
        assert f"token for it in {data / 'viewer.token'}\n" in said
        for role in ("admin", "viewer"):
            assert stat.S_IMODE((data / f"{role}.token").stat().st_mode) == 0o600
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}) as admin:
            assert [s["space"] for s in admin.get("/v1/spaces").json()] == ["home"]
            viewer = (data / "viewer.token").read_text().strip()
            metrics = httpx.get(url + "/metrics", headers={"Authorization": f"Bearer {viewer}"})
            assert metrics.status_code == 200
            poll = f"{url}/v1/spaces/home/epochs/next?config_version=1&wait=25"
            held = subprocess.Popen(
                [sys.executable, "-c", f"import httpx; httpx.get({poll!r}, timeout=30)"]
            )
        process.send_signal(way)
        out, err = process.communicate(timeout=30)
        held.wait(timeout=30)
        assert process.returncode == 0
        assert out.endswith("stopped.\n")
        lines = [json.loads(line) for line in err.splitlines()]
        assert {line["event"] for line in lines} == {"request"}
        assert token not in err
        assert token.split("_", 2)[2] not in err
        assert lines[0].keys() >= {"at", "level", "method", "path", "status", "ms", "who"}

    with serving("--data", data, "--port", 0, "--space", file, "--quiet") as (process, said):
        assert "gb_" not in said
        process.send_signal(way)
        _, err = process.communicate(timeout=30)
        assert err == ""


def test_the_token_is_shown_to_terminals_and_files_only_where_they_are(
    tmp_path, monkeypatch, capsys
) -> None:
    from guardband.cli.serve import _say_where  # noqa: PLC0415

    def said(*, terminal: bool) -> str:
        monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
        _say_where("http://127.0.0.1:1", tmp_path, first=False)
        return capsys.readouterr().out

    for terminal in (True, False):  # another replica of the same store has no token files
        text = said(terminal=terminal)
        assert str(tmp_path / "admin.token") not in text
        assert "viewer.token" not in text
        assert "#token" not in text
        assert "first server" in text
    for role in ("admin", "viewer"):
        (tmp_path / f"{role}.token").write_text(f"gb_{role}\n")
    assert "/#token=gb_admin\n" in said(terminal=True)
    text = said(terminal=False)
    assert "gb_" not in text
    assert str(tmp_path / "admin.token") in text
    assert str(tmp_path / "viewer.token") in text


@pytest.mark.slow
def test_tls(tmp_path) -> None:
    cert, key = certificate(tmp_path)
    given = ("--tls-cert", cert, "--tls-key", key, "--host", "0.0.0.0")
    with serving("--data", tmp_path / "gb", "--port", 0, *given) as (_, said):
        port = re.findall(r"https://0\.0\.0\.0:(\d+)/", said)[0]
        trusted = ssl.create_default_context(cafile=str(cert))
        when_up(f"https://127.0.0.1:{port}", verify=trusted)


def test_what_serve_refuses(tmp_path) -> None:
    data = tmp_path / "gb"
    assert "TLS" in refusal("serve", "--data", data, "--host", "0.0.0.0")
    assert "--insecure" in refusal("serve", "--data", data, "--host", "gb.example")
    assert "both" in refusal("serve", "--data", data, "--tls-cert", "x.pem")
    both = ("--tls-cert", "x.pem", "--tls-key", "y.pem")
    assert "x.pem" in refusal("serve", "--data", data, *both)
    assert "postgresql://" in refusal("serve", "--data", data, "--port", 0, "--store", "redis://x")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal("serve", "--data", data, "--port", port)
    assert f"127.0.0.1:{port}" in said
    assert "--port" in said
    bad = tmp_path / "bad.json"
    bad.write_text('{"name": "x", "features": ["a"], "agents": 0}')
    assert "bad.json" in refusal("serve", "--data", data, "--port", 0, "--space", bad)
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "coordinator.db").write_text("this is no database, but long enough " * 9)
    assert "coordinator.db" in refusal("serve", "--data", tmp_path / "junk", "--port", 0)


def test_a_missing_extra_is_named(tmp_path, monkeypatch) -> None:
    for name in [m for m in sys.modules if m.startswith("guardband.live.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    said = refusal("serve", "--data", tmp_path, "--port", 0)
    assert "pip install 'guardband[live]'" in said


def test_spaces_and_tokens_in_a_data_folder(tmp_path) -> None:
    data = ("--data", tmp_path)
    assert "guardband serve" in refusal("space", "list", *data)
    with served(tmp_path) as server:
        made = ("--features", "a, b,c", "--agents", 3, "--profile", "hospital", "--window-s", 60)
        said = run("space", "create", "ward", *made, *data)
        assert "3 features, 3 tasks, contexts per-request" in said
        assert "the first reward counts 60 s after its decision (--window-s)" in said
        assert "for that, say --contexts shared" in said
        with server.admin() as admin:
            config = admin.get("/v1/spaces/ward").json()["config"]
            assert config["features"] == ["a", "b", "c"]
            assert (config["sync"]["min_batch"], config["sync"]["min_streams"]) == (20, 3)
            assert config["rewards"]["window_s"] == 60.0
        assert "already" in refusal("space", "create", "ward", *made, *data)
        assert "--features" in refusal("space", "create", "x", "--agents", 2, *data)
        assert re.search(r"home +0", run("space", "list", *data))

        token = run("token", "create", "--space", "ward", "--task", "icu", *data).strip()
        ident = token.split("_")[1]
        assert "no space" in refusal("token", "create", "--space", "none", "--task", "x", *data)
        assert "space and a task" in refusal("token", "create", "--role", "agent", *data)
        assert re.search(rf"{ident} +agent +ward +icu", run("token", "list", *data))
        with server.client(token) as agent:
            assert _within(10, lambda: agent.get("/v1/spaces/ward").status_code == 200)
            second = run("token", "rotate", ident, *data).strip()
            assert _within(10, lambda: server.client(second).get("/v1/spaces").status_code == 200)
            run("token", "delete", ident, *data)
            assert _within(10, lambda: agent.get("/v1/spaces/ward").status_code == 401)
        assert "no token" in refusal("token", "delete", ident, *data)


def test_spaces_and_tokens_of_a_running_server(tmp_path) -> None:
    with served(tmp_path) as server:
        there = ("--url", server.url, "--token", server.admin_token)
        made = ("space", "create", "far", "--features", "a,b", "--agents", 2)
        assert "--order prompt" not in run(
            *made[:2], "day", *made[3:], "--contexts", "shared", *there
        )
        chosen = ("window=20", "--contexts", "shared", "--order")
        assert "rewards.order='prompt' and contexts='shared'" in refusal(
            *made, *chosen, "prompt", *there
        )
        assert "as soon as all earlier decisions have theirs" in run(
            *made[:2], "moving", *made[3:], "window=20", "--order", "prompt", *there
        )
        said = run(*made, *chosen, "window", *there)
        assert "contexts shared" in said
        assert "say --contexts" not in said
        assert "far" in run("space", "list", *there)
        token = run("token", "create", "--space", "far", "--task", "x", *there).strip()
        assert server.client(token).get("/v1/spaces/far").status_code == 200
        ident = token.split("_")[1]
        assert run("token", "rotate", ident, *there).startswith("gb_")
        assert ident in run("token", "list", *there)
        run("token", "delete", ident, *there)
        assert server.client(token).get("/v1/spaces/far").status_code == 401
        assert "already" in refusal(
            "space", "create", "far", "--features", "a", "--agents", 2, *there
        )
        assert "token" in refusal("space", "list", "--url", server.url, "--data", tmp_path / "no")
    assert "does not answer" in refusal("space", "list", *there)


def _within(seconds: float, happens) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happens():
            return True
        time.sleep(0.1)
    return False


def both_ways(server: Served) -> list[tuple[object, ...]]:
    """Through the data folder, and through the API."""
    return [("--data", server.data), ("--url", server.url, "--token", server.admin_token)]


def events_of(server: Served, space: str = "") -> list[tuple[str, str]]:
    with server.service.store.reading() as t:
        return [(e.what, e.who.partition(":")[0]) for e in t.events(space, 100)]


def test_switches_need_no_reason(server: Served) -> None:
    assert server.agent().register().status_code == 201
    for way in both_ways(server):
        run("space", "pause", "home", *way)
        run("space", "resume", "home", *way)
        for verb in ("quarantine", "retract", "restore-task"):
            run("space", verb, "home", "movies", *way)
    with server.admin() as admin:
        assert admin.post("/v1/spaces/home/pause", json={}).status_code == 200
    whats = [what for what, _ in events_of(server, "home")]
    assert whats.count("paused") == 3
    assert [whats.count(verb) for verb in ("quarantine", "retract", "restore")] == [2, 2, 2]


def test_tokens_are_treated_alike_both_ways(server: Served) -> None:
    last = server.admin_token.split("_")[1]
    for way, who in zip(both_ways(server), ("command line", "admin"), strict=True):
        assert "last admin" in refusal("token", "delete", last, *way)
        assert "no space" in refusal("token", "create", "--space", "none", "--task", "x", *way)
        assert "no token" in refusal("token", "rotate", "0" * 16, *way)
        made = run("token", "create", "--role", "admin", *way).split("_")[1]
        second = run("token", "rotate", made, *way).split("_")[1]
        for ident in (made, second):
            run("token", "delete", ident, *way)
            assert "no token" in refusal("token", "delete", ident, *way)
        expected = [("token revoked", who)] * 2 + [("token created", who)] * 2
        assert events_of(server)[:4] == expected


def joined(server: Served, task: str) -> Stream:
    """A stream in a space where a task may have several."""
    one = server.agent(task)
    body = one.register_body(schema_hash=SPACE.changed(contexts="per-request").schema_hash)
    assert one.client.post("/v1/spaces/home/streams", json=body).status_code == 201
    one.upload(5)
    return one


def test_a_task_is_ended_both_ways(tmp_path) -> None:
    with served(tmp_path, contexts="per-request") as server:
        for way, task in zip(both_ways(server), ("movies", "tv"), strict=True):
            first, _ = joined(server, task), joined(server, task)
            assert "2 stream(s) ended" in run("space", "remove", "home", task, *way)
            first.observe()
            assert first.put().json()["code"] == "sealed"
            assert "0 stream(s) ended" in run("space", "remove", "home", task, *way)
            assert "no task 'x'" in refusal("space", "remove", "home", "x", *way)
            assert "no space 'none'" in refusal("space", "remove", "none", task, *way)
        whats = [what for what, _ in events_of(server, "home")]
    assert (whats.count("task ended"), whats.count("stream sealed")) == (2, 4)


def test_ending_a_task_is_one_transaction_and_closes_what_waited_for_it(
    tmp_path, monkeypatch
) -> None:
    rules = {"contexts": "per-request", "sync": SyncSettings(deadline_s=60.0)}
    seldom = Settings(tick_s=60.0)  # the server's own look at open epochs is a transaction, too
    with served(tmp_path, seldom, **rules) as server:
        one, _, _ = joined(server, "movies"), joined(server, "tv"), joined(server, "tv")
        assert one.upload(5, trigger=True, for_epoch=1)["open"]["epoch"] == 1
        begun, real = [], server.service.store.transaction
        monkeypatch.setattr(
            server.service.store, "transaction", lambda name: begun.append(name) or real(name)
        )
        with server.admin() as admin:
            assert admin.post("/v1/spaces/home/agents/tv/end").json() == {"streams": 2}
        assert begun == ["home"]
        news = one.news(after=0, wait=10, config_version=1).json()
        assert (news["epoch"], news["streams"]) == (1, 3)  # nobody waits, and the data stay


def test_one_server_on_a_data_folder(tmp_path, monkeypatch) -> None:
    data = tmp_path / "gb"
    with serving("--data", data, "--port", 0):
        said = refusal("serve", "--data", data, "--port", 0)
        assert said.startswith(f"a server already runs with the data in {data}: stop it first")
        with pytest.raises(OSError, match="a server already runs"):
            run_demo(data=data, port=0, minutes=0.0, browser=False)
        # Several servers may share a database, and then also the folder with the first tokens.
        shared = SqliteStore(tmp_path / "shared.db")
        monkeypatch.setattr("guardband.cli.serve.open_store", lambda *_: shared)
        monkeypatch.setattr(Server, "run", lambda _, sockets: sockets[0].close())
        words = ("--data", data, "--port", 0)
        assert run("serve", *words, "--store", "postgresql://x").endswith("stopped.\n")
    run("serve", *words)
    with only_server(data):  # it was let go when that server had ended
        refusal("serve", *words)
    shared.close()


def test_a_server_that_has_stopped_logs_nowhere(tmp_path, monkeypatch) -> None:
    """Another one in this process may log next, when the first one's stream is closed."""
    loggers = [logging.getLogger(name) for name in logs.OURS]
    before = [(list(each.handlers), each.propagate, each.level) for each in loggers]
    during = []

    def noted(_: Server, sockets: list[socket.socket]) -> None:
        during.extend(each.handlers for each in loggers)
        sockets[0].close()

    monkeypatch.setattr(Server, "run", noted)
    run("serve", "--data", tmp_path, "--port", 0)
    assert [len(handlers) for handlers in during] == [1, 0, 1, 1]
    assert [(each.handlers, each.propagate, each.level) for each in loggers] == before


def test_whose_token_is_needed_is_told(tmp_path) -> None:
    there = ("--url", "http://127.0.0.1:1")
    assert "--url needs a viewer's token" in refusal("status", *there)
    said = refusal("space", "pause", "home", "--reason", "x", *there)
    assert "--url needs an admin's token" in said


def test_the_environment_gives_the_token(tmp_path, monkeypatch) -> None:
    with served(tmp_path) as server:
        monkeypatch.setitem(os.environ, "GUARDBAND_TOKEN", server.admin_token)
        assert "home" in run("space", "list", "--url", server.url)
