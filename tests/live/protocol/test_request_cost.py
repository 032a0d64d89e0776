"""What a request costs the coordinator: queries to its store, and calls of Python functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from live.protocol.scenes import Scene

from guardband.live.store.sqlite import SqliteStore


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with closing(SqliteStore(tmp_path / "coordinator.db")) as store:
        one = Scene(store)
        one.join("movies")
        one.join("tv")
        for who in ("movies", "tv"):  # nothing is done for the first time when it is counted
            one.observe(who)
            one.cut(who)
            one.send(who)
            one.news(who)
        yield one


def cost(scene: Scene, work: Callable[[], Any]) -> tuple[int, int]:
    """Return the number of queries, and of calls beside those of the scene."""
    queries: list[str] = []
    calls = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call" and "/tests/" not in frame.f_code.co_filename

    def trace(_: Any, statement: str, __: Any) -> bool:
        queries.append(statement)
        return True

    scene.store.connection.exec_trace = trace
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        scene.store.connection.exec_trace = None
    return len(queries), calls


def test_a_poll_without_news_is_one_query(scene: Scene) -> None:
    queries, calls = cost(scene, lambda: scene.news("movies"))
    assert queries == 1
    assert calls <= 40


def test_an_upload_is_one_read_and_two_writes(scene: Scene) -> None:
    scene.observe("movies")
    scene.cut("movies")
    queries, calls = cost(scene, lambda: scene.send("movies"))
    assert queries == 5  # and the transaction's begin and commit
    assert calls <= 130


def test_an_epoch_is_opened_and_closed_without_reading_what_was_written(scene: Scene) -> None:
    scene.observe("movies")
    assert cost(scene, lambda: scene.trigger("movies"))[0] <= 9
    scene.observe("tv")
    assert cost(scene, lambda: scene.answer("tv"))[0] <= 16
    assert cost(scene, lambda: scene.news("movies"))[0] == 1
