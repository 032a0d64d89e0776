"""Machine code in the background: what agents ask for is compiled elsewhere and loaded here.

A thread asks a helper, a process of low priority, to compile into the cache, and then loads what is
there: that gives the interpreter's lock away often enough, and compiling does not. Where there is
no helper, or no folder that both can use, the thread compiles all the same, and says so.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from guardband.kernels._jit import Kernel
from guardband.kernels.start.helper import Helper, HelperError
from guardband.kernels.start.signature import Signature, signature

__all__ = ["collected", "request"]

log = logging.getLogger("guardband")
COMPILED_HERE = (
    "guardband: kernels are compiled in this process, which slows it down for a minute or two, "
    "because %s. `guardband warmup` compiles ahead."
)


class Background:
    """What this process has asked for, and the thread that gets it."""

    def __init__(self) -> None:
        self._known: set[tuple[Kernel, Signature]] = set()
        self._asked: queue.SimpleQueue[tuple[Kernel, Signature]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        # Held while something is loaded: a process that ends or forks then would crash or hang.
        self.loading = threading.Lock()

    def add(self, kernel: Kernel, kinds: Signature) -> None:
        """Get machine code of a kernel for arguments of these types, once."""
        with self._lock:
            if (kernel, kinds) in self._known:
                return
            self._known.add((kernel, kinds))
            self._asked.put((kernel, kinds))
            if self._thread is None:
                name = "guardband-kernels"
                self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        with self.loading:
            from guardband.kernels.start import machine_code  # noqa: PLC0415 - imports Numba
        helper: Helper | None = Helper()
        while True:
            kernel, kinds = self._asked.get()
            try:
                if not machine_code.is_kept(kernel, kinds):
                    helper = _compile(helper, kernel, kinds, shared=machine_code.is_shared())
                with self.loading:
                    machine_code.load(kernel, kinds)
            except Exception:  # whatever it is: decisions go on, only slower
                log.exception("guardband: %s was not compiled and stays slow", kernel.__qualname__)


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


def _pause() -> None:
    _here.loading.acquire()


def _go_on() -> None:
    _here.loading.release()


def _start_again() -> None:
    global _here  # noqa: PLW0603 - threads do not survive a fork
    _here = Background()


atexit.register(_pause)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pause, after_in_parent=_go_on, after_in_child=_start_again)
