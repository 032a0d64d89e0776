"""The ids of decisions: TASK-XXXXXXXXMARK-NUMBER, the start of a stream's name, and a mark.

They say in which journal a decision is, and which of two that got the same number is meant.
"""

from __future__ import annotations

from typing import NamedTuple

from guardband.live import system

__all__ = ["DecisionId", "make_id", "mark_of", "new_mark", "parse_id"]

KEY = 8  # characters that come from the name of the stream
MARK = 16  # characters of the mark, and ...
STAMP = 4  # ... where it came from the time, up to journals of format 11


class DecisionId(NamedTuple):
    """The parts of an id."""

    task: str
    key: str  # how the name of its stream begins
    mark: str
    seq: int  # its number in the journal

    def made_in(self, stream: str) -> bool:
        """Tell whether a decision of this stream may have the id."""
        return stream[:KEY] == self.key


def make_id(task: str, stream: str, mark: str, seq: int) -> str:
    """Return the id of a task's decision: the stream's name, its mark and its number."""
    return f"{task}-{stream[:KEY]}{mark}-{seq}"


def parse_id(text: str) -> DecisionId | None:
    """Return the parts of an id; None where the text is none."""
    head, _, number = text.rpartition("-")
    task, _, key = head.rpartition("-")
    plain = number.isascii() and number.isdecimal() and len(number) < 19
    if not (task and len(key) in (KEY + MARK, KEY + STAMP) and plain):
        return None
    return DecisionId(task, key[:KEY], key[KEY:], int(number))


def new_mark() -> int:
    """Return 63 random bits, by which a decision is told from every other of the same number.

    A folder that was copied, or restored from an old copy, gives numbers again: the reward of a
    decision of another copy must not be taken for that of the decision with the same number here.
    """
    return int.from_bytes(system.urandom(8), "little") >> 1


def mark_of(mark: int | None, at: float) -> str:
    """Return a mark as ids have it; older decisions have none but the time at which they were."""
    return f"{int(at * 1e6) & 0xFFFF:04x}" if mark is None else f"{mark:016x}"
