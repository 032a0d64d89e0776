"""Carries messages between a live agent's store and its coordinator, in the background or by hand.

Everything that may take long happens here: the network, and the disk before an upload.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from guardband.live.client.decisions import Decisions
from guardband.live.client.joining import OtherSettingsError, agree
from guardband.live.client.journal import JournalError
from guardband.live.client.self_report import make_report
from guardband.live.client.stream_state import Effect, StreamState
from guardband.live.filelock import FileLock
from guardband.live.link import Link, Unreachable
from guardband.live.protocol.messages import OpenEpoch, Refused, Report, Uploaded

__all__ = ["SyncWorker"]

log = logging.getLogger("guardband.live")

POLL_S = 20.0  # one wait for news
TICK_S = 0.2  # between two looks at windows and triggers
REPORT_S = 5.0
UPLOAD_S = 30.0  # what was counted goes to the coordinator at least so often, epoch or not
CONFIRM_S = 300.0  # and what it should have is sent again so often: it may have forgotten
TRIGGER_S, TRIGGER_MOST_S = 1.0, 60.0  # between two calls for an epoch that were not followed
TIDY_S = 10.0
ELECTION_S = 1.0
BACKOFF_S = (0.2, 30.0)
ATTEMPTS = 8  # steps of one upload: register, rebase, send again
PRUNE = 256
TROUBLE = (Unreachable, Refused, JournalError, OtherSettingsError)  # what can be expected


class SyncWorker:
    """One agent's errands. Of several processes with one state folder, one runs them.

    Parameters
    ----------
    store
        The agent's state.
    link
        The way to the coordinator.
    said
        What the user said about the space, to be checked against what it is.
    keep
        How many ended decisions the journal keeps.
    """

    def __init__(self, store: Decisions, link: Link, said: Mapping[str, Any], keep: int) -> None:
        self.store, self.link, self._said, self._keep = store, link, said, keep
        self.after_fork()

    def after_fork(self) -> None:
        """Begin without threads and without the lock."""
        self.trouble: str | None = None  # why the coordinator is not reached, if so
        self._errands = threading.RLock()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self.lock = FileLock(self.store.path.parent / "sync.lock")
        self._opened: OpenEpoch | None = None
        self._known: str | None = None  # the stream that was registered since this process started
        self._done: dict[str, float] = {}
        self._epoch_at = time.monotonic()
        self._patience = 0.0
        self._unheeded = 0  # calls for an epoch, since the last news
        self._figures = Report()  # as they were at the newest cut
        self._owing = True  # an answer to an epoch may not have arrived
        self._ears = threading.Lock()
        self._heard = 0  # news that were taken in
        self._amiss = False  # whether it has other rules under a number that is known here
        self._informed = False  # whether the coordinator has told about its switches

    # By hand.

    def sync(self) -> bool:
        """Do all that is to be done now; tell whether this process is the one to do it."""
        with self._errands:
            if not self.lock.take():
                return False
            self.store.settle()
            self._register()
            for _ in range(ATTEMPTS):
                heard = self._listen(0.0)
                sent = self._send()
                if not heard and not sent:
                    break
            self._keep_house()
            return True

    def _register(self) -> None:
        """Make the stream known, once in a process and after every change of it."""
        store = self.store
        for _ in range(ATTEMPTS):
            chain = store.chain
            if self._known == chain.stream:
                return
            space, _ = self.link.space(store.setup.space)
            if store.version == 0:  # it was not there when the agent started
                agree(space, store.setup.task, self._said)
            request = chain.register(
                task=store.setup.task,
                # What the journal holds was counted by the rules that it knows.
                schema_hash=(store.space if store.version else space).schema_hash,
                uses=store.setup.uses,
                library=version("guardband"),
            )
            try:
                answer = self.link.register(store.setup.space, request)
            except Refused as problem:
                if store.refused(problem) in (Effect.CONFLICT, Effect.CONTINUED):
                    continue
                raise
            store.registered(answer)
            self._known = answer.stream

    def _listen(self, wait_s: float) -> bool:
        """Take in what is new; tell whether anything was."""
        store = self.store
        opened = self._opened
        stream = store.chain.stream
        asked_at, heard = store.clock.now(), self._heard
        try:
            news = self.link.news(
                store.setup.space,
                stream,
                after=store.heard_of,
                open_after=max(store.chain.answered, 0 if opened is None else opened.epoch),
                config_version=store.version + self._amiss if self._informed else 0,
                wait_s=wait_s,
            )
        except Refused as problem:
            if not self._mend(problem):
                raise
            return True
        self._reached()
        with self._ears:
            if self._heard != heard:  # meanwhile: this may be older, and undo a pause. Ask again.
                return True
            self._informed = True
            if news is None:
                store.renew(asked_at)
                return False
            self._heard += 1
            self._unheeded = 0
            before, epoch = self._news_so_far(), store.heard_of
            self._amiss = not store.hear(news, stream, asked_at)
            self._opened = news.open
        if store.heard_of != epoch:
            self._epoch_at = time.monotonic()
        return before != self._news_so_far()

    def _news_so_far(self) -> tuple[Any, ...]:
        store, opened = self.store, self._opened
        number = 0 if opened is None else opened.epoch
        return number, store.heard_of, store.version, store.paused, store.chain.stream, self._amiss

    def _send(self) -> bool:
        """Send what is asked for or due; tell whether anything was sent."""
        store, opened = self.store, self._opened
        newest = store.heard_of
        if opened is not None and opened.epoch <= max(newest, store.chain.answered):
            opened = self._opened = None
        if opened is not None:
            answer = self._upload(for_epoch=opened.epoch)
        elif self._owing and store.chain.answered > newest:
            answer = self._upload(for_epoch=store.chain.answered, trigger=self._due())
        elif self._due() and not store.held and store.chain.answered <= newest:
            answer = self._upload(for_epoch=newest + 1, trigger=True)
            if answer is not None and answer.open is None and answer.epoch <= newest:
                # Too few are there, or the last epoch was just now: do not insist.
                wait = min(TRIGGER_MOST_S, TRIGGER_S * 2.0**self._unheeded)
                self._patience = time.monotonic() + max(wait, store.space.sync.min_interval_s)
                self._unheeded += 1
        elif store.n > store.chain.base.n and self._time_for("upload", UPLOAD_S):
            answer = self._upload()
        elif store.chain.base.n > 0 and self._time_for("confirm", CONFIRM_S):
            answer = self._upload(again=True)
        else:
            return False
        if answer is None:
            return False
        self._opened = answer.open
        return answer.epoch > newest or answer.open is not None

    def _due(self) -> bool:
        store = self.store
        sync = store.space.sync
        if time.monotonic() < self._patience:
            return False
        if sync.trigger != "interval":
            return store.due
        entry = store.chain.since
        new = store.n > (0 if entry is None else entry.n)
        return new and time.monotonic() - self._epoch_at >= sync.interval_s

    def _upload(
        self, *, for_epoch: int = 0, trigger: bool = False, again: bool = False
    ) -> Uploaded | None:
        """Cut, make that durable, and send it; None: there was nothing to send."""
        store = self.store
        for _ in range(ATTEMPTS):
            chain: StreamState = store.cut(for_epoch=for_epoch)
            if chain.acknowledged and not (trigger or for_epoch or again):
                return None
            if store.space.sync.min_batch > 1:
                self._discreet(make_report(store))
            store.journal.flush()
            self._owing = True
            try:
                answer = self.link.upload(chain.stream, chain.upload(trigger=trigger))
            except Refused as problem:
                if not self._mend(problem):
                    raise
                continue
            self._reached()
            self._owing = False
            store.stored(answer)
            return answer
        return None

    def _mend(self, problem: Refused) -> bool:
        """Do what a refusal asks for; False: there is nothing to be done about it."""
        effect = self.store.refused(problem)
        if effect in (Effect.REGISTER, Effect.CONTINUED, Effect.CONFLICT):
            self._known = None
            self._register()
            return True
        return effect is Effect.RESEND or problem.code == "chain_conflict"

    def _keep_house(self) -> None:
        """Report, forget old decisions, tidy the journal."""
        store = self.store
        if self._time_for("report", REPORT_S):
            self.report()
        if self._time_for("tidy", TIDY_S):
            while True:
                with store:
                    counted = store.journal.counts(store.stream).get("upto", 0)
                    last = min(store.settled, counted)
                    gone = store.journal.prune(self._keep, last, PRUNE)
                if gone < PRUNE:
                    break
            store.journal.tidy()
        jumped = store.clock.jump()
        if jumped:
            log.warning("guardband: the clock was set by %+.1f s; windows are not affected", jumped)

    def report(self) -> None:
        """Tell people how the agent fares."""
        store = self.store
        report = make_report(store)
        if store.space.sync.min_batch > 1:
            report = self._discreet(report)
        self.link.report(store.chain.stream, report)

    def _discreet(self, report: Report) -> Report:
        """Return a report with the figures of the newest cut: later ones would tell of one patient.

        From two sets of figures with one observation between them its features and its reward can
        be computed, as from two totals.
        """
        if report.counted == self.store.chain.newest.sums.n:
            self._figures = report
        return report.with_figures_of(self._figures)

    def _time_for(self, errand: str, every_s: float) -> bool:
        now = time.monotonic()
        if now - self._done.get(errand, -every_s) < every_s:
            return False
        self._done[errand] = now
        return True

    def _reached(self) -> None:
        if self.trouble is not None:
            log.info("guardband: the coordinator is reached again")
        self.trouble = None

    # In the background.

    def start(self) -> None:
        """Run errands in the background from now on."""
        for work in (self._run_errands, self._run_listening):
            name = f"guardband-{work.__name__.rpartition('_')[2]}-{self.store.setup.task}"
            thread = threading.Thread(target=work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def wake(self) -> None:
        """Let the background look at once."""
        if not self._wake.is_set():
            self._wake.set()

    def _run_errands(self) -> None:
        def errands() -> None:
            with self._errands:
                self.store.settle()
                if not self.lock.take():
                    self._wake.wait(ELECTION_S)
                    return
                self._register()
                while self._send():
                    if self._opened is None:
                        self._listen(0.0)
                self._keep_house()

        self._forever(errands, TICK_S)

    def _run_listening(self) -> None:
        def listen() -> None:
            if not self.lock.held or self._known != self.store.chain.stream:
                self._stop.wait(TICK_S)
                return
            began = time.monotonic()
            if self._listen(self._longest_wait()):
                self.wake()
            elif time.monotonic() - began < TICK_S:  # an answer, and nothing new in it
                self._stop.wait(TICK_S)

        self._forever(listen, 0.0)

    def _longest_wait(self) -> float:
        """Return how long one wait for news may be: shorter than what others, or a lease, allow."""
        space = self.store.space
        lease = POLL_S if space.lease_s is None else space.lease_s / 3.0
        return min(POLL_S, space.sync.live_s / 3.0, lease)

    def _forever(self, work: Callable[[], None], pause_s: float) -> None:
        """Repeat until the end; after trouble wait, longer each time, by chance a little less."""
        failures = 0
        while not self._stop.is_set():
            try:
                work()
                failures, wait = 0, pause_s
            except Exception as problem:  # whatever it is: decisions go on, and so must this
                if self._stop.is_set():
                    return
                if not isinstance(problem, TROUBLE):
                    log.exception("guardband: an error in the background")
                wait = self._after_trouble(problem, failures)
                failures += 1
            if pause_s and not failures:
                self._wake.wait(wait)
                self._wake.clear()
            elif wait:
                self._stop.wait(wait)

    def _after_trouble(self, problem: Exception, failures: int) -> float:
        if self.trouble != str(problem):
            log.warning("guardband: %s", problem)
        self.trouble = str(problem)
        self._informed = False  # it may come back from a backup, with other switches
        least, most = BACKOFF_S
        wait = min(most, least * 2.0**failures) * random.uniform(0.5, 1.0)
        return max(wait, getattr(problem, "retry_after_s", 0.0))

    def stop(self, *, seal: bool) -> None:
        """Stop the background, hand in what was counted, and end the stream if asked to."""
        self._stop.set()
        self._wake.set()
        for thread in self._threads[:1]:
            thread.join(timeout=10.0)
        if self.trouble is None:
            try:
                self._last_errands(seal)
            except TROUBLE as problem:
                log.warning("guardband: closed without handing in: %s", problem)
            except Exception:  # whatever it is: the rest must be let go of
                log.exception("guardband: closed without handing in")
        self.lock.leave()
        self.link.close()
        for thread in self._threads[1:]:
            thread.join(timeout=2.0)

    def _last_errands(self, seal: bool) -> None:
        with self._errands:
            self.store.settle()
            if not self.lock.take():
                return
            self._register()
            self._upload()
            self.report()
            chain = self.store.chain
            if seal and chain.acknowledged:
                self.link.seal(chain.stream, chain.newest.revision)
