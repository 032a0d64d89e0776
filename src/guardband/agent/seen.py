"""Requests that an agent was given lately: what an outlook is computed from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from guardband.agent.records import Request

__all__ = ["Seen", "remembered"]

MENUS, LEAST = 128, 8  # requests that are remembered, at most and at least
NUMBERS = 500_000  # in all of them, 4 MB
APART = 7  # after the first ones, one in so many rounds is remembered: it costs time


class Seen:
    """Some of the requests of one agent, the newest ones."""

    def __init__(self) -> None:
        self._kept: deque[Request] = deque(maxlen=0)

    def __iter__(self) -> Iterator[Request]:
        """Return the oldest first."""
        return iter(self._kept)

    def add(self, turn: int, request: Request) -> None:
        """Keep the request of the agent's `turn`-th round, if it is its turn to be kept."""
        if turn > MENUS and turn % APART:
            return
        if not self._kept.maxlen:
            size = request.menu.size + request.contexts.size + request.covariance.size
            self._kept = deque(maxlen=remembered(size))
        if request.menu.base is not None:  # a batch must not be remembered for one of its menus
            request = request._replace(menu=request.menu.copy())
        self._kept.append(request)


def remembered(size: int) -> int:
    """Return how many requests of so many numbers each an outlook is computed from."""
    return min(MENUS, max(LEAST, NUMBERS // size))
