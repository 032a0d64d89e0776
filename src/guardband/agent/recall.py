"""What is remembered of decisions for overrides: the menu, and what was known of the parameter.

It is much more than what a reward needs, so only the newest decisions have it.
"""

from __future__ import annotations

from guardband.agent.records import Recall
from guardband.errors import InvalidValueError

__all__ = ["Recalls"]

NUMBERS = 2_000_000  # that are kept for each task, 16 MB


def _size(recall: Recall) -> int:
    """Return how many numbers a decision takes."""
    request = recall.request
    given = request.menu.size + request.contexts.size + request.covariance.size
    return int(given + recall.inverse.size + recall.theta.size)


class Recalls:
    """The newest decisions that wait for a reward, as many as fit."""

    def __init__(self) -> None:
        self._kept: dict[str, Recall] = {}  # the oldest first
        self._size = 0

    def add(self, name: str, recall: Recall) -> None:
        """Keep a decision; the oldest ones make room."""
        self._kept[name] = recall
        self._size += _size(recall)
        while self._size > NUMBERS and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))

    def drop(self, name: str) -> None:
        """Forget a decision, if it is kept."""
        found = self._kept.pop(name, None)
        if found is not None:
            self._size -= _size(found)

    def find(self, name: str) -> Recall | None:
        """Return a decision as it stood, if it is kept."""
        return self._kept.get(name)

    def get(self, name: str) -> Recall:
        """Return a decision as it stood, or say why that is not known."""
        found = self.find(name)
        if found is None:
            raise InvalidValueError(
                f"decision {name!r} cannot be overridden any more: what was known when it was made "
                "is kept of the newest decisions only, and not in files. Use discard(...), which "
                "learns nothing from it."
            )
        return found
