"""What goes wrong, when, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from live.simulation.machines import Machine, Process

from guardband.live.client.journal import JournalError

if TYPE_CHECKING:
    from live.simulation.simulation import Simulation

__all__ = ["Faults"]

EVERY_S = 2.0  # of simulated time, on average
ROUGH = 0.03  # of all messages
MOST_MACHINES = 7
FLIPPED = 0.7  # of all damage is one bit; the rest is a whole sector


class Faults:
    """Draws faults, and undoes them.

    With `in_logs` all damage is where it is hardest to see: one bit of a log that is in use.

    Parameters
    ----------
    simulation
        Whom they befall.
    calm
        Kinds that are left out.
    """

    in_logs = False

    def __init__(self, simulation: Simulation, calm: tuple[str, ...]) -> None:
        self._world = simulation
        kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "process killed": (20, self._kill_one),
            "power lost": (10, self._lose_power),
            "killed while writing": (10, partial(self._die_writing, power=False)),
            "power lost while writing": (10, partial(self._die_writing, power=True)),
            "coordinator killed": (6, self._kill_server),
            "coordinator's power lost": (4, self._lose_server_power),
            "partition": (10, self._part),
            "disk full": (6, self._fill),
            "disk failing": (6, self._fail),
            "disk slow": (5, self._slow),
            "clock set": (5, self._set_clock),
            "journal damaged": (8, self._damage_journal),
            "store damaged": (3, self._damage_store),
            "folder kept": (6, self._keep),
            "folder put back": (5, self._put_back),
            "folder copied": (4, self._copy),
        }
        self._kinds = {k: v for k, v in kinds.items() if k not in calm}
        simulation.network.faults = tuple(k for k in simulation.network.faults if k not in calm)
        self._on = False
        self._power: dict[str, bool] = {}  # of machines that will fall: whether power is lost
        self._kept: dict[str, dict[str, bytes]] = {}

    def begin(self) -> None:
        """Let things go wrong from now on."""
        self._on = bool(self._kinds)
        self._world.network.rough = ROUGH if self._world.network.faults else 0.0
        self._later()

    def _later(self) -> None:
        world = self._world
        world.scheduler.at(world.rng.expovariate(1.0 / EVERY_S), self._strike)

    def _strike(self) -> None:
        if not self._on:
            return
        self._later()
        weights = [weight for weight, _ in self._kinds.values()]
        kind = self._world.rng.choices(list(self._kinds), weights)[0]
        self._world.note("fault", kind)
        self._kinds[kind][1]()

    def end(self) -> None:
        """Let nothing go wrong any more, and mend what can be."""
        self._on = False
        world = self._world
        world.network.rough = 0.0
        world.network.parted.clear()
        for machine in world.machines:
            disk = machine.disk
            disk.full, disk.slow_s, disk.failing, disk.fatal = False, 0.0, 0, 0
        for process in world.processes:
            if process.machine.name in world.ledger.suspended:  # so that its log is read again
                process.kill()
            world.start(process)
        if world.ledger.store_suspended:
            world.server.kill()
        world.restart_server(0.0)

    # Processes and power.

    def _any(self) -> Process:
        return self._world.rng.choice(self._world.processes)

    def _again(self, process: Process) -> None:
        delay = self._world.rng.expovariate(0.5)
        self._world.scheduler.at(delay, partial(self._world.start, process))

    def _kill_one(self) -> None:
        process = self._any()
        process.kill()
        self._again(process)

    def _lose_power(self) -> None:
        self._switch_off(self._any().machine, power=True)

    def _switch_off(self, machine: Machine, *, power: bool) -> None:
        """End everything on a machine; with `power`, its disk loses what was not synchronised."""
        world = self._world
        server = world.server
        if machine is server.machine:
            server.kill()
            world.restart_server(world.rng.expovariate(0.5))
        for process in world.on(machine):
            process.kill()
            self._again(process)
        if power:
            machine.reboot()
            if machine is not server.machine:
                world.ledger.shake(machine.name, world.scheduler.now, back=False)
                world.users.forget(machine)

    def _die_writing(self, *, power: bool) -> None:
        world = self._world
        machine = world.rng.choice(world.machines)
        if not machine.disk.fatal:
            self._power[machine.name] = power
            machine.disk.fatal = world.rng.randrange(1, 60)

    def fall(self, machine: Machine) -> None:
        """A machine dies within an operation of its disk; the rest is done after it."""
        if machine is self._world.server.machine:
            self._world.server.dead = True
        for process in self._world.on(machine):
            process.dead = True
        self._world.fallen.append(machine)

    def clean_up(self, machine: Machine) -> None:
        """End what is left on a machine that fell."""
        self._switch_off(machine, power=self._power.pop(machine.name))

    def _kill_server(self) -> None:
        self._switch_off(self._world.server.machine, power=False)

    def _lose_server_power(self) -> None:
        self._switch_off(self._world.server.machine, power=True)

    # Network, disks, clocks.

    def _part(self) -> None:
        world = self._world
        until = world.scheduler.now + world.rng.expovariate(0.1)
        world.network.parted[self._any().machine.name] = until

    def _disk(self) -> Machine:
        return self._world.rng.choice(self._world.machines)

    def _fill(self) -> None:
        disk = self._disk().disk
        disk.full = True

        def mend() -> None:
            disk.full = False

        self._world.scheduler.at(self._world.rng.expovariate(0.3), mend)

    def _fail(self) -> None:
        self._disk().disk.failing = self._world.rng.randrange(1, 4)

    def _slow(self) -> None:
        disk = self._disk().disk
        disk.slow_s = self._world.rng.uniform(0.001, 0.3)

        def mend() -> None:
            disk.slow_s = 0.0

        self._world.scheduler.at(self._world.rng.expovariate(0.5), mend)

    def _damage_journal(self) -> None:
        """Flip a bit of a journal or its log, or tear a sector; what it has is read before."""
        world, process = self._world, self._any()
        machine = process.machine
        if process.agent is None or machine in world.fallen:
            return
        try:
            with process.store as state:
                world.ledger.follow(process, state.stream.stream)
        except JournalError:
            return
        self._damage(machine)
        world.ledger.damage(machine.name, world.scheduler.now)
        world.users.forget(machine)

    def _damage_store(self) -> None:
        self._damage(self._world.server.machine)
        self._world.ledger.damage_store()

    def _damage(self, machine: Machine) -> None:
        rng, disk = self._world.rng, machine.disk
        if self.in_logs and disk.flip_in_log():
            return
        sizes = disk.sizes()
        path = rng.choice(sorted(path for path, size in sizes.items() if size))
        if rng.random() < FLIPPED:
            disk.flip(path, rng.randrange(8 * sizes[path]))
        else:
            disk.tear(path, rng.randrange(sizes[path]))

    def _set_clock(self) -> None:
        machine = self._disk()
        machine.ahead += self._world.rng.choice((-3600.0, -2.0, 1.5, 60.0, 86_400.0))

    # Folders that go back in time, or are copied.

    def _keep(self) -> None:
        process = self._any()
        self._switch_off(process.machine, power=False)
        self._kept[process.machine.name] = process.machine.disk.keep()

    def _put_back(self) -> None:
        world, machine = self._world, self._any().machine
        copy = self._kept.get(machine.name)
        if copy is None:
            return
        self._switch_off(machine, power=False)
        machine.disk.put_back(copy)
        world.ledger.shake(machine.name, world.scheduler.now, back=True)
        world.users.forget(machine)

    def _copy(self) -> None:
        world, process = self._world, self._any()
        machine = process.machine
        if len(world.machines) >= MOST_MACHINES:
            return
        self._switch_off(machine, power=False)
        name = f"{process.task}-copy-{len(world.machines)}"
        (twin,) = world.add_agent(process.task, name, 1)
        copied = machine.disk.keep()
        here, there = str(machine.disk.folder), str(twin.machine.disk.folder)
        twin.machine.disk.put_back({p.replace(here, there, 1): d for p, d in copied.items()})
        world.ledger.copy(machine.name, name, world.scheduler.now)
        world.users.forget(machine)
        world.start(twin)
        world.users.look_after(twin)
