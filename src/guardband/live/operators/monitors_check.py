"""Checks whether monitors remember, and noticed, what follows from the rewards in a journal."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from guardband.kernels.monitors import KINDS, Note
from guardband.live.client.journal import Journal
from guardband.live.client.monitors import Monitors
from guardband.live.client.replay import learner_by
from guardband.live.client.watching import others_in, watch_again
from guardband.live.protocol.sums import Sums, unpack_sums

__all__ = ["changed_monitors"]

TOLERANCE = 1e-9
KEPT = "SELECT stream, n, from_seq, why, numbers FROM monitor ORDER BY stream, n, from_seq"
LAST = """
    SELECT max(k) FROM (SELECT k FROM outcome WHERE stream = ?1
                        UNION ALL SELECT k FROM logged WHERE stream = ?1)
"""
RAISED = """
    SELECT n, kind, evidence, at FROM alarm
    WHERE stream = ? AND n + (kind = 'fit') > ? AND n <= ? ORDER BY number
"""
# The epoch that was adopted when a task did not fit it, and the agent's own part of it.
ADOPTED = """
    SELECT e.total, e.others, e.own_n, c.total FROM epoch e
    LEFT JOIN cut c ON c.stream = e.stream AND c.n = e.own_n AND c.version = e.own_version
    WHERE e.stream = ? AND e.adopted_at <= ? ORDER BY e.epoch DESC
"""
SHARE = "SELECT share FROM level WHERE stream = ? ORDER BY from_seq DESC"
# What a person, or an alarm, changes beside rewards.
ACTS = [Note.HOLD, Note.RAISED, Note.RAISED + 1, Note.RAISED + 2, Note.PENDING]


class _Kept(NamedTuple):
    """What monitors remembered after n observations of a stream."""

    stream: int
    n: int
    from_seq: int
    why: str
    numbers: bytes


def changed_monitors(journal: Journal) -> list[str]:
    """Return where what monitors remembered does not follow, bit for bit, from the rewards.

    As far as these are kept: from one line of what was remembered to the next.
    """
    config = journal.one("SELECT space FROM config ORDER BY version DESC")
    if config is None:
        return []
    monitors = learner_by(journal, config[0]).monitors
    if not monitors.kinds:
        return []
    found = []
    for earlier, later in pairwise(_Kept(*row) for row in journal.query(KEPT)):
        try:
            words = _followed(journal, monitors, earlier, later)
        except LookupError:
            continue  # pruned: nothing to compare
        if words:
            found.append(f"{words}: the journal was changed.")
    return found


def _followed(journal: Journal, monitors: Monitors, earlier: _Kept, later: _Kept) -> str | None:
    """Return what does not follow between two lines, if anything does not."""
    monitors.remember(earlier.numbers)
    upto = later.n
    if later.stream != earlier.stream:
        ((last,),) = journal.query(LAST, (earlier.stream,))
        upto = max(last or 0, earlier.n)
    words = _raised(journal, monitors, earlier, upto)
    if words:
        return words
    if _same(later.numbers, monitors.as_bytes(), masked=bool(later.why)):
        return None
    if later.why == "resume":
        monitors.look_again()
        if _same(later.numbers, monitors.as_bytes(), masked=True):
            return None
    if later.stream != earlier.stream and later.why != "alarm":
        monitors.restart()  # the stream was given up, or all tasks began with nothing
        if _same(later.numbers, monitors.as_bytes(), masked=True):
            return None
    return (
        f"what monitors remembered after {later.n} observations of stream {later.stream} does not "
        "follow from the rewards"
    )


def _raised(journal: Journal, monitors: Monitors, earlier: _Kept, upto: int) -> str | None:
    """Watch again, heeding what was noticed; return what was not noticed as it is written down."""
    share = journal.one(SHARE, (earlier.stream,))
    alarms = journal.query(RAISED, (earlier.stream, earlier.n, upto))
    if not monitors.memory[Note.REWARDS]:  # they have just begun, and did not raise that
        alarms = [each for each in alarms if each[0] > earlier.n]
    monitors.set_threshold(None if share is None else share[0])
    reached = watch_again(journal, monitors, earlier.stream, earlier.n, upto)
    own = [each[:3] for each in alarms if each[1] != "fit"]
    noticed = monitors.alarm
    wrong = own and (noticed is None or (reached, KINDS[noticed[0] - 1], noticed[1]) != own[-1])
    if wrong or not all(_fits_not(journal, monitors, earlier.stream, each) for each in alarms):
        return f"an alarm of stream {earlier.stream} is not what its monitors noticed"
    if noticed is not None and not own:
        return f"monitors of stream {earlier.stream} noticed what is not written down"
    if alarms:
        monitors.respond(KINDS.index(alarms[-1][1]) + 1)
    monitors.set_threshold(None)
    return None


def _fits_not(
    journal: Journal, monitors: Monitors, stream: int, alarm: tuple[int, str, float, float]
) -> bool:
    """Tell whether the evidence of an alarm that a task does not fit comes out again."""
    _, kind, evidence, at = alarm
    epoch = journal.one(ADOPTED, (stream, at))
    if kind != "fit" or (epoch is not None and epoch[2] and epoch[3] is None):  # not kept
        return True
    if epoch is None or epoch[0] is None:
        return False
    total, without, _, entry = epoch
    own = None if entry is None else Sums.from_bytes(entry)
    others = others_in(Sums.from_bytes(total), unpack_sums(without), own, monitors.half)
    return math.isclose(monitors.evidence_of_misfit(others), evidence, rel_tol=TOLERANCE)


def _same(one: bytes, other: bytes, *, masked: bool) -> bool:
    """Compare what was remembered, bit for bit; `masked`: but for what acts have changed."""
    first, second = np.frombuffer(one).copy(), np.frombuffer(other).copy()
    if masked:
        first[ACTS] = second[ACTS] = 0.0
    return first.tobytes() == second.tobytes()
