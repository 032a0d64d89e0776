"""What a journal says, read by SQL alone: decisions, what counted, checkpoints, adopted epochs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import apsw
import numpy as np

from guardband.kernels.types import Floats
from guardband.live.protocol.messages import Revision
from guardband.live.protocol.sums import Sums, upper_places
from guardband.live.sqlite import connect

__all__ = ["Branch", "Counted", "Made", "Prefix"]


class Made(NamedTuple):
    """A decision, and how it ended."""

    seq: int
    stream: int
    at: float
    config: int
    epoch: int
    n: int
    kind: str
    reason: str
    x: bytes
    ended: int | None
    reward: float | None
    k: int | None
    late: float | None


class Counted(NamedTuple):
    """What one stream of a journal has counted, in order; `names` are the played features."""

    names: list[bytes]
    sums: Floats  # (n + 1, ...): what the first k observations add up to
    surprise: Floats
    weight: Floats


class Prefix(NamedTuple):
    """The first observations of a stream."""

    names: list[bytes]
    total: Sums


class Branch:
    """One state folder at its end: an agent's, a clone's, or one that was rolled back."""

    def __init__(self, label: str, folder: Path, uses: tuple[int, ...]) -> None:
        self.label, self.uses, self.path = label, uses, folder / "journal.db"
        db = connect(self.path, 5_000, refusal=OSError)  # which knows the checksums of pages
        self.intact = list(db.execute("PRAGMA integrity_check")) == [("ok",)]
        self.made = [
            Made(*row)
            for row in db.execute(
                "SELECT d.seq, d.stream, d.at, d.config, d.epoch, d.n, d.kind, d.reason, d.x, "
                "o.ended, o.reward, o.k, o.late "
                "FROM decision d LEFT JOIN outcome o USING(seq) ORDER BY d.seq"
            )
        ]
        self.streams = dict(db.execute("SELECT id, name FROM stream ORDER BY id").fetchall())
        self.numbers = {name: number for number, name in self.streams.items()}
        self.checkpoints = {
            (self.streams[stream], Revision(n, version))
            for stream, n, version in db.execute("SELECT stream, n, version FROM cut")
        }
        self.bases = {
            name: Revision(*json.loads(chain)["base"])
            for name, chain in db.execute("SELECT name, chain FROM stream")
        }
        self.adopted = {
            (stream, epoch): (total, Revision(n, version), heard)
            for epoch, stream, total, n, version, heard in db.execute(
                "SELECT epoch, stream, total, own_n, own_version, heard_at FROM epoch "
                "WHERE adopted_at IS NOT NULL"
            )
        }
        ((self.stream, self.settled, self.n),) = db.execute("SELECT stream, settled, n FROM head")
        self.lost = sum(c for (c,) in db.execute("SELECT count FROM tally WHERE key = 'lost'"))
        self._counted = {number: self._count(db, number) for number in self.streams}
        db.close()

    @staticmethod
    def _count(db: apsw.Connection, stream: int) -> Counted:
        rows = list(
            db.execute(
                "SELECT o.k, d.x, d.weight, d.guess, o.reward FROM outcome o JOIN decision d "
                "USING(seq) WHERE o.stream = ? ORDER BY o.k",
                (stream,),
            )
        )
        assert [row[0] for row in rows] == list(range(1, len(rows) + 1)), "I4: k has gaps"
        if not rows:
            return Counted([], np.zeros((1, 0)), np.zeros(1), np.zeros(1))
        z = np.column_stack(
            [np.array([np.frombuffer(row[1]) for row in rows]), [row[4] for row in rows]]
        )
        w, guess, y = np.array([(row[2], row[3], row[4]) for row in rows]).T
        upper = upper_places(z.shape[1] - 1)
        grams = w[:, None] * z[:, upper[0]] * z[:, upper[1]]
        return Counted(
            [row[1] for row in rows],
            np.vstack([np.zeros(grams.shape[1]), np.cumsum(grams, axis=0)]),
            np.concatenate([[0.0], np.cumsum(w * (guess * guess - 2.0 * y * guess))]),
            np.concatenate([[0.0], np.cumsum(w)]),
        )

    def prefix(self, stream: str, n: int) -> Prefix | None:
        """Return the first n observations of a stream, if this journal has so many."""
        counted = self._counted[self.numbers[stream]]
        if n > len(counted.names):
            return None
        total = Sums(n, counted.sums[n], float(counted.surprise[n]), float(counted.weight[n]))
        return Prefix(counted.names[:n], total)

    def between(self, stream: int, after: int, upto: int) -> list[bytes]:
        """Return the observations of a stream with after < k <= upto."""
        return self._counted[stream].names[after:upto]
