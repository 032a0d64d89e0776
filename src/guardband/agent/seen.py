"""Requests that an agent was given lately: what an outlook is computed from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from guardband.agent.records import Request

__all__ = ["Seen", "is_kept", "remembered"]

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

    def add(self, request: Request) -> None:
        """Keep a request; the oldest one makes room."""
        if not self._kept.maxlen:
            size = request.menu.size + request.contexts.size + request.covariance.size
            self._kept = deque(maxlen=remembered(size))
        if request.menu.base is not None:  # a batch must not be remembered for one of its menus
            request = request._replace(menu=request.menu.copy())
        self._kept.append(request)


def is_kept(turn: int) -> bool:
    """Tell whether the request of an agent's `turn`-th round is one to be kept."""
    return turn <= MENUS or turn % APART == 0


def remembered(size: int) -> int:
    """Return how many requests of so many numbers each an outlook is computed from."""
    return min(MENUS, max(LEAST, NUMBERS // size))
