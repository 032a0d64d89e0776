"""A coordinator with many agents: an epoch every ten seconds, and what that costs.

`python -m bench.crowd [agents] [seconds]` prints how it went.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx

from bench.processes import free_port, process
from bench.replicas import SPACE, Answer, Client
from guardband.live.protocol.space import SpaceSettings, SyncSettings

__all__ = ["Crowded", "coordinator", "crowded"]

EVERY_S = 10.0  # an epoch
LONG_S, QUICK_S = 30.0, 10.0
RETRY_S = 0.5
RULES = SPACE.changed(sync=SyncSettings())  # deadlines as users have them


@contextlib.contextmanager
def coordinator(
    folder: Path, agents: int, *, rules: SpaceSettings = RULES, quiet: bool = False
) -> Iterator[tuple[str, list[str], int]]:
    """`guardband serve` with a space for so many agents: its address, their tokens, its pid.

    It writes its log as it does for users, unless it is `quiet`.
    """
    port = free_port()
    command = ["-m", "guardband", "serve", "--data", str(folder), "--port", str(port)]
    with process(command + ["--quiet"] * quiet, port) as server:
        url = f"http://127.0.0.1:{port}"
        with admin(url, folder) as ask:
            ask.post("/v1/spaces", json=rules.changed(agents=agents).as_json()).raise_for_status()
            tokens = []
            for k in range(agents):
                body = {"role": "agent", "space": rules.name, "task": f"task-{k}"}
                made = ask.post("/v1/tokens", json=body).raise_for_status()
                tokens.append(str(made.json()["token"]))
        yield url, tokens, server.pid


def admin(url: str, folder: Path) -> httpx.Client:
    """Return a client that may do everything."""
    token = (folder / "admin.token").read_text().strip()
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60.0)


class Crowded(NamedTuple):
    """How a coordinator does with many agents."""

    epochs_ms: tuple[float, ...]  # each, until the last agent has the sum
    late: int  # streams that missed a deadline, over all epochs
    refused: dict[int, int]  # how often each status was the answer, from 429 on
    cpu: float  # share of a core, over the whole time
    megabytes: float

    @property
    def epoch_ms(self) -> float:
        """The median."""
        return statistics.median(self.epochs_ms)

    @property
    def held(self) -> bool:
        """Whether nobody was refused or late, and every epoch met its deadline."""
        in_time = max(self.epochs_ms) <= 1e3 * RULES.sync.deadline_s
        return in_time and not self.late and not self.refused

    def as_text(self) -> str:
        """Return all of it, for people."""
        refused = ", ".join(f"{often} x {status}" for status, often in sorted(self.refused.items()))
        return (
            f"{len(self.epochs_ms)} epochs, {self.epoch_ms:.0f} ms (worst "
            f"{max(self.epochs_ms):.0f}), {self.late} late, refused: {refused or 'none'}, "
            f"{100 * self.cpu:.0f} % of a core, {self.megabytes:.0f} MB"
        )


class Member(Client):
    """An agent that counts refusals, and tries again as agents do."""

    def __init__(self, url: str, token: str, task: str, seed: int, refused: Counter[int]) -> None:
        super().__init__(url, token, task, seed)
        self._refused = refused

    async def ask(self, method: str, path: str, body: str = "") -> Answer:
        """Send a request until it is not refused."""
        while (said := await super().ask(method, path, body)).status >= 429:
            self._refused[said.status] += 1
            await asyncio.sleep(RETRY_S)
        return said


async def crowd(url: str, tokens: list[str], pid: int, seconds: float) -> Crowded:
    """Let agents wait for news, and an epoch go around every ten seconds."""
    refused: Counter[int] = Counter()
    clients = [Member(url, token, f"task-{k}", k, refused) for k, token in enumerate(tokens)]
    for client in clients:
        await client.open()
    first, taken = clients[0], []

    def begin() -> list[asyncio.Task[None]]:
        for client in clients:
            client.prepare(1)
        return [asyncio.create_task(client.round()) for client in clients[1:]]

    rounds = begin()
    await asyncio.sleep(1.0 + len(clients) / 500.0)  # until all of them wait
    before, began = _cpu_seconds(pid), time.monotonic()
    while time.monotonic() < began + seconds:
        started = time.perf_counter()
        await asyncio.gather(first.open_epoch(), *rounds)
        taken.append(1e3 * (time.perf_counter() - started))
        rounds = begin()
        await asyncio.sleep(max(0.0, began + EVERY_S * len(taken) - time.monotonic()))
    cpu = (_cpu_seconds(pid) - before) / (time.monotonic() - began)
    for task in rounds:
        task.cancel()
    await asyncio.gather(*rounds, return_exceptions=True)
    for client in clients:
        client.close()
    return Crowded(tuple(taken), 0, dict(refused), cpu, _megabytes(pid))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith("VmRSS")) / 1024.0


def crowded(agents: int, folder: Path, seconds: float = LONG_S) -> Crowded:
    """Measure a coordinator with so many agents."""
    with coordinator(folder, agents) as (url, tokens, pid):
        seen = asyncio.run(crowd(url, tokens, pid, seconds))
        with admin(url, folder) as ask:
            told = ask.get(f"/v1/spaces/{RULES.name}/summary").raise_for_status().json()
        return seen._replace(late=sum(each["streams_late"] for each in told["epochs"]))


def main() -> None:
    agents, seconds = [*sys.argv[1:], *("200", str(LONG_S))[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory() as place:
        seen = crowded(int(agents), Path(place) / "gb", float(seconds))
    print(f"{agents} agents: {seen.as_text()}; {'held' if seen.held else 'NOT HELD'}")


if __name__ == "__main__":
    main()
