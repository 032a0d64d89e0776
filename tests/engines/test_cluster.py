"""The Ray engine: a cluster changes no number, and a node that dies loses none."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from guardband.engines import RayEngine

HERE = Path(__file__).parent
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs the extra guardband[ray]"
)


def test_without_ray_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'guardband\[ray\]'"):
        RayEngine()


@needs_ray
@pytest.mark.slow
def test_workers_are_for_a_cluster_of_ones_own() -> None:
    """In a process of its own: importing Ray warns, and warnings are errors here."""
    told = cluster("refusals")
    assert told["workers"].startswith("workers=2 is for a cluster on this machine")
    assert told["none"].startswith("workers must be at least 1, not 0")
    assert "no Ray cluster" in told["address"]


@needs_ray
@pytest.mark.slow
def test_a_cluster_gives_the_same_numbers_bit_for_bit() -> None:
    told = cluster("equal")
    assert told == {"trials": 6, "equal": True, "cache": "all kept", "left": False, "error": "no"}


@needs_ray
@pytest.mark.slow
def test_a_caller_may_stop_while_items_are_in_flight() -> None:
    assert cluster("left") == {"first": [0, 0.0], "soon": True}


@needs_ray
@pytest.mark.slow
def test_simulate_gives_the_same_numbers_on_a_cluster() -> None:
    assert cluster("simulate") == {"labels": ["fixed", "dis-lin-ucb"], "equal": True}


@needs_ray
@pytest.mark.slow
def test_a_node_killed_midway_loses_nothing_and_changes_no_number() -> None:
    told = cluster("killed")
    # It was killed once four trials were kept, while there was work left; -1 would mean never.
    assert told["before"] == 4
    assert told["trials"] == 20
    assert told["nodes"] == 1
    assert told["done"] == told["trials"]
    assert told["equal"]


@needs_ray
@pytest.mark.slow
def test_a_node_with_other_code_is_refused() -> None:
    told = cluster("foreign")
    assert "another version of guardband" in told["error"]


def cluster(case: str) -> dict[str, Any]:
    """Run a case with Ray in a process, and where possible a network, of its own.

    Ray talks over the machine's outward address; without a network it must use the inner one.
    """
    words = [sys.executable, "-W", "ignore", str(HERE / "on_a_cluster.py"), case]
    if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip"):
        words = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *words]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=300, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
