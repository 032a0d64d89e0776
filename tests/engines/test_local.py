"""The local engine: all results, whatever the number of workers; lazy, and quick to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from guardband.engines import Advance, LocalEngine, StoppedError

DEADLINE = 60.0  # generous: the machine may be busy


def squared(item: int, step: Advance) -> int:
    step(1.0)
    return item * item


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_every_item_comes_back_once_under_its_number(workers: int, count: int) -> None:
    found = list(LocalEngine(workers).map(squared, range(count)))
    assert len(found) == count
    assert dict(found) == {i: i * i for i in range(count)}


def test_items_are_taken_as_there_is_room() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for i in range(10_000):
            taken += 1
            yield i

    results = LocalEngine(1).map(squared, items())
    next(results)
    assert taken < 100
    results.close()
    assert taken < 100


def test_no_more_run_at_a_time_than_there_are_workers() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def work(item: int, step: Advance) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    list(LocalEngine(3).map(work, range(30)))
    assert most == 3


def test_closing_stops_what_runs() -> None:
    ended: list[str] = []

    def endless(item: int, step: Advance) -> None:
        started = time.monotonic()
        try:
            while time.monotonic() < started + DEADLINE and item:
                step(0.0)
                time.sleep(0.001)
        except StoppedError:
            ended.append("stopped")
            raise

    results = LocalEngine(2).map(endless, [0, 1, 2, 3])
    assert next(results) == (0, None)
    before = threading.active_count()
    results.close()
    assert 1 <= len(ended) <= 2  # the others never began
    assert threading.active_count() < before


def test_a_mistake_in_the_work_comes_to_the_caller_and_ends_the_rest() -> None:
    def work(item: int, step: Advance) -> int:
        if item == 3:
            raise ValueError("three is no good")
        return item

    with pytest.raises(ValueError, match="three is no good"):
        list(LocalEngine(2).map(work, range(100_000)))


def test_shares_of_progress_are_reported_by_item() -> None:
    told: list[tuple[int, float]] = []

    def work(item: str, step: Advance) -> str:
        step(0.25)
        step(0.75)
        return item

    results = LocalEngine(1).map(work, ["a", "b"], lambda index, share: told.append((index, share)))
    assert list(results) == [(0, "a"), (1, "b")]
    assert told == [(0, 0.25), (0, 0.75), (1, 0.25), (1, 0.75)]


def test_workers_must_be_some() -> None:
    with pytest.raises(ValueError, match="workers must be at least 1, not 0"):
        LocalEngine(0)
    assert LocalEngine().workers >= 1
