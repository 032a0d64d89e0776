"""Engines by name, for as long as they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from guardband.engines.base import ComputeEngine
from guardband.engines.cluster import RayEngine
from guardband.engines.local import LocalEngine
from guardband.errors import InvalidValueError

__all__ = ["ENGINES", "open_engine"]

ENGINES = ("local", "ray")


@contextmanager
def open_engine(
    engine: str | ComputeEngine, *, workers: int | None = None, address: str | None = None
) -> Iterator[ComputeEngine]:
    """Open an engine; one that is given as an object is used, and left open.

    Parameters
    ----------
    engine
        "local", "ray", or an engine.
    workers
        How many items are worked on at a time, on this machine; None: one per core.
    address
        Of a running Ray cluster; None: one on this machine.
    """
    if not isinstance(engine, str):
        if workers is not None:
            raise InvalidValueError(f"workers={workers} was given, but the engine has its own.")
        yield engine
    elif engine == "local":
        yield LocalEngine(workers)
    elif engine == "ray":
        with RayEngine(address, workers) as cluster:
            yield cluster
    else:
        raise InvalidValueError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}.")
