"""The one decorator that compiles a kernel, and where its machine code is kept.

Numba keys a cached function by the content of its own file alone: after an edit, or an upgrade,
of another file of this package it would go on using machine code that inlined the old version. A
guard could then be off while its source says it is on. So the cache folder is named by the
content of the whole package and by the flags that change the code.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array, populate_array
from platformdirs import user_cache_path

__all__ = ["cache_folder", "kernel", "rare_kernel", "views"]

OPTIONS: dict[str, bool | str] = {
    "cache": True,
    "nogil": True,  # a long simulation must not stall other threads, such as a heartbeat
    "error_model": "numpy",  # a division by zero is infinite, not an exception
    "forceinline": True,
    "_nrt": False,
}


@cache
def cache_folder() -> Path:
    """Return the folder that belongs to exactly this source, these flags and this Numba."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    flags = (numba.__version__, numba.config.BOUNDSCHECK, numba.config.OPT, OPTIONS)
    digest.update(repr(flags).encode())
    given = os.environ.get("NUMBA_CACHE_DIR")
    root = Path(given) if given else user_cache_path("guardband") / "kernels"
    name = digest.hexdigest()[:20]
    for place in (root, Path(tempfile.gettempdir()) / f"guardband-{_user()}"):
        if _usable(place / name):
            return place / name
    return Path(tempfile.mkdtemp(prefix="guardband-"))


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0  # Windows says 0 of every file's owner


def _usable(folder: Path) -> bool:
    """Tell whether machine code can be written here, and only by us.

    Where it cannot, Numba would silently keep it beside the source instead, keyed by one file.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return False
    return folder.stat().st_uid == _user()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function`: no global interpreter lock, no reordering of sums, NaN stays NaN.

    Kernels are inlined into each other and never allocate: Numba's memory runtime is off, which
    makes every allocation an error of compilation and every view free. With it on, counting
    references to views took four fifths of a round.
    """
    return _compiled(function, OPTIONS)


def rare_kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` as `kernel` does, but for calls: what is rare must not swell the loops."""
    return _compiled(function, {**OPTIONS, "forceinline": False})


def _compiled(function: Callable[..., Any], options: dict[str, bool | str]) -> Any:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())  # read by Numba at decoration time only
    try:
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before


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


@overload(views)
def _views(numbers, start, shapes):
    def compute(numbers, start, shapes):
        return _pointers(numbers, start, shapes)

    return compute


@intrinsic
def _pointers(_, numbers, start, shapes):
    """Compute `views` by pointer arithmetic; Numba's own slices and reshapes cost 30 ns each."""
    kinds = [types.Array(numbers.dtype, len(shape), "C") for shape in shapes]

    def build(context, builder, signature, given):
        vector, first, shapes = given
        data = builder.gep(make_array(numbers)(context, builder, vector).data, [first])
        item = context.get_constant(types.intp, numbers.dtype.bitwidth // 8)
        found = []
        for kind, shape in zip(kinds, cgutils.unpack_tuple(builder, shapes), strict=True):
            lengths = cgutils.unpack_tuple(builder, shape)
            strides, size = [item], lengths[-1]
            for length in reversed(lengths[:-1]):
                strides.insert(0, builder.mul(size, item))
                size = builder.mul(size, length)
            view = make_array(kind)(context, builder)
            populate_array(view, data, lengths, strides, item, meminfo=None)
            found.append(view._getvalue())
            data = builder.gep(data, [size])
        return context.make_tuple(builder, signature.return_type, found)

    return types.Tuple(kinds)(numbers, types.intp, shapes), build  # type: ignore[attr-defined]
