"""Virtual time, and threads of which one runs at a time, in an order that a seed draws.

Threads are real ones, each with a lock of its own that it waits for; whoever the scheduler lets go
runs until it waits for something simulated: time, an event, a lock, an answer.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Fiber", "KilledError", "Scheduler", "SimulatedEvent", "SimulatedLock"]

PREEMPTED = 0.05  # of all locks that threads take: another runs first
PREEMPTED_S = 0.05
WAKE_S = 0.001
SHUT_DOWN_S = 10.0  # of real time


class KilledError(BaseException):
    """The process of this thread is dead; nothing of it may go on."""


class Scheduler:
    """The time, and what happens at which moment.

    Parameters
    ----------
    rng
        Draws the order.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now = rng, 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.current: Fiber | None = None  # None: what the simulation does itself
        self.back = threading.Lock()
        self.back.acquire()
        self.trouble: list[BaseException] = []  # what threads ended with

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something so many seconds from now."""
        self._count += 1
        heapq.heappush(self._queue, (self.now + seconds, self._count, act))

    def soon(self, act: Callable[[], None]) -> None:
        """Do something next, in an order that is drawn."""
        self.at(self.rng.random() * WAKE_S, act)

    def step(self) -> None:
        """Let the next thing happen."""
        at, _, act = heapq.heappop(self._queue)
        self.now = max(self.now, at)
        act()

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


class Fiber:
    """A thread under the scheduler; it belongs to a process, and dies with it.

    Parameters
    ----------
    scheduler
        Lets it run.
    owner
        The process; a thread that it starts is its own, too.
    target
        What it does.
    """

    def __init__(self, scheduler: Scheduler, owner: Any, target: Callable[[], None]) -> None:
        self.scheduler, self.owner, self._target = scheduler, owner, target
        self.ended, self.killed = False, False
        self._ticket = 0  # of its present wait: an old alarm must not end a new one
        self._reason: Any = None
        self._go = threading.Lock()
        self._go.acquire()
        self._waiters: list[tuple[Fiber, int]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        owner.fibers.append(self)

    def start(self) -> None:
        """Begin, soon."""
        self._thread.start()
        ticket = self._ticket
        self.scheduler.soon(lambda: self.wake(ticket, None))

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self.killed:
                self._target()
        except KilledError:
            pass
        except BaseException as error:
            if not (self.killed or self.owner.dead):
                self.scheduler.trouble.append(error)
        finally:
            self.ended = True
            for fiber, ticket in self._waiters:
                fiber.soon(ticket, True)
            self.scheduler.back.release()

    def wake(self, ticket: int, reason: Any) -> None:
        """End its present wait, if it is that one, and let it run until the next."""
        if self.ended or ticket != self._ticket:
            return
        late = self.owner.busy_until - self.scheduler.now
        if late > 0.0 and not self.killed:
            self.scheduler.at(late, lambda: self.wake(ticket, reason))
            return
        self._ticket += 1
        self._reason = reason
        before, self.scheduler.current = self.scheduler.current, self
        self._go.release()
        self.scheduler.back.acquire()
        self.scheduler.current = before

    def soon(self, ticket: int, reason: Any) -> None:
        """Have it woken next."""
        self.scheduler.soon(lambda: self.wake(ticket, reason))

    def park(self, timeout: float | None = None) -> Any:
        """Wait, within the thread; return what it is woken with, None when the time is over."""
        if self.killed or self.owner.dead:
            raise KilledError
        ticket = self.ticket
        if timeout is not None:
            self.scheduler.at(timeout, lambda: self.wake(ticket, None))
        self.scheduler.back.release()
        self._go.acquire()
        if self.killed:
            raise KilledError
        return self._reason

    @property
    def ticket(self) -> int:
        """The number of the wait that comes next."""
        return self._ticket

    def kill(self) -> None:
        """End it where it waits: nothing of it goes on but what Python does on the way out."""
        self.killed = True
        if self._thread.ident is not None and self is not self.scheduler.current:
            self.wake(self._ticket, None)
            self._thread.join(SHUT_DOWN_S)

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        me = self.scheduler.current
        if self.ended or me is None or me is self:
            return
        self._waiters.append((me, me.ticket))
        me.park(timeout)


class SimulatedEvent:
    """As `threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._set = scheduler, False
        self._waiters: list[tuple[Fiber, int]] = []

    def is_set(self) -> bool:
        """Tell whether it is set."""
        return self._set

    def set(self) -> None:
        """Set it, and wake who waits."""
        self._set = True
        for fiber, ticket in self._waiters:
            fiber.soon(ticket, True)
        self._waiters.clear()

    def clear(self) -> None:
        """Reset it."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it."""
        me = self._scheduler.current
        assert me is not None, "the simulation itself never waits"
        if not self._set:
            self._waiters.append((me, me.ticket))
            me.park(timeout)
        return self._set


class SimulatedLock:
    """As `threading.RLock`.

    Parameters
    ----------
    scheduler
        Decides who comes first.
    fair
        False: now and then another thread comes first.
    """

    def __init__(self, scheduler: Scheduler, *, fair: bool) -> None:
        self._scheduler, self._depth, self._fair = scheduler, 0, fair
        self._owner: Fiber | None = None
        self._waiters: list[tuple[Fiber, int]] = []

    def acquire(self) -> bool:
        """Take it, or wait for it."""
        me, scheduler = self._scheduler.current, self._scheduler
        if self._depth and self._owner is me:
            self._depth += 1
            return True
        if me is not None and not self._fair and scheduler.rng.random() < PREEMPTED:
            me.park(scheduler.rng.random() * PREEMPTED_S)
        while self._depth:
            assert me is not None, "decide or observe would wait for the network"
            self._waiters.append((me, me.ticket))
            me.park()
        self._owner, self._depth = me, 1
        return True

    def release(self) -> None:
        """Give it back."""
        self._depth -= 1
        if not self._depth:
            self._owner = None
            for fiber, ticket in self._waiters:
                fiber.soon(ticket, True)
            self._waiters.clear()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()
