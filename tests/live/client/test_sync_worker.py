"""Errands in the background, over a real coordinator process and over links that misbehave."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from live.client.world import (
    AT_ONCE,
    Switch,
    agent,
    check_journal,
    coordinator_process,
    journal_of,
    live_on,
    wait_for,
)

import guardband as gb
from guardband.live import Refused, SpaceSettings, Unreachable
from guardband.live.client.background import backoff
from guardband.live.client.stream_state import StreamState
from guardband.live.link.http import HttpLink
from guardband.live.link.local import LocalLink
from guardband.live.protocol.messages import Report, Revision


def test_agents_in_the_background_learn_from_each_other(tmp_path: Path) -> None:
    agents = [agent(tmp_path, task=task, background=True) for task in ("a", "b", "c")]
    for step in range(6):
        for m, one in enumerate(agents):
            live_on(one, 20, seed=10 * step + m)
        time.sleep(0.05)
    wait_for(lambda: all(one.report().gauges["foreign_n"] > 0 for one in agents))
    wait_for(lambda: len({one.epoch for one in agents}) == 1)
    assert agents[0].epoch > 0
    for one in agents:
        one.close()
        one.close()
        check_journal(journal_of(one))


@pytest.mark.slow
def test_over_http_with_outages(tmp_path: Path) -> None:
    """The coordinator dies and comes back on another day; nothing acknowledged is lost."""
    space = {
        "name": "home",
        "features": ["a", "b", "c"],
        "agents": 3,
        "contexts": "per-request",
        "alpha": 0.3,
        "noise": 0.1,
        "rewards": {"order": "prompt"},
    }
    agents: list[Any] = []
    with coordinator_process(tmp_path / "gb") as (address, token):
        admin = HttpLink(address, token)
        admin.create_space(SpaceSettings.from_json(space))
        with pytest.raises(Refused) as refused:
            admin.create_space(SpaceSettings.from_json(space))
        assert refused.value.code == "space_exists"
        with pytest.raises(LookupError, match="no space 'away'"):
            gb.connect(
                address,
                token=token,
                space="away",
                task="a",
                state_dir=tmp_path / "x",
                background=False,
            )
        for task in ("a", "b"):
            agents.append(
                gb.connect(address, token=token, space="home", task=task, state_dir=tmp_path / task)
            )
        for one in agents:
            live_on(one, 60)
        wait_for(lambda: all(one.epoch > 0 for one in agents))
        wait_for(lambda: all(one.status()["acknowledged"] > 0 for one in agents))
        with httpx.Client(
            base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=30
        ) as client:
            said = client.post("/v1/spaces/home/pause", json={"reason": "test"})
            assert said.status_code == 200, said.text
            wait_for(lambda: live_on(agents[0], 1)[0].reason == "learning is paused: test")
            client.post("/v1/spaces/home/resume", json={"reason": "test"})
            wait_for(lambda: "paused" not in live_on(agents[0], 1)[0].reason)
        admin.close()
    before = [one.status()["acknowledged"] for one in agents]
    for one in agents:
        live_on(one, 60, seed=1)  # nobody answers now
    wait_for(lambda: all(one.status()["trouble"] is not None for one in agents))
    # It is back, at another address: agents with the same folders go on.
    for one in agents:
        one.close()
    with coordinator_process(tmp_path / "gb") as (address, token):
        again = [
            gb.LiveAgent(
                HttpLink(address, token),
                create=False,
                space="home",
                task=task,
                state_dir=tmp_path / task,
                background=False,
                timing=AT_ONCE,
            )
            for task in ("a", "b")
        ]
        for one in again:
            one.sync()
        for one, n in zip(again, before, strict=True):
            assert one.status()["acknowledged"] == one.counted == one.rounds >= n + 60
            assert one.report().counters["conflicts"] == 0
            check_journal(journal_of(one))
            one.close()


class Stuck:
    """A link on which everything takes for ever, or until it is let go."""

    def __init__(self, link: Any) -> None:
        self._link, self.free = link, threading.Event()

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._link, name)
        if name in ("close", "hold", "let_go", "after_fork"):
            return real

        def call(*args: Any, **more: Any) -> Any:
            self.free.wait(60.0)
            raise Unreachable("too late")

        return call


def test_decide_and_observe_never_wait_for_the_network(tmp_path: Path) -> None:
    link = Switch(LocalLink(tmp_path / "gb"))
    one = agent(tmp_path, link=link, background=True)
    stuck = link.to = Stuck(link.to)
    time.sleep(0.5)  # the background hangs in a call now
    start = time.monotonic()
    live_on(one, 300)
    assert time.monotonic() - start < 10.0
    assert one.counted == 300
    stuck.free.set()
    one.close()


def test_trouble_is_waited_out_longer_and_longer() -> None:
    waits = [backoff(Unreachable("away"), k) for k in range(12)]
    for k, wait in enumerate(waits):
        whole = min(30.0, 0.2 * 2**k)
        assert 0.5 * whole <= wait <= whole
    assert backoff(Unreachable("busy", 12.0), 0) == 12.0


def test_a_report_says_how_it_goes_and_is_plain_json(tmp_path: Path) -> None:
    one = agent(tmp_path)
    empty = one.report()
    assert empty.state.reason == ""
    live_on(one, 200)
    one.sync()
    report = one.report()
    text = json.dumps(report.model_dump(mode="json"), allow_nan=False)
    assert len(text) < 32_768
    assert report.counters["decisions"] == 200
    assert report.gauges["margin_min"] >= 0.0
    assert report.gauges["margin_p05"] >= report.gauges["margin_min"]
    assert 0.0 <= report.gauges["conservative_recent"] <= 1.0
    assert sum(report.reasons.values()) == pytest.approx(
        200 * report.gauges["conservative_recent"], abs=1e-6
    )
    # Rewards without noise: far less varied than declared.
    assert report.gauges["residual_ratio"] < 0.5
    rows = journal_of(one).query("SELECT floor, margin FROM decision")
    assert report.sums["floor"] == pytest.approx(sum(f for f, _ in rows))
    assert report.sums["margin"] == pytest.approx(sum(m for _, m in rows))
    rewards = [r for (r,) in journal_of(one).query("SELECT reward FROM outcome ORDER BY seq")]
    leads = [r - f for r, (f, _) in zip(rewards, rows, strict=True)]
    assert report.sums["lead"] == pytest.approx(sum(leads))
    assert report.sums["lead_squares"] == pytest.approx(sum(x * x for x in leads))
    matrix = np.eye(3)
    for x, w in journal_of(one).query("SELECT x, weight FROM decision"):
        matrix += w * np.outer(np.frombuffer(x), np.frombuffer(x))
    assert report.gauges["logdet"] == pytest.approx(np.linalg.slogdet(matrix)[1])
    assert report.gauges["lambda_min"] == pytest.approx(np.linalg.eigvalsh(matrix)[0])


def served(answer: Callable[[httpx.Request], httpx.Response]) -> HttpLink:
    return HttpLink("http://x", "gb_a_b", transport=httpx.MockTransport(answer))


def test_what_http_answers_becomes_what_it_means() -> None:
    def problem(status: int, **body: Any) -> HttpLink:
        return served(lambda _: httpx.Response(status, json={"status": status, **body}))

    with pytest.raises(Refused) as refused:
        problem(
            409, code="revision_conflict", detail="no", stored={"n": 3, "version": "v"}, title="t"
        ).seal("s", Revision(1, "v"))
    assert (refused.value.code, refused.value.status) == ("revision_conflict", 409)
    assert refused.value.more == {"stored": {"n": 3, "version": "v"}}
    for status in (429, 500, 502, 503):
        with pytest.raises(Unreachable) as away:
            problem(status, code="x", detail="later", retry_after_s=3.0).report("s", Report())
        assert away.value.retry_after_s == 3.0
    with pytest.raises(Unreachable, match="is it a coordinator"):
        served(lambda _: httpx.Response(200, text="<html>")).space("s")
    with pytest.raises(Refused):
        served(lambda _: httpx.Response(404, json=["?"])).space("s")

    def broken(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(Unreachable, match="does not answer"):
        served(broken).space("s")
    assert (
        served(lambda _: httpx.Response(204)).news(
            "s", None, after=0, open_after=0, config_version=1, wait_s=0.0
        )
        is None
    )


def test_http_carries_a_token_and_whole_messages() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        body = json.loads(request.content)
        sent = body["checkpoint"]
        revision = {"n": sent["sums"]["n"], "version": sent["version"]}
        return httpx.Response(
            200, json={"revision": revision, "epoch": 4, "open": None, "config_version": 2}
        )

    state = StreamState.start("3f2b8a34-0000-4000-8000-000000000000", 2)
    state = state.counted(np.array([0.1, 0.3]), 0.7, 2.0, 0.1).with_checkpoint(
        "a" * 32, for_epoch=5
    )
    said = served(answer).upload(state.stream, state.upload(trigger=True))
    assert (said.revision, said.epoch) == (Revision(1, "a" * 32), 4)
    (request,) = seen
    assert request.headers["Authorization"] == "Bearer gb_a_b"
    body = json.loads(request.content)
    assert (
        body["checkpoint"]["sums"]["gram"] == state.newest.sums.gram.tolist()
    )  # exact through JSON
    assert (body["for_epoch"], body["trigger"], body["base"]) == (5, True, {"n": 0, "version": ""})
