"""Machine code for given types of arguments: compiled into the cache, or loaded from it."""

from __future__ import annotations

import hashlib
import pickle
from collections import defaultdict
from contextlib import AbstractContextManager
from pathlib import Path

import numba
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

from guardband.kernels._compile import cache_folder, dispatcher, is_shared, one_at_a_time
from guardband.kernels._jit import Kernel
from guardband.kernels.start.signature import Signature, example

__all__ = ["alone", "is_kept", "is_shared", "load"]

_loaded: dict[Kernel, list[Signature]] = defaultdict(list)


def is_kept(kernel: Kernel, kinds: Signature) -> bool:
    """Tell whether the cache has it, so that `load` is quick."""
    return _note(kernel, kinds).exists()


def load(kernel: Kernel, kinds: Signature) -> None:
    """Load machine code, or make it, and let the kernel use it from now on."""
    code, all_kinds = dispatcher(kernel), [*_loaded[kernel], kinds]
    for each in all_kinds:
        code.compile(tuple(map(numba.typeof, example(each))))
    code.disable_compile()  # arguments of other types are refused, not compiled for
    kernel.use(code)
    _loaded[kernel] = all_kinds
    _note(kernel, kinds).touch()


def _note(kernel: Kernel, kinds: Signature) -> Path:
    """Return the file that says that the cache has it for this processor; Numba does not tell."""
    processor = get_host_cpu_name(), get_host_cpu_features().flatten()
    digest = hashlib.sha256(pickle.dumps((kernel, kinds, processor), protocol=4)).hexdigest()
    return cache_folder() / f"{digest[:20]}.kept"


def alone() -> AbstractContextManager[None]:
    """Be the only process of this machine that compiles this source; wait for another."""
    return one_at_a_time("compiling")
