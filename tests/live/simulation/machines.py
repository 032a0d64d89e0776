"""Machines that lose power, their disks and clocks, and the processes on them that are killed."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
from live.simulation.disk import Disk
from live.simulation.network import Network, SimulatedLink
from live.simulation.scheduler import Fiber, Scheduler

from guardband.live.client.agent import LiveAgent
from guardband.live.client.journal import JournalError
from guardband.live.client.sync_worker import SyncTiming
from guardband.live.client.windows import Clock
from guardband.live.link import Unreachable
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.space import SpaceSettings

__all__ = ["Machine", "Process", "forget_connections"]

BEGAN = 1_700_000_000.0
# Reports run through possible futures, which takes milliseconds: they are sent rarely.
TIMING = SyncTiming(report_s=600.0, upload_s=5.0, confirm_s=60.0, tidy_s=10.0)


class Machine:
    """A computer: a disk, a clock, and whether it has power.

    Parameters
    ----------
    name, folder
        Its own.
    scheduler, rng
        Of the simulation.
    """

    def __init__(self, name: str, folder: Path, scheduler: Scheduler, rng: random.Random) -> None:
        self.name, self.scheduler, self.rng = name, scheduler, rng
        folder.mkdir(parents=True)
        self.disk = Disk(folder, rng, self._work)
        self.busy_until = 0.0
        self.boots, self._booted = 1, 0.0
        self.ahead = rng.uniform(-2.0, 2.0)  # of the wall clock

    def _work(self, seconds: float) -> None:
        self.busy_until = max(self.busy_until, self.scheduler.now) + seconds

    def wall(self) -> float:
        """Return what its clock on the wall shows."""
        return BEGAN + self.scheduler.now + self.ahead

    def steady(self) -> float:
        """Return the seconds since it was switched on."""
        return self.scheduler.now - self._booted

    def reboot(self) -> None:
        """Switch it on again, after its disk has lost what it lost."""
        self.disk.lose_power()
        self.boots += 1
        self._booted = self.scheduler.now


class Process:
    """A process with a live agent, which can be killed at any moment.

    Parameters
    ----------
    machine
        Where it runs.
    task, uses, space
        Of its agent.
    number
        Which of the machine's processes it is.
    network
        To the coordinator.
    """

    def __init__(
        self,
        machine: Machine,
        task: str,
        uses: tuple[int, ...],
        space: SpaceSettings,
        number: int,
        network: Network,
    ) -> None:
        self.machine, self.task, self.uses, self.space = machine, task, uses, space
        self.name, self._network = f"{machine.name}.{number}", network
        self.fibers: list[Fiber] = []
        self.agent: Any = None
        self._made: Any = None  # the same, also before it is ready
        self.dead = True
        self.lives = 0

    @property
    def busy_until(self) -> float:
        """When the machine has time for it."""
        return self.machine.busy_until

    def start(self, failed: Callable[[Process], None]) -> None:
        """Start it; `failed` is called where the agent cannot be made now."""
        self.dead, self.agent, self.fibers = False, None, []
        self.lives += 1

        def boot() -> None:
            try:
                self._connect()
                self.agent = self._made
            except (JournalError, Unreachable, Refused):
                failed(self)

        Fiber(self.machine.scheduler, self, boot).start()

    @property
    def store(self) -> Any:
        """The agent's store."""
        return self._made._store

    def _connect(self) -> None:
        machine, self._made = self.machine, LiveAgent.__new__(LiveAgent)
        clock = Clock(machine.wall, machine.steady, f"boot-{machine.name}-{machine.boots}")
        self._made.__init__(
            SimulatedLink(self._network, self),
            state_dir=machine.disk.folder / "state",
            create=False,
            task=self.task,
            space=self.space.name,
            settings=SpaceSettings(
                name=self.space.name, features=self.space.features, agents=self.space.agents
            ),
            uses=self.uses,
            seed=machine.rng.randrange(2**31),
            clock=clock,
            timing=TIMING,
        )

    def kill(self) -> None:
        """Kill -9: its threads, its locks and its connections are gone, its files stay."""
        self.dead = True
        for fiber in self.fibers:
            fiber.kill()
        agent, self.agent, self._made, self.fibers = self._made, None, None, []
        if agent is None:
            return
        agent._closed = True
        if hasattr(agent, "_worker"):
            agent._worker.leave()
        if hasattr(agent, "_store"):
            journal = agent._store.journal
            forget_connections(journal._db, journal._aside)
            journal._db = journal._aside = None


def forget_connections(*connections: apsw.Connection | None) -> None:
    """Close connections of a process that was killed, without what closing does to files."""
    for connection in connections:
        if connection is not None:
            with suppress(apsw.ConnectionClosedError):
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close(True)
