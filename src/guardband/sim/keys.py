"""Content keys: texts that say everything a trial's numbers depend on, the source included."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np

from guardband.errors import InvalidTypeError

__all__ = ["content", "origin", "runner", "text_of"]

ROOT = Path(__file__).resolve().parents[1]

# Everything that a trial runs through; a file more costs a recomputation, a file less would serve
# stale numbers.
PACKAGES = ("kernels", "algorithms", "problems", "sim", "data", "contexts")
FILES = ("checks.py", "facts.py", "seeds.py")
COVERED = tuple(
    f"guardband.{name.removesuffix('.py').replace('/', '.')}" for name in (*PACKAGES, *FILES)
)
SUFFIXES = (".py", ".npz", ".json")

# What numba compiles by, where it is not as usual.
FLAGS = (
    "OPT",
    "BOUNDSCHECK",
    "CPU_NAME",
    "CPU_FEATURES",
    "ENABLE_AVX",
    "DISABLE_JIT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "USING_SVML",
)


@cache
def origin() -> str:
    """Return a digest of the code and embedded data that make the numbers, and of what runs it."""
    digest = hashlib.sha256()
    inside = (path for package in PACKAGES for path in (ROOT / package).rglob("*"))
    paths = [*(ROOT / name for name in FILES), *inside]
    for path in sorted(path for path in paths if path.suffix in SUFFIXES):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update(json.dumps(runner(), sort_keys=True).encode())
    return digest.hexdigest()[:32]


def runner() -> dict[str, str]:
    """Return what runs the code and can change the last digit of a number.

    Versions and flags of what compiles it; the kind of processor, by which numba, numpy and the
    BLAS choose their instructions (a fused multiplication rounds once, not twice); the BLAS and
    the C library, whose logarithms numba calls.
    """
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    told = {name: version(name) for name in ("numpy", "numba", "llvmlite")}
    told["python"] = ".".join(platform.python_version_tuple()[:2])
    told["system"] = " ".join((platform.system(), platform.machine(), *platform.libc_ver()))
    told["processor"] = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    told["blas"] = f"{blas.get('name')} {blas.get('version')} {os.environ.get('OPENBLAS_CORETYPE')}"
    told |= {f"numba {flag}": str(getattr(numba.config, flag, None)) for flag in FLAGS}
    return told


def text_of(**parts: Any) -> str:
    """Return the key of a trial with these parts, as canonical JSON."""
    described = {name: content(part) for name, part in parts.items()}
    return json.dumps({"origin": origin(), **described}, sort_keys=True, separators=(",", ":"))


def content(thing: Any) -> Any:
    """Describe a value by its content, in terms of JSON: equal descriptions give equal numbers.

    Settings objects are described by class and fields, arrays by a digest. A class that is not
    covered by `origin` brings a digest of its own source file; one that has no file is refused.
    """
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing.value if isinstance(thing, Enum) else thing
    if isinstance(thing, np.generic):
        return thing.item()
    if isinstance(thing, np.ndarray):
        data = np.ascontiguousarray(thing)
        told = f"{data.dtype.str} {data.shape}".encode() + data.tobytes()
        return {"array": hashlib.sha256(told).hexdigest()}
    if isinstance(thing, list | tuple):
        return [content(each) for each in thing]
    if isinstance(thing, dict):
        return {str(name): content(value) for name, value in thing.items()}
    if is_dataclass(thing):
        inside = {field.name: getattr(thing, field.name) for field in fields(thing)}
    elif hasattr(thing, "__dict__") and not callable(thing):
        inside = vars(thing)
    else:
        raise InvalidTypeError(
            f"{thing!r} cannot be told apart from others by its content: describe problems and "
            "algorithms by dataclasses of numbers, texts and arrays."
        )
    kind = type(thing)
    described = {name: content(value) for name, value in inside.items()}
    return {"class": _class_of(kind.__module__, kind.__qualname__), **described}


@cache
def _class_of(module: str, name: str) -> str:
    """Return a class's name, and what its code is where `origin` does not cover it."""
    full = f"{module}.{name}"
    if any(full.startswith(f"{package}.") for package in COVERED):
        return full
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        raise InvalidTypeError(
            f"{full} has no source file, so that a later one of the same name could not be told "
            "apart from it: write the class to a file and import it."
        )
    return f"{full} {hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]}"
