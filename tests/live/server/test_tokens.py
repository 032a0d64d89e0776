"""T9: tokens: who may do what, and for how long."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from live.server.driver import NEXT, SPACE, Served, Stream, problem, served, version

from guardband.live.coordinator.tokens import create_token, revoke_token
from guardband.live.server import Settings
from guardband.live.server.first_start import first_tokens
from guardband.live.server.service import Service
from guardband.live.store.sqlite import SqliteStore


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


def test_a_poll_is_not_answered_to_a_token_revoked_meanwhile(tmp_path) -> None:
    with served(tmp_path) as server, server.admin() as admin:
        token = server.token(space="home", task="movies")
        movies = Stream(server.client(token), "movies")
        movies.register()
        heard = []
        known = {"after": 0, "open_after": 0, "config_version": 1, "wait": 25}
        waiting = threading.Thread(target=lambda: heard.append(movies.news(**known)))
        waiting.start()
        end = time.monotonic() + 20.0
        while not server.service.polls.taken and time.monotonic() < end:
            time.sleep(0.01)
        assert admin.delete(f"/v1/tokens/{token.split('_')[1]}").status_code == 204
        admin.post("/v1/spaces/home/pause", json={"reason": "wakes it"})
        waiting.join(timeout=20)
        assert problem(heard[0]) == (401, "unknown_token")
        assert "config" not in heard[0].json()


def test_an_older_reading_of_the_tokens_never_replaces_a_newer_one(tmp_path) -> None:
    """Where a store has several threads, one of them may be slow."""

    async def race() -> list[str]:
        store = SqliteStore(tmp_path / "gb.db")
        first_tokens(store, tmp_path, now=1.0)
        row, _ = create_token(store, role="viewer", who="test", now=2.0)
        service = Service(store, Settings(), "0")
        began, go_on = asyncio.Event(), asyncio.Event()
        loop, whole = asyncio.get_running_loop(), service.executor.do

        async def slow(work: Any, *args: Any, **more: Any) -> Any:
            found = await whole(work, *args, **more)
            if not began.is_set():  # the first has read, and is held up
                began.set()
                await go_on.wait()
            return found

        service.executor.do = slow  # type: ignore[method-assign]
        older = asyncio.create_task(service.read_tokens())
        await began.wait()
        revoke_token(store, row.token, who="test", now=3.0)
        newer = asyncio.create_task(service.read_tokens())
        loop.call_later(0.1, go_on.set)
        await asyncio.gather(older, newer)
        service.executor.close()
        store.close()
        return [each.token for each in service.tokens.all() if each.token == row.token]

    assert asyncio.run(race()) == []


def test_a_token_that_another_process_made_is_valid_at_once(tmp_path) -> None:
    """As `guardband token create` makes them, in the data folder of a server that runs."""
    with served(tmp_path) as server:
        store = SqliteStore(server.data / "coordinator.db")
        for number in range(5):
            _, text = create_token(store, role="viewer", who="test", now=float(number))
            with server.client(text) as viewer:
                assert viewer.get("/v1/spaces").status_code == 200
        store.close()


def test_tokens_that_nobody_made_read_the_store_together(tmp_path) -> None:
    """However many come: readings for their sake are a tenth of a second apart."""

    async def crowd() -> tuple[int, list[Any]]:
        store = SqliteStore(tmp_path / "gb.db")
        first_tokens(store, tmp_path, now=1.0)
        service, readings = Service(store, Settings(), "0"), 0
        whole = service.read_tokens

        async def count() -> None:
            nonlocal readings
            readings += 1
            await whole()

        service.read_tokens = count  # type: ignore[method-assign]
        forged = [f"Bearer gb_{n:016x}_{'a' * 43}".encode() for n in range(500)]
        callers = await asyncio.gather(*map(service.caller, forged))
        service.executor.close()
        store.close()
        return readings, callers

    readings, callers = asyncio.run(crowd())
    assert callers == [None] * 500
    assert readings <= 3


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
        ("PUT", "/v1/spaces/home", {"config": SPACE.as_json()}),
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
        ("PUT", f"/v1/streams/{agent.id}/checkpoint", agent.body(version=version(), n=1)),
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
        assert movies.upload(5)["revision"]["n"] == 20
        events = admin.get("/v1/spaces/home/summary").json()["events"]
    ids = (old, new.split("_")[1])
    whats = [event["what"] for event in events if event["detail"].get("token") in ids]
    assert whats == ["token revoked", "token created", "token created"]
