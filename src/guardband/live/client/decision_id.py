"""The ids of decisions: TASK-XXXXXXXXYYYY-NUMBER, the start of a stream's name, and a stamp.

They say in which journal a decision is, and which of two that got the same number is meant.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DecisionId", "make_id", "parse_id", "stamp"]

KEY = 8  # characters that come from the name of the stream
STAMP = 4  # characters that come from the time of the decision


class DecisionId(NamedTuple):
    """The parts of an id."""

    task: str
    key: str  # how the name of its stream begins
    stamp: str
    seq: int  # its number in the journal

    def made_in(self, stream: str) -> bool:
        """Tell whether a decision of this stream may have the id."""
        return stream[:KEY] == self.key


def make_id(task: str, stream: str, at: float, seq: int) -> str:
    """Return the id of a task's decision: the stream's name, its time and its number."""
    return f"{task}-{stream[:KEY]}{stamp(at)}-{seq}"


def parse_id(text: str) -> DecisionId | None:
    """Return the parts of an id; None where the text is none."""
    head, _, number = text.rpartition("-")
    task, _, key = head.rpartition("-")
    plain = number.isascii() and number.isdecimal() and len(number) < 19
    if not (task and len(key) == KEY + STAMP and plain):
        return None
    return DecisionId(task, key[:KEY], key[KEY:], int(number))


def stamp(at: float) -> str:
    """Return the part of an id that tells a decision from another of the same number.

    A folder restored from an old copy gives numbers again: the reward of a decision that it lost
    must not be taken for that of the new decision with the same number.
    """
    return f"{int(at * 1e6) & 0xFFFF:04x}"
