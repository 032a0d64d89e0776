"""How much of what was acknowledged counts soon, while agents are killed with answers under way.

GUARDBAND_SURVIVAL_SECONDS asks for a longer run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from guardband.live.client.journal import Journal

SECONDS = float(os.environ.get("GUARDBAND_SURVIVAL_SECONDS", "60"))
EVERY_S = 20.0  # three kills per agent and minute; one is what is asked for
TASKS = ("movies", "tv")
WORKER = """
import sys, time
import numpy as np
import guardband as gb

folder, task, log = sys.argv[1:]
settings = gb.SpaceSettings(
    name="default", features=["a", "b", "c"], agents=2, noise=0.1,
    contexts="per-request", rewards={"order": "prompt", "window_s": 600.0},
)
rng = np.random.default_rng()
with gb.connect(f"local:{folder}", task=task, settings=settings) as agent, open(log, "a") as told:
    while True:
        made = [agent.decide(rng.uniform(0, 0.5, (4, 3)), 0) for _ in range(5)]
        time.sleep(0.05)  # until the rewards are here
        for each in made:
            agent.observe(each.id, float(rng.uniform()))
            told.write(each.id.rpartition("-")[2] + "\\n")
            told.flush()
"""


def start(folder: Path, task: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", WORKER, str(folder / "gb"), task, str(folder / f"{task}.log")]
    return subprocess.Popen(words)


@pytest.mark.slow
def test_what_was_acknowledged_counts_soon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents, kills = {task: start(tmp_path, task) for task in TASKS}, 0
    try:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(min(EVERY_S, end - time.monotonic()))
            for task in TASKS:
                agents[task].kill()
                agents[task].wait()
                kills += 1
                agents[task] = start(tmp_path, task)
    finally:
        for each in agents.values():
            each.kill()
            each.wait()
    acknowledged, counted, waiting = 0, 0, 0
    for task in TASKS:
        told = {int(line) for line in (tmp_path / f"{task}.log").read_text().split()}
        journal = Journal(tmp_path / "gb" / "agents" / "default" / task / "journal.db")
        known = {seq for (seq,) in journal.query("SELECT seq FROM outcome WHERE k IS NOT NULL")}
        ((open_,),) = journal.query(
            "SELECT count(*) FROM decision WHERE seq NOT IN (SELECT seq FROM outcome)"
        )
        journal.close()
        acknowledged, counted, waiting = (
            acknowledged + len(told),
            counted + len(told & known),
            waiting + open_,
        )
    with capsys.disabled():
        print(
            f"\n{SECONDS:g} s, {kills} kills of {len(TASKS)} agents, {waiting} decisions without "
            f"an answer, {acknowledged:,} acknowledged, {counted:,} count"
        )
    assert waiting >= 5  # of those that were killed while answers were under way
    assert acknowledged > 500
    assert counted >= 0.95 * acknowledged
