"""What `guardband audit --verify` finds in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from live.protocol.harness import Harness

from guardband.live.operators.verify import NO_CHECKSUMS, verify_database
from guardband.live.protocol.messages import Refused
from guardband.live.store import StreamRow, TaskRow

pytestmark = pytest.mark.slow


def test_damaged_sums_are_found_and_mended(connect: Callable[..., Any]) -> None:
    store = connect()
    harness = Harness(store)
    name = harness.join("movies")
    harness.observe(name, 2)
    harness.pool(name)
    with store.reading() as t:
        ((checked,),) = t.ask("show data_checksums")
    notes = () if checked == "on" else (NO_CHECKSUMS,)
    assert verify_database(store, "here").wrong == notes
    with store.transaction("home") as t:
        row = t.stream(harness.stream(name))
        t.put(row._replace(total=row.total[:-1] + bytes([row.total[-1] ^ 1])))
    damaged = (f"sums of stream {row.stream} are damaged", *notes)
    assert verify_database(store, "here").wrong == damaged
    found = verify_database(store, "here", repair=True)
    assert found.wrong == damaged
    assert found.mended == f"stream {row.stream} is sent again by its agent"
    assert verify_database(store, "here").wrong == notes


def test_a_row_that_is_not_what_was_written_is_not_used(connect: Callable[..., Any]) -> None:
    store = connect()
    harness = Harness(store)
    name = harness.join("movies")
    harness.observe(name, 2)
    harness.pool(name)
    with store.transaction("home") as t:
        t.write(TaskRow, "update task set reason = 'a bit flipped'")
    found = verify_database(store, "here")
    assert found.wrong[0] == "rows of task are damaged"
    with pytest.raises(Refused, match="mended from what is sound"), store.reading() as t:
        t.tasks("home")
    harness.coordinator.tick(now=harness.now)  # the next transaction mends it
    with store.reading() as t:
        assert t.tasks("home") == []
        assert "Look at the tasks" in t.space("home").paused
    assert "rows of task are damaged" not in verify_database(store, "here").wrong


def test_what_replicas_of_before_write_is_unsealed(connect: Callable[..., Any]) -> None:
    """They know nothing of seals, and work on until they are upgraded."""
    store = connect()
    harness = Harness(store)
    name = harness.join("movies")
    harness.observe(name, 2)
    harness.pool(name)
    with store.transaction("home") as t:
        t.write(StreamRow, "update stream set library = 'old', n = n + 1")
    with store.reading() as t:
        assert t.ask("select seal from stream") == [(None,)]
        (row,) = t.streams("home")
    assert row.library == "old"
    with store.transaction("home") as t:
        t.put(row)
        assert t.ask("select seal is null from stream") == [(False,)]
