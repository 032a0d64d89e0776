"""Agents' processes: a nursery that has everything imported, and what its children do.

Children are real processes of their own, to be killed at any moment. What they were told by the
agent is written to a file of the outside world before they go on: what is in it, the agent's
journal must know.
"""

from __future__ import annotations

import heapq
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

# This file is also a program of its own.
sys.path.insert(0, str(Path(__file__).parents[2]))

from live.chaos.world import FEATURES, SPACE, TASKS, fate_of, menu_of

import guardband as gb

__all__ = ["main"]

PAUSE_S = 0.03  # between two decisions
STATUS_S = 0.2
RESENT = 60  # rewards that a new process sends again, in case the one before it could not


class Outside:
    """What the world knows of an agent, line by line; survives the death of the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, *words: str) -> None:
        os.write(self._file, (" ".join(words) + "\n").encode())


class Life:
    """One worker: decides, hears rewards, sends them on, until it is told to stop or killed."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.uses = TASKS[given["task"]]
        self.rng = np.random.default_rng(given["seed"])
        self.quiet, self.status = Path(given["quiet"]), Path(given["status"])
        path = Path(given["log"])
        past = sorted(path.parent.glob(f"{path.name.partition('.')[0]}.*"))
        self.awaited: list[tuple[float, str, bytes]] = []
        lines = [line for each in past for line in each.read_text().splitlines()]
        for line in [line for line in lines if line.startswith("D ")][-RESENT:]:
            _, name, x = line.split()
            due = time.monotonic() + float(self.rng.uniform(0.0, 1.5))
            heapq.heappush(self.awaited, (due, name, bytes.fromhex(x)))
        self.outside = Outside(path)
        self.stopped = False
        signal.signal(signal.SIGTERM, self._stop)
        self.agent: Any = gb.connect(
            given["url"],
            token=given["token"],
            task=given["task"],
            uses=self.uses,
            settings=gb.SpaceSettings(name=SPACE, features=FEATURES, agents=len(TASKS)),
            state_dir=given["folder"],
        )

    def _stop(self, *_: object) -> None:
        self.stopped = True

    def live(self) -> None:
        shown = 0.0
        while not self.stopped:
            now = time.monotonic()
            if not self.quiet.exists():
                self.decide(now)
            while self.awaited and self.awaited[0][0] <= now:
                _, name, x = heapq.heappop(self.awaited)
                self.tell(name, x)
            if now - shown >= STATUS_S:
                shown = now
                self.show()
            time.sleep(PAUSE_S)
        self.agent.close()

    def decide(self, now: float) -> None:
        menu = menu_of(self.rng, self.uses)
        decision = self.agent.decide(menu, 0, 0.3)
        x = np.ascontiguousarray(menu[decision.action])
        self.outside.note("D", decision.id, x.tobytes().hex())
        fate = fate_of(x)
        if not fate.silent:
            heapq.heappush(self.awaited, (now + fate.delay_s, decision.id, x.tobytes()))

    def tell(self, name: str, raw: bytes) -> None:
        fate = fate_of(np.frombuffer(raw))
        try:
            if fate.discarded:
                self.agent.discard(name)
                return
            self.agent.observe(name, fate.reward)
            self.outside.note("O", name, raw.hex())
            if fate.repeated:
                self.agent.observe(name, fate.reward)
            if fate.contradicted:
                try:
                    self.agent.observe(name, fate.reward / 2.0 + 0.25)
                except ValueError:
                    return
                self.outside.note("W", name, raw.hex())
        except gb.UnknownDecisionError:
            self.outside.note("U", name, raw.hex())
        except ValueError as refused:  # another decision has this id, and a reward
            self.outside.note("R", name, raw.hex(), str(refused).replace(" ", "_"))

    def show(self) -> None:
        made = self.status.with_suffix(".new")
        made.write_text(
            json.dumps({"epoch": self.agent.epoch, "n": self.agent.counted, "pid": os.getpid()})
        )
        made.replace(self.status)


def _child(given: dict[str, Any]) -> None:
    os.setsid()
    noise = os.open(given["errors"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(noise, 1)
    os.dup2(noise, 2)
    code = 1
    try:
        Life(given).live()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Fork a child for every line of JSON on stdin; answer with its process id."""
    with tempfile.TemporaryDirectory() as folder:  # loads the kernels, once for all children
        settings = gb.SpaceSettings(name="warm", features=FEATURES, agents=1, noise=1.0)
        warm: Any = gb.connect(f"local:{folder}", task="warm", settings=settings, background=False)
        menu = menu_of(np.random.default_rng(0), TASKS["movies"])
        warm.observe(warm.decide(menu, 0, 0.3).id, 0.5)
        warm.close()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        given = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _child(given)
        print(child, flush=True)


if __name__ == "__main__":
    main()
