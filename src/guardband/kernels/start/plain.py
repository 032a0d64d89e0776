"""Kernels as they are written, run by Python with the results of the machine code, bit for bit.

Compiled, every float is an IEEE double: a division by zero is infinite, and the root of a negative
number is NaN. Python raises errors instead. So every float that a plain kernel meets, constants of
its code among them, is a `numpy.float64`, and its `math` is one of doubles. Sums have the same
order, the compiler fuses nothing, and `log` and `exp` are those of the same C library.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from guardband.kernels._jit import Kernel

__all__ = ["plain", "run"]


def run(kernel: Kernel, args: tuple[Any, ...]) -> Any:
    """Return what the kernel returns, and change arrays as it does."""
    with np.errstate(all="ignore"):
        return _native(kernel.plain(*map(_double, args)))


def _double(value: Any) -> Any:
    """Return `value` with every float as a double; arrays stay what they are."""
    if type(value) is float:
        return np.float64(value)
    if isinstance(value, tuple):
        items = map(_double, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def _native(value: Any) -> Any:
    """Return `value` with numbers as machine code returns them: Python's own."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        items = map(_native, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def plain(kernel: Kernel) -> Callable[..., Any]:
    """Return the kernel's function in a world in which all kernels are plain functions."""
    f = kernel.py_func
    code, cells = _with_doubles(f.__code__), tuple(map(_cell, f.__closure__ or ()))
    return FunctionType(code, _world(f.__module__), f.__name__, f.__defaults__, cells)


def _cell(cell: CellType) -> CellType:
    """Return the cell of a closure as plain kernels see it."""
    return CellType(_seen(cell.cell_contents))


def _seen(value: Any) -> Any:
    """Return what plain kernels see under a name that kernels use."""
    return value.plain if isinstance(value, Kernel) else _double(value)


def _with_doubles(code: CodeType) -> CodeType:
    return code.replace(co_consts=tuple(map(_double, code.co_consts)))


WORLDS: dict[str, dict[str, Any]] = {}


def _world(module: str) -> dict[str, Any]:
    """Return the globals of a module of kernels as plain functions see them."""
    if module not in WORLDS:
        world = WORLDS[module] = dict(vars(sys.modules[module]), float=np.float64, math=MATH)
        for name, value in list(world.items()):
            world[name] = _seen(value)
    return WORLDS[module]


def _sqrt(x: float) -> Any:
    return NAN if x < 0.0 else np.float64(math.sqrt(x))


def _log(x: float) -> Any:
    if x > 0.0:
        return np.float64(math.log(x))
    return np.float64(-math.inf) if x == 0.0 else NAN


def _log1p(x: float) -> Any:
    if x > -1.0:
        return np.float64(math.log1p(x))
    return np.float64(-math.inf) if x == -1.0 else NAN


def _exp(x: float) -> Any:
    try:
        return np.float64(math.exp(x))
    except OverflowError:
        return np.float64(math.inf)


NAN = np.float64(math.nan)
DOUBLES = {"sqrt": _sqrt, "log": _log, "log1p": _log1p, "exp": _exp}
MATH = SimpleNamespace(**{name: _double(value) for name, value in vars(math).items()} | DOUBLES)
