"""A running server: its store, its coordinator, its limits, and its background tasks."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from starlette.types import Scope

from guardband.live.coordinator.coordinator import Coordinator, Known
from guardband.live.coordinator.uploads import Taken
from guardband.live.protocol.messages import LONGEST_RECORD, News, Refused, Upload, Uploaded
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import packed_size
from guardband.live.server.alerts import Alert, alerts_of
from guardband.live.server.auth import Caller, Tokens
from guardband.live.server.broadcaster import Broadcaster
from guardband.live.server.groups import Groups
from guardband.live.server.limits import ConcurrencyLimiter
from guardband.live.server.logs import log
from guardband.live.server.metrics import ServerMetrics
from guardband.live.server.middleware import RequestContext
from guardband.live.server.settings import Settings
from guardband.live.server.snapshot import Snapshot, take
from guardband.live.server.store_executor import StoreExecutor
from guardband.live.store import EpochRow, SpaceRow, Store, StoreError, TokenRow

__all__ = ["Service"]

NUMBER_BYTES = 26  # the longest float64 in JSON, and a comma
BESIDE_BYTES = 32 * 1024  # what an upload has beside its numbers
RULES_BYTES = 256 * 1024  # the rules of a space: each of its features has a name
IDLE_S = 0.5  # between two looks at deadlines, while no epoch is open
TOKENS_S = 2.0  # between two readings of the tokens: another process may have changed them
NEW_TOKEN_S = 0.1  # and between two for the sake of tokens that nobody knows
MOST_NEWER = 100  # epochs counted at one look; numbers may jump after a restore
SHOWN_S = 0.5  # how old a snapshot may be that is shown


class SpaceState(NamedTuple):
    """The parts of a space that agents poll for."""

    epoch: int
    open: int
    config_version: int
    wanted: bool


def _state_of(row: SpaceRow) -> SpaceState:
    return SpaceState(row.epoch, row.open, row.config_version, row.wanted_by is not None)


class Service:
    """A store, the coordinator over it, and the requests that wait for changes.

    Parameters
    ----------
    store
        Where everything is kept.
    settings
        The limits.
    version
        Of the library, for the metrics.
    """

    def __init__(self, store: Store, settings: Settings, version: str) -> None:
        self.store, self.settings, self.version = store, settings, version
        self.coordinator = Coordinator(store)
        self.metrics = ServerMetrics(version)
        self.executor = StoreExecutor(self.coordinator, self.metrics.commit.observe)
        self.uploads = Groups(self._upload)
        self.news = Groups(self._news)
        self.broadcaster = Broadcaster()
        self.tokens = Tokens()
        self.polls = ConcurrencyLimiter(settings.polls, settings.polls_per_token, "polls", "polls")
        self.watchers = ConcurrencyLimiter(
            settings.watchers, settings.watchers_per_token, "watchers", "event streams"
        )
        self.upload_bytes = settings.body_bytes
        self._states: dict[str, SpaceState] = {}  # by space, at the last look
        self._live_s: dict[str, float] = {}  # by space: `sync.live_s`
        self._homes: dict[str, tuple[str, str]] = {}  # by stream: its space and task
        self._snapshots: dict[str, Snapshot] = {}
        # By space, and by the id and task of an alert: since when it has been known.
        self._since: dict[str, dict[tuple[str, str | None], float]] = {}
        self._checked = 0.0
        self._changed = asyncio.Event()
        self._looking = asyncio.Lock()
        self._reading_tokens = asyncio.Lock()
        self._seeking: asyncio.Task[None] | None = None
        self._sought = -math.inf  # when such a reading last began
        self._tokens_at = 0.0
        self._unlisten: Callable[[], None] = lambda: None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Read the store, and start the tasks that watch deadlines and alerts."""
        await self.read_tokens()
        await self.look()
        loop = asyncio.get_running_loop()
        if hasattr(self.store, "listen"):  # other processes write to it, and it announces that
            self._unlisten = self.store.listen(
                lambda space: loop.call_soon_threadsafe(self._on_change, space)
            )
        self._tasks = [asyncio.create_task(work()) for work in (self._beat, self._watch)]

    async def stop(self) -> None:
        """Stop the tasks, and close the store."""
        self.broadcaster.stop()
        self._unlisten()
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.executor.close()
        self.store.close()

    async def read_tokens(self) -> None:
        """Read the tokens from the store; an older reading never replaces a newer one."""

        def read() -> list[TokenRow]:
            with self.store.reading() as t:
                return t.tokens()

        async with self._reading_tokens:
            self._tokens_at = self.executor.now()
            self.tokens.replace(await self.executor.do(read))

    async def caller(self, header: bytes | None) -> Caller | None:
        """Return who an Authorization header names; None if its token is not valid.

        Another process may just have made the token: `guardband token create` does. All who wait
        for that wait for one reading, and readings are apart, so that guessing gets nowhere.
        """
        caller, arrived = self.tokens.caller(header), time.monotonic()
        while caller is None and self.tokens.fits(header) and self._sought < arrived:
            if self._seeking is None or self._seeking.done():
                self._seeking = asyncio.create_task(self._seek())
            await asyncio.shield(self._seeking)
            caller = self.tokens.caller(header)
        return caller

    async def _seek(self) -> None:
        """Read the tokens for the sake of one that nobody knows."""
        await asyncio.sleep(max(0.0, self._sought + NEW_TOKEN_S - time.monotonic()))
        self._sought = time.monotonic()
        with suppress(Exception):  # it stays unknown while the store does not answer
            await self.read_tokens()

    async def look(self) -> None:
        """Look for changes, and wake the requests that wait for them."""
        async with self._looking:  # where there are several threads, one look after the other
            await self._look()

    async def _look(self) -> None:
        for row in await self.executor.do(self.coordinator.spaces):
            before, after = self._states.get(row.name), _state_of(row)
            if before == after:
                continue
            self._states[row.name] = after
            self._notice(row)
            if before is None:
                self.broadcaster.wake(row.name, "space")
                continue
            newer = min(after.epoch - before.epoch, MOST_NEWER)
            if newer > 0:
                self._closed(row.name, await self.executor.do(self._epochs, row.name, newer))
            self.broadcaster.wake(row.name, "epoch" if newer > 0 else "space")

    async def saw(self, space: str, said: Uploaded) -> None:
        """Look, where an upload's answer shows that something has changed."""
        known = self._states.get(space)
        now = (said.epoch, said.open.epoch if said.open else 0, said.config_version)
        if known is None or now != (known.epoch, known.open, known.config_version):
            await self.look()
        self.broadcaster.notify(space, "report")

    async def _upload(self, space: str, group: list[tuple[str, Upload]]) -> list[Taken | Exception]:
        """Carry out uploads that share a commit."""
        now = self.executor.now()
        return await self.executor.write(self.coordinator.uploads, space, group, now=now)

    async def _news(
        self, space: str, group: list[tuple[str, Known]]
    ) -> list[News | Exception | None]:
        """Look for the news of streams that ask at the same time."""
        now = self.executor.now()
        return await self.executor.do(self.coordinator.news_of, space, group, now=now)

    async def check(self) -> None:
        """Raise where the store does not answer; asked at most once a second."""
        if self.executor.now() - self._checked > 1.0:
            await self.read_tokens()
            self._checked = self.executor.now()

    def beat_s(self, space: str) -> float:
        """Return how often a waiting poll counts as a heartbeat of its stream."""
        return max(0.1, min(self.settings.poll_s, self._live_s.get(space, 75.0) / 3.0))

    async def home(self, stream: str) -> tuple[str, str]:
        """Return the space and the task of a stream, which never change."""
        if stream not in self._homes:

            def find() -> tuple[str, str]:
                with self.store.reading() as t:
                    row = t.stream(stream)
                if row is None:
                    raise Refused(
                        "unknown_stream", 404, "the stream is not known here: register it."
                    )
                return row.space, row.task

            self._homes[stream] = await self.executor.do(find)
        return self._homes[stream]

    async def snapshot(self, name: str) -> Snapshot:
        """Return a space as it is, or was a moment ago."""
        known = self._snapshots.get(name)
        now = self.executor.now()
        if known is None or not 0.0 <= now - known.now < SHOWN_S:
            known = await self.executor.do(take, self.store, name, now)
            if known is None:
                raise Refused("unknown_space", 404, f"there is no space {name!r}.")
            # Estimates of large spaces take a while; the event loop must not wait for them.
            await asyncio.to_thread(known.conclude)
            self._snapshots[name] = known
        return known

    async def snapshots(self) -> list[Snapshot]:
        """Return all spaces."""
        return [
            await self.snapshot(row.name) for row in await self.executor.do(self.coordinator.spaces)
        ]

    def alerts(self, snapshot: Snapshot) -> list[tuple[Alert, float]]:
        """Return the alerts of a space, with the time since which each has been known."""
        since = self._since.get(snapshot.row.name, {})
        return [
            (alert, since.get(alert.key, snapshot.now)) for alert in alerts_of(snapshot.facts())
        ]

    async def update_alerts(self, snapshot: Snapshot) -> None:
        """Keep since when a space has had its alerts; log those that are new, and those gone."""
        name = snapshot.row.name
        before, found = self._since.get(name, {}), self.alerts(snapshot)
        now = self._since[name] = {alert.key: since for alert, since in found}
        for alert, _ in found:
            if alert.key not in before:
                log(
                    "alert",
                    logging.WARNING,
                    space=name,
                    alert=alert.id,
                    task=alert.task,
                    severity=alert.severity,
                    text=alert.text,
                )
        for ident, task in before.keys() - now.keys():
            log("alert cleared", space=name, cleared=ident, task=task)
        if snapshot.acknowledged.keys() - now.keys():  # the next one is another
            await self.executor.write(self.coordinator.keep_acknowledged, name, now.keys())
            self.forget_snapshot(name)

    def forget_snapshot(self, name: str) -> None:
        """Read a space again the next time that somebody looks at it."""
        self._snapshots.pop(name, None)

    def body_limit(self, scope: Scope) -> int:
        """Return how long the body of a request may be."""
        if scope["path"] == "/v1/looked-at":
            return 2 * LONGEST_RECORD  # as base64 in JSON
        if scope["path"].startswith("/v1/streams/"):
            return self.upload_bytes
        rules = scope["path"].startswith("/v1/spaces")
        return max(self.settings.body_bytes, RULES_BYTES if rules else 0)

    def done(self, context: RequestContext) -> None:
        """Count a request that has ended."""
        row = context.caller.token if context.caller else None
        if row is not None and row.task is not None and row.space is not None:
            labels = (row.space, row.task)
            self.metrics.upload_bytes.labels(*labels).inc(context.received)
            self.metrics.download_bytes.labels(*labels).inc(context.sent)
            if context.status == 429 and context.method == "PUT":
                self.metrics.uploads.labels(*labels, "limited").inc()

    async def _beat(self) -> None:
        """Close epochs past their deadline, and notice what other processes did."""
        while True:
            busy = any(state.open or state.wanted for state in self._states.values())
            changed = await self._rest(self.settings.tick_s if busy else IDLE_S)
            try:
                ticked = await self._tick()
                if ticked or changed or not busy:
                    await self.look()
                if self.executor.now() - self._tokens_at > TOKENS_S:
                    await self.read_tokens()
            except Refused as problem:
                log("store", logging.ERROR, detail=problem.detail, cause=str(problem.__cause__))
                await asyncio.sleep(IDLE_S)
            except Exception:
                log("error", logging.ERROR, trace=True, where="tick")
                await asyncio.sleep(IDLE_S)

    async def _tick(self) -> bool:
        """Open and close epochs; agents of sound spaces hear of theirs where another is damaged."""
        try:
            return await self.executor.do(self.coordinator.tick, now=self.executor.now())
        except StoreError as error:
            log("store", logging.ERROR, detail=str(error))
            return True

    async def _watch(self) -> None:
        """Look for alerts, also while no page is open; in a task of its own, for it is slow."""
        while True:
            await asyncio.sleep(self.settings.alerts_s)
            try:
                for snapshot in await self.snapshots():
                    await self.update_alerts(snapshot)
            except Refused as problem:
                log("store", logging.ERROR, detail=problem.detail, cause=str(problem.__cause__))
            except Exception:
                log("error", logging.ERROR, trace=True, where="alerts")

    def _on_change(self, space: str) -> None:
        """Take note that another process changed a space, or, without a name, also tokens."""
        if not space:
            self._tokens_at = 0.0
        self._changed.set()

    async def _rest(self, seconds: float) -> bool:
        """Wait for so long, or until another process has changed something: then return True."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def _epochs(self, name: str, last: int) -> list[EpochRow]:
        """Return the newest closed epochs; in the store's thread."""
        with self.store.reading() as t:
            return [each for each in t.epochs(name, last + 1) if each.closed_at is not None][:last]

    def _notice(self, row: SpaceRow) -> None:
        """Keep what the event loop needs to know of a space."""
        space = SpaceSettings.from_json(json.loads(row.config))
        self._live_s[row.name] = space.sync.live_s
        matrices = 1 if space.window is None else 2  # the newest half of a window comes apart
        numbers = space.dim + matrices * packed_size(space.dim)  # a report has the estimate
        longest = BESIDE_BYTES + NUMBER_BYTES * numbers
        self.upload_bytes = max(self.upload_bytes, longest)

    def _closed(self, name: str, epochs: list[EpochRow]) -> None:
        """Count epochs that were closed."""
        for each in epochs:
            took = max(0.0, (each.closed_at or each.opened_at) - each.opened_at)
            self.metrics.epochs.labels(name).inc()
            self.metrics.epoch.labels(name).observe(took)
            log("epoch", space=name, epoch=each.epoch, n=each.n, seconds=round(took, 3))
