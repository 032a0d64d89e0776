"""What is read of damaged files, row by row."""

from __future__ import annotations

from guardband.live.salvage import damage_of
from guardband.live.sqlite import apsw


def test_a_text_that_is_none_is_damage():
    """In a log that a process has open no page is verified, so any byte may have flipped."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE event(what TEXT)")
    db.execute("INSERT INTO event VALUES ('sound')")
    assert damage_of(db) == []
    db.execute("INSERT INTO event VALUES (CAST(x'6ed0' AS TEXT))")
    assert damage_of(db) == ["rows of event cannot be read"]
