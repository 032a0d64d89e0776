"""Budgets for costs of live agents, whatever happens to their folders: nothing is spent twice."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from live.client.test_cost_budget import MENU, paid, spent, start
from live.client.world import Hands
from live.operators.journals import found

from guardband.errors import BudgetSpentError
from guardband.live.client.journal import Journal


@pytest.mark.parametrize("max_cost", [None, 1.0])
def test_a_copy_spends_nothing_twice(tmp_path: Path, max_cost: float | None) -> None:
    """Nor does it give back what the journal it was made from had reserved."""
    one = start(tmp_path, 12.0, max_cost=max_cost)
    costs = None if max_cost else (0.0, 1.0, 1.0)
    open_ = [one.decide(MENU, 0, cost=costs) for _ in range(5)]
    before = paid(one)
    one.close()
    shutil.copytree(one.state_dir, tmp_path / "copy")
    one = start(tmp_path, 12.0, max_cost=max_cost)
    copy = start(tmp_path, 12.0, max_cost=max_cost, state_dir=tmp_path / "copy")
    played = 0.0  # what was really paid, by all hands
    for decision in open_:
        for each in (one, copy):
            each.observe(decision.id, 0.5, cost=0.25 if max_cost else None)
        played += 0.25 if max_cost else decision.cost
    for each in (one, copy):
        for _ in range(40):
            with contextlib.suppress(BudgetSpentError):
                played += each.decide(MENU, 0, cost=costs).cost
            each.sync()
    assert before > 0.0
    assert 8.0 < played <= 12.0 + 1e-9


def test_a_folder_that_was_put_back_spends_nothing_twice(tmp_path: Path) -> None:
    one = start(tmp_path, 8.0, 60)
    one.close()
    shutil.copytree(one.state_dir, tmp_path / "old")
    total = 0.0
    for _ in range(4):
        one = start(tmp_path, 8.0, 60)
        for _ in range(60):
            with contextlib.suppress(BudgetSpentError):
                total += one.decide(MENU, 0, cost=[0.1, 0.2, 1.0]).cost
            one.sync()
        one.close()
        shutil.rmtree(one.state_dir)
        shutil.copytree(tmp_path / "old", one.state_dir)
    assert 4.0 < total <= 8.0 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("max_cost", [None, 0.05])
def test_power_failures_spend_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_cost: float | None
) -> None:
    """All that is left of a journal is what was on disk; the folder stays where it is."""
    disk: dict[str, bytes] = {}
    real = Journal.flush

    def flush(journal: Journal) -> None:
        real(journal)
        for path in journal.path.parent.glob("journal.db*"):
            disk[path.name] = path.read_bytes()

    played = 0.0
    for life in range(20):
        clock = Hands().clock(f"boot {life}")
        one = start(tmp_path, 2.0, 40, max_cost=max_cost, clock=clock)
        monkeypatch.setattr(Journal, "flush", flush)
        one.sync()
        one._store.journal.flush()
        for n in range(200 if life == 19 else 12):
            with contextlib.suppress(BudgetSpentError):
                decision = one.decide(MENU, 0, cost=None if max_cost else [0.02, 0.03, 0.1])
                played += decision.cost
                if max_cost and n % 2:
                    one.observe(decision, 0.5, cost=0.02)
                    played -= decision.cost - 0.02
            assert played <= 2.0 + 1e-9
            if n % 12 == 11 and life == 19:
                one.sync()
        monkeypatch.setattr(Journal, "flush", real)
        one._forks.release()
        one._worker.leave()
        one._store.journal.close()
        for path in one.state_dir.glob("journal.db*"):
            path.unlink()
        for name, content in disk.items():
            (one.state_dir / name).write_bytes(content)
    assert played > 1.0


LIFE = """
import sys
from pathlib import Path
from live.client.test_cost_budget import MENU, start
from guardband.errors import BudgetSpentError
folder, total, max_cost = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]) or None
one = start(folder, total, 10_000, max_cost=max_cost)
print("ready", flush=True)
n = 0
while True:
    n += 1
    try:
        d = one.decide(MENU, 0, cost=None if max_cost else [0.0, 0.01, 0.02], value=[0.0, 1.0, 2.0])
    except BudgetSpentError:
        one.sync()
        continue
    print(d.id, d.cost, flush=True)
    if n % 3:
        one.observe(d, 0.5, cost=0.5 * d.cost if max_cost else None)
    if n % 10 == 0:
        one.sync()
"""


@pytest.mark.slow
@pytest.mark.parametrize("max_cost", [0.0, 0.04])
def test_kills_at_any_time_lose_nothing_of_what_was_spent(tmp_path: Path, max_cost: float) -> None:
    """Whatever was returned is in the journal, and the total holds over all lives."""
    total, rng, played, last = 3.0, np.random.default_rng(0), 0.0, ""
    tests = Path(__file__).parents[2]
    path = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    for _ in range(8):
        command = [sys.executable, "-c", LIFE, str(tmp_path), str(total), str(max_cost)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        ) as life:
            assert life.stdout is not None
            assert life.stdout.readline() == "ready\n"
            time.sleep(float(rng.uniform(0.02, 0.6)))
            life.send_signal(signal.SIGKILL)
            lines = [line.split() for line in life.stdout.read().splitlines()]
            played += sum(float(cost) for _, cost in lines)
            last = lines[-1][0] if lines else last
    one = start(tmp_path, total, 10_000, max_cost=max_cost or None)
    assert spent(one) == pytest.approx(paid(one))
    assert 0.0 < paid(one) <= total
    if not max_cost:
        assert played <= paid(one) + 1e-9
    finding = found(tmp_path / "gb", last)
    assert finding.result == "same", finding.differences
