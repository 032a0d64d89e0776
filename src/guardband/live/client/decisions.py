"""What a live agent's user does: decide, observe, discard; and how decisions end.

Nothing here touches the network, and nothing waits for a disk.
"""

from __future__ import annotations

import numpy as np

from guardband.agent.decision import Decision
from guardband.agent.engine import Awaited, Request
from guardband.errors import InvalidValueError, UnknownDecisionError
from guardband.live.client.agent_state import ENDS
from guardband.live.client.decision_id import DecisionId, make_id, parse_id, stamp
from guardband.live.client.journal import StoredDecision
from guardband.live.client.protocol_client import ProtocolClient
from guardband.live.client.windows import End, ending
from guardband.live.protocol.messages import KINDS

__all__ = ["Decisions", "OtherRewardError"]

BATCH = 64  # decisions that end while the lock is held once
FRESH = 512  # decisions that need not be read again for their reward
SUMS_AT = len(KINDS) * len(ENDS)
PLACES = {
    (kind, int(end)): i * len(ENDS) + j
    for i, kind in enumerate(KINDS)
    for j, end in enumerate(ENDS)
}
# Plain numbers are quicker to compare.
HEARD, OBSERVED, DISCARDED = int(End.HEARD), int(End.OBSERVED), int(End.DISCARDED)


class OtherRewardError(InvalidValueError):
    """A decision that has a reward was given another."""


class Decisions(ProtocolClient):
    """Where decisions are made, written down and brought to their end."""

    def decide(self, requests: list[Request], round: int | None) -> list[Decision]:
        """Decide for all requests with what is known now; all are written down, or none."""
        with self:
            number = self.last_round + 1 if round is None else round
            if self.shared:
                self._enter_round(number)
            return [self._decide(request, number + i) for i, request in enumerate(requests)]

    def _enter_round(self, number: int) -> None:
        """Adopt what was earned before this round."""
        if number <= self.last_round:
            raise ValueError(
                f"round {number} is not after round {self.last_round}, in which this task decided: "
                "where tasks share contexts, each decides once in a round."
            )
        if self.held:
            self.adopt_before(number)

    def _decide(self, request: Request, round: int) -> Decision:
        seq = self.last + 1
        group = self.learner.group
        coin = group.next_coin[0]
        key, shadow_action, why = None if self.free else self.held_back(), None, None
        if key is None:
            v = self.learner.decide(request, seq, coin)
        else:
            more = self.paused if key == "paused" else None
            v, shadow_action, why = self.learner.stand_back(request, seq, coin, key, more)
        awaited = v.awaited
        x, now, careful = awaited.x.tobytes(), self.clock.now(), int(awaited.conservative)
        self.journal.add(
            (
                seq,
                self.stream,
                now,
                round,
                self.version,
                self.chain.epoch,
                self.n,
                v.action,
                v.kind,
                v.reason,
                shadow_action,
                request.baseline,
                request.reward,
                coin,
                v.propensity,
                v.mean,
                v.width,
                v.floor,
                v.margin,
                v.promise,
                v.certificate,
                x,
                awaited.guess,
                awaited.weight,
                careful,
                request.menu.tobytes(),
                pack_extras(request),
            )
        )
        group.next_coin[0] = group.coins[0].random()
        self.last, self.last_round = seq, round
        if len(self.fresh) >= FRESH:
            self.fresh.clear()
        kept = StoredDecision(
            seq,
            self.stream,
            now,
            round,
            self.version,
            v.kind,
            v.floor if v.floor == v.floor else None,
            v.margin if v.margin == v.margin else None,
            x,
            awaited.guess,
            awaited.weight,
            careful,
            None,
            None,
            None,
        )
        self.fresh[seq] = kept, awaited
        return v.named(make_id(self.setup.task, self.chain.stream, now, seq), why)

    def close(self, decision_id: str, reward: float | None) -> None:
        """Take in a reward; None excludes the decision."""
        with self:
            problem = self._close(decision_id, reward)
        if problem is not None:  # what was wrong is counted first, and then raised
            raise problem

    def _close(self, decision_id: str, reward: float | None) -> Exception | None:
        ident = self._own(decision_id)
        seq = None if ident is None else ident.seq
        kept, awaited = self.fresh.pop(seq, (None, None)) if seq is not None else (None, None)
        if kept is None and seq is not None:
            kept = self.journal.find(seq)
        stranger = kept is not None and ident is not None and stamp(kept.at) != ident.stamp
        if seq is None or stranger or (kept is None and seq > self.last):
            if reward is not None:
                self.journal.count(self.stream, "orphan")
            return UnknownDecisionError(
                f"{decision_id!r} is no decision of task {self.setup.task!r} in {self.path.parent}:"
                " give the id of one of its own."
            )
        now = self.clock.now()
        if kept is None or kept.ended is not None:
            return self._again(decision_id, seq, kept, reward)
        if now >= kept.at + self.rules.window_s:
            return self._late(decision_id, kept, reward, now)
        if (
            reward is not None
            and seq == self.settled + 1
            and kept.config
            and self.rules.order == "prompt"
        ):
            self._end(kept, OBSERVED, reward, now, awaited)
        else:
            self.journal.end(seq, DISCARDED if reward is None else HEARD, reward, now, first=True)
            self.heard += 1
        if self.heard and (self.rules.order == "prompt" or reward is None):
            self._advance(now)
        self.save()
        return None

    def _late(
        self, decision_id: str, kept: StoredDecision, reward: float | None, now: float
    ) -> Exception | None:
        """Note a reward that came after the window, before the window's end was dealt with."""
        if reward is None:
            return UnknownDecisionError(f"the window of {decision_id!r} is over: it counts.")
        self.journal.end(kept.seq, End.HEARD, None, now)
        self.journal.note_late(kept.seq, reward)
        self.journal.count(self.stream, "late")
        self.heard += 1
        self.save()
        return None

    def _again(
        self, decision_id: str, seq: int, kept: StoredDecision | None, reward: float | None
    ) -> Exception | None:
        """Answer to a reward, or an exclusion, of a decision that has ended or has a reward."""
        if reward is None:
            if kept is not None and kept.ended == End.DISCARDED:
                return None
            return UnknownDecisionError(f"decision {decision_id!r} has ended before.")
        if kept is None:  # forgotten
            self.journal.count(self.stream, "late")
            return None
        if kept.ended in (End.DISCARDED, End.LOST):
            self.journal.count(self.stream, "orphan")
            how = "discarded" if kept.ended == End.DISCARDED else "lost with a stream in conflict"
            return UnknownDecisionError(f"decision {decision_id!r} was {how} before.")
        missed = kept.ended == End.DEFAULTED or kept.reward is None
        had = kept.late if missed else kept.reward
        if had is None:
            self.journal.note_late(seq, reward)
            self.journal.count(self.stream, "late")
        elif had != reward:
            self.journal.count(self.stream, "duplicate")
            return OtherRewardError(
                f"decision {decision_id!r} has the reward {had:g} already, {reward:g} is refused: "
                "a decision has one reward."
            )
        return None

    def settle(self) -> int:
        """End the oldest decisions as far as rewards and windows allow; return how many."""
        done = 0
        while True:
            with self:
                some = self._advance(self.clock.now())
                if some:
                    self.save()
            done += some
            if some < BATCH:
                return done

    def _advance(self, now: float) -> int:
        """End decisions in the order in which they were made, a batch of them at most."""
        for done in range(BATCH):
            kept = self.journal.find(self.settled + 1) if self.settled < self.last else None
            if kept is None:
                return done
            # Decisions made before the rules were known cannot count.
            discarded = kept.ended == End.DISCARDED or (kept.config == 0 and kept.ended is not None)
            how = ending(self.rules, kept.at, kept.reward, discarded, now)
            if how is None:
                return done
            self.heard -= kept.ended is not None
            end = DISCARDED if kept.config == 0 else int(how.end)
            self._end(kept, end, how.reward, now)
        return BATCH

    def _end(
        self,
        kept: StoredDecision,
        end: int,
        reward: float,
        now: float,
        awaited: Awaited | None = None,
    ) -> None:
        """Count a decision, or leave it out."""
        self.settled = kept.seq
        self.fresh.pop(kept.seq, None)  # somebody has touched it now
        tally = self.tally
        tally[PLACES[kept.kind, end]] += 1.0
        if end == DISCARDED:
            self.journal.end(kept.seq, end, None, now)
            return
        n = self.n = self.n + 1
        if awaited is None:
            x = np.frombuffer(kept.x).copy()
            awaited = Awaited(x, kept.guess, kept.weight, bool(kept.careful))
        entry = self.chain.since
        if self.learner.learn(awaited, reward, n, n if entry is None else n - entry.n):
            self.due = True
        self.round = max(self.round, kept.round)
        first = kept.ended is None
        self.journal.end(kept.seq, end, reward, now, (self.stream, n), first=first)
        tally[SUMS_AT] += reward
        if kept.floor is not None:
            lead = reward - kept.floor
            tally[SUMS_AT + 1] += kept.floor
            tally[SUMS_AT + 2] += lead
            tally[SUMS_AT + 3] += lead * lead
        if kept.margin is not None:
            tally[SUMS_AT + 4] += kept.margin

    def _own(self, decision_id: str) -> DecisionId | None:
        """Return the parts of an id, if it may be one of this journal's decisions."""
        ident = parse_id(str(decision_id))
        if ident is None or ident.task != self.setup.task:
            return None
        if ident.made_in(self.chain.stream):
            return ident
        names = self.journal.query("SELECT name FROM stream")
        return ident if any(ident.made_in(name) for (name,) in names) else None


def pack_extras(request: Request) -> bytes | None:
    """Return support, weights and covariance as bytes, where they were given."""
    if not (request.weights.size or request.covariance.size):
        return None
    head = np.array([len(request.weights), len(request.covariance)], np.float64)
    arrays = (head, request.pages, request.weights, request.covariance)
    return b"".join(array.tobytes() for array in arrays)
