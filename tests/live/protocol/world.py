"""A small world in which every number can be read back: which observation is in it, how often.

The k-th observation of a feature has the weight 4^k and that feature alone, so the diagonal of a
Gram matrix, read in base 4, says how often each observation was counted; float64 is exact up to
2^53, which is 26 observations per feature. Rewards are 0 or 1, so U and Q say the same again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from live.protocol.stream_rows import StreamRows, facts

from guardband.live.client.stream_state import StreamState
from guardband.live.protocol.messages import Revision
from guardband.live.protocol.space import (
    RewardSettings,
    SpaceSettings,
    SyncSettings,
    UploadSettings,
)
from guardband.live.protocol.sums import Sums, matrix_of

DIM, DEEP = 4, 26
DOOR = UploadSettings(max_rate=0.1, max_logged=DIM * DEEP, max_streams=100)  # enough for all
USES = {"movies": (0, 1, 2, 3), "tv": (0, 1), "books": (1, 2, 3)}


def make_space(
    min_batch: int = 1,
    min_streams: int = 1,
    min_interval_s: float = 0.0,
    contexts: str = "shared",
    uploads: UploadSettings | None = None,
    tolerate: int | None = None,
    window: int | None = None,
) -> SpaceSettings:
    return SpaceSettings(
        name="home",
        features=tuple("abcd"),
        agents=len(USES),
        contexts=contexts,
        noise=2.0**-DEEP,
        sync=SyncSettings(
            min_batch=min_batch,
            min_streams=min_streams,
            min_interval_s=min_interval_s,
            deadline_s=2.0,
            live_s=60.0,
        ),
        rewards=RewardSettings(low=0.0, high=1.0),
        uploads=UploadSettings() if uploads is None else uploads,
        tolerate=tolerate,
        window=window,
    )


class Tag(NamedTuple):
    """One observation, which a sum shows apart from all others."""

    feature: int
    depth: int
    reward: float
    round: int

    @property
    def guess(self) -> float:
        return 1.0 if self.feature == 0 else 0.0  # one feature: H stays below 2^53

    def counted(self, state: StreamState, half: int = 0) -> StreamState:
        psi = np.zeros(DIM)
        psi[self.feature] = 1.0
        return state.counted(psi, self.reward, 4.0**self.depth, self.guess, half)


class Book:
    """All observations ever made, and how to find them in sums."""

    def __init__(self) -> None:
        self.tags: dict[tuple[int, int], Tag] = {}
        self.used: Counter[int] = Counter()
        self.known: dict[tuple[bytes, ...], Counter[Tag]] = {}

    def room(self, task: str) -> list[int]:
        return [k for k in USES[task] if self.used[k] < DEEP]

    def new(self, feature: int, reward: float, round_: int) -> Tag:
        tag = Tag(feature, self.used[feature], reward, round_)
        self.used[feature] += 1
        self.tags[feature, tag.depth] = tag
        return tag

    def read(self, *totals: Sums, what: str) -> Counter[Tag]:
        """Return how often each observation is in a sum; W, U, Q, H, n must tell the same."""
        key = tuple(total.as_bytes() for total in totals)
        if key not in self.known:
            self.known[key] = self.decoded(totals, what)
        return self.known[key]

    def decoded(self, totals: tuple[Sums, ...], what: str) -> Counter[Tag]:
        found: Counter[Tag] = Counter()
        n = sum(total.kept for total in totals)
        matrix = sum((matrix_of(total) for total in totals), np.zeros((DIM + 1, DIM + 1)))
        for feature in range(DIM):
            for depth, often in enumerate(_digits(matrix[feature, feature], what)):
                if often:
                    found[self.tags[feature, depth]] = often
        assert sum(found.values()) == n, f"{what}: {n} observations, but W holds {found}"
        U, H, Q, weight = np.zeros(DIM), 0.0, 0.0, 0.0
        for tag, often in found.items():
            w = often * 4.0**tag.depth
            U[tag.feature] += w * tag.reward
            Q += w * tag.reward
            H += w * (tag.guess - 2.0 * tag.reward * tag.guess)
            weight += w
        assert matrix[:DIM, DIM].tolist() == U.tolist(), f"{what}: W and U came apart"
        assert matrix[DIM, DIM] == Q, f"{what}: W and Q came apart"
        assert sum(total.surprise for total in totals) == H, f"{what}: W and H came apart"
        assert sum(total.weight for total in totals) == weight, f"{what}: weights came apart"
        return found


def _digits(value: float, what: str) -> list[int]:
    number, digits = int(value), []
    assert value == number >= 0, f"{what}: W holds {value}, no sum of observations"
    while number:
        digits.append(number % 4)
        number //= 4
    assert len(digits) <= DEEP, f"{what}: W holds more than was ever counted"
    return digits


@dataclass(eq=False)
class Disk:
    """What an agent has written down; tags are the model's own record of the same."""

    state: StreamState
    tags: tuple[Tag, ...] = ()  # counted in this stream, in order
    round: int = 0
    start: tuple[Tag, ...] = ()  # all that was observed since the agent last began with nothing
    apart: bool = False  # whether its task has left the pool, as it was last told

    def copy(self) -> Disk:
        return replace(self)


@dataclass(eq=False)
class Player:
    """One agent: its journal, what of it is surely on the disk, and what it remembers of faults."""

    task: str
    rows: StreamRows
    journal: Disk
    synced: Disk
    tainted: bool = False  # it was copied or went back in time: it may have to give up a stream
    life: int = 0  # restarts: answers to an earlier life are not heard
    heard: int = 0  # the newest open epoch heard of
    kept: list[Disk] = field(default_factory=list)
    over: set[Tag] = field(default_factory=set)  # of a start that is over, as nobody knows yet

    @property
    def state(self) -> StreamState:
        return self.journal.state

    def keep(self, state: StreamState, **more: Any) -> None:
        """Go on with another state, written down as agents write it."""
        self.rows.keep(state)
        self.journal = replace(self.journal, state=state, **more)

    def start_from(self, disk: Disk) -> None:
        """Start as a new process that finds this disk."""
        self.life += 1
        self.heard = 0
        if disk is not self.journal:
            self.rows.forget()
        found = self.rows.read(disk.state)
        assert facts(found) == facts(disk.state), "a state is not what was written of it"
        self.journal = replace(disk, state=found)


class Made(NamedTuple):
    """A checkpoint as its maker knows it."""

    tags: frozenset[Tag]
    raw: bytes


def name_of(kind: str, k: int) -> str:
    digest = hashlib.sha256(f"{kind} {k}".encode()).hexdigest()
    if kind == "version":
        return digest[:32]
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


NOTHING = Revision(0, "")
