"""A coordinator's process, agents' processes, and everything that can be done to them."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from live.chaos.proxy import FaultProxy
from live.chaos.world import SPACE, TASKS, space_for

__all__ = ["Actor", "Stage"]

START_S = 60.0
WORKERS = {"movies": 2}  # processes that share a state folder; else one


@dataclass
class Actor:
    """An agent: its state folder, and the processes that work on it."""

    task: str
    folder: Path
    workers: int
    generation: int = 0  # how often its folder was rolled back
    pids: dict[int, int] = field(default_factory=dict)  # by worker
    snapshots: list[Path] = field(default_factory=list)
    past: list[Path] = field(default_factory=list)  # folders as they were when rolled back

    @property
    def name(self) -> str:
        return self.folder.name


class Stage:
    """Everything that runs."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.seed, self.rng = place, seed, random.Random(seed)
        self.space = space_for(seed)
        self.data, self.quiet = place / "gb", place / "quiet"
        self.port = _free_port()
        self.server: subprocess.Popen[bytes] | None = None
        self.up_at: float | None = None  # since when it answers
        self.proxy = FaultProxy(list(TASKS), self.port, seed)
        self.nursery = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.actors = [Actor(task, place / task, WORKERS.get(task, 1)) for task in TASKS]
        self.done: dict[str, int] = {}
        self.numbers = itertools.count()
        self._tokens: dict[str, str] = {}

    # The coordinator.

    def start_server(self) -> None:
        """Start `guardband serve`, unless it runs."""
        if self.server is None or self.server.poll() is not None:
            command = [sys.executable, "-m", "guardband", "serve", "--data", str(self.data)]
            self.up_at = None
            with (self.place / "server.log").open("ab") as log:
                self.server = subprocess.Popen(
                    [*command, "--port", str(self.port), "--quiet"], stdout=log, stderr=log
                )

    def kill_server(self) -> None:
        """Kill -9."""
        if self.server is not None:
            self.server.kill()
            self.server.wait()
            self.server = None
            self.count("server")

    def admin(self, method: str, path: str, **body: Any) -> Any:
        """Ask the coordinator, past the proxy, until it answers."""
        until = time.monotonic() + START_S
        while True:
            try:
                token = (self.data / "admin.token").read_text().strip()
                answer = httpx.request(
                    method,
                    f"http://127.0.0.1:{self.port}{path}",
                    json=body or None,
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=5.0,
                )
                break
            except (OSError, httpx.HTTPError):
                if time.monotonic() > until:
                    raise
                self.start_server()
                time.sleep(0.1)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def open(self) -> None:
        """Start everything."""
        self.start_server()
        self.admin("POST", "/v1/spaces", **self.space.as_json())
        for task in TASKS:
            made = self.admin("POST", "/v1/tokens", role="agent", space=SPACE, task=task)
            self._tokens[task] = made["token"]
        assert self.nursery.stdout is not None
        assert self.nursery.stdout.readline() == "ready\n"
        for actor in self.actors:
            self.start(actor)

    # Agents.

    def start(self, actor: Actor) -> None:
        """Start the workers that do not run."""
        for worker in range(actor.workers):
            if worker in actor.pids:
                continue
            given = {
                "task": actor.task,
                "folder": str(actor.folder),
                "url": f"http://127.0.0.1:{self.proxy.ports[actor.task]}",
                "token": self._tokens[actor.task],
                "seed": self.rng.getrandbits(60),
                "log": str(self.log(actor, worker)),
                "status": str(self.place / f"{actor.name}-{worker}.status"),
                "quiet": str(self.quiet),
                "errors": str(self.place / "agents.log"),
            }
            assert self.nursery.stdin is not None
            assert self.nursery.stdout is not None
            self.nursery.stdin.write(json.dumps(given) + "\n")
            self.nursery.stdin.flush()
            actor.pids[worker] = int(self.nursery.stdout.readline())

    def log(self, actor: Actor, worker: int, generation: int | None = None) -> Path:
        """Return where a worker writes down what it was told."""
        number = actor.generation if generation is None else generation
        return self.place / f"{actor.name}-{worker}.{number:03d}"

    def kill(self, actor: Actor, worker: int | None = None) -> None:
        """Kill -9 one worker, or all of them."""
        for each in [worker] if worker is not None else list(actor.pids):
            pid = actor.pids.pop(each, None)
            if pid is not None:
                _end(pid, signal.SIGKILL)
                self.count("agent")

    def copy(self, actor: Actor) -> Path:
        """Return a copy of a dead agent's state folder."""
        copied = self.place / f"{actor.name}-copy-{next(self.numbers)}"
        shutil.copytree(actor.folder, copied)
        return copied

    def snapshot(self, actor: Actor) -> None:
        """Put a copy aside, to go back to it later."""
        self.kill(actor)
        if actor.folder.exists():
            actor.snapshots.append(self.copy(actor))
            self.count("snapshot")
        self.start(actor)

    def roll_back(self, actor: Actor) -> None:
        """Kill the agent and let it go on from an older copy of its folder."""
        if not actor.snapshots:
            return self.snapshot(actor)
        self.kill(actor)
        kept = self.place / f"{actor.name}-past-{actor.generation}"
        actor.folder.rename(kept)
        actor.past.append(kept)
        shutil.copytree(actor.snapshots[-1], actor.folder)
        actor.generation += 1
        self.count("rollback")
        self.start(actor)
        return None

    def clone(self, actor: Actor) -> None:
        """Let a copy of an agent's folder live beside it."""
        self.kill(actor)
        if actor.folder.exists():
            twin = Actor(actor.task, self.copy(actor), 1)
            self.actors.append(twin)
            self.count("clone")
            self.start(twin)
        self.start(actor)

    def count(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1

    def epochs(self) -> dict[str, int]:
        """Return the epoch that each worker has now, by what it wrote down itself."""
        found = {}
        for actor in self.actors:
            for worker, pid in actor.pids.items():
                try:
                    said = json.loads((self.place / f"{actor.name}-{worker}.status").read_text())
                except (OSError, ValueError):
                    said = {"pid": None}
                found[f"{actor.name}-{worker}"] = said["epoch"] if said["pid"] == pid else -1
        return found

    def stop(self) -> None:
        """Let agents hand in what they have, and everybody end in good order."""
        for actor in self.actors:
            for pid in actor.pids.values():
                os.kill(pid, signal.SIGTERM)
        for actor in self.actors:
            for pid in actor.pids.values():
                _gone(pid)
            actor.pids.clear()
        if self.server is not None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(30)
            self.server = None

    def close(self) -> None:
        """End whatever still runs."""
        for actor in self.actors:
            self.kill(actor)
        if self.server is not None:
            self.server.kill()
            self.server.wait()
        assert self.nursery.stdin is not None
        assert self.nursery.stdout is not None
        self.nursery.stdin.close()
        self.nursery.wait(30)
        self.nursery.stdout.close()
        self.proxy.close()


def _end(pid: int, how: int) -> None:
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        return
    _gone(pid)


def _gone(pid: int) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} does not end")


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
