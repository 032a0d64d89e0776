"""A Ray cluster: an existing one, or one on this machine for as long as the work takes."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable
from itertools import islice
from typing import Any

from guardband.engines.base import Item, OnProgress, Result, Work, ignore_progress
from guardband.engines.local import count_cores
from guardband.errors import InvalidValueError
from guardband.extras import how_to_install

__all__ = ["RayEngine"]

QUEUED_PER_CORE = 2
PATIENCE = 1.0  # seconds between looks at the cluster's size

# One item is one core's work; libraries must not start threads of their own beside it.
QUIET = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class RayEngine:
    """The cores of a Ray cluster; a node that dies loses nothing, its items run again elsewhere.

    It holds a connection from its first use until `close`; use it as a context manager.

    Parameters
    ----------
    address
        "auto" or "host:port" of a running cluster, whose nodes must have the same packages
        installed and, for the same numbers to the last digit, processors of the same kind; work
        that depends on it must check it, as the lab's does. None starts one on this machine, and
        `close` ends it.
    workers
        How many cores a cluster on this machine has; None: all.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._ray = _load()
        if workers is not None and address is not None:
            raise InvalidValueError(
                f"workers={workers} is for a cluster on this machine; the one at {address} has as "
                "many as it has."
            )
        if workers is not None and workers < 1:
            raise InvalidValueError(f"workers must be at least 1, not {workers!r}.")
        self.address, self.workers = address, workers
        self._mine = False

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; one that this engine started ends."""
        if self._mine:
            self._ray.shutdown()
            self._mine = False

    def map(
        self, work: Work[Item, Result], items: Iterable[Item], tick: OnProgress = ignore_progress
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield the number of each item and its result, as they finish.

        If the caller stops early, at most `QUEUED_PER_CORE` items per core are in flight. Leaving
        the cluster ends them; cancelling them races with their completion inside Ray, which then
        aborts this process.
        """
        self._connect()
        ray = self._ray
        # Retries without end are for lost nodes; an exception of the work itself is final.
        remote = ray.remote(num_cpus=1, max_retries=-1, retry_exceptions=False)(_call)
        packed = ray.put(work)
        waiting = iter(enumerate(items))
        running: dict[Any, int] = {}
        while True:
            room = QUEUED_PER_CORE * self._cores() - len(running)
            for index, item in islice(waiting, max(room, 0)):
                running[remote.remote(packed, item)] = index
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1, timeout=PATIENCE)
            for reference in done:
                result = self._result(reference)
                index = running.pop(reference)
                tick(index, 1.0)
                yield index, result

    def _connect(self) -> None:
        """Connect once; a connection that the process already has is used and left alone."""
        ray = self._ray
        if ray.is_initialized():
            return
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        options |= {"runtime_env": {"env_vars": QUIET}}
        if self.address is None:
            # Not None: Ray takes that for "any cluster that can be found".
            options |= {"address": "local", "num_cpus": self.workers or count_cores()}
            options |= {"include_dashboard": False}
        else:
            options |= {"address": self.address}
        try:
            ray.init(**options)
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            where = self.address or "this machine"
            raise ConnectionError(
                f"there is no Ray cluster to work with at {where}: {error} Start one with "
                "`ray start --head`, or leave the address out."
            ) from error
        self._mine = True

    def _cores(self) -> int:
        """Return how many cores there are now: nodes come and go."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _result(self, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            raise error.cause from error  # as it would be on this machine
        except errors.RayError as error:
            raise ConnectionError(f"the Ray cluster failed: {error}") from error


def _call(work: Work[Item, Result], item: Item) -> Result:
    """Work on one item on a node; its progress is not reported."""
    return work(item, lambda _: None)


def _load() -> Any:
    try:
        import ray  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise ImportError(
            f"the engine 'ray' needs Ray ({error}): {how_to_install('ray')}, "
            "or use the engine 'local'."
        ) from error
    return ray
