"""Machine code in the background: what agents ask for is compiled elsewhere and loaded here.

A thread asks a helper, a process of low priority, to compile into the cache, and then loads what is
there: that gives the interpreter's lock away often enough, and compiling does not. Where there is
no helper, or no folder that both can use, the thread compiles all the same, and says so. Callers
who cannot go on before wait for this thread: what they wait for comes first.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from guardband.kernels._jit import Kernel
from guardband.kernels.start.helper import Helper, HelperError
from guardband.kernels.start.signature import Signature, signature

__all__ = ["collected", "idle", "request", "wait"]

log = logging.getLogger("guardband")
COMPILED_HERE = (
    "guardband: kernels are compiled in this process, which slows it down for a minute or two, "
    "because %s. `guardband warmup` compiles ahead."
)


class Asked(NamedTuple):
    """What is asked for; what comes first is the least."""

    later: bool  # nobody waits for it
    number: int
    kernel: Kernel
    kinds: Signature
    done: threading.Event  # it is there, or cannot be


class Background:
    """What this process has asked for, and the thread that gets it."""

    def __init__(self) -> None:
        self._known: dict[tuple[Kernel, Signature], threading.Event] = {}
        self._asked: queue.PriorityQueue[Asked] = queue.PriorityQueue()
        self._numbers = count()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = False
        # Held while something is loaded: a process that ends or forks then would crash or hang.
        self.loading = threading.Lock()

    def add(self, kernel: Kernel, kinds: Signature, *, first: bool = False) -> threading.Event:
        """Get machine code of a kernel for arguments of these types, once; return when it is done.

        `first`: before all that is asked for without.
        """
        with self._lock:
            new = (kernel, kinds) not in self._known
            done = self._known.setdefault((kernel, kinds), threading.Event())
            if self._ended:
                done.set()
            if not done.is_set() and (new or first):
                self._asked.put(Asked(not first, next(self._numbers), kernel, kinds, done))
                if self._thread is None:
                    name = "guardband-kernels"
                    self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
                    self._thread.start()
            return done

    def idle(self) -> bool:
        """Tell whether all that was asked for is there, or cannot be."""
        with self._lock:
            return all(done.is_set() for done in self._known.values())

    def end(self) -> None:
        """Load nothing any more, and let nobody wait for it: the process ends."""
        self.loading.acquire()
        with self._lock:
            self._ended = True
            for done in self._known.values():
                done.set()

    def _serve(self) -> None:
        helper: Helper | None = Helper()
        while True:
            *_, kernel, kinds, done = self._asked.get()
            if done.is_set():  # it was asked for twice, and somebody waited
                continue
            try:
                with self.loading:
                    from guardband.kernels.start import machine_code  # noqa: PLC0415 - imports Numba
                if not machine_code.is_kept(kernel, kinds):
                    helper = _compile(helper, kernel, kinds, shared=machine_code.is_shared())
                with self.loading:
                    machine_code.load(kernel, kinds)
            except Exception:  # whatever it is: decisions go on, only slower
                log.exception("guardband: %s was not compiled and stays slow", kernel.__qualname__)
            finally:
                done.set()


def _compile(
    helper: Helper | None, kernel: Kernel, kinds: Signature, *, shared: bool
) -> Helper | None:
    """Let the helper compile; return it if it can be asked again."""
    why = "no folder for machine code can be written"
    if helper is None:
        return None
    if shared:
        try:
            helper.compile(kernel, kinds)
        except HelperError as problem:
            why = f"the helper failed: {problem}"
        else:
            return helper
    log.warning(COMPILED_HERE, why)
    return None


_here = Background()
_collecting: list[tuple[Kernel, Signature]] | None = None


def request(kernel: Kernel, args: tuple[Any, ...]) -> None:
    """Get machine code of a kernel for such arguments, soon."""
    kinds = signature(args)
    if _collecting is None:
        _here.add(kernel, kinds)
    elif (kernel, kinds) not in _collecting:
        _collecting.append((kernel, kinds))


def idle() -> bool:
    """Tell whether all that this process has asked for is there, or cannot be."""
    return _here.idle()


def wait(kernel: Kernel, args: tuple[Any, ...]) -> None:
    """Get machine code of a kernel for such arguments; return when it is there, or cannot be."""
    if _collecting is None:
        _here.add(kernel, signature(args), first=True).wait()


@contextmanager
def collected() -> Iterator[list[tuple[Kernel, Signature]]]:
    """Only note what is asked for in the meantime."""
    global _collecting  # noqa: PLW0603 - a process has one background
    found: list[tuple[Kernel, Signature]] = []
    _collecting = found
    try:
        yield found
    finally:
        _collecting = None


def _end() -> None:
    _here.end()


def _pause() -> None:
    _here.loading.acquire()


def _go_on() -> None:
    _here.loading.release()


def _start_again() -> None:
    global _here  # noqa: PLW0603 - threads do not survive a fork
    _here = Background()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pause, after_in_parent=_go_on, after_in_child=_start_again)
