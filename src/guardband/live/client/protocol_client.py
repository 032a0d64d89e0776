"""The agent's side of the protocol: how the coordinator's messages change its state and stream.

No network here and no threads: `SyncWorker` carries the messages.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from guardband.live import system
from guardband.live.client.agent_state import AgentState
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.stream_rows import KeptEpoch, add_epoch, adopt_epoch, drop_epochs
from guardband.live.client.stream_state import Effect, StreamState, Transition
from guardband.live.client.watching import another_may_be_odd, begin_again, leave_if, misfit
from guardband.live.protocol.messages import NOTHING, Begin, News, Refused, Registered, Uploaded
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.space_rules import is_comparable
from guardband.live.protocol.sums import Sums, is_sound

__all__ = ["MOST_WAITING", "ProtocolClient"]

log = logging.getLogger("guardband.live")

MOST_WAITING = 64  # epochs that wait for their round, at most


class ProtocolClient:
    """One agent's part in the protocol of streams and epochs.

    Parameters
    ----------
    store
        The agent's state and journal.
    """

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    @property
    def state(self) -> AgentState:
        """What the agent knows, to be read only."""
        return self._store.state

    def checkpoint(self, *, for_epoch: int = 0) -> StreamState:
        """Make a checkpoint, if there is enough for one; return the stream to send from.

        Flush the journal before anything of it is sent.
        """
        with self._store as state:
            before = state.whole_stream()
            round_ = state.round if state.timed else 0
            if state.learner.half:  # it may have forgotten more than what it counted says
                round_ = max(round_, state.space.first_round(state.learner.half))
            after = before.with_checkpoint(
                system.new_uuid().hex,
                round=round_,
                for_epoch=for_epoch,
                min_batch=state.space.sync.min_batch,
            )
            if after is not before:
                if after.newest is not before.newest:
                    state.learner.hand_in()
                self._store.put_stream(before, after)
                self._store.save_all()
            return after

    def stored(self, answer: Uploaded) -> None:
        """Note that the coordinator holds a checkpoint."""
        with self._store as state:
            before = state.stream  # what was counted since does not matter here
            self._store.put_stream(before, before.stored(answer))

    def refused(self, problem: Refused) -> Effect:
        """Change the stream as a refusal requires; return what to do next."""
        with self._store as state:
            before = state.whole_stream()
            step = before.refused(problem, stream=str(system.new_uuid()))
            self._follow(state, before, step)
            return step.effect

    def registered(self, answer: Registered) -> None:
        """Take in what the coordinator said to a new stream."""
        with self._store as state:
            if answer.stream == state.stream.stream:
                self._store.put_share(answer.task_index, answer.delta_share)
                self._store.put_config(answer.config, answer.config_version)
                self._store.put_granted(answer.granted, answer.granted_costs)
                self._store.put_apart(answer.apart)
                self._follow_pool(state, answer.begin, answer.pool)
                self._store.save_all()

    def told(self, space: SpaceSettings, version: int) -> None:
        """Keep the rules of the space from the first answer on, and count by them."""
        with self._store as state:
            if version > state.version:
                self._store.put_config(space, version)
                self._store.save_all()

    def hear(self, news: News, stream: str, asked_at: float) -> bool:
        """Take in news for a stream: switches, a configuration, an epoch; True: all is well.

        False where the coordinator has other rules under a number that this agent knows: it was
        restored from a backup, and must learn of the number.

        A lease begins when it was asked for: an answer may have waited for as long as the computer
        slept. What was told to a former stream says nothing about this one's part of an epoch.
        """
        with self._store as state:
            if stream != state.stream.stream:
                return True
            self._store.put_control(news.paused, asked_at, news.explore_for_s)
            if news.config is not None:
                self._store.put_config(news.config, news.config_version)
            self._store.put_apart(news.apart)
            if self._follow_pool(state, news.begin, news.pool):
                return True
            self._compare(state, news.epoch, news.without or ())
            if news.epoch > state.newest_epoch:
                self._wait_for(state, news)
            if not self.adopt_before(state.last_round + 1):
                self._store.save_all()
            return news.config is None or news.config == state.space

    def _follow_pool(self, state: AgentState, begin: Begin, pool: int) -> bool:
        """Note the number of the pool, or begin again for it; tell whether that was needed."""
        if begin:
            begin_again(self._store, begin, pool)
        elif pool != state.stream.pool:
            before = state.whole_stream()
            self._store.put_stream(before, replace(before, pool=pool))
        return bool(begin)

    def renew(self, asked_at: float) -> None:
        """Note that the coordinator was reached and had nothing new."""
        if self.state.space.lease_s is None and not self.state.compares:
            return
        with self._store as state:
            self._store.put_control(state.paused, asked_at, state.leased_for)
            if state.compares:  # it does not know that epoch any more
                self._compare(state, state.newest_epoch, ())
                self.adopt_before(state.last_round + 1)
            self._store.save_all()

    def _compare(self, state: AgentState, epoch: int, without: tuple[Sums, ...]) -> None:
        """Keep the sums without each other task, if they were asked for and can be used."""
        if state.compares:
            sound = all(is_sound(sums, state.space.penalty) for sums in without)
            state.compares, state.compared = False, (epoch, without if sound else ())

    def adopt_before(self, round: int) -> bool:
        """Adopt the newest epoch in which nothing is of `round` or later, within a transaction.

        Return whether there was one.

        Where tasks share contexts, a reward of the same round was earned under the context of the
        decision that would use it; with a window, data are not from the future.
        """
        state, journal = self.state, self._store.journal
        fit = [each for each in state.waiting if not state.timed or each.round < round]
        if not fit:
            return False
        chosen, first = fit[-1], state.waiting[0].epoch
        before, next_round = state.whole_stream(), round if state.timed else None
        step = before.adopt(chosen, next_round=next_round)
        evidence = None
        if step.effect is Effect.ADOPTED:
            evidence = misfit(state, step.stream, step.stream.without, chosen.excluded)
        if evidence is not None and is_comparable(state.space):
            if state.compared[0] != chosen.epoch:  # the coordinator is asked first: who is odd?
                state.compares = True
                return False
            if self._waits_for_another(state, step.stream, chosen):
                chosen, evidence = chosen._replace(sums=None, own=None), None
                number, doubt = chosen.epoch, before.doubt or before.total.n
                alone = replace(before, seen=number, epoch=number, pooled=None, since=None)
                step = Transition(replace(alone, doubt=doubt), Effect.ADOPTED)
        state.waiting = [each for each in state.waiting if each.epoch > chosen.epoch]
        if step.effect is Effect.ADOPTED:
            own, now = step.stream.since or NOTHING, self._store.clock.now()
            adopt_epoch(journal, state.stream_id, chosen, own, now)
            # Who has begun again calls for an epoch until it has a part in one.
            began_again = step.stream.starts > 0 and state.n > 0 and not state.apart
            state.due = began_again and step.stream.since is None and not step.stream.doubt
            state.excluded = chosen.excluded
        if first < chosen.epoch or step.effect is not Effect.ADOPTED:
            drop_epochs(journal, state.stream_id, first, chosen.epoch)
        if step.effect is Effect.CONFLICT:
            step = Transition(before.anew(str(system.new_uuid())), Effect.CONFLICT)
        self._follow(state, before, step, evidence)
        return True

    def _waits_for_another(self, state: AgentState, after: StreamState, epoch: KeptEpoch) -> bool:
        """Tell whether to go on with the task's own data alone, as another task should leave.

        That costs no confidence: the set by an agent's own data is valid at all times at once. Who
        has waited for long enough leaves: the other one may lie.
        """
        if state.stream.doubt and not state.is_in_doubt:
            return False
        if not another_may_be_odd(state, after, state.compared[1], epoch.excluded):
            return False
        log.warning(
            "guardband: task %s contradicts the others in epoch %d, but not without one of them: "
            "it goes on with its own data until that one leaves",
            self._store.setup.task,
            epoch.epoch,
        )
        return True

    def _wait_for(self, state: AgentState, news: News) -> None:
        """Store an epoch until it can be adopted."""
        if len(state.waiting) >= MOST_WAITING:  # the newest is worth more than the one before it
            dropped = state.waiting.pop().epoch
            drop_epochs(self._store.journal, state.stream_id, dropped, dropped)
        sums = _usable(news, state.space)
        without = news.without if state.space.tolerate else ()
        given = (news.own, news.round, news.excluded, without)
        epoch = KeptEpoch(news.epoch, sums, *given)
        add_epoch(self._store.journal, state.stream_id, epoch, self._store.clock.now())
        state.waiting.append(epoch)

    def _follow(
        self,
        state: AgentState,
        before: StreamState,
        step: Transition,
        evidence: float | None = None,
    ) -> None:
        """Go on with the stream that a step leads to from the one `before` it.

        With `evidence` that the task does not fit the epoch it adopts, leave the pool.
        """
        if step.effect is Effect.CONFLICT:
            log.warning(
                "guardband: the stream of task %s was copied or rolled back: a new one starts, and "
                "%d pending decisions are lost",
                self._store.setup.task,
                self._store.pending,
            )
        if step.effect in (Effect.CONFLICT, Effect.CONTINUED):
            self._store.start_stream(step.stream, lost=step.effect is Effect.CONFLICT)
            return
        own = state.learner.own()
        self._store.put_stream(before, step.stream)
        if step.effect is Effect.ADOPTED:
            self._store.load_learner(own)
            leave_if(self._store, evidence)
        self._store.save_all()


def _usable(news: News, space: SpaceSettings) -> Sums | None:
    """Return the sums of an epoch, if one can compute with them, and without each other task."""
    if news.sums is None:
        return None
    told = news.without is not None or space.others == 1
    if told and all(is_sound(sums, space.penalty) for sums in (news.sums, *(news.without or ()))):
        return news.sums
    log.error("guardband: epoch %d has a sum that no data give: not used", news.epoch)
    return None
