"""What is remembered of decisions for overrides: the menu, and what was known of the parameter.

It is much more than what a reward needs, so only the newest decisions have it.
"""

from __future__ import annotations

import weakref

from guardband.agent.records import NO_COVARIANCE, NO_WEIGHTS, KnownThen, Recall
from guardband.errors import InvalidValueError
from guardband.forks import ForkSafe
from guardband.kernels.types import Estimate, Floats

__all__ = ["Recalls"]

NUMBERS = 2_000_000  # that are kept for each task, 16 MB


class Recalls:
    """The newest decisions that wait for a reward, as many as fit."""

    def __init__(self) -> None:
        # Each with how many numbers it has to itself, and the array that it shares with others:
        # menus of a batch lie in one. The oldest come first.
        self._kept: dict[str, tuple[Recall, int, Floats | None]] = {}
        self._size = 0
        self._sharing: dict[int, int] = {}  # how many share an array, by its id
        self._known: KnownThen | None = None  # what decisions are made by now

    def known(self, estimate: Estimate, owner: ForkSafe) -> KnownThen:
        """Return what is known now, for all decisions until it changes; see `KnownThen`."""
        if self._known is None:
            self._known = KnownThen(estimate, owner)
        return self._known

    def before_change(self) -> None:
        """Let decisions that still need it remember what was known: it is about to change."""
        found = self._known
        if found is None or not (found.users or found.lent):
            return
        self._known = None
        if not found.users:
            held, found = weakref.ref(found), None  # whoever it was lent to may be gone
            found = held()
        if found is not None:
            found.keep()

    def add(self, name: str, recall: Recall) -> None:
        """Keep a decision; the oldest ones make room."""
        (menu, _, _, contexts, weights, covariance, *_), known, _ = recall
        known.users += 1
        size, shared = known.size, menu.base
        if weights is not NO_WEIGHTS or covariance is not NO_COVARIANCE:
            size += contexts.size + covariance.size
        if shared is None:
            size += menu.size
        else:
            sharing = self._sharing.get(id(shared), 0)
            self._sharing[id(shared)] = sharing + 1
            if not sharing:
                self._size += shared.size
        self._kept[name] = recall, size, shared
        self._size += size
        while self._size > NUMBERS and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))

    def drop(self, name: str) -> None:
        """Forget a decision, if it is kept."""
        found = self._kept.pop(name, None)
        if found is None:
            return
        recall, size, shared = found
        recall.known.users -= 1
        self._size -= size
        if shared is not None:
            sharing = self._sharing.pop(id(shared)) - 1
            if sharing:
                self._sharing[id(shared)] = sharing
            else:
                self._size -= shared.size

    def find(self, name: str) -> Recall | None:
        """Return a decision as it stood, if it is kept."""
        found = self._kept.get(name)
        return None if found is None else found[0]

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
