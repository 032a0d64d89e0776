"""What a live agent does with the messages of its coordinator; no network here."""

from __future__ import annotations

import logging
import uuid

from guardband.live.client.agent_state import AgentStore
from guardband.live.client.stream_state import Effect, KeptEpoch, StreamState, Transition
from guardband.live.protocol.messages import NOTHING, News, Refused, Registered, Revision, Uploaded
from guardband.live.protocol.sums import Sums, is_sound

__all__ = ["ProtocolClient"]

log = logging.getLogger("guardband.live")

HELD = 64  # epochs that wait for their round, at most


class ProtocolClient(AgentStore):
    """A store that takes part in the protocol of streams and epochs."""

    def cut(self, *, for_epoch: int = 0) -> StreamState:
        """Cut the stream here, if there is enough for it; return the chain to send from.

        Call `journal.flush` before anything of it is sent.
        """
        with self:
            before = self.whole_chain()
            after = before.cut(
                uuid.uuid4().hex,
                round=self.round if self.shared else 0,
                for_epoch=for_epoch,
                min_batch=self.space.sync.min_batch,
            )
            if after is not before:
                if after.newest is not before.newest:
                    self.learner.group.hand_in()
                self.keep_chain(before, after)
            return after

    def stored(self, answer: Uploaded) -> None:
        """Note that the coordinator holds a cut."""
        with self:
            before = self.whole_chain()
            self.keep_chain(before, before.stored(answer))

    def refused(self, problem: Refused) -> Effect:
        """Draw the consequences of a refusal; return what to do."""
        with self:
            step = self.whole_chain().refused(problem, stream=str(uuid.uuid4()))
            self._go_on(step)
            return step.effect

    def registered(self, answer: Registered) -> None:
        """Take in what the coordinator said to a new stream."""
        with self:
            self.journal.query(  # what was decided before was decided with the share of then
                "INSERT OR REPLACE INTO level(stream, from_seq, share) "
                "SELECT id, ?1, ?2 FROM stream WHERE name = ?3 AND delta_share IS NOT ?2",
                (self.last + 1, answer.delta_share, answer.stream),
            )
            self.journal.query(
                "UPDATE stream SET task_index = ?, delta_share = ? WHERE name = ?",
                (answer.task_index, answer.delta_share, answer.stream),
            )
            self.keep_config(answer.config, answer.config_version)
            self.reload()

    def hear(self, news: News, stream: str, asked_at: float) -> bool:
        """Take in news for a stream: switches, a configuration, an epoch; True: all is well.

        False where the coordinator has other rules under a number that this agent knows: it was
        restored from a backup, and must be told.

        A lease begins when it was asked for: an answer may have waited for as long as the computer
        slept. What was told to a former stream says nothing about this one's part of an epoch.
        """
        with self:
            if stream != self.chain.stream:
                return True
            now = self.clock.now()
            self.journal.query(
                "UPDATE control SET paused = ?, leased_at = ?, leased_for = ?",
                (news.paused, asked_at, news.explore_for_s),
            )
            if news.config is not None:
                self.keep_config(news.config, news.config_version)
            if news.epoch > self.heard_of:
                if len(self.held) >= HELD:  # the newest is worth more than the one before it
                    self.journal.query(
                        "DELETE FROM epoch WHERE epoch = ? AND stream = ? AND adopted_at IS NULL",
                        (self.heard_of, self.stream),
                    )
                own = NOTHING if news.own is None else news.own
                total = self._usable(news)
                self.journal.query(
                    "INSERT OR REPLACE INTO epoch VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                    (news.epoch, self.stream, total, *own, news.round, news.excluded, now),
                )
            self.reload()
            self.adopt_before(self.last_round + 1)
            return news.config is None or news.config == self.space

    def _usable(self, news: News) -> bytes | None:
        """Return the sum of an epoch, if one can compute with it."""
        if news.sums is None or not is_sound(news.sums, self.space.penalty):
            if news.sums is not None:
                log.error("guardband: epoch %d has a sum that no data give: not used", news.epoch)
            return None
        return news.sums.as_bytes()

    def renew(self, asked_at: float) -> None:
        """Note that the coordinator was reached and had nothing new."""
        if self.space.lease_s is not None:
            with self:
                self.journal.query("UPDATE control SET leased_at = ?", (asked_at,))
                self.reload()

    def adopt_before(self, round: int) -> None:
        """Adopt the newest epoch in which nothing is of `round` or later, within a transaction.

        Where tasks share contexts, a reward of the same round was earned under the context of the
        decision that would use it.
        """
        fit = [held.epoch for held in self.held if not self.shared or held.round < round]
        if not fit:
            return
        epoch = max(fit)
        ((total, n, version, latest),) = self.journal.query(
            "SELECT total, own_n, own_version, round FROM epoch WHERE epoch = ? AND stream = ?",
            (epoch, self.stream),
        )
        kept = KeptEpoch(
            epoch=epoch,
            sums=None if total is None else Sums.from_bytes(total),
            own=Revision(n, version) if n else None,
            round=latest,
        )
        step = self.whole_chain().adopt(kept, next_round=round if self.shared else None)
        self.journal.query(
            "DELETE FROM epoch WHERE stream = ? AND adopted_at IS NULL AND epoch < ?",
            (self.stream, epoch),
        )
        if step.effect is Effect.ADOPTED:
            own = step.chain.since or NOTHING
            self.journal.query(
                "UPDATE epoch SET adopted_at = ?, own_n = ?, own_version = ? "
                "WHERE epoch = ? AND stream = ?",
                (self.clock.now(), *own, epoch, self.stream),
            )
            self.due = False
        else:
            self.journal.query(
                "DELETE FROM epoch WHERE epoch = ? AND stream = ?", (epoch, self.stream)
            )
        if step.effect is Effect.CONFLICT:
            step = Transition(self.whole_chain().anew(str(uuid.uuid4())), Effect.CONFLICT)
        self._go_on(step)

    def _go_on(self, step: Transition) -> None:
        """Continue with the chain of a step."""
        if step.effect is Effect.CONFLICT:
            log.warning(
                "guardband: the stream of task %s was copied or rolled back: a new one starts, and "
                "%d pending decisions are lost",
                self.setup.task,
                self.last - self.settled,
            )
        if step.effect in (Effect.CONFLICT, Effect.CONTINUED):
            self.start_stream(step.chain, lost=step.effect is Effect.CONFLICT)
        else:
            self.keep_chain(self.whole_chain(), step.chain)
        self.reload()
