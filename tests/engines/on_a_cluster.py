"""What tests do with a Ray cluster; a script, run by `test_cluster` in a process of its own."""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Before Ray is loaded: a token of this test, so that it writes none to the home folder.
PLACE = Path(tempfile.mkdtemp(prefix="guardband-ray-"))
os.environ |= {
    "RAY_AUTH_TOKEN": secrets.token_hex(16),
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

import numpy as np  # noqa: E402
import ray  # noqa: E402

import guardband as gb  # noqa: E402
from guardband.engines import LocalEngine, RayEngine, Shelf  # noqa: E402
from guardband.lab import jobs  # noqa: E402
from guardband.lab.gather import Gathering, gather  # noqa: E402
from guardband.lab.panel import Findings, Run  # noqa: E402


def runs(rounds: int, trials: int) -> list[Run]:
    problem = gb.problem("movielens")
    algorithms = [gb.GuardUCB(alpha=0.5, noise=0.1), gb.DisLinUCB()]
    return [
        Run(label=a.name, problem=problem, algorithm=a, rounds=rounds, trials=trials, alpha=0.5)
        for a in algorithms
    ]


def equal(one: Findings, other: Findings) -> bool:
    return list(one) == list(other) and all(
        np.array_equal(table[name], getattr(other[label].series, kind)[name])
        for label in one
        for kind in ("totals", "curves")
        for table in [getattr(one[label].series, kind)]
        for name in table
    )


def check_equal() -> dict[str, Any]:
    """A cluster on this machine, its results on the shelf, and a mistake in the work."""
    wanted = runs(2_000, 3)
    here = gather(wanted, engine=LocalEngine(2))
    shelf = Shelf(PLACE / "shelf")
    with RayEngine(workers=2) as engine:
        there = gather(wanted, engine=engine, shelf=shelf)
        again = Gathering({"": wanted})
        again_found = [harvest for _, harvest in again.harvests(engine=engine, shelf=shelf)]
        error = "no"
        broken = Run(
            label="x",
            problem=gb.problem("forecast"),
            algorithm=gb.FedPE(),
            rounds=10,
            trials=1,
        )
        try:
            gather([broken], engine=engine)
            error = "a mistake passed"
        except ValueError as found:
            error = "no" if str(found).startswith("fed-pe on forecast: ") else str(found)
    return {
        "trials": len(again.jobs),
        "equal": equal(here, there) and equal(here, again_found[0].found),
        "shelf": "all kept" if again.ran == 0 else f"{again.ran} ran again",
        "left": ray.is_initialized(),
        "error": error,
    }


def check_killed() -> dict[str, Any]:
    """Two nodes, of which one dies without a goodbye while trials run on both."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    wanted = runs(100_000, 10)
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes.add_node(num_cpus=1)
    doomed = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    gathering, before = Gathering({"": wanted}), -1
    shelf = Shelf(PLACE / "shelf")
    with RayEngine(nodes.address) as engine:
        kept = shelf.put

        def put(*parcel: Any) -> None:
            nonlocal before
            kept(*parcel)
            if gathering.kept(shelf) == 4:
                before = 4
                nodes.remove_node(doomed, allow_graceful=False)

        shelf.put = put  # type: ignore[method-assign]
        ((_, harvest),) = gathering.harvests(engine=engine, shelf=shelf)
        alive = _alive_after(started=time.monotonic())
    nodes.shutdown()
    return {
        "trials": len(gathering.jobs),
        "before": before,
        "nodes": alive,
        "done": gathering.ran,
        "equal": equal(harvest.found, gather(wanted, engine=LocalEngine(2))),
    }


def _alive_after(started: float) -> int:
    """Return how many nodes have cores, once the cluster has noticed that one is gone."""
    while True:
        alive = sum(node["Alive"] and node["Resources"].get("CPU", 0) > 0 for node in ray.nodes())
        if alive == 1 or time.monotonic() > started + 60:
            return alive
        time.sleep(0.2)


def check_foreign() -> dict[str, Any]:
    """The driver has other code than the workers: their numbers must not pass for its own."""
    jobs.origin = lambda: "another"
    with RayEngine(workers=1) as engine:
        try:
            gather(runs(10, 1), engine=engine)
        except RuntimeError as error:
            return {"error": str(error)}
    return {"error": "none"}


def check_refusals() -> dict[str, Any]:
    told = {}
    for name, make in {
        "workers": lambda: RayEngine("auto", workers=2),
        "none": lambda: RayEngine(workers=0),
        "address": lambda: list(RayEngine("auto").map(jobs.run_job, [])),
    }.items():
        try:
            make()
            told[name] = "nothing"
        except (ValueError, ConnectionError) as error:
            told[name] = str(error)
    return told


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "equal": check_equal,
    "foreign": check_foreign,
    "killed": check_killed,
    "refusals": check_refusals,
}

if __name__ == "__main__":
    print(json.dumps(CASES[sys.argv[1]]()))
