"""An agent's journal: one SQLite file that keeps every decision and every reward.

What `decide` and `observe` have returned survives the death of the process (WAL, NORMAL); what is
uploaded survives a power failure as well, because `flush` puts the log on disk first. Several
processes of one host may share the file: each checks, before it acts, whether another has written
to it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from guardband.errors import GuardbandError
from guardband.files import plain_errors
from guardband.live import system
from guardband.live.client.emptied import emptied
from guardband.live.client.journal_schema import (
    COLUMNS,
    FORMAT,
    MIGRATIONS,
    Head,
    StoredDecision,
)
from guardband.live.protocol.sums import DamagedSumsError
from guardband.live.sqlite import FAILURES, apsw, connect, guard_rows, is_damage, seal_rows

__all__ = ["DamagedJournalError", "Head", "Journal", "JournalError", "StoredDecision"]

log = logging.getLogger("guardband.live")

PAGE = 2048  # rewards touch two pages each; large menus overflow into more
BUSY_MS = 10_000
CHECKPOINT_PAGES = 8_000  # a backstop: `tidy` does it in the background

ADD = f"INSERT INTO main.decision VALUES ({', '.join('?' * COLUMNS)})"
# "WHERE d.seq = ?" would be planned anew for every value, which takes longer than the search.
FIND = """
    SELECT d.seq, d.stream, d.at, d.round, d.config, d.kind, d.floor, d.margin, d.x, d.guess,
           d.weight, d.careful, d.declared, d.lower, d.lead, d.share, d.predicted, d.value,
           d.baseline_value, d.cost, d.paid, d.override, d.mark, o.ended, o.reward, o.late
    FROM (SELECT ?1 AS wanted) JOIN decision d ON d.seq = wanted
    LEFT JOIN outcome o ON o.seq = wanted
"""
END = """
    INSERT INTO main.outcome VALUES (?, ?, ?, ?, ?, ?, NULL) ON CONFLICT DO UPDATE
    SET ended = excluded.ended, reward = excluded.reward, stream = excluded.stream, k = excluded.k
"""
FIRST_END = "INSERT INTO main.outcome VALUES (?, ?, ?, ?, ?, ?, NULL)"
SAVE_HEAD = """
    UPDATE main.head SET stream = ?, settled = ?, n = ?, own = ?, round = ?, due = ?, heard = ?,
           tally = ?, revision = ? WHERE id = 1
"""
COUNTED = """
    SELECT o.k, d.x, d.weight, d.guess, o.reward, 0, d.round
    FROM outcome o JOIN decision d USING(seq)
    WHERE o.stream = ?1 AND o.k > ?2 AND o.k <= ?3
    UNION ALL
    SELECT k, x, weight, guess, reward, reused, 0 FROM logged
    WHERE stream = ?1 AND k > ?2 AND k <= ?3
    ORDER BY 1
"""
NOTE_DAMAGE = """
    INSERT INTO main.tally VALUES ((SELECT coalesce(max(id), 1) FROM stream), 'damaged', 1)
    ON CONFLICT DO UPDATE SET count = count + 1
"""
ADD_LOGGED = f"INSERT INTO main.logged VALUES ({', '.join('?' * 9)})"
EARLY = "(1, 5)"  # how a decision may end before earlier ones: `End.OBSERVED`, `End.OUTDATED`
OPEN = f"""
    FROM decision d LEFT JOIN outcome o USING(seq)
    WHERE d.seq > ? AND coalesce(o.ended, 0) NOT IN {EARLY}
"""
LOGGED = "SELECT id, x, reward FROM logged WHERE id IN (SELECT value FROM json_each(?))"
MENDED = "It is damaged; its agent mends it, and so does `guardband audit --repair`."
# What to do about what SQLite says.
ADVICE: dict[type[Exception], str] = {
    apsw.FullError: "Make room on the disk.",
    apsw.BusyError: f"Another process has held it for {BUSY_MS // 1000} s: see which one.",
    apsw.ReadOnlyError: "See whether the folder and the files in it may be written.",
    apsw.CantOpenError: "See whether its folder is still there and may be written.",
    apsw.IOError: "See whether its folder is still there and the disk is sound.",
    apsw.ConstraintError: "A number is missing or not finite: see what the agent was given.",
    apsw.ConnectionClosedError: "The agent was closed meanwhile: make a new one.",
}


class JournalError(GuardbandError, OSError):
    """The journal cannot be used; the message says why and what to do."""


class DamagedJournalError(JournalError):
    """The journal is not what was written; its agent mends it, with what is sound."""


class Journal:
    """One SQLite file. Not for several threads at once: those that share one hold a lock.

    Parameters
    ----------
    path
        The file; its folder is made where it does not exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._log, self._folder = f"{self.path}-wal", str(self.path.parent)
        with plain_errors(self.path.parent, "no journal can be kept there; choose another folder"):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lost = emptied(self.path)
            if not self.path.exists():  # closing a file in use would take SQLite's locks away
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # for its owner only
        self._aside: Any = None
        self._db: Any = None
        self._asking = system.Lock()  # the connection aside is for one at a time
        self._open()

    def _open(self) -> None:
        self._version, self.damaged = -1, False  # until it is opened again
        cut, self._lost = self._lost, []
        try:
            self._db = self._connect(cut.append)
            self._execute = self._db.cursor().execute  # one for all: each releases what was read
            self._migrate()
            guard_rows(self._db, replaced=("head",))
            for said in cut:
                log.error("guardband: %s.", said)
                self._execute(NOTE_DAMAGE)
        except BaseException as error:
            self.rest()
            if not isinstance(error, FAILURES):
                raise
            self.damaged = is_damage(error)
            kind = DamagedJournalError if self.damaged else JournalError
            raise kind(
                f"{self.path} cannot be opened as a journal: {error}.{_advice(error)}"
            ) from error

    def _connect(self, on_loss: Callable[[str], object] | None = None) -> apsw.Connection:
        db = connect(self.path, BUSY_MS, refusal=JournalError, page_size=PAGE, on_loss=on_loss)
        db.pragma("synchronous", "normal")
        db.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        return db

    def _migrate(self) -> None:
        self._execute("BEGIN IMMEDIATE")
        found = int(self._db.pragma("user_version"))
        if found > FORMAT:
            raise JournalError(
                f"{self.path} has format {found}, newer than the {FORMAT} this version of "
                "guardband reads: upgrade guardband."
            )
        for step in MIGRATIONS[found:]:
            self._execute(step)
        if found < FORMAT:
            seal_rows(self._db)
        self._execute(f"PRAGMA user_version = {FORMAT}")
        self._execute("COMMIT")

    def begin(self) -> bool:
        """Begin a transaction; tell whether others have written since the last one ended."""
        if self._db is None:
            self._open()
        try:
            self._execute("BEGIN IMMEDIATE")
        except FAILURES as error:
            raise self._failure(error) from error
        return bool(self._db.data_version() != self._version)

    def commit(self) -> None:
        """Keep what the transaction did, all of it; or nothing, and raise."""
        try:
            self._execute("COMMIT")
        except FAILURES as error:
            self.undo(error)
        self._version = self._db.data_version()

    def undo(self, cause: BaseException) -> None:
        """Let everything be as it was before the transaction; raise if the file is the cause."""
        self._version = -1
        try:
            if self._db is not None and self._db.in_transaction:
                self._execute("ROLLBACK")
        except apsw.ConnectionClosedError:
            pass
        except FAILURES:  # the next transaction opens the file anew
            self.rest()
        if isinstance(cause, (*FAILURES, DamagedSumsError)):
            raise self._failure(cause) from cause

    def _failure(self, error: BaseException) -> JournalError:
        why = str(error).rstrip(".")
        damaged = is_damage(error) or isinstance(error, DamagedSumsError)
        self.damaged |= damaged
        kind = DamagedJournalError if damaged else JournalError
        return kind(f"{self.path} cannot be used: {why}. Nothing was changed.{_advice(error)}")

    # What decide and observe do.

    def add(self, row: Sequence[Any]) -> None:
        """Write a decision down."""
        self._execute(ADD, row)

    def find(self, seq: int) -> StoredDecision | None:
        """Return a decision, if it is kept."""
        row = self._execute(FIND, (seq,)).fetchone()
        return None if row is None else StoredDecision._make(row)

    def end(
        self,
        seq: int,
        ended: int,
        reward: float | None,
        at: float,
        counted: tuple[int | None, int | None] = (None, None),
        *,
        first: bool = False,
    ) -> None:
        """Write down how a decision ended, or that its reward is here.

        `counted` is the stream in which it counts, and as which observation of that; `first` says
        that nothing was written about it before.
        """
        self._execute(FIRST_END if first else END, (seq, ended, reward, at, *counted))

    def save_head(self, head: tuple[Any, ...]) -> None:
        """Write the fields of a `Head`."""
        self._execute(SAVE_HEAD, head)

    def head(self) -> Head | None:
        """Return the head; None: the journal is new."""
        row = self._execute(
            "SELECT stream, settled, n, own, round, due, heard, tally, revision, chain "
            "FROM head JOIN stream ON stream.id = head.stream"
        ).fetchone()
        return None if row is None else Head._make(row)

    # What learning from logs does.

    def add_logged(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows of logs down, each with the columns of the table."""
        self._db.cursor().executemany(ADD_LOGGED, rows)

    def logged(self, ids: Sequence[str]) -> dict[str, tuple[bytes, float]]:
        """Return features and reward of those among the ids that were learned before."""
        return {name: (x, y) for name, x, y in self._execute(LOGGED, (json.dumps(ids),))}

    # The rest is rare.

    def add_head(self, head: Head) -> None:
        """Write the first head."""
        self._execute(f"INSERT INTO main.head VALUES (1, {', '.join('?' * 9)})", head[:9])

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; also for what changes something, in a transaction."""
        try:
            return list(self._execute(sql, values))
        except FAILURES as error:
            raise self._failure(error) from error

    def one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row of a statement, if there is one."""
        rows = self.query(sql, values)
        return rows[0] if rows else None

    def last(self) -> tuple[int, int, float, float]:
        """Return number, round and time of the newest decision, and what was spent up to it."""
        row = self.one(
            "SELECT seq, round, at, spent + charge FROM decision ORDER BY seq DESC LIMIT 1"
        )
        return (0, 0, 0.0, 0.0) if row is None else (row[0], row[1], row[2], row[3])

    def count(self, stream: int, key: str, by: int = 1) -> None:
        """Add to a counter of a stream."""
        self._execute(
            "INSERT INTO main.tally VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET count = count + excluded.count",
            (stream, key, by),
        )

    def counts(self, stream: int) -> dict[str, int]:
        """Return the counters of a stream."""
        return dict(self._execute("SELECT key, count FROM tally WHERE stream = ?", (stream,)))

    def note_late(self, seq: int, reward: float) -> None:
        """Keep a reward that came after its window; it does not count."""
        self._execute("UPDATE main.outcome SET late = ? WHERE seq = ?", (reward, seq))

    def open(self, settled: int) -> int:
        """Return how many decisions after `settled` wait for a reward, or for their turn."""
        return int(self.query(f"SELECT count(*) {OPEN}", (settled,))[0][0])

    def lose(self, settled: int, ended: int, at: float) -> None:
        """End all decisions after `settled` that are open."""
        self._execute(
            "INSERT INTO main.outcome SELECT seq, ?, NULL, ?, NULL, NULL, NULL FROM decision "
            "WHERE seq > ? ON CONFLICT DO UPDATE SET ended = excluded.ended "
            f"WHERE outcome.ended NOT IN {EARLY}",
            (ended, at, settled),
        )

    def cost_after(self, settled: int) -> float:
        """Return what decisions after `settled` that are open cost, or are reserved for."""
        sql = f"SELECT total(coalesce(d.paid, d.cost)) {OPEN}"
        return float(self.query(sql, (settled,))[0][0])

    def about(self) -> dict[str, Any]:
        """Return what the journal says of its agent."""
        return {key: json.loads(value) for key, value in self.query("SELECT * FROM meta")}

    def decision(self, seq: int) -> dict[str, Any] | None:
        """Return all that was written down with a decision, by column; None: it is not kept."""
        found = self.one("SELECT * FROM decision WHERE seq = ?", (seq,))
        return None if found is None else dict(zip(self.columns(), found, strict=True))

    def columns(self) -> list[str]:
        """Return the names of a decision's columns, in their order."""
        return [column[1] for column in self.query("PRAGMA table_info(decision)")]

    def counted(self, stream: int, after: int, upto: int) -> Iterator[tuple[Any, ...]]:
        """Yield (k, x, weight, guess, reward, reused, round) of observations after < k <= upto."""
        # By a cursor of its own: there may be millions, and others are asked for meanwhile.
        yield from self._db.cursor().execute(COUNTED, (stream, after, upto))

    def prune(self, keep: int, settled: int, batch: int) -> int:
        """Forget up to `batch` of the oldest decisions that have ended, beyond `keep`."""
        ((oldest,),) = self.query("SELECT min(seq) FROM decision")
        first = settled + 1 if oldest is None else oldest
        last = min(settled - max(keep, 1), first + batch - 1)
        if last < first:
            return 0
        self._execute("DELETE FROM main.decision WHERE seq <= ?", (last,))
        self._execute("DELETE FROM main.outcome WHERE seq <= ?", (last,))
        self._execute(
            "DELETE FROM main.epoch WHERE adopted_at IS NOT NULL AND epoch < "
            "(SELECT min(epoch) FROM decision)"
        )
        self._execute(
            "DELETE FROM main.monitor WHERE from_seq < (SELECT max(from_seq) FROM monitor "
            "WHERE from_seq <= (SELECT min(seq) FROM decision))"
        )
        return last - first + 1

    # What takes long; none of it needs the lock of the threads that share the journal.

    def flush(self) -> None:
        """Put everything that was committed on disk, as a FULL commit would.

        The log is synchronised as a file: no reader and no writer waits for it.
        """
        try:
            system.put_on_disk(self._log)
            system.put_on_disk(self._folder, os.O_RDONLY)
        except OSError as error:
            why = f"{self.path} cannot be put on disk: {error}. {ADVICE[apsw.IOError]}"
            raise JournalError(why) from error

    def query_aside(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that only reads, over a connection of its own."""
        with self._asking:
            try:
                if self._aside is None:
                    self._aside = self._connect()
                    guard_rows(self._aside)
                return list(self._aside.execute(sql, values))
            except FAILURES as error:
                raise self._failure(error) from error

    def tidy(self) -> None:
        """Move the log into the file, as far as no reader still needs it."""
        self.query_aside("PRAGMA wal_checkpoint(PASSIVE)")

    def rest(self) -> None:
        """Close the file until the next transaction.

        No connection may be open while the process forks: SQLite would believe in the child that
        it has the locks of its parent, and another process could take the log away under it.
        """
        with self._asking:
            for connection in (self._aside, self._db):
                if connection is not None:
                    connection.close()
            self._aside = self._db = None

    def close(self) -> None:
        """Close the file."""
        with self._asking:
            if self._aside is not None:
                self._aside.close()
        if self._db is not None:
            self._db.close()


def _advice(error: BaseException) -> str:
    if is_damage(error) or isinstance(error, DamagedSumsError):
        return f" {MENDED}"
    return next((f" {text}" for kind, text in ADVICE.items() if isinstance(error, kind)), "")
