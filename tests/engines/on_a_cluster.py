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
from guardband.engines import LocalEngine, RayEngine, ResultCache  # noqa: E402
from guardband.lab.panel import Run, RunResults  # noqa: E402
from guardband.lab.runs import run_all, schedule, stack_runs  # noqa: E402
from guardband.sim import trial  # noqa: E402


def runs(rounds: int, trials: int) -> list[Run]:
    problem = gb.problem("movielens")
    algorithms = [gb.GuardUCB(alpha=0.5, noise=0.1), gb.DisLinUCB()]
    return [
        Run(label=a.name, problem=problem, algorithm=a, rounds=rounds, trials=trials, alpha=0.5)
        for a in algorithms
    ]


def equal(one: RunResults, other: RunResults) -> bool:
    return list(one) == list(other) and all(
        np.array_equal(table[name], getattr(other[label].series, kind)[name], equal_nan=True)
        for label in one
        for kind in ("totals", "curves")
        for table in [getattr(one[label].series, kind)]
        for name in table
    )


def check_equal() -> dict[str, Any]:
    """A cluster on this machine, its results in the cache, and a mistake in the work."""
    wanted = runs(2_000, 3)
    here = run_all(wanted, engine=LocalEngine(2))
    cache = ResultCache(PLACE / "cache")
    with RayEngine(workers=2) as engine:
        there = run_all(wanted, engine=engine, cache=cache)
        again = schedule({"": wanted})
        ((_, again_found),) = again.results(engine=engine, cache=cache)
        error = "no"
        broken = Run(
            label="x",
            problem=gb.problem("forecast"),
            algorithm=gb.algorithms.FedPE(),
            rounds=10,
            trials=1,
        )
        try:
            run_all([broken], engine=engine)
            error = "a mistake passed"
        except ValueError as raised:
            error = "no" if str(raised).startswith("fed-pe on forecast: ") else str(raised)
    return {
        "trials": len(again.trials),
        "equal": equal(here, there) and equal(here, stack_runs(wanted, again_found)),
        "cache": "all kept" if again.ran == 0 else f"{again.ran} ran again",
        "left": ray.is_initialized(),
        "error": error,
    }


def nap(seconds: float, _: Callable[[float], None]) -> float:
    time.sleep(seconds)
    return seconds


def check_left_early() -> dict[str, Any]:
    """A caller that stops after the first result, while other items run and wait."""
    with RayEngine(workers=2) as engine:
        results = engine.map(nap, [0.0, *[60.0] * 20])
        first = next(results)
        results.close()
        started = time.monotonic()
    return {"first": list(first), "soon": time.monotonic() - started < 30}


class Fixed:
    """A policy in plain Python."""

    name = "fixed"

    def choose(self, agent: int, round: int, features: Any, baseline: int, told: Any) -> int:
        return round % len(features)

    def update(self, agent: int, features: Any, action: int, reward: float) -> None:
        pass


def check_simulate() -> dict[str, Any]:
    """The same comparison on threads and on a cluster, with a policy in plain Python."""
    algorithms, how = [Fixed(), gb.DisLinUCB()], {"rounds": 200, "trials": 3, "alpha": 0.5}
    here, there = (
        gb.simulate(gb.problem("toy"), algorithms, engine=engine, workers=2, **how)  # type: ignore[arg-type]
        for engine in ("local", "ray")
    )
    return {
        "labels": [series.label for series in there.series],
        "equal": here.summary().equals(there.summary()) and here.curves().equals(there.curves()),
    }


def check_killed() -> dict[str, Any]:
    """Two nodes, of which one dies without a goodbye while trials run on both."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    wanted = runs(100_000, 10)
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes.add_node(num_cpus=1)
    doomed = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    scheduler, before = schedule({"": wanted}), -1
    cache = ResultCache(PLACE / "cache")
    with RayEngine(nodes.address) as engine:
        kept = cache.put

        def put(*entry: Any) -> None:
            nonlocal before
            kept(*entry)
            if scheduler.count_cached(cache) == 4:
                before = 4
                nodes.remove_node(doomed, allow_graceful=False)

        cache.put = put  # type: ignore[method-assign]
        ((_, trials),) = scheduler.results(engine=engine, cache=cache)
        alive = _alive_after(started=time.monotonic())
    nodes.shutdown()
    return {
        "trials": len(scheduler.trials),
        "before": before,
        "nodes": alive,
        "done": scheduler.ran,
        "equal": equal(stack_runs(wanted, trials), run_all(wanted, engine=LocalEngine(2))),
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
    trial.origin = lambda: "another"
    with RayEngine(workers=1) as engine:
        try:
            run_all(runs(10, 1), engine=engine)
        except RuntimeError as error:
            return {"error": str(error)}
    return {"error": "none"}


def check_refusals() -> dict[str, Any]:
    told = {}
    for name, make in {
        "workers": lambda: RayEngine("auto", workers=2),
        "none": lambda: RayEngine(workers=0),
        "address": lambda: list(RayEngine("auto").map(trial.run_trial, [])),
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
    "left": check_left_early,
    "refusals": check_refusals,
    "simulate": check_simulate,
}

if __name__ == "__main__":
    print(json.dumps(CASES[sys.argv[1]]()))
