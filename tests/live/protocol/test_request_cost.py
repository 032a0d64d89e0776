"""What a request costs the coordinator: queries to its store, and calls of Python functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from live.protocol.harness import Harness

from guardband.live.store.sqlite import SqliteStore


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with closing(SqliteStore(tmp_path / "coordinator.db")) as store:
        one = Harness(store)
        one.join("movies")
        one.join("tv")
        for who in ("movies", "tv"):  # nothing is done for the first time when it is counted
            one.observe(who)
            one.checkpoint(who)
            one.send(who)
            one.news(who)
        yield one


def cost(harness: Harness, work: Callable[[], Any]) -> tuple[int, int]:
    """Return the number of queries, and of calls beside those of the harness."""
    queries: list[str] = []
    calls = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call" and "/tests/" not in frame.f_code.co_filename

    def trace(_: Any, statement: str, __: Any) -> bool:
        queries.append(statement)
        return True

    harness.store.connection.exec_trace = trace
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        harness.store.connection.exec_trace = None
    return len(queries), calls


def test_a_poll_without_news_is_one_query(harness: Harness) -> None:
    queries, calls = cost(harness, lambda: harness.news("movies"))
    assert queries == 1
    assert calls <= 45  # seals among them


def test_an_upload_is_one_read_and_two_writes(harness: Harness) -> None:
    harness.observe("movies")
    harness.checkpoint("movies")
    queries, calls = cost(harness, lambda: harness.send("movies"))
    assert queries == 5  # and the transaction's begin and commit
    assert calls <= 145


def test_an_epoch_is_opened_and_closed_without_reading_what_was_written(harness: Harness) -> None:
    harness.observe("movies")
    assert cost(harness, lambda: harness.trigger("movies"))[0] <= 9
    harness.observe("tv")
    assert cost(harness, lambda: harness.answer("tv"))[0] <= 16
    assert cost(harness, lambda: harness.news("movies"))[0] == 1
