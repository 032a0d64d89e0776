"""Exchanges messages between a live agent and its coordinator, in the background or on demand.

Everything that may take long happens here: the network, and the disk before an upload.
"""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Any, NamedTuple

from guardband.live import system
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.background import BackgroundLoop
from guardband.live.client.emptied import SYNC_LOCK
from guardband.live.client.joining import OtherSettingsError, agree
from guardband.live.client.journal import JournalError
from guardband.live.client.outcomes import Outcomes
from guardband.live.client.protocol_client import ProtocolClient
from guardband.live.client.self_report import Reporter
from guardband.live.client.stream_state import Effect, StreamState
from guardband.live.client.watching import tell_alarms
from guardband.live.filelock import FileLock
from guardband.live.link import Link, Unreachable
from guardband.live.protocol.messages import Account, OpenEpoch, Refused, Uploaded
from guardband.live.protocol.space import SpaceSettings

__all__ = ["SyncTiming", "SyncWorker", "longest_wait"]

log = logging.getLogger("guardband.live")

POLL_S = 20.0  # one wait for news
TICK_S = 0.2  # between two looks at windows and triggers
ELECTION_S = 1.0
ATTEMPTS = 8  # steps of one upload: register, rebase, send again
PRUNE = 256
TROUBLE = (Unreachable, Refused, JournalError, OtherSettingsError)  # what can be expected


class SyncTiming(NamedTuple):
    """How often things happen that need not happen in every sync."""

    report_s: float = 5.0
    upload_s: float = 30.0  # what was counted is sent at least so often, epoch or not
    confirm_s: float = 300.0  # what the coordinator has is sent again: it may have forgotten
    tidy_s: float = 10.0
    trigger_s: float = 1.0  # between two calls for an epoch that were not followed; it doubles, ...
    trigger_most_s: float = 60.0  # ... up to so much


class SyncWorker:
    """One agent's messages. Of several processes with one state folder, one carries them.

    Parameters
    ----------
    store, outcomes
        The agent's state, and what ends its decisions.
    link
        The way to the coordinator.
    settings
        What the user said about the space, to be checked against what it is.
    keep
        How many ended decisions the journal keeps.
    timing
        How often things happen; for tests.
    """

    def __init__(
        self,
        store: AgentStore,
        outcomes: Outcomes,
        client: ProtocolClient,
        link: Link,
        settings: SpaceSettings | None,
        keep: int,
        timing: SyncTiming,
    ) -> None:
        self._store, self._outcomes, self._client, self._link = store, outcomes, client, link
        self._settings, self._keep, self._timing = settings, keep, timing
        self.reset()

    def reset(self) -> None:
        """Begin without threads and without the lock: at the start, or in a forked process."""
        self.trouble: str | None = None  # why the coordinator is not reached, if so
        self._working = system.RLock()
        self._loops: list[BackgroundLoop] = []
        self._lock = FileLock(self._store.path.parent / SYNC_LOCK)
        self._opened: OpenEpoch | None = None
        self._known: str | None = None  # the stream that was registered since this process started
        self._asked: tuple[Account | None, ...] = ()  # of the budgets, when it was
        self._done: dict[str, float] = {}
        self._epoch_at = system.monotonic()
        self._patience = 0.0
        self._unanswered = 0  # calls for an epoch, since the last news
        self._reporter = Reporter(self._store)
        self._owing = True  # an answer to an epoch may not have arrived
        self._hearing = system.Lock()
        self._heard = 0  # news that were taken in
        self._other_rules = False  # whether it has other rules under a number that is known here
        self._informed = False  # whether the coordinator has told about its switches
        self._ask_again = True  # whether somebody may have looked at alarms

    def leave(self) -> None:
        """Release the lock, so that another process exchanges the messages."""
        self._lock.leave()

    def sync(self) -> bool:
        """Do all that is due now; return whether this process exchanges the messages."""
        with self._working:
            self._outcomes.settle()
            if not self._lock.take():
                return False
            try:
                self._register()
                for _ in range(ATTEMPTS):
                    heard = self._listen(0.0)
                    sent = self._send()
                    if not heard and not sent:
                        break
                self._maintain()
            except Unreachable:
                self._informed = False  # it may come back from a backup, with other switches
                raise
            return True

    def claim(self, log: str) -> str | None:
        """Tell the coordinator the digest of a log; return which stream may learn it."""
        with self._working:
            self._known = None
            self._register(log)
            return self._known

    def _register(self, log: str | None = None) -> None:
        """Make the stream known, and ask for parts of budgets; again after every change."""
        setup = self._store.setup
        for _ in range(ATTEMPTS):
            state = self._store.state
            asked = state.asked_of_budgets()
            if self._known == state.stream.stream and self._asked == asked:
                return
            space, _ = self._link.space(setup.space)
            if state.version == 0:  # it was not there when the agent started
                agree(space, self._settings)
            request = state.stream.register(
                task=setup.task,
                # What the journal holds was counted by the rules that it knows.
                schema_hash=(state.space if state.version else space).schema_hash,
                uses=setup.uses,
                library=version("guardband"),
                accounts=asked,
                log=log,
            )
            self._store.journal.flush()  # a stream that is known has begun
            try:
                answer = self._link.register(setup.space, request)
            except Refused as problem:
                if self._client.refused(problem) in (Effect.CONFLICT, Effect.CONTINUED):
                    continue
                raise
            self._client.registered(answer)
            self._known, self._asked = answer.stream, asked

    def _listen(self, wait_s: float) -> bool:
        """Take in what is new; tell whether anything was."""
        state, opened = self._store.state, self._opened
        stream = state.stream.stream
        asked_at, heard = self._store.clock.now(), self._heard
        try:
            news = self._link.news(
                self._store.setup.space,
                stream,
                after=state.newest_epoch - state.compares,
                open_after=max(state.stream.answered, 0 if opened is None else opened.epoch),
                config_version=state.version + self._other_rules if self._informed else 0,
                wait_s=0.0 if state.compares else wait_s,
                compares=state.compares,
            )
        except Refused as problem:
            if not self._recover(problem):
                raise
            return True
        self._reached()
        with self._hearing:
            if self._heard != heard:  # meanwhile: this may be older, and undo a pause. Ask again.
                return True
            self._informed = True
            if news is None:
                self._client.renew(asked_at)
                return False
            self._heard += 1
            self._unanswered, self._ask_again = 0, True
            before = self._news_so_far()
            self._other_rules = not self._client.hear(news, stream, asked_at)
            self._opened = news.open
        after = self._news_so_far()
        if after[0] != before[0]:
            self._epoch_at = system.monotonic()
        return before != after

    def _news_so_far(self) -> tuple[Any, ...]:
        state, opened = self._store.state, self._opened
        number = 0 if opened is None else opened.epoch
        told = state.version, state.paused, state.stream.stream, self._other_rules
        return state.newest_epoch, number, *told

    def _send(self) -> bool:
        """Send what is asked for or due; tell whether anything came of it."""
        state, opened = self._store.state, self._opened
        newest, answered, base = state.newest_epoch, state.stream.answered, state.stream.base.n
        if opened is not None and opened.epoch <= max(newest, answered):
            opened = self._opened = None
        if opened is not None:
            answer = self._upload(for_epoch=opened.epoch)
        elif self._owing and answered > newest:
            answer = self._upload(for_epoch=answered, trigger=self._due())
        elif self._due() and not state.waiting and answered <= newest:
            answer = self._upload(for_epoch=newest + 1, trigger=True)
            self._wait_if_unanswered(answer, newest)
        elif state.n > base and self._time_for("upload", self._timing.upload_s):
            answer = self._upload()
        elif base > 0 and self._time_for("confirm", self._timing.confirm_s):
            answer = self._upload(again=True)
        else:
            return False
        if answer is None:
            return False
        self._opened = answer.open
        return answer.epoch > newest or answer.open is not None

    def _wait_if_unanswered(self, answer: Uploaded | None, newest: int) -> None:
        """Wait before calling for an epoch again, if the coordinator opened none."""
        if answer is not None and answer.open is None and answer.epoch <= newest:
            timing, least = self._timing, self._store.state.space.sync.min_interval_s
            wait = min(timing.trigger_most_s, timing.trigger_s * 2.0**self._unanswered)
            self._patience = system.monotonic() + max(wait, least)
            self._unanswered += 1

    def _due(self) -> bool:
        state = self._store.state
        if system.monotonic() < self._patience or state.is_in_doubt:
            return False
        interval = state.space.sync.interval_s
        if interval is None:
            return state.due
        entry = state.stream.since
        new = state.n > (0 if entry is None else entry.n)
        return new and system.monotonic() - self._epoch_at >= interval

    def _upload(
        self, *, for_epoch: int = 0, trigger: bool = False, again: bool = False
    ) -> Uploaded | None:
        """Make a checkpoint, put it on disk, and send it; None: there was nothing to send."""
        for _ in range(ATTEMPTS):
            stream: StreamState = self._client.checkpoint(for_epoch=for_epoch)
            if stream.acknowledged and not (trigger or for_epoch or again):
                return None
            if self._store.state.space.sync.min_batch > 1:
                self._reporter.make()  # with the figures of this checkpoint, for later reports
            self._store.journal.flush()
            self._owing = True
            try:
                answer = self._link.upload(stream.stream, stream.upload(trigger=trigger))
            except Refused as problem:
                if not self._recover(problem):
                    raise
                continue
            self._reached()
            self._owing = False
            self._client.stored(answer)
            return answer
        return None

    def _recover(self, problem: Refused) -> bool:
        """Recover from a refusal; False: it cannot be recovered from."""
        effect = self._client.refused(problem)
        if effect in (Effect.REGISTER, Effect.CONTINUED, Effect.CONFLICT):
            self._known = None
            self._register()
            return True
        return effect is Effect.RESEND or problem.code == "revision_conflict"

    def _maintain(self) -> None:
        """Tell of alarms, report, forget old decisions, tidy the journal."""
        if self._store.state.alarms.alarms:
            again, self._ask_again = self._ask_again, False
            tell_alarms(self._store, self._link, again)
        if self._time_for("report", self._timing.report_s):
            self._report()
        if self._time_for("tidy", self._timing.tidy_s):
            self._prune()
            self._store.journal.tidy()
        jumped = self._store.clock.jump()
        if jumped:
            log.warning("guardband: the clock was set by %+.1f s; windows are not affected", jumped)

    def _prune(self) -> None:
        """Forget the oldest decisions that have ended and were reported, a few at a time."""
        while self._store.prune(self._keep, PRUNE) == PRUNE:
            pass

    def _report(self) -> None:
        """Send the report that the dashboard shows."""
        self._link.report(self._store.state.stream.stream, self._reporter.make())

    def _time_for(self, what: str, every_s: float) -> bool:
        now = system.monotonic()
        if now - self._done.get(what, -every_s) < every_s:
            return False
        self._done[what] = now
        return True

    def _reached(self) -> None:
        if self.trouble is not None:
            log.info("guardband: the coordinator is reached again")
        self.trouble = None

    def start(self) -> None:
        """Exchange messages in background threads from now on."""
        for what, work, pause_s in (
            ("sending", self._sending, TICK_S),
            ("listening", self._listening, 0.0),
        ):
            name = f"guardband-{what}-{self._store.setup.task}"
            more: dict[str, Any] = {"expected": TROUBLE, "on_trouble": self._note_trouble}
            self._loops.append(BackgroundLoop(name, work, pause_s=pause_s, **more))
        for loop in self._loops:
            loop.start()

    def wake(self) -> None:
        """Make the sending thread run at once."""
        for loop in self._loops[:1]:
            loop.wake()

    def _sending(self) -> None:
        with self._working:
            self._outcomes.settle()
            if not self._lock.take():
                self._loops[0].wait(ELECTION_S)
                return
            self._register()
            while self._send():
                if self._opened is None:
                    self._listen(0.0)
            self._maintain()

    def _listening(self) -> None:
        if not self._lock.held or self._known != self._store.state.stream.stream:
            self._loops[1].wait(TICK_S)
            return
        began = system.monotonic()
        if self._listen(longest_wait(self._store.state.space)):
            self.wake()
        elif system.monotonic() - began < TICK_S:  # an answer, and nothing new in it
            self._loops[1].wait(TICK_S)

    def _note_trouble(self, problem: Exception) -> None:
        if self.trouble != str(problem):
            log.warning("guardband: %s", problem)
        self.trouble = str(problem)
        self._informed = False  # it may come back from a backup, with other switches

    def stop(self, *, seal: bool) -> None:
        """Stop the background, upload what was counted, and end the stream if asked to."""
        for loop in self._loops:
            loop.stop()
        for loop in self._loops[:1]:
            loop.join(10.0)
        if self.trouble is None:
            try:
                self._upload_rest(seal)
            except TROUBLE as problem:
                log.warning("guardband: closed without uploading: %s", problem)
            except Exception:  # whatever it is: lock and link must be closed
                log.exception("guardband: closed without uploading")
        self._lock.leave()
        self._link.close()
        for loop in self._loops[1:]:
            loop.join(2.0)

    def _upload_rest(self, seal: bool) -> None:
        with self._working:
            self._outcomes.settle()
            if not self._lock.take():
                return
            self._register()
            self._upload()
            self._report()
            stream = self._store.state.stream
            if seal and stream.acknowledged:
                self._link.seal(stream.stream, stream.newest.revision)


def longest_wait(space: SpaceSettings) -> float:
    """Return how long one wait for news may be: shorter than what others, or a lease, allow."""
    lease = POLL_S if space.lease_s is None else space.lease_s / 3.0
    return min(POLL_S, space.sync.live_s / 3.0, lease)
