"""Bits that flip in the log of a journal while an agent has it open."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from live.client.test_damage import journal_in
from live.client.world import agent, journal_of, live_on

from guardband.live.client.journal import DamagedJournalError, Journal
from guardband.live.client.mending import find_damage, mend_journal


@pytest.mark.parametrize(
    ("table", "column"),
    [("outcome", "reward"), ("decision", "x"), ("decision", "features"), ("head", "tally")],
)
def test_a_bit_that_flips_in_a_log_in_use_is_noticed(
    tmp_path: Path, table: str, column: str
) -> None:
    """SQLite itself reads such a log unchecked."""
    one = agent(tmp_path)
    live_on(one, 5)
    path = journal_in(tmp_path)
    query = f"SELECT {column} FROM {table} ORDER BY 1 DESC LIMIT 1"
    value = journal_of(one).query(query)[0][0]
    stored = struct.pack(">d", value) if column == "reward" else value
    changed = bytes([*stored[:6], stored[6] ^ 1, *stored[7:]])
    log = path.with_name("journal.db-wal")
    raw = log.read_bytes()
    assert stored in raw
    with log.open("r+b") as file:  # in its place, as a disk would
        file.write(raw.replace(stored, changed))
    other = Journal(path)
    with pytest.raises(DamagedJournalError, match=f"a row of {table}"):
        other.query(query)
    if table == "decision":  # what is not used is not written anew with a sound seal, either
        other.begin()
        with pytest.raises(DamagedJournalError, match="a row of decision"):
            other.query("UPDATE main.decision SET paid = 0.5")
        other.undo(ValueError())
    other.close()
    assert find_damage(path) == [f"rows of {table} cannot be read"]
    assert mend_journal(path)
    assert find_damage(path) == []
    live_on(one, 5)
    assert one.report().counters["damaged"] == 1
    one.close()


@pytest.mark.parametrize("query", ["SELECT promise FROM decision", "PRAGMA integrity_check"])
def test_a_text_that_a_flip_has_made_none_is_damage(tmp_path: Path, query: str) -> None:
    """It cannot even be told to what verifies seals."""
    one = agent(tmp_path)
    live_on(one, 5)
    path = journal_in(tmp_path)
    log = path.with_name("journal.db-wal")
    raw = log.read_bytes()
    assert b"play" in raw
    with log.open("r+b") as file:
        file.write(raw.replace(b"play", b"p\xcelay"[:4]))
    other = Journal(path)
    with pytest.raises(DamagedJournalError, match="decode"):
        other.query(query)
    other.close()
    assert find_damage(path) == ["rows of decision cannot be read"]
    live_on(one, 5)  # it mends what it finds
    assert find_damage(path) == []
    one.close()
