"""The coordinator's process: production coordinator and store, called as the routes call them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
from live.simulation.machines import Machine, forget_connections
from live.simulation.network import Call, Reply
from pydantic import ValidationError

from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.protocol.digests import digest_of, matches
from guardband.live.protocol.messages import (
    Alarmed,
    Refused,
    Register,
    Report,
    Revision,
    SpaceInfo,
    Upload,
)
from guardband.live.protocol.space import SpaceSettings
from guardband.live.server.errors import answer_to, problem
from guardband.live.store import StoreError
from guardband.live.store.sqlite import SqliteStore

__all__ = ["Server"]

TICK_S = 0.25
NOTHING_NEW = (204, b"", digest_of(b""))
DAMAGED = problem(400, "damaged_body")
Back = Callable[[Reply | Exception], None]


class Server:
    """One coordinator over a SQLite store.

    Parameters
    ----------
    machine
        Where it runs.
    space
        The one space it has.
    closed
        Called when an epoch was closed.
    """

    def __init__(
        self, machine: Machine, space: SpaceSettings, closed: Callable[[int], None]
    ) -> None:
        self.machine, self.space, self._closed = machine, space, closed
        self.coordinator: Any = None
        self.dead = True
        self.fibers: list[Any] = []
        self._held: list[tuple[float, Call, Back]] = []  # polls, and until when
        self._state: tuple[int, ...] = ()

    @property
    def now(self) -> float:
        """The time, by the machine's clock."""
        return self.machine.wall()

    def start(self) -> bool:
        """Start it; False where the store cannot be opened now."""
        self.dead = False
        try:
            store = SqliteStore(self.machine.disk.folder / "coordinator.db")
            self.coordinator = Coordinator(store)
            if not self.coordinator.spaces():
                self.coordinator.create_space(self.space, who="simulation", now=self.now)
        except (StoreError, Refused):
            self.kill()
            return False
        return True

    def kill(self) -> None:
        """Kill -9: connections are gone, files stay."""
        self.dead = True
        coordinator, self.coordinator = self.coordinator, None
        held, self._held = self._held, []
        for _, _, back in held:
            back(httpx.ReadError("reset"))
        if coordinator is not None:
            forget_connections(coordinator.store._connection)

    def tick(self) -> None:
        """Close epochs past their deadline, and answer polls that waited long enough."""
        if not self.dead:
            try:
                self.coordinator.tick(now=self.now)
                self._look()
            except (Refused, StoreError):  # the disk: it is tried again
                pass
            self._answer_held()

    def _answer_held(self) -> None:
        now, held = self.machine.scheduler.now, self._held
        self._held = [each for each in held if each[0] > now]
        for until, _call, back in held:
            if until <= now:
                back(NOTHING_NEW)

    def _look(self) -> None:
        """Answer polls for which there is something new."""
        (row,) = self.coordinator.spaces()
        state = (row.epoch, row.open, row.config_version)
        if state == self._state:
            return
        if self._state and row.epoch > self._state[0]:
            self._closed(row.epoch)
        self._state = state
        held, self._held = self._held, []
        for until, call, back in held:
            self.serve(call, back, until=until)

    def serve(self, call: Call, back: Back, until: float | None = None) -> None:
        """Take a request, now or when the machine has time for it, and answer it."""
        late = self.machine.busy_until - self.machine.scheduler.now
        if late > 0.0:
            self.machine.scheduler.at(late, lambda: self.serve(call, back, until))
            return
        if self.dead:
            back(httpx.ConnectError("refused"))
            return
        reply: tuple[int, bytes] | None
        try:
            sound = matches(call.digest, call.body)
            reply = self._carry_out(call) if sound else (400, bytes(DAMAGED.body))
        except ValidationError:
            reply = (422, bytes(problem(422).body))
        except (Refused, StoreError) as refusal:
            answer = answer_to(refusal)
            reply = (answer.status_code, bytes(answer.body))
        if reply is not None:
            back((*reply, digest_of(reply[1])))
        else:
            now = self.machine.scheduler.now
            until = now + float(call.params["wait"]) if until is None else until
            if until > now:
                self._held.append((until, call, back))
            else:
                back(NOTHING_NEW)
        if call.method != "GET" and not self.dead:
            with suppress(Refused, StoreError):
                self._look()

    def _carry_out(self, call: Call) -> tuple[int, bytes] | None:
        """Return the answer; None: there is nothing new."""
        coordinator, now = self.coordinator, self.now
        _, _, kind, name, *rest = call.path.split("/")
        match call.method, kind, rest:
            case "GET", "spaces", []:
                known, version = coordinator.space(name)
                (row,) = coordinator.spaces()
                said: Any = SpaceInfo(
                    space=name,
                    config_version=version,
                    epoch=row.epoch,
                    tasks=0,
                    paused=row.paused,
                    schema_hash=known.schema_hash,
                    config=known,
                )
            case "POST", "spaces", ["streams"]:
                request = Register.model_validate_json(call.body)
                said = coordinator.register(name, request, now=now)
            case "PUT", "streams", ["checkpoint"]:
                upload = Upload.model_validate_json(call.body)
                said = coordinator.upload(name, upload, now=now)
            case "GET", "spaces", ["epochs", "next"]:
                asked = {k: v for k, v in call.params.items() if k not in ("wait", "stream")}
                said = coordinator.news(name, call.params.get("stream"), **asked, now=now)
                if said is None:
                    return None
            case "POST", "streams", ["report"]:
                coordinator.report(name, Report.model_validate_json(call.body), now=now)
                return 200, b"{}"
            case "POST", "streams", ["alarm"]:
                said = coordinator.alarm(name, Alarmed.model_validate_json(call.body), now=now)
            case "POST", "streams", ["seal"]:
                coordinator.seal(name, Revision(**json.loads(call.body)), now=now)
                return 200, b"{}"
            case _:
                raise AssertionError(f"no such route: {call.method} {call.path}")
        return 200, said.model_dump_json().encode()
