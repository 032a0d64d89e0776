"""T4: real processes, a hostile network, kill -9 and folders that go back in time; one minute.

GUARDBAND_CHAOS_SECONDS and GUARDBAND_CHAOS_SEED ask for more, or for another run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from live.chaos.branches import Branch
from live.chaos.checker import Checker
from live.chaos.torment import Torment
from live.chaos.world import DEADLINE_S, SPACE, TASKS

SECONDS = float(os.environ.get("GUARDBAND_CHAOS_SECONDS", "60"))
SEED = int(os.environ.get("GUARDBAND_CHAOS_SEED", "1"))
PATIENCE_S = 2 * DEADLINE_S + 30.0


@pytest.mark.slow
def test_nothing_is_lost_or_counted_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Torment(tmp_path, SEED)
    try:
        stage.open()
        stage.torment(SECONDS)
        stage.end_torment()
        waited = i11_all_hold_the_same_epoch(stage)
        stage.stop()
    finally:
        stage.close()
    branches = []
    for actor in stage.actors:
        for number, folder in enumerate([*actor.past, actor.folder]):
            branches.append(Branch(f"{actor.name}-{number}", folder, TASKS[actor.task]))
    checker = Checker(stage.space, stage.data / "coordinator.db", branches, stage.proxy.evidence)
    findings = checker.check()
    checker.i9_nothing_learned_is_played_where_it_must_not(stage.pauses)
    by_label = {branch.label: branch for branch in branches}
    for actor in stage.actors:
        for number in range(actor.generation + 1):
            for worker in range(actor.workers):
                path = stage.log(actor, worker, number)
                lines = path.read_text().splitlines() if path.exists() else []
                checker.i8_nothing_told_is_missing(by_label[f"{actor.name}-{number}"], iter(lines))
    for name in ("server.log", "agents.log"):
        log = tmp_path / name
        assert "Traceback" not in (log.read_text() if log.exists() else ""), log.read_text()[-4000:]
    done, learned = stage.done, sum(m.kind == "learned" for b in branches for m in b.made)
    with capsys.disabled():
        print(
            f"\nseed {SEED}, {SECONDS:g} s, kills server/agent {done['server']}/{done['agent']}, "
            f"partitions/rollbacks/clones {done.get('partition', 0)}/{done.get('rollback', 0)}/"
            f"{done.get('clone', 0)}, observations logged/counted {findings.logged:,}/"
            f"{findings.counted:,}, epochs {findings.epochs}, conflicts {findings.conflicts}, "
            f"acknowledged lost {findings.lost}, wrong totals {findings.wrong}, "
            f"largest error {findings.error:.1e}, learned {learned:,}, same epoch after "
            f"{waited:.1f} s; {dict(sorted(stage.proxy.evidence.faults.items()))}, "
            f"replies {dict(sorted(stage.proxy.evidence.statuses.items()))}"
        )
    assert findings.epochs >= 5  # it was not idle
    assert learned > 0


def i11_all_hold_the_same_epoch(stage: Torment) -> float:
    """Wait until all agents have the coordinator's newest epoch; return the seconds it took."""
    started = time.monotonic()
    while True:
        epochs = stage.epochs()
        newest = stage.admin("GET", f"/v1/spaces/{SPACE}")["epoch"]
        if set(epochs.values()) == {newest}:
            return time.monotonic() - started
        assert time.monotonic() - started < PATIENCE_S, f"I11: {newest} and {epochs}"
        time.sleep(0.2)
