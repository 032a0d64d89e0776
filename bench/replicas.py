"""Durable uploads and epochs: one process on SQLite beside one and three replicas on PostgreSQL.

`python -m bench.replicas` prints the table; it needs a PostgreSQL server's programs (`make full`).
Everything runs on this machine, the agents too: they share its cores with the servers.

    python -m bench.replicas --against FOLDER          # beside the server of another checkout
    python -m bench.replicas --against FOLDER --only SQLite

The other checkout's server is loaded by the same agents in the same run, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.processes import echo
from guardband.live.protocol.messages import NOTHING, Checkpoint, Revision, Upload
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, difference

# The tests' own server and replicas.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from live.postgres.cluster import Cluster, installations
from live.postgres.replicas import Replica, admin_token

__all__ = ["HEADINGS", "LIMIT_MS", "main", "measure"]

AGENTS = 64
DIM = 9
UPLOADS, TURNS = 20, 4  # per agent: less than a token's burst
EPOCHS = 7
LIMIT_MS = 1_000.0  # for an epoch
HEADINGS = [
    "store",
    "replicas",
    "uploads/s",
    "upload p50 ms",
    "epoch ms",
    "bare commits/s",
    "bare HTTP/s",
    "HTTP / uploads",
]
STORES = (("SQLite", 1), ("PostgreSQL", 1), ("PostgreSQL", 3))  # and how many replicas
BESIDE = ["before, uploads/s", "ratio", "wanted", ""]  # with `--against`
FASTER = 3.0  # wanted of durable uploads, beside the first server that was measured
STATED = {  # in words that servers of all versions know
    "name": "bench",
    "features": [f"x{k}" for k in range(DIM)],
    "agents": AGENTS,
    "noise": 1.0,
    "contexts": "per-request",
    "sync": {"deadline_s": 20.0, "live_s": 600.0},
}
SPACE = SpaceSettings.from_json(STATED)
LATER = ("reused", "recent")  # of sums; earlier servers do not know them


class Answer(NamedTuple):
    """What a server said."""

    status: int
    raw: bytes

    @property
    def body(self) -> Any:
        """Return the message in it."""
        return json.loads(self.raw) if self.raw else None


class Connection:
    """A connection that is kept: just enough HTTP, because all clients share the server's cores."""

    def __init__(self, url: str, token: str = "") -> None:
        self.host, port = url.removeprefix("http://").split(":")
        self.port, self.token = int(port), token
        self._out: asyncio.StreamWriter | None = None

    async def connect(self) -> None:
        """Connect, anew where it was: servers close connections on which nothing is said."""
        self.close()
        self._in, self._out = await asyncio.open_connection(self.host, self.port)

    async def ask(self, method: str, path: str, body: str = "") -> Answer:
        """Send a request and read the answer."""
        assert self._out is not None
        self._out.write(
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Authorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            f"{body}".encode()
        )
        head = (await self._in.readuntil(b"\r\n\r\n")).lower()
        _, found, rest = head.partition(b"content-length:")
        raw = await self._in.readexactly(int(rest[: rest.index(b"\r")])) if found else b""
        return Answer(int(head[9:12]), raw)

    def close(self) -> None:
        if self._out is not None:
            self._out.close()


class Client(Connection):
    """One agent with a stream of honest totals, which it makes ready before it is asked for them.

    Parameters
    ----------
    url, token
        Of the server.
    task
        The agent's.
    seed
        Of its observations.
    """

    def __init__(self, url: str, token: str, task: str, seed: int) -> None:
        super().__init__(url, token)
        self.task, self.stream, self.epoch = task, str(uuid.uuid4()), 0
        self._base, self._ready = Revision(0, ""), deque[Checkpoint]()
        self._texts: deque[str] = deque()
        self._seed, self._total = seed, Sums(0, np.zeros((DIM + 1) * (DIM + 2) // 2), 0.0, 0.0)

    async def open(self) -> None:
        await self.connect()
        body = {
            "stream": self.stream,
            "task": self.task,
            "schema_hash": SPACE.schema_hash,
            "uses": list(range(DIM)),
            "library": "bench",
        }
        said = await self.ask("POST", f"/v1/spaces/{SPACE.name}/streams", json.dumps(body))
        assert said.status == 201, said

    def prepare(self, uploads: int) -> None:
        """Make so many checkpoints ready, each with ten observations more."""
        while len(self._ready) < uploads:
            rng = np.random.default_rng(self._seed + self._total.n)
            z = np.column_stack([rng.uniform(0.0, 0.3, (10, DIM)), rng.uniform(0.0, 1.0, 10)])
            gram = (z.T @ z)[np.triu_indices(DIM + 1)]
            self._total = difference(self._total, Sums(-10, -gram, 0.0, -10.0))
            checkpoint = Checkpoint(uuid.uuid4().hex, self._total, 0)
            self._ready.append(checkpoint)
            made = Upload(base=NOTHING, checkpoint=checkpoint).model_dump(mode="json")["checkpoint"]
            for name in LATER:
                del made["sums"][name]  # has its default
            self._texts.append(json.dumps(made))

    async def upload(self, more: str = "") -> float:
        """Send the next checkpoint, with further fields; return the seconds that it took."""
        self.prepare(1)
        base = json.dumps(self._base._asdict())
        body = f'{{"base": {base}, "checkpoint": {self._texts.popleft()}'
        body += f', "seen_epoch": {self.epoch}{more}}}'
        started = time.perf_counter()
        said = await self.ask("PUT", f"/v1/streams/{self.stream}/checkpoint", body)
        assert said.status == 200, said
        self._base = self._ready.popleft().revision
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
            await self.upload(f', "for_epoch": {opened}')
            news = await self.news(opened)
        self.epoch = news["epoch"]

    async def open_epoch(self) -> None:
        """Ask for an epoch, and hear the sum."""
        await self.upload(f', "trigger": true, "for_epoch": {self.epoch + 1}')
        self.epoch = (await self.news(self.epoch + 1))["epoch"]


class Driven(NamedTuple):
    """How servers do under load."""

    rate: float  # durable uploads a second, in the best turn
    upload_ms: float
    epoch_ms: float
    bare: float  # the same messages a second at a server that does nothing, in the best turn


async def load(clients: list[Client]) -> list[float]:
    """Let all clients upload, one message after the other; return what each took, and the rate."""

    async def one(client: Client) -> list[float]:
        return [await client.upload() for _ in range(UPLOADS)]

    for client in clients:
        client.prepare(UPLOADS)
        await client.connect()
    started = time.perf_counter()
    taken = [each for times in await asyncio.gather(*map(one, clients)) for each in times]
    return [len(taken) / (time.perf_counter() - started), *taken]


class Site(NamedTuple):
    """Replicas of one server, and its agents' tokens."""

    urls: list[str]
    tokens: list[str]

    def clients(self) -> list[Client]:
        """Return an agent for each token."""
        return [
            Client(self.urls[k % len(self.urls)], token, f"task-{k}", k)
            for k, token in enumerate(self.tokens)
        ]


async def drive(sites: list[Site], plain: str) -> list[Driven]:
    """Load servers and one that does nothing, in turns; then let epochs go around in each."""
    crowds = [site.clients() for site in sites]
    idle = Site([plain], [""] * AGENTS).clients()
    for crowd in crowds:
        for client in crowd:
            await client.open()
    bare: list[float] = []
    rates: list[list[float]] = [[] for _ in sites]
    taken: list[list[float]] = [[] for _ in sites]
    for _ in range(TURNS):
        bare.append((await load(idle))[0])
        for k, crowd in enumerate(crowds):
            rate, *times = await load(crowd)
            rates[k].append(rate)
            taken[k] += times
    driven = []
    for k, crowd in enumerate(crowds):
        upload_ms, epoch_ms = 1e3 * statistics.median(taken[k]), await epochs_of(crowd)
        driven.append(Driven(max(rates[k]), upload_ms, epoch_ms, max(bare)))
    for client in [*idle, *(client for crowd in crowds for client in crowd)]:
        client.close()
    return driven


async def epochs_of(clients: list[Client]) -> float:
    """Let epochs go around; return the median of their milliseconds."""
    epochs = []
    for client in clients:
        await client.connect()
    for _ in range(EPOCHS):
        for client in clients:
            client.prepare(1)
        rounds = [asyncio.create_task(client.round()) for client in clients[1:]]
        await asyncio.sleep(1.0)  # until all of them wait
        started = time.perf_counter()
        await asyncio.gather(clients[0].open_epoch(), *rounds)
        epochs.append(1e3 * (time.perf_counter() - started))
    return statistics.median(epochs)


@contextlib.contextmanager
def site(
    store: str | None, replicas: int, folder: Path, checkout: Path | None = None
) -> Iterator[Site]:
    """Start replicas with a space and tokens for its agents; stop them."""
    started = [Replica(store, folder / f"replica-{k}", checkout) for k in range(replicas)]
    try:
        for replica in started:
            replica.start(wait=False)
        for replica in started:
            replica.wait()
        headers = {"Authorization": f"Bearer {admin_token(*started)}"}
        with httpx.Client(base_url=started[0].url, headers=headers, timeout=60.0) as admin:
            admin.post("/v1/spaces", json=STATED).raise_for_status()
            tokens = []
            for k in range(AGENTS):
                body = {"role": "agent", "space": SPACE.name, "task": f"task-{k}"}
                made = admin.post("/v1/tokens", json=body)
                tokens.append(made.raise_for_status().json()["token"])
        time.sleep(1.0)  # until all replicas know them
        yield Site([replica.url for replica in started], tokens)
    finally:
        for replica in started:
            replica.end()


def bare_commits(store: str | None, folder: Path) -> float:
    """Return how many small durable commits a second there are, one after the other."""
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
    return 1.0 / statistics.median(times)


def measure(
    notes: Console, against: Path | None = None, stores: Iterable[tuple[str, int]] = STORES
) -> list[list[str]]:
    """Return one row of HEADINGS, and of BESIDE with another checkout, for each way to run it."""
    rows = []
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster: Cluster | None = None
        for name, replicas in stores:
            folder = place / f"{name}-{replicas}"
            folder.mkdir()
            databases: list[str | None] = [None, None]
            if name != "SQLite":
                if cluster is None:
                    cluster = Cluster(installations()[0])
                    stack.callback(cluster.remove)
                    cluster.start()
                databases = [cluster.create(f"{each}{replicas}") for each in ("bench", "before")]
            with notes.status(f"{AGENTS} agents, {name}, {replicas} replicas"):
                commits = bare_commits(databases[0], folder)
                with contextlib.ExitStack() as running:
                    sites = [running.enter_context(site(databases[0], replicas, folder / "now"))]
                    if against is not None:
                        other = site(databases[1], replicas, folder / "before", against)
                        sites.append(running.enter_context(other))
                    seen, *before = asyncio.run(drive(sites, running.enter_context(echo())))
            numbers = [f"{seen.rate:,.0f}", f"{seen.upload_ms:.0f}", f"{seen.epoch_ms:.0f}"]
            beside = [f"{commits:,.0f}", f"{seen.bare:,.0f}", f"{seen.bare / seen.rate:.1f}"]
            rows.append([name, str(replicas), *numbers, *beside])
            for each in before:
                ratio = seen.rate / each.rate
                kept = "kept" if ratio >= FASTER else "MISSED"
                rows[-1] += [f"{each.rate:,.0f}", f"{ratio:.2f}", f"{FASTER:g}", kept]
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--against", type=Path, help="a checkout whose server is measured as well")
    parser.add_argument("--only", choices=("SQLite", "PostgreSQL"), help="one kind of store")
    given = parser.parse_args()
    stores = [each for each in STORES if given.only in (None, each[0])]
    title = f"{AGENTS} agents, d={DIM}: durable uploads, and epochs (limit {LIMIT_MS:.0f} ms)"
    headings = HEADINGS + (BESIDE if given.against else [])
    table = Table(*headings, box=None, title=title)
    for row in measure(Console(stderr=True), given.against, stores):
        table.add_row(*row)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
