"""The outside world: decides, hears rewards late, twice or never, and gives them to agents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from live.chaos.world import fate_of, menu_of
from live.simulation.machines import Machine, Process
from live.simulation.records import SimulationError, expect

import guardband as gb
from guardband.live.client.journal import JournalError

if TYPE_CHECKING:
    from live.simulation.simulation import Simulation

__all__ = ["Users"]

PAUSE_S = 0.12  # between two decisions of a process, on average
AGAIN_S = 0.5  # until a reward that could not be given is given again
LOOKED_AT = 0.1  # of all decisions: what the agent computes with is compared


class Users:
    """Who asks agents for decisions.

    Parameters
    ----------
    simulation
        The world.
    rng
        Draws menus.
    """

    def __init__(self, simulation: Simulation, rng: np.random.Generator) -> None:
        self._simulation, self._rng = simulation, rng
        self.awaited = 0  # rewards that are still to be given
        self._heard: dict[str, list[bytes]] = {}  # by machine, since the last check

    def begin(self) -> None:
        """Begin to decide, until it is quiet."""
        for process in self._simulation.processes:
            self.look_after(process)

    def look_after(self, process: Process) -> None:
        """Let a process decide again and again."""
        simulation = self._simulation
        simulation.scheduler.at(
            simulation.rng.expovariate(1.0 / PAUSE_S), partial(self._decide, process)
        )

    def _decide(self, process: Process) -> None:
        simulation = self._simulation
        if simulation.quiet:
            return
        self.look_after(process)
        now, machine = simulation.scheduler.now, process.machine
        if process.agent is None or machine.busy_until > now:
            return
        menu = menu_of(self._rng, process.uses)
        rows = [np.ascontiguousarray(row).tobytes() for row in menu]
        try:
            if simulation.rng.random() < LOOKED_AT:
                simulation.ledger.check_view(process)
            decision = process.agent.decide(menu, 0, 0.3)
        except BaseException as error:
            if process.dead:  # which of them is in the journal, if any, is not known
                for x in rows:
                    simulation.ledger.played(machine.name, x, now)
            elif not isinstance(error, JournalError):
                raise
            simulation.note("refused", process.name)  # and else nothing was changed
            return
        x = rows[decision.action]
        simulation.ledger.played(machine.name, x, now, int(decision.id.rpartition("-")[2]))
        simulation.note("decision", decision.id, decision.action, decision.kind)
        fate = fate_of(np.frombuffer(x))
        if not fate.silent:
            self.awaited += 1
            later = partial(self._tell, machine, decision.id, x)
            simulation.scheduler.at(fate.delay_s, later)

    def _tell(self, machine: Machine, name: str, x: bytes) -> None:
        simulation = self._simulation
        now = simulation.scheduler.now
        able = [p for p in simulation.on(machine) if p.agent is not None]
        if not able or machine.busy_until > now:
            simulation.scheduler.at(AGAIN_S, partial(self._tell, machine, name, x))
            return
        agent, fate = simulation.rng.choice(able).agent, fate_of(np.frombuffer(x))
        play = simulation.ledger.plays[x]
        try:
            if fate.discarded:
                agent.discard(name)
            else:
                play.told = True
                agent.observe(name, fate.reward)
                play.heard = now if play.heard is None else play.heard
                if machine.name not in simulation.ledger.suspended:
                    self._heard.setdefault(machine.name, []).append(x)
                if fate.repeated:
                    agent.observe(name, fate.reward)
        except gb.OtherRewardError as refused:
            raise SimulationError("silent change: another decision had this reward") from refused
        except gb.UnknownDecisionError:  # lost with the power, or with a stream
            simulation.note("unknown", name)
        except JournalError:
            simulation.scheduler.at(AGAIN_S, partial(self._tell, machine, name, x))
            return
        except BaseException:
            if not any(process.dead for process in simulation.on(machine)):
                raise
            simulation.scheduler.at(AGAIN_S, partial(self._tell, machine, name, x))
            return
        self.awaited -= 1
        simulation.note("reward", name, fate.reward)

    def forget(self, machine: Machine) -> None:
        """Note that what a machine's agent said is not promised any more: the power failed."""
        self._heard.pop(machine.name, None)

    def check(self) -> None:
        """What agents said they have, they have."""
        for process in self._simulation.processes:
            heard = self._heard.pop(process.machine.name, [])
            if heard:
                known: set[Any] = {
                    x
                    for (x,) in process.store.journal.query(
                        "SELECT d.x FROM decision d JOIN outcome o USING(seq)"
                    )
                }
                lost = [x for x in heard if x not in known]
                expect(not lost, "acknowledged lost: rewards", process.name, len(lost))
