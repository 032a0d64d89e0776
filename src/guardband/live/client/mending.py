"""What becomes of a damaged journal: its agent goes on with what is sound, and asks for the rest.

A single bit that flipped is turned back, and nothing is lost. That failing, this is:

Decisions that cannot be read are gone with their pages; the sums that hold their rewards are not. A
pooled sum that cannot be read is asked for again, and own data are used meanwhile. Where the
agent's own sums, rules, spending or alarms cannot be read, the journal begins anew: what was
uploaded is in the coordinator's sums, and the baseline is played until they are heard of.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from guardband.live.client.journal import DamagedJournalError, Journal, JournalError
from guardband.live.client.windows import End
from guardband.live.protocol.sums import DamagedSumsError, Sums, unpack_sums
from guardband.live.salvage import examine, mend
from guardband.live.sqlite import apsw, read_only

__all__ = ["find_damage", "mend_journal", "undamaged"]

log = logging.getLogger("guardband.live")

Result = TypeVar("Result")

SPARE = {"decision", "outcome", "tally", "epoch"}  # what an agent can go on without
KEPT = {"meta", "tally"}  # what a journal that begins anew keeps
ANEW = (
    "what was counted and not uploaded is lost; the journal begins anew, and the baseline is "
    "played until the coordinator answers"
)


def undamaged(path: Path, work: Callable[[], Result]) -> Result:
    """Do something with a journal; where that finds it damaged, mend it and do it again."""
    try:
        return work()
    except DamagedJournalError:
        mend_journal(path)
        return work()


def find_damage(path: Path) -> list[str]:
    """Return what is wrong with a journal, in sentences; nothing is changed."""
    wrong = examine(path)
    if wrong:
        return wrong
    with closing(read_only(path, on_loss=wrong.append)) as db:
        return [f"sums of {table} are damaged" for table in _bad_sums(db)]


def mend_journal(path: Path) -> str | None:
    """Write a damaged journal anew from what is sound; return what is lost, None: it is sound."""
    try:
        said = mend(path, _build, _complete, also_wrong=_bad_sums, one_bit=True)
    except apsw.NotADBError as error:
        raise JournalError(
            f"{path} cannot be opened as a journal: {error}. Put it aside, and the agent begins a "
            "new one."
        ) from error
    if said is not None:
        log.error("guardband: %s was damaged and is mended: %s.", path, said)
    return said


def _build(path: Path) -> apsw.Connection:
    Journal(path).close()
    return apsw.Connection(str(path))


def _complete(db: apsw.Connection, lost: Mapping[str, bool]) -> str:
    """Make a journal whole from which rows are missing; return what that means."""
    gone = set(lost) | set(_bad_sums(db))
    spends = db.execute("SELECT count(*) FROM account WHERE granted > 0 OR cost_granted > 0").get
    if gone - SPARE or (spends and lost.get("decision")) or not _has_head(db):
        kept = KEPT - gone
        for (name,) in list(db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")):
            if name not in kept:
                db.execute(f"DELETE FROM {name}")
        db.execute("DELETE FROM tally")
        said = ANEW
    else:
        said = "; ".join(filter(None, (_without_epoch(db), _without_decisions(db, gone))))
        db.execute("UPDATE head SET revision = revision + 1")
    db.execute(
        "INSERT INTO tally VALUES ((SELECT coalesce(max(id), 1) FROM stream), 'damaged', 1) "
        "ON CONFLICT DO UPDATE SET count = count + 1"
    )
    return said or "nothing is lost"


def _has_head(db: apsw.Connection) -> bool:
    found = db.execute("SELECT count(*) FROM head JOIN stream ON stream.id = head.stream").get
    return bool(found)


def _bad_sums(db: apsw.Connection) -> list[str]:
    """Return the tables in which sums have another checksum than they should."""
    queries = {
        "head": "SELECT own, NULL FROM head",
        "cut": "SELECT part, NULL FROM cut UNION ALL SELECT total, NULL FROM cut",
        "epoch": "SELECT total, others FROM epoch",
    }
    return [table for table, query in queries.items() if not all(map(_sound, db.execute(query)))]


def _sound(row: tuple[bytes | None, bytes | None]) -> bool:
    one, several = row
    try:
        if one is not None:
            Sums.from_bytes(one)
        unpack_sums(several)
    except DamagedSumsError:
        return False
    return True


def _without_epoch(db: apsw.Connection) -> str:
    """Use no sum that is missing or damaged, and ask for it again."""
    for epoch, stream, *sums in list(db.execute("SELECT epoch, stream, total, others FROM epoch")):
        if not _sound((sums[0], sums[1])):
            db.execute("DELETE FROM epoch WHERE epoch = ? AND stream = ?", (epoch, stream))
    number, text = db.execute("SELECT id, chain FROM stream ORDER BY id DESC LIMIT 1").get
    rest = json.loads(text)
    found = db.execute(
        "SELECT count(*) FROM epoch WHERE epoch = ? AND stream = ?", (rest["epoch"], number)
    ).get
    if not rest["epoch"] or found:
        return ""
    rest["since"], rest["seen"] = None, min(rest["seen"], rest["epoch"] - 1)
    db.execute("UPDATE stream SET chain = ? WHERE id = ?", (json.dumps(rest), number))
    return f"the sum of epoch {rest['epoch']} is asked for again, and own data are used meanwhile"


def _without_decisions(db: apsw.Connection, gone: set[str]) -> str:
    """Let nobody wait for decisions that are missing; all that waited are lost where one is."""
    if not gone & {"decision", "outcome"}:
        return ""
    last = db.execute("SELECT coalesce(max(seq), 0) FROM decision").get
    settled, kept = db.execute(
        "SELECT settled, (SELECT count(*) FROM decision WHERE seq > settled) FROM head"
    ).get
    said = "some old decisions can no longer be explained"
    if "outcome" in gone or kept != last - settled:
        db.execute(
            "INSERT INTO outcome SELECT seq, ?, NULL, at, NULL, NULL, NULL FROM decision "
            "WHERE seq > ? ON CONFLICT DO UPDATE SET ended = excluded.ended "
            "WHERE outcome.k IS NULL",
            (int(End.LOST), settled),
        )
        db.execute("UPDATE head SET settled = ?, heard = 0", (last,))
        said += ", and rewards of those that waited no longer count"
    # Numbers go on after the newest that is left.
    db.execute("DELETE FROM outcome WHERE seq > ?", (last,))
    for table in ("level", "monitor"):
        db.execute(f"UPDATE OR REPLACE {table} SET from_seq = ?1 WHERE from_seq > ?1", (last + 1,))
    db.execute("UPDATE account SET since = min(since, ?)", (last,))
    db.execute("UPDATE tally SET count = min(count, ?) WHERE key = 'upto'", (last,))
    return said
