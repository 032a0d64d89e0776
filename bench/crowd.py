"""A coordinator with many agents: how long an epoch takes, and what holding them costs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx

from bench.replicas import SPACE, Client

__all__ = ["Crowded", "coordinator", "crowded", "free_port", "process"]

EPOCHS = 5
WATCHED_S = 5.0


@contextlib.contextmanager
def process(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server and wait until it answers."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started: subprocess.Popen[bytes] = subprocess.Popen([sys.executable, *command], **quiet)  # type: ignore[call-overload]
    try:
        until = time.monotonic() + 60.0
        while time.monotonic() < until:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{port}/healthz")
                break
            time.sleep(0.05)
        yield started
    finally:
        started.terminate()
        started.wait()


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextlib.contextmanager
def coordinator(folder: Path, agents: int) -> Iterator[tuple[str, list[str], int]]:
    """`guardband serve` with a space for so many agents: its address, their tokens, its pid."""
    port = free_port()
    command = ["-m", "guardband", "serve", "--data", str(folder), "--port", str(port), "--quiet"]
    with process(command, port) as server:
        url = f"http://127.0.0.1:{port}"
        token = (folder / "admin.token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=60.0) as admin:
            space = SPACE.changed(agents=agents).as_json()
            admin.post("/v1/spaces", json=space).raise_for_status()
            tokens = []
            for k in range(agents):
                body = {"role": "agent", "space": SPACE.name, "task": f"task-{k}"}
                made = admin.post("/v1/tokens", json=body).raise_for_status()
                tokens.append(str(made.json()["token"]))
        yield url, tokens, server.pid


class Crowded(NamedTuple):
    """How a coordinator does with many agents."""

    epoch_ms: float  # the median, until the last agent has the sum
    cpu: float  # share of a core while all of them wait
    megabytes: float


async def crowd(url: str, tokens: list[str], pid: int) -> Crowded:
    """Let agents wait for news, and epochs go around."""
    clients = [Client(url, token, f"task-{k}", k) for k, token in enumerate(tokens)]
    for client in clients:
        await client.open()
    taken, cpu = [], 0.0
    for number in range(EPOCHS):
        rounds = [asyncio.create_task(client.round()) for client in clients[1:]]
        await asyncio.sleep(1.0)  # until all of them wait
        if number == 0:
            before, started = _cpu_seconds(pid), time.monotonic()
            await asyncio.sleep(WATCHED_S)
            cpu = (_cpu_seconds(pid) - before) / (time.monotonic() - started)
        first = clients[0]
        started = time.perf_counter()
        await first.upload(first.body(trigger=True, for_epoch=first.epoch + 1))
        first.epoch = (await first.news(first.epoch + 1))["epoch"]
        await asyncio.gather(*rounds)
        taken.append(1e3 * (time.perf_counter() - started))
    for client in clients:
        client.close()
    return Crowded(statistics.median(taken), cpu, _megabytes(pid))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith("VmRSS")) / 1024.0


def crowded(agents: int, folder: Path) -> Crowded:
    """Measure a coordinator with so many agents."""
    with coordinator(folder, agents) as (url, tokens, pid):
        return asyncio.run(crowd(url, tokens, pid))
