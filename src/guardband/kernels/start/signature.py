"""The types of arguments, as Numba tells them apart: without Numba, and from process to process."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

__all__ = ["Signature", "example", "signature"]

Signature = tuple[Any, ...]  # hashable, and can be pickled
SIZE, STEP = 4, 2


def signature(args: tuple[Any, ...]) -> Signature:
    """Return what the compiler has to know of arguments."""
    return tuple(map(_kind, args))


def example(kinds: Signature) -> tuple[Any, ...]:
    """Return arguments of these types, small ones."""
    return tuple(map(_one, kinds))


def _kind(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return value.dtype.str, value.ndim, layout, bool(flags.writeable)
    if isinstance(value, tuple):
        return type(value), signature(value)
    return value if isinstance(value, Enum) else type(value)


def _one(kind: Any) -> Any:
    if not isinstance(kind, tuple):
        return kind() if isinstance(kind, type) else kind
    if isinstance(kind[0], type):
        items = example(kind[1])
        return kind[0](*items) if hasattr(kind[0], "_fields") else items
    dtype, dimensions, layout, writeable = kind
    if layout == "A":
        array = np.zeros((SIZE,) * dimensions, dtype)[(slice(None, None, STEP),) * dimensions]
    else:
        array = np.zeros((SIZE,) * dimensions, dtype, order=layout)
    array.flags.writeable = writeable
    return array
