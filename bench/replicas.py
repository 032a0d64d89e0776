"""Durable uploads and epochs: one process on SQLite beside one and three replicas on PostgreSQL.

`python -m bench.replicas` prints the table; it needs a PostgreSQL server's programs (`make full`).
Everything runs on this machine, the agents too: they share its cores with the servers.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from guardband.live.protocol.messages import Checkpoint, Revision, Upload
from guardband.live.protocol.space import SpaceSettings, SyncSettings
from guardband.live.protocol.sums import Sums, difference

# The tests' own server and replicas.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from live.postgres.cluster import Cluster, installations
from live.postgres.replicas import Replica, admin_token

__all__ = ["HEADINGS", "LIMIT_MS", "main", "measure"]

AGENTS = 64
DIM = 9
UPLOADS = 24  # per agent
EPOCHS = 7
LIMIT_MS = 1_000.0  # for an epoch
HEADINGS = ["store", "replicas", "uploads/s", "upload p50 ms", "epoch ms", "bare commit ms"]
SPACE = SpaceSettings(
    name="bench",
    features=tuple(f"x{k}" for k in range(DIM)),
    agents=AGENTS,
    noise=1.0,
    contexts="per-request",
    sync=SyncSettings(deadline_s=20.0, live_s=600.0),
)


class Answer(NamedTuple):
    """What a server said."""

    status: int
    body: Any


class Client:
    """One agent: a connection that is kept, and a stream of honest totals."""

    def __init__(self, url: str, token: str, task: str, seed: int) -> None:
        self.host, port = url.removeprefix("http://").split(":")
        self.port, self.token, self.task = int(port), token, task
        self.stream = str(uuid.uuid4())
        self.epoch = 0
        self._base = {"n": 0, "version": ""}
        self._seed, self._total = seed, Sums(0, np.zeros((DIM + 1) * (DIM + 2) // 2), 0.0, 0.0)

    async def open(self) -> None:
        self._in, self._out = await asyncio.open_connection(self.host, self.port)
        body = {
            "stream": self.stream,
            "task": self.task,
            "schema_hash": SPACE.schema_hash,
            "uses": list(range(DIM)),
            "library": "bench",
        }
        said = await self.ask("POST", f"/v1/spaces/{SPACE.name}/streams", body)
        assert said.status == 201, said

    async def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Send a request and read the answer; just enough HTTP for our own server."""
        raw = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Authorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
        )
        self._out.write(head.encode() + raw)
        lines = (await self._in.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        lengths = [int(x.partition(":")[2]) for x in lines if x.startswith("content-length:")]
        raw = await self._in.readexactly(lengths[0]) if lengths else b""
        return Answer(int(lines[0].split()[1]), json.loads(raw) if raw else None)

    def body(self, **more: Any) -> dict[str, Any]:
        """Return the next upload, with ten observations more."""
        rng = np.random.default_rng(self._seed + self._total.n)
        z = np.column_stack([rng.uniform(0.0, 0.3, (10, DIM)), rng.uniform(0.0, 1.0, 10)])
        gram = (z.T @ z)[np.triu_indices(DIM + 1)]
        self._total = difference(self._total, Sums(-10, -gram, 0.0, -10.0))
        self._mark = {"n": self._total.n, "version": uuid.uuid4().hex}
        checkpoint = Checkpoint(self._mark["version"], self._total, 0)
        upload = Upload(base=Revision(**self._base), checkpoint=checkpoint)
        return {**upload.model_dump(mode="json"), "seen_epoch": self.epoch, **more}

    async def upload(self, body: dict[str, Any]) -> float:
        """Send it; return the seconds that it took."""
        started = time.perf_counter()
        said = await self.ask("PUT", f"/v1/streams/{self.stream}/checkpoint", body)
        assert said.status == 200, said
        self._base = self._mark
        return time.perf_counter() - started

    async def news(self, open_after: int) -> Any:
        """Wait for an open epoch, or for a newer one."""
        path = (
            f"/v1/spaces/{SPACE.name}/epochs/next?stream={self.stream}&after={self.epoch}"
            f"&open_after={open_after}&config_version=1&wait=25"
        )
        while (said := await self.ask("GET", path)).status == 204:
            pass
        assert said.status == 200, said
        return said.body

    async def round(self) -> None:
        """Take part in one epoch: hear that it is open, answer, hear the sum."""
        news = await self.news(self.epoch)
        while news["epoch"] <= self.epoch:
            opened = news["open"]["epoch"]
            await self.upload(self.body(for_epoch=opened))
            news = await self.news(opened)
        self.epoch = news["epoch"]

    def close(self) -> None:
        self._out.close()


async def drive(urls: list[str], tokens: list[str]) -> tuple[float, float, float]:
    """Return uploads a second, their median in ms, and the median of an epoch in ms."""
    clients = [Client(urls[k % len(urls)], token, f"task-{k}", k) for k, token in enumerate(tokens)]
    for client in clients:
        await client.open()

    async def load(client: Client) -> list[float]:
        return [await client.upload(client.body()) for _ in range(UPLOADS)]

    started = time.perf_counter()
    loads = await asyncio.gather(*(load(client) for client in clients))
    taken = [each for one in loads for each in one]
    rate = len(taken) / (time.perf_counter() - started)
    epochs = []
    for _ in range(EPOCHS):
        rounds = [asyncio.create_task(client.round()) for client in clients[1:]]
        await asyncio.sleep(1.0)  # until all of them wait
        first = clients[0]
        started = time.perf_counter()
        await first.upload(first.body(trigger=True, for_epoch=first.epoch + 1))
        first.epoch = (await first.news(first.epoch + 1))["epoch"]
        await asyncio.gather(*rounds)
        epochs.append(1e3 * (time.perf_counter() - started))
    for client in clients:
        client.close()
    return rate, 1e3 * statistics.median(taken), statistics.median(epochs)


def with_replicas(store: str | None, replicas: int, folder: Path) -> tuple[float, float, float]:
    """Start replicas, drive them, stop them."""
    started = [Replica(store, folder / f"replica-{k}") for k in range(replicas)]
    try:
        for replica in started:
            replica.start(wait=False)
        for replica in started:
            replica.wait()
        headers = {"Authorization": f"Bearer {admin_token(*started)}"}
        with httpx.Client(base_url=started[0].url, headers=headers, timeout=60.0) as admin:
            admin.post("/v1/spaces", json=SPACE.as_json()).raise_for_status()
            tokens = []
            for k in range(AGENTS):
                body = {"role": "agent", "space": SPACE.name, "task": f"task-{k}"}
                made = admin.post("/v1/tokens", json=body)
                tokens.append(made.raise_for_status().json()["token"])
        time.sleep(1.0)  # until all replicas know them
        return asyncio.run(drive([replica.url for replica in started], tokens))
    finally:
        for replica in started:
            replica.end()


def bare_commit(store: str | None, folder: Path) -> float:
    """Return the median milliseconds of one small durable commit, without anything around it."""
    import apsw  # noqa: PLC0415
    import psycopg  # noqa: PLC0415

    raw = b"x" * 500
    times = []
    if store is None:
        lite = apsw.Connection(str(folder / "bare.db"))
        lite.pragma("journal_mode", "wal")
        lite.pragma("synchronous", "full")
        lite.execute("create table bare (k integer primary key, raw blob)")
        for k in range(200):
            started = time.perf_counter()
            lite.execute("insert into bare values (?, ?)", (k, raw))
            times.append(time.perf_counter() - started)
        lite.close()
    else:
        with psycopg.connect(store, autocommit=True) as big:
            big.execute("create table if not exists bare (k int primary key, raw bytea)")
            big.execute("truncate bare")
            for k in range(200):
                started = time.perf_counter()
                big.execute("insert into bare values (%s, %s)", (k, raw))
                times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times)


def measure(notes: Console) -> list[list[str]]:
    """Return one row of HEADINGS for each way to run it."""
    cluster = Cluster(installations()[0])
    rows = []
    try:
        cluster.start()
        with tempfile.TemporaryDirectory() as place:
            for name, replicas in (("SQLite", 1), ("PostgreSQL", 1), ("PostgreSQL", 3)):
                folder = Path(place) / f"{name}-{replicas}"
                folder.mkdir()
                store = None if name == "SQLite" else cluster.create(f"bench{replicas}")
                with notes.status(f"{AGENTS} agents, {name}, {replicas} replicas"):
                    bare = bare_commit(store, folder)
                    rate, upload, epoch = with_replicas(store, replicas, folder)
                numbers = [f"{rate:,.0f}", f"{upload:.0f}", f"{epoch:.0f}", f"{bare:.2f}"]
                rows.append([name, str(replicas), *numbers])
    finally:
        cluster.remove()
    return rows


def main() -> None:
    title = f"{AGENTS} agents, d={DIM}: durable uploads, and epochs (limit {LIMIT_MS:.0f} ms)"
    table = Table(*HEADINGS, box=None, title=title)
    for row in measure(Console(stderr=True)):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
