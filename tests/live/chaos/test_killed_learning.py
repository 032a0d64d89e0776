"""`guardband learn` killed at random moments: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from live.client.logs import some_log
from live.client.world import agent

from guardband.live.client.journal import Journal
from guardband.live.protocol.sums import Sums

ROWS, KILLS, BATCH = 200_000, 30, 512
PROGRAM = """
import os, sys, time
from guardband.cli import log_file
from guardband.cli.app import main
from guardband.live.client import logged_rows
log_file.BLOCK, logged_rows.BATCH = 4096, {batch}
learn = logged_rows.LoggedRows._learn
def slowly(*given, **named):
    time.sleep(0.01)  # in the transaction, and so that who kills it keeps in step on a busy machine
    return learn(*given, **named)
logged_rows.LoggedRows._learn = slowly
os.write(1, b"ready\\n")
sys.argv = ["guardband", "learn", "log.csv", *sys.argv[1:]]
main()
"""
LOGGED = "SELECT k, id, x, guess, weight, reward FROM logged ORDER BY k"
WORDS = ("--space", "default", "--task", "movies", "--coordinator", "local:gb")


def started(folder: Path) -> subprocess.Popen[bytes]:
    """The command in a process of its own; it is about to begin when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(batch=BATCH), *WORDS],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"NO_COLOR": "1"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def prepared(folder: Path) -> Path:
    """Return a new journal of a task with whole weights: all sums but one are exact."""
    folder.mkdir()
    features, rewards = some_log(ROWS, seed=3)
    table = pd.DataFrame(features, columns=["x0", "x1", "x2"])
    table.assign(reward=rewards).to_csv(folder / "log.csv", index=False)
    with agent(folder, noise=0.5, context_noise=0.0) as one:
        return one.state_dir / "journal.db"


def asked(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a journal says."""
    journal = Journal(path)
    try:
        return journal.query(sql)
    finally:
        journal.close()


def handed_in(path: Path) -> Sums:
    """What the last checkpoint in a journal has counted."""
    return Sums.from_bytes(asked(path, "SELECT total FROM cut ORDER BY n DESC LIMIT 1")[0][0])


@pytest.mark.slow
def test_kills_at_random_moments_leave_what_an_undisturbed_run_leaves(tmp_path: Path) -> None:
    calm, rough = prepared(tmp_path / "calm"), prepared(tmp_path / "rough")
    said, problem = started(tmp_path / "calm").communicate(timeout=300)
    assert f"{ROWS:,} rows learned, 0 known before" in said.decode(), problem
    rng = np.random.default_rng(0)
    counts = [0]
    while len(counts) <= KILLS and counts[-1] < 0.8 * ROWS:  # a quick machine is killed less often
        watcher = Journal(rough)  # opened before: beside a process that writes, that takes long
        process = started(tmp_path / "rough")
        # After some more batches, or none, and a moment: in the middle of a batch, of a checkpoint.
        enough = counts[-1] + BATCH * int(rng.integers(4))
        while watcher.query("SELECT n FROM head")[0][0] < enough and process.poll() is None:
            time.sleep(0.002)
        time.sleep(float(rng.uniform(0.0, 0.003)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        watcher.close()
        counts.append(asked(rough, "SELECT n FROM head")[0][0])
        assert counts[-1] % BATCH == 0, "half of a batch"
    assert counts == sorted(counts)
    assert counts[-1] < ROWS, "it was never left alone"
    assert len(set(counts)) > 5, "kills fell into the middle"
    said, problem = started(tmp_path / "rough").communicate(timeout=300)
    told = f"{ROWS - counts[-1]:,} rows learned, {counts[-1]:,} known before"
    assert told in said.decode(), problem
    assert asked(rough, LOGGED) == asked(calm, LOGGED), "predictions and weights, bit for bit"
    found, expected = handed_in(rough), handed_in(calm)
    assert (found.n, found.weight) == (expected.n, expected.weight) == (ROWS, 4.0 * ROWS)
    assert (found.gram == expected.gram).all()
    # Predictions are no whole numbers, and kills move the places where their sum is cut.
    assert found.surprise == pytest.approx(expected.surprise, rel=1e-12)
