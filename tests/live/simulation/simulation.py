"""One seeded run: agents, coordinator, network, disks and clocks in one process, without real time.

What is replaced is in `guardband.live.system` (time, threads, chance, fsync), SQLite's files, and
the HTTP client of the link. All else is production code.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import logging
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Any

import apsw
import numpy as np
import pytest
from live.chaos.world import DIM, TASKS, space_for
from live.simulation.disk import Disk, simulated_files
from live.simulation.faults import Faults
from live.simulation.ledger import Ledger
from live.simulation.machines import Machine, Process
from live.simulation.network import Call, Network, Reply
from live.simulation.records import SimulationError, expect
from live.simulation.scheduler import (
    Fiber,
    KilledError,
    Scheduler,
    SimulatedEvent,
    SimulatedLock,
)
from live.simulation.server import TICK_S, Server
from live.simulation.users import Users

from guardband.agent import warm_up
from guardband.live import system
from guardband.live.client.journal import JournalError
from guardband.live.protocol.messages import Refused, Revision, Upload, Uploaded
from guardband.live.store import StoreError

__all__ = ["Outcome", "Simulation", "simulate"]

ROUND_EVENTS = 2_000  # between two quiet periods
PATIENCE_S = 300.0  # of simulated time, until all agree when nothing goes wrong any more
RESTART_S = 2.0


@dataclass
class Outcome:
    """How a run went."""

    seed: int
    events: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    trace: str = ""  # equal for equal runs
    epochs: int = 0
    acknowledged: int = 0  # observations that the coordinator acknowledged
    checks: int = 0
    seconds: float = 0.0  # simulated
    failure: str | None = None


class Simulation:
    """A small world, and everything that goes wrong in it.

    Parameters
    ----------
    seed
        Draws everything.
    folder
        For its files.
    calm
        Kinds of faults that are left out.
    """

    def __init__(self, seed: int, folder: Path, calm: tuple[str, ...] = ()) -> None:
        self.rng = random.Random(seed)
        self.outcome = Outcome(seed)
        self._trace = hashlib.blake2b(digest_size=16)
        self.scheduler = Scheduler(self.rng)
        self.space = space_for(seed)
        self.ledger = Ledger(self.space)
        self.network = Network(self.scheduler, self.rng, self._serve, self.note)
        self.network.sent, self.network.answered = self._sent, self._answered
        self.folder = folder
        self.machines: list[Machine] = []
        self.disks: list[Disk] = []
        self.processes: list[Process] = []
        self.server = Server(self._machine("coordinator"), self.space, self._epoch_closed)
        self.fallen: list[Machine] = []  # died within an operation; cleaned up after it
        self.quiet = False
        self.faults = Faults(self, calm)
        self.users = Users(self, np.random.default_rng(seed))

    # Names of what is here.

    def _machine(self, name: str) -> Machine:
        machine = Machine(name, self.folder / name, self.scheduler, self.rng)
        self.machines.append(machine)
        self.disks.append(machine.disk)
        machine.disk.on_fatal = lambda: self.faults.fall(machine)
        return machine

    def add_agent(self, task: str, name: str, workers: int) -> list[Process]:
        """Add a machine with processes of one agent."""
        machine = self._machine(name)
        given = (machine, task, TASKS[task], self.space)
        made = [Process(*given, number, self.network) for number in range(workers)]
        self.processes += made
        return made

    def on(self, machine: Machine) -> list[Process]:
        """Return the processes of a machine."""
        return [process for process in self.processes if process.machine is machine]

    def note(self, kind: str, *about: Any) -> None:
        """Note something that happens; equal seeds have equal notes."""
        self.outcome.kinds[kind] += 1
        if kind in ("network", "fault"):
            self.outcome.faults[str(about[0])] += 1
        self._trace.update(repr((self.scheduler.now, kind, about)).encode())

    # What happens.

    def run(self, events: int) -> None:
        """Let so many events happen, with a quiet period and all checks now and then."""
        self._start_server()
        for number, task in enumerate(TASKS):
            for process in self.add_agent(task, task, 2 if number == 0 else 1):
                self.start(process)
        self._tick()
        while self.outcome.events < events:
            self.quiet = False
            self.users.begin()
            self.faults.begin()
            until = self.outcome.events + ROUND_EVENTS
            while self.outcome.events < until:
                self._step()
            self._settle()
            self.check()
        self.outcome.trace = self._trace.hexdigest()
        self.outcome.seconds = self.scheduler.now
        self.outcome.epochs = len(self.ledger.epochs)
        heads = self.ledger.acknowledged.values()
        self.outcome.acknowledged = sum(max(head.link.k for head in each) for each in heads)

    def _step(self) -> None:
        self.outcome.events += 1
        with suppress(KilledError):
            self.scheduler.step()
        while self.fallen:
            self.faults.clean_up(self.fallen.pop())
        if self.scheduler.trouble:
            error = self.scheduler.trouble[0]
            if isinstance(error, SimulationError):
                raise error
            raise SimulationError(f"an error that nobody expects: {error!r}") from error

    def _settle(self) -> None:
        """Let nothing go wrong, decide nothing, and wait until all agree."""
        self.quiet = True
        self.faults.end()
        until = self.scheduler.now + PATIENCE_S
        while not self._agreed():
            expect(self.scheduler.now < until, "no agreement", *self._who_lags())
            pause = self.scheduler.now + 1.0
            while self.scheduler.now < pause:
                self._step()

    def _agreed(self) -> bool:
        return not self.users.awaited and not self._who_lags()

    def _who_lags(self) -> list[str]:
        if self.server.dead:
            return ["coordinator"]
        try:
            newest = self._look_at_store()
        except (Refused, StoreError):  # damaged; the next transaction mends it
            return ["coordinator is damaged"]
        found = []
        for process in self.processes:
            if process.agent is None:
                found.append(f"{process.name} is not there")
                continue
            try:
                if process.machine.name in self.ledger.suspended:
                    process.store.journal.query("PRAGMA integrity_check")
                with process.store as state:
                    pending = process.store.pending
            except JournalError:  # damaged where nobody has looked; the next transaction mends it
                found.append(f"{process.name} is damaged")
                continue
            entry = 0 if state.stream.since is None else state.stream.since.n
            if pending or state.newest_epoch != newest or state.stream.epoch != newest:
                found.append(f"{process.name}: {pending} pending, epoch {state.stream.epoch}")
            elif self._held(state.stream.stream) != state.n:
                found.append(f"{process.name}: the coordinator lacks some of {state.n}")
            elif entry != state.n:
                found.append(f"{process.name}: {entry} of {state.n} in epoch {newest}")
        return found

    def _look_at_store(self) -> int:
        """Read all of the store where it may be damaged, as a person does; return the epoch."""
        coordinator, name = self.server.coordinator, self.space.name
        if self.ledger.store_suspended:
            with coordinator.store.reading() as t:
                t.ask("pragma integrity_check")
        (row,) = coordinator.spaces()
        if row.paused:
            coordinator.resume(name, who="simulation", now=self.server.now)
        return int(row.epoch)

    def _held(self, stream: str) -> int:
        with self.server.coordinator.store.reading_once() as t:
            row = t.stream(stream)
        return -1 if row is None else int(row.n)

    def check(self) -> None:
        """Compare everything that is kept with the ledger."""
        self.ledger.trust_again()
        gc.collect()
        self.outcome.checks += 1
        self.note("check")
        seen: set[bytes] = set()
        with self.server.coordinator.store.reading() as t:
            rows = {row.stream: row for row in t.streams(self.space.name)}
            epochs = t.epochs(self.space.name, 10**6)
            for epoch in epochs:
                if epoch.state == "closed":
                    lines = t.entries(self.space.name, epoch.epoch)
                    entries = {line.stream: Revision(line.n, line.version) for line in lines}
                    self.ledger.close_epoch(epoch.epoch, entries, epoch.total)
        held = {}
        for stream, row in rows.items():
            if row.n:
                held[stream] = self.ledger.check_stream(stream, row.revision, row.total)
                link: Any = held[stream]
                while link is not None and link.x:
                    expect(link.x not in seen, "counted twice: at the coordinator", stream)
                    seen.add(link.x)
                    link = link.before
        for stream, heads in self.ledger.acknowledged.items():
            there = stream in held or all(head.waived for head in heads)
            expect(there, "acknowledged lost: a stream", stream)
        for process in self.processes:
            self.ledger.check_view(process)
        self.users.check()

    # What the parts call.

    def start(self, process: Process) -> None:
        """Start a process, and try again later where it cannot begin."""
        if process.dead:
            self.note("start", process.name)
            process.start(self._not_started)

    def _not_started(self, process: Process) -> None:
        process.dead = True
        self.scheduler.at(RESTART_S, partial(self.start, process))

    def _start_server(self) -> None:
        if not self.server.dead:
            return
        self.note("start", "coordinator")
        if not self.server.start():
            if self.quiet and self.ledger.store_suspended:  # it cannot be mended: a person's work
                self.note("fault", "store put aside")
                self.server.machine.disk.put_back({})
            self.scheduler.at(RESTART_S, self._start_server)

    def restart_server(self, seconds: float) -> None:
        """Start the coordinator again, later."""
        self.scheduler.at(seconds, self._start_server)

    def _tick(self) -> None:
        self.scheduler.at(TICK_S, self._tick)
        self.server.tick()

    def _serve(self, call: Call, back: Any) -> None:
        self.server.serve(call, back)
        if call.method == "PUT" and not self.server.dead:
            stream = call.path.split("/")[3]
            with (
                suppress(Refused, StoreError),
                self.server.coordinator.store.reading_once() as t,
            ):
                row = t.stream(stream)
                if row is not None and row.n:
                    self.ledger.check_stream(stream, row.revision, row.sound(1).total)

    def _epoch_closed(self, epoch: int) -> None:
        with self.server.coordinator.store.reading() as t:
            row = t.epoch(self.space.name, epoch)
            lines = t.entries(self.space.name, epoch)
        entries = {line.stream: Revision(line.n, line.version) for line in lines}
        self.ledger.close_epoch(epoch, entries, row.total)

    def _sent(self, call: Call) -> None:
        if call.method == "PUT":
            stream = call.path.split("/")[3]
            self.ledger.sent(call.process, stream, Upload.model_validate_json(call.body))

    def _answered(self, call: Call, reply: Reply) -> None:
        if call.method == "PUT" and reply[0] == 200:
            said = Uploaded.model_validate_json(reply[1])
            self.ledger.stored(call.path.split("/")[3], said.revision)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let production code use this world's time, threads, chance and files."""
        scheduler = self.scheduler

        def thread(target: Any, **_: Any) -> Fiber:
            assert scheduler.current is not None
            return Fiber(scheduler, scheduler.current.owner, target)

        with (
            pytest.MonkeyPatch.context() as patch,
            simulated_files(self.disks, self._running, random.Random(self.outcome.seed)),
        ):
            patch.setattr(sys, "unraisablehook", _told)
            patch.setattr(system, "monotonic", scheduler.monotonic)
            patch.setattr(system, "Event", lambda: SimulatedEvent(scheduler))
            patch.setattr(system, "Lock", lambda: SimulatedLock(scheduler, fair=True))
            patch.setattr(system, "RLock", lambda: SimulatedLock(scheduler, fair=False))
            patch.setattr(system, "Thread", thread)
            patch.setattr(system, "urandom", self.rng.randbytes)
            patch.setattr(system, "uniform", self.rng.uniform)
            patch.setattr(system, "put_on_disk", self._put_on_disk)
            try:
                yield
            finally:
                for process in self.processes:
                    process.kill()
                self.server.kill()

    def _running(self) -> Any:
        current = self.scheduler.current
        return None if current is None else current.owner

    def _put_on_disk(self, path: Any, way: int = 0) -> None:
        for disk in self.disks:
            if str(path).startswith(f"{disk.folder}/"):
                try:
                    disk.before(grows=False)
                except apsw.IOError as error:  # here it is the system that says so, not SQLite
                    raise OSError(errno.EIO, str(error)) from error
                disk.synchronise(str(path))


def _told(unraisable: Any) -> None:
    """Say nothing of what SQLite meets when connections of the dead are closed."""
    if not issubclass(unraisable.exc_type, KilledError | apsw.Error):
        sys.__unraisablehook__(unraisable)


def simulate(seed: int, events: int, calm: tuple[str, ...] = ()) -> Outcome:
    """Run one world; what goes wrong with it is in the outcome."""
    assert DIM <= 8
    warm_up(["guard-ucb"])
    folder = Path(tempfile.mkdtemp(prefix="guardband-simulation-"))
    quiet = logging.getLogger("guardband.live")
    level, quiet.level = quiet.level, logging.CRITICAL
    simulation = Simulation(seed, folder, calm)
    gc.collect()
    gc.disable()  # connections of the dead are closed when they are collected: at fixed moments
    try:
        with simulation.installed():
            simulation.run(events)
    except Exception as failure:
        simulation.outcome.failure = "".join(format_exception(failure))
        simulation.outcome.trace = simulation._trace.hexdigest()
    finally:
        gc.enable()
        quiet.level = level
        shutil.rmtree(folder)
    return simulation.outcome
