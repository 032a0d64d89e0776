"""What operators' tests share: a server that stops and comes back, and agents that talk to it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from live.client.world import AT_ONCE, DIM, LINKS, THETA, make_due, menus
from typer.testing import CliRunner

import guardband as gb
from guardband.cli.app import app
from guardband.live.client.journal import Journal
from guardband.live.client.replay import counted_sums
from guardband.live.link.http import HttpLink
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, sums_of
from guardband.live.server import Settings, make_app
from guardband.live.server.first_start import DATABASE, first_tokens, read_token
from guardband.live.server.run import bind, server_for
from guardband.live.store.sqlite import SqliteStore

RUN = CliRunner()
MADE: list[Any] = []  # agents, so that none is forgotten before it is closed


def run(*words: object) -> str:
    """The output of a command that works."""
    result = RUN.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout  # a server of another test may write to stderr


def refusal(*words: object) -> str:
    """What a command that fails has against it."""
    result = RUN.invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, ValueError | OSError), result.output
    return str(result.exception)


def a_space(name: str = "home", **settings: Any) -> SpaceSettings:
    given: dict[str, Any] = {
        "name": name,
        "features": [f"x{i}" for i in range(DIM)],
        "agents": 4,
        "alpha": 0.3,
        "noise": 0.1,
        "contexts": "per-request",
        "rewards": {"order": "prompt"},
    }
    return SpaceSettings.from_json({**given, **settings})


@dataclass
class Running:
    """A server that runs."""

    url: str
    data: Path
    client: httpx.Client

    def get(self, path: str) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def epoch(self, space: str = "home") -> int:
        return int(self.get(f"/v1/spaces/{space}")["epoch"])

    def summary(self, space: str = "home") -> Any:
        """The summary, as soon as it is of the newest epoch: people may see it a little later."""
        end = time.monotonic() + 60.0
        while True:
            found = self.get(f"/v1/spaces/{space}/summary")
            if found["epoch"] == self.epoch(space):
                return found
            assert time.monotonic() < end
            time.sleep(0.05)

    def alerts(self, space: str = "home") -> set[str]:
        return {alert["id"] for alert in self.summary(space)["alerts"]}

    def agent(self, task: str, space: str = "home", **given: Any) -> gb.LiveAgent:
        token = self.post("/v1/tokens", {"role": "agent", "space": space, "task": task})["token"]
        link = HttpLink(self.url, token)
        folder = self.data / "states" / space / task
        settled = {"create": False, "background": False, "timing": AT_ONCE, "state_dir": folder}
        one = gb.LiveAgent(link, space=space, task=task, **{**settled, **given})
        LINKS[one] = link
        MADE.append(one)
        return one


def close_agents() -> None:
    """Close all that were made, while their server still runs."""
    while MADE:
        MADE.pop().close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


@contextlib.contextmanager
def serving(data: Path, port: int) -> Iterator[Running]:
    """A server on a data folder and a port, in a thread."""
    store = SqliteStore(data / DATABASE)
    first_tokens(store, data, now=time.time())
    settings = Settings()
    sock = bind("127.0.0.1", port)
    server = server_for(make_app(store, settings=settings), settings=settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    url = f"http://127.0.0.1:{port}"
    headers = {"Authorization": f"Bearer {read_token(data)}"}
    try:
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            yield Running(url, data, client)
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        sock.close()


def work(one: Any, rounds: int, seed: int = 0, theta: Any = THETA, noise: float = 0.0) -> list[Any]:
    """Let an agent decide and observe."""
    rng = np.random.default_rng([seed, 1])
    made = []
    for menu in menus(rounds, seed):
        decision = one.decide(menu, 0, float(menu[0] @ THETA))
        reward = float(menu[decision.action] @ theta) + noise * float(rng.normal())
        one.observe(decision.id, min(1.0, max(0.0, reward)))
        made.append(decision)
    return made


def sync(*agents: Any) -> None:
    """Let every agent carry its messages."""
    for each in agents:
        each.sync()


def pool(*agents: Any) -> None:
    """Bring about an epoch with all of them, and let all adopt it; or see that none comes."""
    make_due(agents[0])
    before = max(one.status()["newest_epoch"] for one in agents)
    for _ in range(5):
        sync(*agents)
        heard = {one.status()["newest_epoch"] for one in agents}
        if len(heard) == 1 and heard.pop() > before:
            return


def journal_total(one: Any, n: int | None = None) -> Sums:
    """What the observations in an agent's journal add up to, row by row."""
    journal = Journal(one.state_dir / "journal.db")
    try:
        head = journal.head()
        assert head is not None
        upto = head.n if n is None else n
        return sums_of(counted_sums(journal, head.stream, 0, upto, DIM))
    finally:
        journal.close()
