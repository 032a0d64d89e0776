"""Load through four sidecars and a coordinator, beside what they rest on: docs/load-measured.md.

`python -m bench.sidecars [seconds]` (300) starts `guardband serve` and four `guardband agent`, each
in a process of its own with a journal of its own, and four programs that decide and tell rewards as
quickly as they are answered. All of them share the cores of this machine.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
from rich.console import Console

from bench.commits import commit_now, today
from bench.crowd import RULES, admin, coordinator
from bench.live import bare_transactions
from bench.processes import echo, free_port, process
from bench.workloads import features
from guardband.kernels.types import Floats
from guardband.live.protocol.space import RewardSettings

SIDECARS, ACTIONS, DIM = 4, 20, 9
SECONDS, BARE_S = 300.0, 10.0
READY_S = 300.0  # for kernels that are not compiled yet
PROMPT = RULES.changed(rewards=RewardSettings(order="prompt"))  # so that agents learn meanwhile
PAGE = Path(__file__).parents[1] / "docs" / "load-measured.md"


class Load(NamedTuple):
    """What one program saw."""

    decide_ms: Floats
    observe_ms: Floats
    learned: int  # decisions other than the baseline's

    @property
    def pairs(self) -> int:
        """How often it decided and told the reward."""
        return len(self.observe_ms)


def drive(port: int, token: str, seconds: float, seed: int) -> Load:
    """Decide and observe over one connection, one after the other, for so long."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)
    head = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    phi, theta = features(100, ACTIONS, DIM)
    worth = phi @ theta
    baselines = np.argsort(worth, axis=1)[:, ACTIONS // 2].tolist()
    bodies = [
        json.dumps({"features": menu.tolist(), "baseline": b})
        for menu, b in zip(phi, baselines, strict=True)
    ]
    times: tuple[list[float], list[float]] = ([], [])
    rng, learned = np.random.default_rng(seed), 0

    def ask(path: str, body: str, into: list[float]) -> bytes:
        began = time.perf_counter()
        link.request("POST", path, body, head)
        answer = link.getresponse()
        said = answer.read()
        into.append(1e3 * (time.perf_counter() - began))
        if answer.status >= 300:
            raise RuntimeError(f"{path} was answered with {answer.status}: {said[:200]!r}")
        return said

    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        c, count = count % len(bodies), count + 1
        made = json.loads(ask("/v1/decide", bodies[c], times[0]))
        action = made.get("action", 0)  # a server that only echoes says nothing
        reward = float(rng.random() < worth[c, action])
        learned += action != baselines[c]
        ask("/v1/reward", json.dumps({"id": made.get("id", ""), "reward": reward}), times[1])
    return Load(np.array(times[0]), np.array(times[1]), learned)


def bare(folder: str, seconds: float) -> int:
    """Return how many pairs of bare transactions one process makes meanwhile."""
    work, done = bare_transactions(Path(folder) / f"bare-{os.getpid()}.db", ACTIONS, DIM), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work(done)
        done += 1
    return done


def all_at_once(ports: list[int], tokens: list[str], seconds: float) -> list[Load]:
    """Return what one program for each port saw."""
    with ProcessPoolExecutor(len(ports)) as pool:
        times, seeds = [seconds] * len(ports), range(len(ports))
        return list(pool.map(drive, ports, tokens, times, seeds))


def without_anything(folder: Path) -> tuple[float, float]:
    """Return pairs per second of bare transactions, and of bare HTTP, four at once."""
    with ProcessPoolExecutor(SIDECARS) as pool:
        done = pool.map(bare, [str(folder)] * SIDECARS, [BARE_S] * SIDECARS)
        transactions = sum(done) / BARE_S
    with ExitStack() as stack:
        urls = [stack.enter_context(echo()) for _ in range(SIDECARS)]
        ports = [int(url.rpartition(":")[2]) for url in urls]
        loads = all_at_once(ports, [""] * SIDECARS, BARE_S)
    return transactions, sum(load.pairs for load in loads) / BARE_S


def through_sidecars(folder: Path, seconds: float) -> tuple[list[Load], int]:
    """Return what four programs saw, and how many observations agents pooled meanwhile."""
    with ExitStack() as stack:
        url, tokens, _ = stack.enter_context(coordinator(folder / "server", SIDECARS, rules=PROMPT))
        ports, secrets = [], []
        for k, token in enumerate(tokens):
            port, state = free_port(), folder / f"agent-{k}"
            told = {"space": PROMPT.name, "task": f"task-{k}", "coordinator": url, "token": token}
            told |= {"state": str(state), "port": str(port)}
            words = [word for name, value in told.items() for word in (f"--{name}", value)]
            stack.enter_context(process(["-m", "guardband", "agent", *words], port))
            ports.append(port)
            secrets.append((state / "sidecar.token").read_text().strip())
            await_ready(port, secrets[-1])
        loads = all_at_once(ports, secrets, seconds)
        with admin(url, folder / "server") as ask:
            about = ask.get(f"/v1/spaces/{PROMPT.name}").raise_for_status().json()
    return loads, int(about["epoch"])


def await_ready(port: int, token: str) -> None:
    """Wait until a sidecar is at full speed."""
    end = time.monotonic() + READY_S
    head = {"Authorization": f"Bearer {token}"}
    while httpx.get(f"http://127.0.0.1:{port}/readyz", headers=head).status_code != 200:
        if time.monotonic() > end:
            raise RuntimeError("a sidecar is not ready in time.")
        time.sleep(0.2)


def page(loads: list[Load], epochs: int, allowed: tuple[float, float], seconds: float) -> str:
    """Return what was measured, as a page of the documentation."""
    decide, observe = (np.concatenate([load[k] for load in loads]) for k in (0, 1))
    rate = sum(load.pairs for load in loads) / seconds
    learned = sum(load.learned for load in loads) / len(decide)

    def row(name: str, times: Floats) -> str:
        half, most = np.quantile(times, (0.5, 0.99))
        return f"| {name} | {half:.2f} ms | {most:.2f} ms | {times.max():.0f} ms |"

    return "\n".join(
        [
            "# Load through sidecars, measured",
            "",
            "For operators who plan a machine: what four sidecars take when programs ask as fast",
            "as they are answered.",
            "",
            f"`python -m bench.sidecars {seconds:g}`, {today()}, commit {commit_now()},",
            f"{os.cpu_count()} cores: a coordinator, four `guardband agent` with a journal each,",
            f"and four programs, K = {ACTIONS}, d = {DIM}, all on this machine.",
            "",
            "| decide + observe per second, all four together | |",
            "|---|---:|",
            f"| through sidecars | {rate:,.0f} |",
            f"| two bare HTTP round trips each, to servers that do nothing | {allowed[1]:,.0f} |",
            f"| two bare SQLite transactions each, without HTTP | {allowed[0]:,.0f} |",
            "",
            "| | p50 | p99 | longest |",
            "|---|---:|---:|---:|",
            row("decide", decide),
            row("observe", observe),
            "",
            f"{len(decide):,} decisions in {seconds:g} s, {learned:.0%} not the baseline's;",
            f"agents pooled {epochs} times meanwhile; no request was refused.",
            "",
        ]
    )


def main() -> None:
    """Measure, and write the page."""
    seconds, notes = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS, Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder:
        with notes.status("bare transactions and bare HTTP"):
            allowed = without_anything(Path(folder))
        with notes.status(f"four sidecars, {seconds:g} s"):
            loads, epochs = through_sidecars(Path(folder), seconds)
    text = page(loads, epochs, allowed, seconds)
    print(text)
    if seconds >= SECONDS:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
