"""What is remembered of decisions for overrides: the menu, and what was known of the parameter.

It is much more than what a reward needs, so only the newest decisions have it.
"""

from __future__ import annotations

import weakref

from guardband.agent.records import KnownThen, Recall
from guardband.errors import InvalidValueError
from guardband.forks import ForkSafe
from guardband.kernels.types import Estimate, Floats

__all__ = ["Recalls"]

NUMBERS = 2_000_000  # that are kept for each task, 16 MB


def _sizes(recall: Recall) -> tuple[Floats, int]:
    """Return the array that a decision's menu lies in, and how many numbers it has beside it.

    Menus of a batch lie in one array. What is beside it is counted as if no other shared it.
    """
    request, known, _ = recall
    menu, _, _, contexts, _, covariance, *_ = request
    buffer: Floats = menu if menu.base is None else menu.base
    return buffer, known.size + contexts.size + covariance.size


class Recalls:
    """The newest decisions that wait for a reward, as many as fit."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Recall, Floats, int]] = {}  # see `_sizes`; the oldest first
        self._size = 0
        self._sharing: dict[int, int] = {}  # how many of them lie in the same array, by its id
        self._known: weakref.ref[KnownThen] | None = None  # what decisions are made by now

    def known(self, estimate: Estimate, owner: ForkSafe) -> KnownThen:
        """Return what is known now, for all decisions until it changes; see `KnownThen`."""
        found = None if self._known is None else self._known()
        if found is None:
            found = KnownThen(estimate, owner)
            self._known = weakref.ref(found)
        return found

    def before_change(self) -> None:
        """Let decisions that still need it remember what was known: it is about to change."""
        if self._known is not None:
            found, self._known = self._known(), None
            if found is not None:
                found.keep()

    def add(self, name: str, recall: Recall) -> None:
        """Keep a decision; the oldest ones make room."""
        menus, size = _sizes(recall)
        self._kept[name] = recall, menus, size
        sharing, self._size = self._sharing.get(id(menus), 0), self._size + size
        self._sharing[id(menus)] = sharing + 1
        if not sharing:
            self._size += menus.size
        while self._size > NUMBERS and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))

    def drop(self, name: str) -> None:
        """Forget a decision, if it is kept."""
        found = self._kept.pop(name, None)
        if found is None:
            return
        _, menus, size = found
        self._size -= size
        sharing = self._sharing.pop(id(menus)) - 1
        if sharing:
            self._sharing[id(menus)] = sharing
        else:
            self._size -= menus.size

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
