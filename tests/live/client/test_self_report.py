"""What an agent says about itself: every decision counts once, whoever reports and how often."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from live.client.world import agent, journal_of, live_on

from guardband.live.client import self_report
from guardband.live.client.journal import Journal
from guardband.live.client.windows import Clock


def upto(one: Any) -> int:
    return journal_of(one).counts(1)["upto"]


def test_reports_of_several_threads_count_every_decision_once(tmp_path: Path) -> None:
    one = agent(tmp_path)
    stop = threading.Event()

    def report() -> None:
        while not stop.is_set():
            one.report()

    threads = [threading.Thread(target=report) for _ in range(6)]
    for thread in threads:
        thread.start()
    live_on(one, 300)
    stop.set()
    for thread in threads:
        thread.join()
    counters = one.report().counters
    assert counters["decisions"] == counters["observed"] == 300
    assert upto(one) == 300


def test_reports_of_two_processes_count_every_decision_once(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """The other one decides and reports between the look aside and the transaction."""
    one, other = agent(tmp_path), agent(tmp_path)
    live_on(one, 10)
    real, between = Journal.query_aside, iter([True])

    def aside(self: Journal, sql: str, values: Any = ()) -> Any:
        rows = real(self, sql, values)
        if sql == self_report.TALLY_SQL and next(between, False):
            live_on(other, 5)
            other.report()
            live_on(other, 2)
        return rows

    monkeypatch.setattr(Journal, "query_aside", aside)
    assert one.report().counters["decisions"] == 17
    assert upto(one) == 17
    monkeypatch.undo()
    live_on(other, 3)
    assert one.report().counters["decisions"] == other.report().counters["decisions"] == 20
    assert upto(one) == 20


def test_a_decision_that_is_being_written_down_is_counted_later(tmp_path: Path) -> None:
    clock, waits, go = Clock(), threading.Event(), threading.Event()
    one = agent(tmp_path, clock=clock)
    live_on(one, 5)
    now = clock.now

    def slowly() -> float:
        waits.set()
        go.wait(30.0)
        return now()

    clock.now = slowly  # a decision looks at the clock in the middle of its transaction
    deciding = threading.Thread(target=live_on, args=(one, 1))
    deciding.start()
    assert waits.wait(30.0)
    reading = threading.Thread(target=one.report)
    reading.start()
    reading.join(0.3)
    go.set()
    deciding.join()
    reading.join()
    assert one.report().counters["decisions"] == 6
