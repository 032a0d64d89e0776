"""How a live agent's decisions end: rewards that come in, and windows that close.

Nothing here touches the network, and nothing waits for a disk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from guardband.agent import Awaited
from guardband.errors import InvalidValueError, UnknownDecisionError
from guardband.kernels.holdback import gain_of
from guardband.live.client.agent_state import COST_AT, ENDS, SUMS, AgentState
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.before import change_before
from guardband.live.client.decision_id import mark_of, parse_id
from guardband.live.client.journal import StoredDecision
from guardband.live.client.watching import note_watched
from guardband.live.client.windows import End, ending
from guardband.live.protocol.messages import KINDS

__all__ = ["OtherRewardError", "Outcomes", "find_stored"]

SLACK = 1.0 + 1e-9
BATCH = 64  # decisions that end while the lock is held once
SUMS_AT = len(KINDS) * len(ENDS)
WORTH_AT = SUMS_AT + SUMS.index("valued")
PLACES = {
    (kind, int(end)): i * len(ENDS) + j
    for i, kind in enumerate(KINDS)
    for j, end in enumerate(ENDS)
}
# Plain numbers are quicker to compare.
HEARD, OBSERVED, DISCARDED = int(End.HEARD), int(End.OBSERVED), int(End.DISCARDED)
OUTDATED = int(End.OUTDATED)


class OtherRewardError(InvalidValueError):
    """A decision that has a reward was given another."""


class _UndoError(Exception):
    """A reward of a batch that cannot be taken in: the transaction is undone."""


class Outcomes:
    """Ends decisions, takes in rewards and closes windows; see `windows` for the order.

    Parameters
    ----------
    store
        The agent's state and journal.
    """

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    def close(self, decision_id: str, reward: float | None, cost: float | None = None) -> None:
        """Take in the reward of a decision, and what it cost; None discards it."""

        def work() -> Exception | None:
            with self._store as state:
                return self._close(state, decision_id, reward, cost)

        problem = self._store.undamaged(work)
        if problem is not None:  # what was wrong is counted first, and then raised
            raise problem

    def close_all(self, rewards: Sequence[tuple[str, float, float | None]]) -> None:
        """Take in rewards and costs by the ids of their decisions: all, or none."""

        def work() -> None:
            with self._store as state:
                for each in rewards:
                    if self._close(state, *each) is not None:
                        raise _UndoError(*each)

        try:
            self._store.undamaged(work)
        except _UndoError as undo:
            self.close(*undo.args)  # counts what was wrong, and raises it

    def _close(
        self, state: AgentState, decision_id: str, reward: float | None, cost: float | None
    ) -> Exception | None:
        if cost is None:
            return self._end_with(state, decision_id, reward)
        less, made = self._saved(state, decision_id, cost)
        problem = self._end_with(state, decision_id, reward)
        if problem is None and made is not None and made.paid is None:
            assert state.spending is not None
            state.spending.give_back(less)
            self._store.put_spending()
            # It was counted with all that was reserved:
            if made.seq <= state.settled or (state.at_once and made.config):
                state.tally[COST_AT] -= (made.cost or 0.0) - cost
                self._store.save()
            self._store.journal.query(
                "UPDATE main.decision SET paid = ? WHERE seq = ?", (cost, made.seq)
            )
        return problem

    def _saved(
        self, state: AgentState, decision_id: str, cost: float
    ) -> tuple[float, StoredDecision | None]:
        """Return what a decision cost less than was reserved, or refuse what does not fit."""
        spending, (_, made) = state.spending, find_stored(self._store, state, decision_id)
        if spending is None:
            raise InvalidValueError(
                f"cost={cost!r} is paid from a budget, which space {state.space.name!r} does not "
                "have: leave it out, or set its budget."
            )
        if made is None:  # forgotten, or another's: what was reserved stays paid
            return 0.0, None
        if made.paid is not None and made.paid != cost:
            raise OtherRewardError(
                f"decision {decision_id!r} has the cost {made.paid:g} already, {cost!r} is refused."
            )
        less = spending.saved(decision_id, made.cost or 0.0, cost)
        # What a copied journal reserved before the copy is given back by the one it was made from.
        return (less if made.seq > state.account.since else 0.0), made

    def _end_with(
        self, state: AgentState, decision_id: str, reward: float | None
    ) -> Exception | None:
        store = self._store
        made, awaited = state.fresh.pop(decision_id, (None, None))
        if made is None or made.seq <= state.settled:
            ours, made = find_stored(self._store, state, decision_id)
            awaited = None
            if not ours:
                if reward is not None:
                    store.journal.count(state.stream_id, "orphan")
                return UnknownDecisionError(
                    f"{decision_id!r} is no decision of task {store.setup.task!r} in "
                    f"{store.path.parent}: give the id of one of its own."
                )
        state.recalls.drop(decision_id)
        now, rules = store.clock.now(), state.space.rewards
        if made is None or made.ended is not None:
            return self._again(state, decision_id, made, reward)
        if now >= made.at + rules.window_s:
            return self._late(state, decision_id, made, reward, now)
        prompt, next_ = rules.order == "prompt", made.seq == state.settled + 1
        if reward is not None and made.config and prompt and (next_ or state.at_once):
            self._end(state, made, OBSERVED, reward, now, awaited)
            if next_:
                state.settled = made.seq
            else:
                state.heard += 1
        else:
            end = DISCARDED if reward is None else HEARD
            store.journal.end(made.seq, end, reward, now, first=True)
            state.heard += 1
        if state.heard and (prompt or reward is None):
            self._advance(state, now)
        store.save()
        return None

    def _late(
        self,
        state: AgentState,
        decision_id: str,
        made: StoredDecision,
        reward: float | None,
        now: float,
    ) -> Exception | None:
        """Note a reward that came after the window, before the window's end was dealt with."""
        if reward is None:
            return UnknownDecisionError(f"the window of {decision_id!r} is over: it counts.")
        journal = self._store.journal
        journal.end(made.seq, End.HEARD, None, now)
        journal.note_late(made.seq, reward)
        journal.count(state.stream_id, "late")
        state.heard += 1
        self._store.save()
        return None

    def _again(
        self,
        state: AgentState,
        decision_id: str,
        made: StoredDecision | None,
        reward: float | None,
    ) -> Exception | None:
        """Answer to a reward, or a discard, of a decision that has ended or has a reward."""
        journal = self._store.journal
        if reward is None:
            if made is not None and made.ended == End.DISCARDED:
                return None
            return UnknownDecisionError(f"decision {decision_id!r} has ended before.")
        if made is None:  # forgotten
            journal.count(state.stream_id, "late")
            return None
        if made.ended in (End.DISCARDED, End.LOST):
            journal.count(state.stream_id, "orphan")
            how = "discarded" if made.ended == End.DISCARDED else "lost with a stream in conflict"
            return UnknownDecisionError(f"decision {decision_id!r} was {how} before.")
        missed = made.ended == End.DEFAULTED or made.reward is None
        had = made.late if missed else made.reward
        if had is None:
            journal.note_late(made.seq, reward)
            journal.count(state.stream_id, "late")
        elif had != reward:
            journal.count(state.stream_id, "duplicate")
            return OtherRewardError(
                f"decision {decision_id!r} has the reward {had:g} already, {reward:g} is refused: "
                "a decision has one reward."
            )
        return None

    def settle(self) -> None:
        """End the oldest decisions as far as rewards and windows allow."""
        some = BATCH
        while some == BATCH:
            with self._store as state:
                some = self._advance(state, self._store.clock.now())
                if some:
                    self._store.save()

    def _advance(self, state: AgentState, now: float) -> int:
        """End decisions in the order in which they were made, a batch of them at most."""
        for done in range(BATCH):
            made = self._store.journal.find(state.settled + 1) if state.pending else None
            if made is None:
                return done
            if made.ended in (OBSERVED, OUTDATED):  # it ended when its reward came
                state.settled, state.heard = made.seq, state.heard - 1
                continue
            # Decisions made before the rules were known cannot count.
            discarded = made.ended == End.DISCARDED or (made.config == 0 and made.ended is not None)
            how = ending(state.space.rewards, made.at, made.reward, discarded, now)
            if how is None:
                return done
            state.heard -= made.ended is not None
            end = DISCARDED if made.config == 0 else int(how.end)
            self._end(state, made, end, how.reward, now)
            state.settled = made.seq
        return BATCH

    def _end(
        self,
        state: AgentState,
        made: StoredDecision,
        end: int,
        reward: float,
        now: float,
        awaited: Awaited | None = None,
    ) -> None:
        """Count a decision, or leave it out."""
        state.tally[COST_AT] += (made.cost or 0.0) if made.paid is None else made.paid
        if made.stream < state.first_stream:  # its weight may rest on what led to an alarm
            told = reward if end == OBSERVED else None
            self._store.journal.end(made.seq, OUTDATED, told, now)
            self._store.journal.count(state.stream_id, "outdated")
            gain = None if told is None else _gain(state, made, told)
            if gain is not None:  # no model is behind what choices earn
                change_before(self._store, gains=state.before.gains.plus(1.0, *gain))
            return
        state.tally[PLACES[made.kind, end]] += 1.0
        if end == DISCARDED:
            self._store.journal.end(made.seq, end, None, now)
            return
        n = state.n = state.n + 1
        if awaited is None:
            x = np.frombuffer(made.x).copy()
            lower = math.nan if made.lower is None else made.lower
            given = (x, made.guess, made.weight, bool(made.careful))
            awaited = Awaited(*given, declared=made.declared, lower=lower)
        entry = state.stream.since
        since = n if entry is None else n - entry.n
        if state.learner.learn(awaited, reward, n, since, made.round):
            state.due = True
        state.round = max(state.round, made.round)
        first = made.ended is None
        self._store.journal.end(made.seq, end, reward, now, (state.stream_id, n), first=first)
        _add_up(state, made, reward)
        note_watched(self._store)


def find_stored(
    store: AgentStore, state: AgentState, decision_id: str
) -> tuple[bool, StoredDecision | None]:
    """Tell whether an id is one of this journal's decisions; return it, if it is kept."""
    journal, ident = store.journal, parse_id(str(decision_id))
    if ident is None or ident.task != store.setup.task:
        return False, None
    if not ident.made_in(state.stream.stream):
        names = journal.query("SELECT name FROM stream")
        if not any(ident.made_in(name) for (name,) in names):
            return False, None
    made = journal.find(ident.seq)
    if made is None:
        return ident.seq <= state.last, None
    return mark_of(made.mark, made.at) == ident.mark, made


def _add_up(state: AgentState, made: StoredDecision, reward: float) -> None:
    """Add a reward to the sums that reports have; what others played shows no promise."""
    tally = state.tally
    tally[SUMS_AT] += reward
    if made.value is not None and made.baseline_value is not None:
        tally[WORTH_AT] += 1.0
        tally[WORTH_AT + 1] += made.value
        tally[WORTH_AT + 2] += made.baseline_value
    if made.override is not None:
        return
    if made.floor is not None:
        lead = reward - made.floor
        tally[SUMS_AT + 1] += made.floor
        tally[SUMS_AT + 2] += lead
        tally[SUMS_AT + 3] += lead * lead
    if made.margin is not None:
        tally[SUMS_AT + 4] += made.margin
    gain = _gain(state, made, reward)
    if gain is not None:
        state.gains = state.gains.plus(1.0, *gain)


def _gain(state: AgentState, made: StoredDecision, reward: float) -> tuple[float, float] | None:
    """Return what a reward says of what choices earn, by the holdback's coin; None: nothing.

    A decision that was made with a smaller chance of being held back would weigh too much.
    """
    stake = made.stake
    if made.override is not None or stake is None:
        return None
    if abs(stake.share) * state.learner.holdback > SLACK:
        return None
    found: tuple[float, float] = gain_of.at_once(stake, reward)
    return found
