"""Agents reduced to their stream states, whose numbers can be recomputed, and what must hold.

Features, rewards and guesses are sixteenths, so that all sums are exact in float64, in any order:
what is stored must equal the sum over the first n rows of a writer's own record, to the last bit.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import time
import uuid
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from guardband.live.client.stream_state import Effect, StreamState
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.link import Link, Unreachable
from guardband.live.protocol.messages import News, Refused, Revision, Uploaded
from guardband.live.protocol.space import RewardSettings, SpaceSettings, SyncSettings
from guardband.live.protocol.sums import Sums, add_sums, matrix_of
from guardband.live.store import Store

__all__ = ["SPACE", "USES", "Balancer", "Direct", "Writer", "check", "in_process", "reconnect"]

DIM = 3
USES = {"a": (0, 1, 2), "b": (0, 1), "c": (1, 2), "d": (0, 2)}
SPACE = SpaceSettings(
    name="home",
    features=("x", "y", "z"),
    agents=len(USES),
    noise=1.0,
    contexts="per-request",
    sync=SyncSettings(deadline_s=1.0, live_s=30.0),
    rewards=RewardSettings(low=0.0, high=1.0),
)
TRIES = 12
NOTHING = Revision(0, "")


class Direct:
    """A link to a coordinator in this process."""

    def __init__(self, store: Store) -> None:
        self.coordinator = Coordinator(store)

    def _do(self, name: str, *given: Any, **more: Any) -> Any:
        now = time.time()
        try:
            self.coordinator.tick(now=now)
            return getattr(self.coordinator, name)(*given, now=now, **more)
        except Refused as problem:
            if problem.status == 503:  # as over HTTP
                raise Unreachable(problem.detail) from problem
            raise

    def create_space(self, space: SpaceSettings) -> int:
        return int(self._do("create_space", space, who="test"))

    def register(self, name: str, request: Any) -> Any:
        return self._do("register", name, request)

    def upload(self, stream: str, request: Any) -> Any:
        return self._do("upload", stream, request)

    def news(self, name: str, stream: str | None, *, wait_s: float, **known: int) -> Any:
        return self._do("news", name, stream, **known)


def in_process(*stores: Store) -> Balancer:
    """Return a way to several coordinators, each on a store of its own."""
    return Balancer([Direct(store) for store in stores])


class Balancer:
    """Sends every request to some replica, by chance, as a load balancer does."""

    def __init__(self, links: Sequence[Any], seed: int = 0) -> None:
        self.links, self._random = list(links), random.Random(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._random.choice(self.links), name)


class Writer:
    """An agent that counts rows of its own.

    Parameters
    ----------
    task
        One of USES.
    link
        To the coordinator.
    seed
        Of its data.
    """

    def __init__(self, task: str, link: Link | Balancer | Direct, seed: int) -> None:
        self.task, self.link = task, link
        self._rng = np.random.default_rng(seed)
        self.rows: dict[str, list[np.ndarray]] = defaultdict(list)  # by stream: psi, y, yhat
        self.names: dict[str, dict[int, str]] = defaultdict(lambda: {0: ""})  # n: version
        self.acked: dict[str, Revision] = {}
        self.views: dict[int, bytes] = {}  # by adopted epoch
        self.epochs: list[int] = []  # in the order of adoption
        self.effects: list[str] = []
        self.uploads = 0
        self._registered = ""
        self.state = StreamState.start(str(uuid.uuid4()), DIM)

    def observe(self, count: int) -> None:
        """Count some more."""
        for _ in range(count):
            psi = np.zeros(DIM)
            uses = list(USES[self.task])
            psi[uses] = self._rng.integers(0, 9, len(uses)) / 16.0
            y, guess = self._rng.integers(0, 17, 2) / 16.0
            guess *= psi.any()  # without features, every estimate says 0
            self.rows[self.state.stream].append(np.array([*psi, y, guess]))
            self.state = self.state.counted(psi, float(y), 1.0, float(guess))

    def work(self, count: int, *, trigger: bool = False) -> None:
        """Count some more, answer what is open, upload, hear the news; may raise Unreachable."""
        self.observe(count)
        news = self.listen()
        opened = None if news is None else news.open
        asked = self.state.seen + 1 if trigger else 0
        answer = self.upload(for_epoch=opened.epoch if opened else asked, trigger=trigger)
        if answer.epoch > self.state.seen:
            self.listen()

    def upload(self, *, for_epoch: int = 0, trigger: bool = False) -> Uploaded:
        """Make a checkpoint, and send it until it is acknowledged."""
        for _ in range(TRIES):
            self._register()
            self.state = self.state.with_checkpoint(uuid.uuid4().hex, for_epoch=for_epoch)
            state = self.state
            newest = state.newest
            self.names[state.stream][newest.sums.n] = newest.version
            try:
                answer: Uploaded = self.link.upload(state.stream, state.upload(trigger=trigger))
            except Refused as problem:
                self._refused(problem)
                continue
            self.uploads += 1
            if answer.revision.n > self.acked.get(state.stream, NOTHING).n:
                self.acked[state.stream] = answer.revision
            self.state = state.stored(answer)
            return answer
        raise AssertionError(f"{self.task}: an upload does not come to an end: {self.effects}")

    def listen(self) -> News | None:
        """Hear the news, and adopt a new epoch."""
        self._register()
        try:
            news: News | None = self.link.news(
                SPACE.name,
                self.state.stream,
                after=self.state.seen,
                open_after=self.state.answered,
                config_version=1,
                wait_s=0.0,
            )
        except Refused as problem:
            self._refused(problem)
            return None
        if news is None:
            return None
        step = self.state.adopt(news)
        self.effects.append(step.effect)
        assert step.effect is not Effect.CONFLICT, f"{self.task}: {news.own} is not its own"
        self.state = step.stream
        if step.effect is Effect.ADOPTED:
            assert self.state.pooled is not None
            self.epochs.append(news.epoch)
            self.views[news.epoch] = self.state.pooled.as_bytes()
            self._check_view()
        return news

    def _register(self) -> None:
        if self._registered != self.state.stream:
            request = self.state.register(
                task=self.task,
                schema_hash=SPACE.schema_hash,
                uses=USES[self.task],
                library="test",
            )
            self.link.register(SPACE.name, request)
            self._registered = self.state.stream

    def _refused(self, problem: Refused) -> None:
        step = self.state.refused(problem, stream=str(uuid.uuid4()))
        self.effects.append(step.effect)
        if step.effect is Effect.REGISTER:
            self._registered = ""
        elif step.effect is Effect.KEEP and problem.code != "revision_conflict":
            raise problem
        assert step.effect is not Effect.CONFLICT, f"{self.task}: {problem.detail}"
        self.state = step.stream

    def _check_view(self) -> None:
        """I3: what it computes with holds each of its own rows once."""
        since = self.state.since or NOTHING
        own = self.rows[self.state.stream][since.n :]
        assert same(self.state.own, sums(own)), f"I3: {self.task} counts own rows twice"


def reconnect(writers: Sequence[Writer], patience_s: float = 60.0) -> None:
    """Let all hand in everything, and come to hold the same new epoch (I11)."""
    end = time.monotonic() + patience_s
    before, held = max(writer.state.seen for writer in writers), set()
    while True:
        with contextlib.suppress(Unreachable):
            for k, writer in enumerate(writers):
                writer.work(1, trigger=k == 0)
            for writer in writers:
                writer.listen()
            held = {writer.state.epoch for writer in writers}
            if len(held) == 1 and min(held) > before:
                break
        assert time.monotonic() < end, f"I11: no common epoch after {before}: {held}"
        time.sleep(0.1)
    for writer in writers:  # what was counted after its answer to that epoch
        writer.upload()
        assert writer.state.acknowledged
        assert writer.state.open.n == 0


def sums(rows: Sequence[np.ndarray]) -> Sums:
    """Return the exact total of some rows."""
    table = np.array(rows, np.float64).reshape(len(rows), DIM + 2)
    z, y, guess = table[:, : DIM + 1], table[:, DIM], table[:, DIM + 1]
    gram = (z.T @ z)[np.triu_indices(DIM + 1)]
    surprise = float((guess * guess - 2.0 * y * guess).sum())
    return Sums(len(rows), gram, surprise, float(len(rows)))


def same(one: Sums, other: Sums) -> bool:
    return one.as_bytes() == other.as_bytes()


def check(store: Store, writers: Sequence[Writer], *, restored: bool = False) -> dict[str, int]:
    """Compare all that is stored with the writers' ledgers; return some counts."""
    rows = {stream: rows for writer in writers for stream, rows in writer.rows.items()}
    names = {stream: known for writer in writers for stream, known in writer.names.items()}
    tasks = {stream: writer.task for writer in writers for stream in writer.rows}
    with store.reading() as t:
        streams = {row.stream: row for row in t.streams(SPACE.name)}
        epochs = [row for row in t.epochs(SPACE.name, 100_000) if row.state == "closed"][::-1]
        entries = {row.epoch: t.entries(SPACE.name, row.epoch) for row in epochs}
        restores = [e for e in t.events(SPACE.name, 100_000) if e.what == "server restore"]
    for stream, row in streams.items():
        total = Sums.from_bytes(row.total)
        assert row.n == total.n
        assert same(total, sums(rows[stream][: row.n])), f"I1, I4: {row.task} is counted wrongly"
        assert row.version == names[stream][row.n], f"I2: {row.task} is in another history"
        matrix, used = matrix_of(total), [*USES[tasks[stream]], DIM]
        outside = np.delete(matrix, used, axis=0)
        assert np.linalg.eigvalsh(matrix)[0] >= -1e-9, "I7: not positive semi-definite"
        assert np.trace(matrix[:DIM, :DIM]) <= row.n, "I7: too large"
        assert not outside.any(), "I7: features that the task does not use"
    for writer in writers:
        for stream, revision in writer.acked.items():
            assert streams[stream].n >= revision.n, f"I2: {writer.task} lost what was acknowledged"
        assert all(a < b for a, b in itertools.pairwise(writer.epochs)), "I5: numbers only grow"
    latest: dict[str, int] = {}
    for epoch in epochs:
        parts = []
        for entry in entries[epoch.epoch]:
            assert entry.version == names[entry.stream][entry.n], (
                "I1: a checkpoint that no agent made"
            )
            parts.append(sums(rows[entry.stream][: entry.n]))
            back = entry.n < latest.get(entry.stream, 0)
            assert not back or restored, "I6: an entry goes back"
            latest[entry.stream] = entry.n
        total = add_sums(DIM, parts)
        assert epoch.total == total.as_bytes(), "I4: an epoch is not the sum of its entries"
        assert epoch.sha256 == total.sha256
        for writer in writers:
            seen = writer.views.get(epoch.epoch, epoch.total)
            assert seen == epoch.total, "I5: an epoch changed, or two differ"
    numbers = [epoch.epoch for epoch in epochs]
    assert all(b == a + 1 for a, b in itertools.pairwise(numbers)) or restored, "I5: a gap"
    assert bool(restores) == restored, "a restore must be noted, and nothing else"
    counted = sum(row.n for row in streams.values())
    return {"epochs": len(epochs), "counted": counted, "streams": len(streams)}
