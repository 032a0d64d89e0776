"""Limits per caller: rates by token buckets, and numbers of requests held at once."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from guardband.live.protocol.messages import Refused

__all__ = ["ConcurrencyLimiter", "TokenBucket"]

REMEMBERED = 20_000  # callers; the one whose last request is oldest is forgotten first


class TokenBucket:
    """One token bucket per caller: `rate` a second, `burst` at once.

    Parameters
    ----------
    rate
        Requests a second, in the long run.
    burst
        Requests at once.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self.rate, self.burst = rate, float(burst)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # (tokens, at)

    def wait_of(self, caller: str, now: float) -> float:
        """Take one token and return 0, or take none and return the seconds until there is one."""
        left, at = self._left.pop(caller, (self.burst, now))
        left = min(self.burst, left + max(0.0, now - at) * self.rate)
        granted = left >= 1.0
        self._left[caller] = (left - 1.0 if granted else left, now)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if granted else (1.0 - left) / self.rate

    def __len__(self) -> int:
        return len(self._left)


class ConcurrencyLimiter:
    """Limits how many requests are held at once, in all and per caller.

    Parameters
    ----------
    most, most_each
        How many in all, and how many of one caller.
    code, what
        The names of such requests, in codes and in sentences.
    """

    def __init__(self, most: int, most_each: int, code: str, what: str) -> None:
        self.most, self.most_each, self.code, self.what = most, most_each, code, what
        self._held: Counter[str] = Counter()

    @contextmanager
    def one(self, caller: str) -> Iterator[None]:
        """Hold a slot during the block; Refused with 503 if none is left."""
        if self.taken >= self.most or self._held[caller] >= self.most_each:
            raise Refused(
                f"too_many_{self.code}",
                503,
                f"no more than {self.most} {self.what}, and {self.most_each} of one token, are "
                "held at once; try again.",
                retry_after_s=5,
            )
        self._held[caller] += 1
        try:
            yield
        finally:
            self._held[caller] -= 1
            if not self._held[caller]:
                del self._held[caller]

    @property
    def taken(self) -> int:
        """How many slots are held."""
        return self._held.total()
