"""What one sync costs over a local link: Python calls and SQL statements, client and coordinator.

Statements are those that read or write rows; BEGIN and COMMIT are not counted. Calls are those of
functions written in Python, in guardband and in what it uses.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from live.client.world import agent, live_on, make_due

from guardband.live.client import journal as journal_module
from guardband.live.client.stream_state import KEPT_CHECKPOINTS
from guardband.live.client.sync_worker import SyncTiming
from guardband.live.store import sqlite as store_module

MOST_CALLS, MOST_QUERIES = 310, 12  # seals of rows among them
# What was counted goes out in every sync; reports and tidying have their own time.
UPLOADS = SyncTiming(report_s=1e9, upload_s=0.0, confirm_s=1e9, tidy_s=1e9, trigger_s=0.0)
BRACKETS = ("begin", "commit", "rollback")


class Cost:
    """What was counted."""

    def __init__(self) -> None:
        self.calls = 0
        self.journal: list[str] = []
        self.coordinator: list[str] = []

    @property
    def queries(self) -> int:
        return len(self.journal) + len(self.coordinator)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Counts while its context is open, over connections opened after this fixture."""
    now: list[Cost] = []

    def traced(real: Any, kept: str) -> Any:
        def statement(event: dict[str, Any]) -> None:
            words = " ".join(event["sql"].lower().split())
            if now and words.split()[0] not in BRACKETS:
                getattr(now[0], kept).append(words)

        def connect(*given: Any, **more: Any) -> Any:
            db = real(*given, **more)
            db.trace_v2(apsw.SQLITE_TRACE_STMT, statement)
            return db

        return connect

    monkeypatch.setattr(journal_module, "connect", traced(journal_module.connect, "journal"))
    monkeypatch.setattr(store_module, "connect", traced(store_module.connect, "coordinator"))

    @contextmanager
    def count() -> Iterator[Cost]:
        cost = Cost()

        def profile(frame: Any, event: str, _: Any) -> None:
            cost.calls += event == "call" and frame.f_code.co_filename != __file__

        now.append(cost)
        gc.disable()  # what is called when garbage is collected, by other tests too, is no cost
        sys.setprofile(profile)
        try:
            yield cost
        finally:
            sys.setprofile(None)
            gc.enable()
            now.clear()

    return count


def warm(folder: Path) -> tuple[Any, Any]:
    """Two agents whose streams are as long as they get."""
    quiet = {"timing": UPLOADS, "sync": {"trigger": "ratio", "growth": 1e9}}
    one, other = agent(folder, **quiet), agent(folder, task="tv", **quiet)
    for step in range(KEPT_CHECKPOINTS + 5):
        live_on(one, 1, seed=step)
        one.sync()
    live_on(other, 3)
    for each in (one, other):
        each.sync()
    return one, other


def test_one_sync_is_cheap(tmp_path: Path, counting: Any) -> None:
    one, _ = warm(tmp_path)
    with counting() as nothing:
        one.sync()
    live_on(one, 3, seed=99)
    before = one.status()["acknowledged"]
    with counting() as upload:
        one.sync()
    assert one.status()["acknowledged"] == before + 3
    for cost in (nothing, upload):
        assert cost.calls <= MOST_CALLS, cost.calls
        assert cost.queries <= MOST_QUERIES, (cost.journal, cost.coordinator)
    assert nothing.journal == []


def test_one_sync_that_adopts_an_epoch_is_cheap(tmp_path: Path, counting: Any) -> None:
    one, other = warm(tmp_path)
    live_on(one, 3, seed=99)
    make_due(one)
    one.sync()  # opens an epoch and answers it
    other.sync()  # answers, too, and so closes it
    assert one.epoch == 0
    with counting() as cost:
        one.sync()
    assert one.epoch == 1
    assert cost.calls <= MOST_CALLS, cost.calls
    assert cost.queries <= MOST_QUERIES, (cost.journal, cost.coordinator)


@pytest.mark.parametrize("epoch", [False, True])
def test_nothing_is_read_again_that_the_process_wrote(
    tmp_path: Path, counting: Any, epoch: bool
) -> None:
    one, other = warm(tmp_path)
    live_on(one, 3, seed=99)
    if epoch:  # the other calls for one, both answer, and it is adopted
        live_on(other, 3, seed=98)
        make_due(other)
        other.sync()
    with counting() as cost:
        one.sync()
    assert one.status()["acknowledged"] == one.counted
    assert one.epoch == int(epoch)
    reads = [sql for sql in cost.journal if sql.startswith("select")]
    assert reads == []
