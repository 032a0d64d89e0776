"""A random plan of terrible things, and its execution."""

from __future__ import annotations

import heapq
import socket
import time
from collections.abc import Callable
from pathlib import Path

from live.chaos.stage import Stage
from live.chaos.world import LEASE_S, SPACE

__all__ = ["Torment"]

UP_S = 3.0  # a coordinator answers at least so long: from one that is away nothing is learned
OUTLIVED_S = LEASE_S + 7.0  # once, somebody is cut off until its lease is over


class Torment(Stage):
    """A stage on which everything goes wrong, by a seed."""

    def __init__(self, place: Path, seed: int) -> None:
        super().__init__(place, seed)
        self.pauses: list[tuple[float, float]] = []  # from, and when the end was asked for
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._parted: set[str] = set()
        self._calm_until = 0.0  # until then, no rollbacks: somebody counts on what agents know

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self.numbers), act))

    def torment(self, seconds: float) -> None:
        """Do terrible things for so long."""
        end = time.monotonic() + seconds
        for share in (0.3, 0.7):
            self.later(share * seconds, lambda: self.pause(0.12 * seconds))
        self.later(0.45 * seconds, lambda: self._part("games", OUTLIVED_S))
        while time.monotonic() < end:
            self._strike()
            until = time.monotonic() + self.rng.uniform(0.2, 1.2)
            if self.up_at is None and self._answers():
                self.up_at = time.monotonic()
            while (now := time.monotonic()) < until:
                while self._later and self._later[0][0] <= now:
                    heapq.heappop(self._later)[2]()
                time.sleep(0.02)

    def pause(self, seconds: float) -> None:
        """Pause learning; nobody forgets about it by a rollback meanwhile."""
        self.admin("POST", f"/v1/spaces/{SPACE}/pause", reason="chaos")
        started = time.time()
        self._calm_until = time.monotonic() + seconds + 1.0
        self.count("pause")

        def resume() -> None:
            self.pauses.append((started, time.time()))
            self.admin("POST", f"/v1/spaces/{SPACE}/resume")

        self.later(seconds, resume)

    def _part(self, task: str, seconds: float) -> None:
        """Cut a task off, unless it is."""
        if task not in self._parted:
            self._parted.add(task)
            self.proxy.cut_off(task, self.rng.choice(("refuse", "hang")))
            self.count("partition")

            def mend() -> None:
                self._parted.discard(task)
                self.proxy.reconnect(task)

            self.later(seconds, mend)

    def _strike(self) -> None:
        actor = self.rng.choice(self.actors)
        what = self.rng.choices(
            ("server", "agent", "partition", "snapshot", "rollback", "clone"),
            (30, 36, 14, 10, 16, 2 if len(self.actors) < 6 else 0),
        )[0]
        now = time.monotonic()
        early = what == "server" and (self.up_at is None or now - self.up_at < UP_S)
        if early or (what in ("rollback", "clone") and now < self._calm_until):
            what = "agent"
        if what == "server":
            self.kill_server()
            self.later(self.rng.uniform(0.0, 1.0), self.start_server)
        elif what == "agent":
            self.kill(actor, self.rng.randrange(actor.workers))
            self.later(self.rng.uniform(0.0, 1.0), lambda: self.start(actor))
        elif what == "partition":
            self._part(actor.task, self.rng.uniform(0.5, 3.0))
        else:
            {"snapshot": self.snapshot, "rollback": self.roll_back, "clone": self.clone}[what](
                actor
            )

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1.0).close()
        except OSError:
            return False
        return True

    def end_torment(self) -> None:
        """Let nothing go wrong any more, and nothing new be decided; the coordinator answers."""
        while self._later:
            heapq.heappop(self._later)[2]()
        self.start_server()
        for actor in self.actors:
            self.start(actor)
        self.proxy.calm()
        self.quiet.touch()
        self.admin("GET", f"/v1/spaces/{SPACE}")
