"""The example of a web service: it learns from late clicks, and is killed and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import numpy as np
import pytest

import guardband as gb

EXAMPLE = Path(__file__).parents[2] / "examples" / "service"
WORTH = np.array([0.15, 0.15, 0.5])  # of fresh, popular and match, for a click


@contextmanager
def serving(folder: Path, end: signal.Signals) -> Iterator[httpx.Client]:
    """Run the service until the block ends, and then end it by a signal."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here = {"COORDINATOR": f"local:{folder}", "STATE": str(folder / "top"), "CLICK_WINDOW": "15"}
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLE), "service:app"]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--log-level", "warning"], env=os.environ | here
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            until(lambda: process.poll() is None and answers(client))
            yield client
        process.send_signal(end)
        assert process.wait(30) == -end  # uvicorn closes all, and then ends by what it was sent
    finally:
        process.kill()
        process.wait()


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def until(true: Any) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def visit(client: httpx.Client, rng: np.random.Generator) -> tuple[bool, str, bool]:
    """Return whether the trusted rule's article was shown, the decision, and whether it pleased."""
    table = rng.random((5, 3))
    names = ("fresh", "popular", "match")
    articles = [
        {"name": str(k), **dict(zip(names, row, strict=True))}
        for k, row in enumerate(table.tolist())
    ]
    offer = client.post("/top", json=articles).raise_for_status().json()
    shown = int(offer["article"])
    pleased = bool(rng.random() < 0.1 + table[shown] @ WORTH)
    return shown == int(table[:, 1].argmax()), offer["decision"], pleased


def click(client: httpx.Client, decision: str, pleased: bool) -> int:
    """Send the click of a visitor who was pleased, twice, as senders that retry do."""
    for _ in range(2 * pleased):
        assert client.post("/clicks", json={"decision": decision}).status_code == 202
    return int(pleased)


@pytest.mark.slow
def test_a_service_learns_from_late_clicks_across_a_crash(tmp_path: Path) -> None:
    rng, clicks = np.random.default_rng(0), 0
    with serving(tmp_path, signal.SIGKILL) as client:
        assert client.get("/readyz").status_code in (200, 503)
        clicks += sum(click(client, *visit(client, rng)[1:]) for _ in range(80))
        visits = [visit(client, rng) for _ in range(20)]
        assert all(trusted for trusted, _, _ in visits)
        assert client.get("/healthz").json()["decisions"] == 100
    with serving(tmp_path, signal.SIGTERM) as client:
        assert client.get("/healthz").json()["decisions"] == 100  # all that were answered
        clicks += sum(click(client, *seen[1:]) for seen in visits)  # before the crash, and after it
        own, deadline = 0, time.monotonic() + 120
        while own < 5:  # shown in place of the trusted rule's article
            assert time.monotonic() < deadline
            trusted, *seen = visit(client, rng)
            clicks += click(client, *seen)
            own += not trusted
        until(lambda: client.get("/healthz").json()["pending"] == 0)  # all windows are over
        strange = client.post("/clicks", json={"decision": "nobody-1"})
        assert (strange.status_code, "give the id" in strange.text) == (404, True)
        assert client.post("/top", json=[]).status_code == 422
    with gb.connect(
        f"local:{tmp_path}", space="page", task="top", state_dir=tmp_path / "top", background=False
    ) as agent:
        counters = agent.report().counters
    assert (counters["observed"], counters["late"]) == (clicks, 0)
    assert counters["learned"] >= 5


def test_if_the_agent_cannot_decide_the_trusted_rule_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: Callable[[str, str], ModuleType]
) -> None:
    monkeypatch.setenv("COORDINATOR", f"local:{tmp_path}")
    monkeypatch.setenv("STATE", str(tmp_path / "top"))
    service: Any = example("service", "service")
    articles = [dict.fromkeys(("fresh", "popular", "match"), k / 2) for k in range(3)]
    named = [{"name": str(k), **article} for k, article in enumerate(articles)]

    async def offers() -> list[dict[str, Any]]:
        transport = httpx.ASGITransport(service.app)
        async with (
            service.app.router.lifespan_context(service.app),
            httpx.AsyncClient(transport=transport, base_url="http://service") as client,
        ):
            before = await client.post("/top", json=named)
            monkeypatch.setattr(service.app.state.agent, "decide", full_disk)
            return [before.json(), (await client.post("/top", json=named)).json()]

    before, after = asyncio.run(offers())
    assert (before["article"], before["decision"].startswith("top-")) == ("2", True)
    assert after == {"article": "2", "decision": None}


def full_disk(*given: Any, **named: Any) -> None:
    raise gb.JournalError("the disk is full")
