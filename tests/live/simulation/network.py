"""The simulated network: between an agent's HTTP link and a coordinator, by the bytes of bodies.

The link is the production one; its HTTP client is replaced. At the other end the coordinator is
called as the server's routes call it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
from live.simulation.scheduler import Fiber, KilledError, Scheduler

from guardband.live.link import HttpLink
from guardband.live.protocol.digests import HEADER

if TYPE_CHECKING:
    from live.simulation.machines import Process

__all__ = ["FAULTS", "Call", "Network", "SimulatedLink"]

FAULTS = ("lost", "refused", "answer lost", "repeated", "repeated late", "slow", "cut", "flipped")
DELAY_S = 0.02
SLOW_S = 25.0
LATE_S = 90.0
Reply = tuple[int, bytes, str]  # status, body, and the digest of the body


class Call(NamedTuple):
    """A request as it travels."""

    process: Process
    method: str
    path: str
    params: dict[str, Any]
    body: bytes
    digest: str | None  # of the body, as the sender had it


class Network:
    """All links to one coordinator.

    Parameters
    ----------
    scheduler, rng
        When messages arrive, and what happens to them.
    serve
        The coordinator: takes a call, and what to do with the answer.
    note
        Called with everything that happens.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        rng: random.Random,
        serve: Callable[[Call, Callable[[Reply | Exception], None]], None],
        note: Callable[..., None],
    ) -> None:
        self.scheduler, self.rng, self._serve, self._note = scheduler, rng, serve, note
        self.rough = 0.0  # the chance that something happens to a message
        self.faults: tuple[str, ...] = FAULTS
        self.parted: dict[str, float] = {}  # by machine: until when
        self.sent: Callable[[Call], None] = lambda call: None
        self.answered: Callable[[Call, Reply], None] = lambda call, reply: None

    def ask(self, call: Call, timeout_s: float) -> httpx.Response:
        """Send a request, and wait for the answer; within a thread of the process."""
        me = self.scheduler.current
        assert me is not None, "the simulation itself asks nobody"
        if call.process.dead:
            raise KilledError
        self.sent(call)
        fate = self._fate(call)
        if fate == "refused":
            me.park(self._delay())
            raise httpx.ConnectError("refused")
        ticket = me.ticket
        if fate != "lost":
            self._travel(call, me, ticket, fate)
        answer = me.park(timeout_s)
        if answer is None:
            raise httpx.ReadTimeout("timed out")
        if isinstance(answer, Exception):
            raise answer
        status, body, digest = answer
        return httpx.Response(status, headers={HEADER: digest}, content=body)

    def _fate(self, call: Call) -> str:
        if self.parted.get(call.process.machine.name, 0.0) > self.scheduler.now:
            return "lost" if self.rng.random() < 0.5 else "refused"
        if self.rng.random() >= self.rough:
            return ""
        fate = self.rng.choice(self.faults)
        self._note("network", fate)
        return fate

    def _delay(self) -> float:
        return self.rng.expovariate(1.0 / DELAY_S)

    def _travel(self, call: Call, me: Fiber, ticket: int, fate: str) -> None:
        damaged = fate in ("cut", "flipped") and self.rng.random() < 0.5
        there = call._replace(body=self._damage(call.body, fate)) if damaged else call

        def back(reply: Reply | Exception) -> None:
            if isinstance(reply, tuple):
                if fate == "answer lost":
                    return
                if not damaged and fate in ("cut", "flipped"):
                    reply = (reply[0], self._damage(reply[1], fate), reply[2])
                else:
                    self.answered(call, reply)
            told: Reply | Exception = reply
            self.scheduler.at(self._delay(), lambda: me.wake(ticket, told))

        delay = self.rng.random() * SLOW_S if fate == "slow" else self._delay()
        self.scheduler.at(delay, lambda: self._arrive(there, back))
        if fate.startswith("repeated"):
            later = self.rng.random() * (LATE_S if fate == "repeated late" else 1.0)
            self.scheduler.at(later, lambda: self._arrive(call, lambda _: None))

    def _arrive(self, call: Call, back: Callable[[Reply | Exception], None]) -> None:
        self._note("message", call.process.name, call.method, call.path, call.body)
        self._serve(call, back)

    def _damage(self, body: bytes, fate: str) -> bytes:
        if not body:
            return body
        place = self.rng.randrange(len(body))
        if fate == "cut":
            return body[:place]
        damaged = bytearray(body)
        damaged[place] ^= 1 << self.rng.randrange(8)
        return bytes(damaged)


class SimulatedHttp:
    """In the place of `httpx.Client`."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network, self._process, self._closed = network, process, False

    def request(
        self,
        method: str,
        path: str,
        *,
        timeout: httpx.Timeout,
        content: str = "",
        params: dict[str, Any] | None = None,
        headers: Any = None,
        **given: Any,
    ) -> httpx.Response:
        """Ask over the simulated network."""
        if self._closed:
            raise RuntimeError("closed")
        body = (json.dumps(given["json"]) if "json" in given else content).encode()
        digest = (headers or {}).get(HEADER)
        call = Call(self._process, method, path, params or {}, body, digest)
        assert timeout.read is not None
        return self._network.ask(call, timeout.read)

    def close(self) -> None:
        """Answer nothing more."""
        self._closed = True


class SimulatedLink(HttpLink):
    """The production link over the simulated network."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network, self._process = network, process
        super().__init__("http://coordinator", "gb_simulated_token")

    def after_fork(self) -> None:
        """Use the simulated network."""
        self._http: Any = SimulatedHttp(self._network, self._process)
