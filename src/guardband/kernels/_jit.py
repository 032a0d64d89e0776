"""The decorators of kernels: functions that run compiled, or as they are written.

Compiling takes seconds, up to a minute. `kernel(...)` does it here, in its caller's thread.
`kernel.when_ready(...)` waits until a helper has done it, so that other threads go on.
`kernel.at_once(...)` does not wait: until machine code is there, it runs the plain function, with
the same result to the last bit. Numba is imported when something is compiled, and not before.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import cached_property, update_wrapper
from itertools import count
from typing import Any

__all__ = ["OPTIONS", "Kernel", "fixed_tuple", "kernel", "rare_kernel", "views"]

OPTIONS: dict[str, bool | str] = {
    "cache": True,
    "nogil": True,  # a long simulation must not stall other threads, such as a heartbeat
    "error_model": "numpy",  # a division by zero is infinite, not an exception
    "forceinline": True,
    "_nrt": False,
}
_KERNELS: dict[tuple[str, str], Kernel] = {}  # by module and name


class Kernel:
    """A function of numbers, compiled for the types of its arguments.

    Parameters
    ----------
    function
        The function as it is written.
    options
        For the compiler.

    Closures that one function makes have one name. Machine code is found by its name, in the cache
    and when it is linked, so the second and later ones are numbered: else what was compiled in
    another process would run another closure's code.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, bool | str]) -> None:
        name = function.__qualname__
        for number in count(2):
            if (function.__module__, function.__qualname__) not in _KERNELS:
                break
            function.__qualname__ = f"{name}_{number}"
        update_wrapper(self, function)
        self.py_func, self.options = function, options
        self.__qualname__ = function.__qualname__
        self.code: Any = None  # machine code, once there is any; see `use`
        _KERNELS[function.__module__, function.__qualname__] = self

    def __call__(self, *args: Any) -> Any:
        """Run the machine code; where there is none yet, compile it first, in this thread."""
        return self.compiled(*args)

    def at_once(self, *args: Any) -> Any:
        """Run the machine code if it is there, else the function as it is written."""
        if self.code is not None:
            try:
                return self.code(*args)
            except TypeError:  # it is there for arguments of other types only
                pass
        from guardband.kernels.start import background, plain  # noqa: PLC0415 - rarely needed

        background.request(self, args)
        return plain.run(self, args)

    def when_ready(self, *args: Any) -> Any:
        """Run the machine code; where there is none yet, wait until it is made and loaded."""
        if self.code is not None:
            try:
                return self.code(*args)
            except TypeError:  # it is there for arguments of other types only
                pass
        from guardband.kernels.start import background  # noqa: PLC0415 - rarely needed

        background.wait(self, args)
        return self.at_once(*args)  # where it cannot be compiled, it is slow

    @cached_property
    def compiled(self) -> Any:
        """Numba's dispatcher, which compiles for every new type of an argument and waits."""
        from guardband.kernels._compile import dispatcher  # noqa: PLC0415 - imports Numba

        return dispatcher(self)

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The function as it is written, in a world in which all kernels are plain functions."""
        from guardband.kernels.start.plain import plain  # noqa: PLC0415 - rarely needed

        return plain(self)

    @property
    def ready(self) -> bool:
        """Whether there is machine code."""
        if self.code is not None:
            return True
        return "compiled" in self.__dict__ and bool(self.compiled.signatures)

    def use(self, machine_code: Callable[..., Any]) -> None:
        """Let agents run this from now on; it refuses arguments of other types."""
        self.code = machine_code

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self.__module__, self.__qualname__)


def _find(module: str, name: str) -> Kernel:
    importlib.import_module(module)
    return _KERNELS[module, name]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function`: no global interpreter lock, no reordering of sums, NaN stays NaN.

    Kernels are inlined into each other and never allocate: Numba's memory runtime is off, which
    makes every allocation an error of compilation and every view free. With it on, counting
    references to views took four fifths of a round.
    """
    return Kernel(function, OPTIONS)


def rare_kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` as `kernel` does, but for calls: what is rare must not swell the loops."""
    return Kernel(function, {**OPTIONS, "forceinline": False})


# What kernels call beside each other: here as it is when they run plain, in `_compile` as machine
# code.


def views(numbers, start, shapes):
    """Return the parts of the contiguous vector `numbers` from `start` on, one for every shape.

    The shapes, tuples of integers, must fit: kernels do not check it.
    """
    parts = []
    for shape in shapes:
        stop = start + math.prod(shape)
        parts.append(numbers[start:stop].reshape(shape))
        start = stop
    return tuple(parts)


def fixed_tuple(numbers, length):
    """Return the first `length` of a vector's numbers; the length is known to the compiler."""
    return tuple(numbers[:length])
