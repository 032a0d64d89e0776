"""How kernels become machine code, and where that is kept; imports Numba.

Numba keys a cached function by the content of its own file alone: after an edit, or an upgrade,
of another file of this package it would go on using machine code that inlined the old version. A
guard could then be off while its source says it is on. So the cache folder is named by the
content of the whole package, but for `start`, which changes no code, and by the flags that do.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic, overload, typeof_impl
from numba.np.arrayobj import make_array, populate_array
from platformdirs import user_cache_path

from guardband.kernels._jit import OPTIONS, Kernel, fixed_tuple, views

try:
    import fcntl
except ImportError:  # Windows: two processes may write at once
    fcntl = None  # type: ignore[assignment]

__all__ = ["cache_folder", "dispatcher", "is_shared", "one_at_a_time"]

_DECORATING = threading.Lock()


@cache
def cache_folder() -> Path:
    """Return the folder that belongs to exactly this source, these flags and this Numba."""
    return _shared_folder() or Path(tempfile.mkdtemp(prefix="guardband-"))


def is_shared() -> bool:
    """Tell whether other processes find what is in the folder."""
    return _shared_folder() is not None


@cache
def _shared_folder() -> Path | None:
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
    return None


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


def dispatcher(kernel: Kernel) -> Any:
    """Return Numba's dispatcher of a kernel: it compiles what is not in the cache."""
    with _DECORATING:  # or another thread would put the folder back too early
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(cache_folder())  # read by Numba at decoration time only
        try:
            found = numba.njit(**kernel.options)(kernel.py_func)
        finally:
            numba.config.CACHE_DIR = before
    kept = found._cache
    save = kept.save_overload

    def save_alone(*given: Any) -> None:
        with one_at_a_time("saving"):
            save(*given)

    kept.save_overload = save_alone
    return found


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Be the only process of this machine that does it in the cache's folder; wait for another.

    Numba reads an index, chooses a file by it, and writes both: two that do so at once, for other
    types of arguments, would find each other's machine code under their own types from then on.
    """
    with (cache_folder() / f"{what}.lock").open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@typeof_impl.register(Kernel)
def _typeof_kernel(kernel, _):
    return types.Dispatcher(kernel.compiled)  # so kernels may call each other


@overload(fixed_tuple)
def _fixed_tuple(numbers, length):
    if not isinstance(length, types.IntegerLiteral):
        return None  # Numba then asks again, with what it knows of the length

    def compute(numbers, length):
        return _loaded(numbers, length)

    return compute


@intrinsic(prefer_literal=True)
def _loaded(_, numbers, length):
    """Compute `fixed_tuple` by one load for each number; Numba's own takes 600 ns for fifty."""
    kind = types.UniTuple(numbers.dtype, length.literal_value)  # type: ignore[attr-defined]

    def build(context, builder, signature, given):
        data = make_array(numbers)(context, builder, given[0]).data
        places = (context.get_constant(types.intp, i) for i in range(kind.count))
        found = [builder.load(builder.gep(data, [place])) for place in places]
        return context.make_tuple(builder, kind, found)

    return kind(numbers, length), build


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
