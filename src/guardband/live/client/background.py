"""A thread that repeats its work until it is stopped, and waits longer after each failure."""

from __future__ import annotations

import logging
from collections.abc import Callable

from guardband.live import system

__all__ = ["BackgroundLoop", "backoff"]

log = logging.getLogger("guardband.live")

BACKOFF_S = (0.2, 30.0)


class BackgroundLoop:
    """One thread and its work.

    Parameters
    ----------
    name
        Of the thread.
    work
        What is repeated. Whatever it raises, it is repeated.
    pause_s
        Between two times, unless `wake` is called.
    expected
        Errors that can be expected: any other is a bug, and logged with its trace.
    on_trouble
        Called with every error, before the wait.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], None],
        *,
        pause_s: float,
        expected: tuple[type[Exception], ...],
        on_trouble: Callable[[Exception], None],
    ) -> None:
        self._work, self._pause_s = work, pause_s
        self._expected, self._on_trouble = expected, on_trouble
        self._wake, self._stop = system.Event(), system.Event()
        self._thread = system.Thread(target=self.run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """End the present pause, or skip the next."""
        if not self._wake.is_set():
            self._wake.set()

    def wait(self, seconds: float) -> None:
        """Wait from within the work: so many seconds, or until it is stopped."""
        self._stop.wait(seconds)

    def stop(self) -> None:
        """Let the present run of the work finish, and start no other."""
        self._stop.set()
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended, at most so long."""
        self._thread.join(timeout_s)

    def run(self) -> None:
        """Repeat until the end."""
        failures = 0
        while not self._stop.is_set():
            try:
                self._work()
                failures = 0
            except Exception as problem:  # whatever it is: decisions go on, and so must this
                if self._stop.is_set():
                    return
                if not isinstance(problem, self._expected):
                    log.exception("guardband: an error in the background")
                self._on_trouble(problem)
                self._stop.wait(backoff(problem, failures))
                failures += 1
                continue
            if self._pause_s:
                self._wake.wait(self._pause_s)
                self._wake.clear()


def backoff(problem: Exception, failures: int) -> float:
    """Return how long to wait: doubling with jitter, or as long as the coordinator asked for."""
    least, most = BACKOFF_S
    wait = min(most, least * 2.0**failures) * system.uniform(0.5, 1.0)
    return max(wait, getattr(problem, "retry_after_s", 0.0))
