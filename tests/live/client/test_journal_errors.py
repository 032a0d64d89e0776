"""What goes wrong with the journal's file reaches the user in a sentence, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from live.client.world import (
    agent,
    check_journal,
    journal_of,
    live_on,
    menus,
    opened_by,
    watch_connections,
)

from guardband.live import sqlite
from guardband.live.client.journal import Journal, JournalError
from guardband.live.client.windows import Clock
from guardband.live.store import StoreError
from guardband.live.store.sqlite import SqliteStore

MENU = menus(1)[0]
Trouble = Callable[[Any, pytest.MonkeyPatch], Callable[[], None]]


def full(one: Any, patch: pytest.MonkeyPatch) -> Callable[[], None]:
    db = opened_by(one)
    db.pragma("max_page_count", db.pragma("page_count"))
    return lambda: db.pragma("max_page_count", 2**30)


def locked(one: Any, patch: pytest.MonkeyPatch) -> Callable[[], None]:
    opened_by(one).set_busy_timeout(20)
    other = apsw.Connection(str(one.state_dir / "journal.db"))
    other.execute("BEGIN IMMEDIATE")
    return other.close


def read_only(one: Any, patch: pytest.MonkeyPatch) -> Callable[[], None]:
    db = opened_by(one)
    db.pragma("query_only", 1)
    return lambda: db.pragma("query_only", 0)


def not_a_number(one: Any, patch: pytest.MonkeyPatch) -> Callable[[], None]:
    real = Clock.now
    patch.setattr(Clock, "now", lambda _: math.nan)
    return lambda: patch.setattr(Clock, "now", real)


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (full, "full.*Make room"),
        (locked, "locked.*Another process"),
        (read_only, "readonly.*may be written"),
        (not_a_number, "NOT NULL.*not finite"),
    ],
)
def test_an_error_of_the_file_is_said_plainly_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Trouble, says: str
) -> None:
    watch_connections(monkeypatch)
    one = agent(tmp_path)
    live_on(one, 10)
    waiting = one.decide(MENU, 0)
    theta = one.theta
    over = trouble(one, monkeypatch)
    offer = np.tile(MENU, (200, 1))  # too much for the room that is left on a page
    with pytest.raises(JournalError, match=rf"journal.db cannot be used: .*{says}"):
        one.decide_many([offer] * 20, [0] * 20)
    if trouble is not full:  # a reward may still fit
        with pytest.raises(JournalError, match=r"journal.db"):
            one.observe(waiting.id, 0.9)
    over()
    assert (one.counted, one.pending, one.rounds) == (10, 1, 11)
    np.testing.assert_allclose(one.theta, theta, rtol=1e-9)
    one.observe(waiting.id, 0.5)
    assert one.counted == 11
    live_on(one, 3)
    check_journal(journal_of(one))


def test_a_transaction_that_cannot_be_undone_goes_with_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = watch_connections(monkeypatch)
    one = agent(tmp_path)
    live_on(one, 10)
    waiting = one.decide(MENU, 0)
    failing.append(
        lambda sql: (
            apsw.IOError("disk I/O error")
            if "INTO main.outcome" in sql or sql == "ROLLBACK"
            else None
        )
    )
    with pytest.raises(JournalError, match=r"I/O error\..*folder is still there"):
        one.observe(waiting.id, 0.9)
    failing.clear()
    assert (one.counted, one.pending, one.rounds) == (10, 1, 11)
    one.observe(waiting.id, 0.5)
    check_journal(journal_of(one))


def test_errors_of_reports_and_uploads_are_said_plainly_too(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 3)
    with pytest.raises(JournalError, match="no such table"):
        journal_of(one).query_aside("SELECT * FROM missing")
    with pytest.raises(JournalError, match="no such table"):
        journal_of(one).query("SELECT * FROM missing")
    journal = Journal(tmp_path / "other" / "journal.db")
    journal.close()
    with pytest.raises(JournalError, match=r"put on disk.*folder is still there"):
        journal.flush()


def test_a_sqlite_that_damages_shared_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apsw, "SQLITE_VERSION_NUMBER", sqlite.SOUND - 1)
    with pytest.raises(JournalError, match="upgrade apsw"):
        Journal(tmp_path / "journal.db")
    with pytest.raises(StoreError, match="upgrade apsw"):
        SqliteStore(tmp_path / "store.db")
