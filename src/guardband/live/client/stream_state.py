"""The agent's side of a stream: what it counted, its checkpoints, and what it may compute with.

A state never changes; every step returns the next one. It knows no clock, no network and no random
numbers: names of streams and versions are given to it. Write it down after every step
(`save_stream`), and make that durable before a checkpoint is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from guardband.kernels.types import Floats
from guardband.live.protocol.messages import (
    MOST_REPLACED,
    NOTHING,
    Account,
    Checkpoint,
    Continuation,
    Left,
    News,
    Refused,
    Register,
    Report,
    Revision,
    Upload,
    Uploaded,
)
from guardband.live.protocol.sums import Recent, Sums, add_sums, empty_sums, upper_places

if TYPE_CHECKING:
    from guardband.live.client.stream_rows import KeptEpoch

__all__ = ["KEPT_REVISIONS", "Effect", "StreamState", "Transition"]

KEPT_CHECKPOINTS = 64  # with their sums: epochs that contain one of them can be adopted
KEPT_REVISIONS = 4096  # by name only: to recognise what a restored coordinator holds


class Effect(StrEnum):
    """What became of news, or what to do after a refusal."""

    ADOPTED = "adopted"
    OLD = "old"  # nothing newer than what the state has seen
    WAIT = "wait"  # not usable now: a later epoch will be
    RESEND = "resend"  # the coordinator is behind: send the newest checkpoint again
    REGISTER = "register"  # it does not know the stream: register, then send again
    CONTINUED = "continued"  # the stream was sealed: register the new one, which takes the rest
    CONFLICT = "conflict"  # another wrote to the stream: a new one, from nothing
    KEEP = "keep"  # nothing to do


class Transition(NamedTuple):
    """The next state, and why."""

    stream: StreamState
    effect: Effect


@dataclass(frozen=True, kw_only=True)
class StreamState:
    """One stream as its agent knows it.

    Attributes
    ----------
    stream
        Its name.
    checkpoints
        Those whose sums are kept, oldest first; the last is what the next upload sends.
    parts
        What was counted between one checkpoint and the next; sums of parts are never differences.
    open
        What was counted since the last checkpoint.
    older
        The revisions of older checkpoints.
    base
        What the coordinator is believed to hold.
    answered, seen
        The newest epoch for which the last checkpoint is the answer; and the newest ever heard of.
    epoch, pooled, since
        The adopted epoch, its sum, and this stream's entry in that sum (None: it has none).
    without
        That sum without each other task, where one of them may lie.
    moved
        The sealed stream whose rest this one took, with the checkpoint at which it ended.
    former, conflicts
        The earlier streams of this start, oldest first; and how often one had to be given up.
    starts, replaces, told
        How often one had to begin again, after an alarm or for another pool; all streams of starts
        before, as nobody may have heard of these; and how many of its first data were handed in.
    pool, left
        The pool for which it counts, and why its task left that: "anew" or "fit"; "": it did not.
    doubt
        What it had counted when it began to leave epochs unused, as another task may be odd, or 0.
    """

    stream: str
    checkpoints: tuple[Checkpoint, ...]
    parts: tuple[Sums, ...] = ()
    open: Sums
    older: tuple[Revision, ...] = ()
    base: Revision = NOTHING
    answered: int = 0
    seen: int = 0
    epoch: int = 0
    pooled: Sums | None = None
    without: tuple[Sums, ...] = ()
    since: Revision | None = None
    moved: tuple[str, Revision] | None = None
    former: tuple[str, ...] = ()
    conflicts: int = 0
    starts: int = 0
    replaces: tuple[str, ...] = ()
    told: int = 0
    pool: int = 0
    left: Left = ""
    doubt: int = 0

    @classmethod
    def start(cls, stream: str, dim: int) -> StreamState:
        """Return a stream that has counted nothing."""
        zero = empty_sums(dim)
        return cls(stream=stream, checkpoints=(Checkpoint("", zero, 0),), open=zero)

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return self.open.dim

    @property
    def sets(self) -> int:
        """How many sets of data were in use before this one; each has its own part of delta."""
        return self.epoch + self.conflicts + self.starts

    @property
    def newest(self) -> Checkpoint:
        """The checkpoint that the next upload sends."""
        return self.checkpoints[-1]

    @property
    def acknowledged(self) -> bool:
        """Whether the coordinator is believed to hold the newest checkpoint."""
        return self.newest.revision == self.base

    @property
    def total(self) -> Sums:
        """All that the stream has counted."""
        return add_sums(self.dim, (self.newest.sums, self.open))

    @property
    def own(self) -> Sums:
        """What the agent adds to `pooled`: all of its own that the sum does not contain."""
        return add_sums(self.dim, (self.handed_in, self.open))

    @property
    def handed_in(self) -> Sums:
        """What of that is in checkpoints."""
        first = None if self.since is None else self._index(self.since)
        parts = (self.checkpoints[0].sums, *self.parts) if first is None else self.parts[first:]
        return add_sums(self.dim, parts)

    @property
    def entry(self) -> Sums | None:
        """The sums of this stream's entry in `pooled`; None: it has none."""
        k = None if self.since is None else self._index(self.since)
        return None if k is None else self.checkpoints[k].sums

    def counted(
        self, psi: Floats, reward: float, weight: float, guess: float, half: int = 0
    ) -> StreamState:
        """Return the state with one more observation, rounded as the kernels round it.

        With a window, `half` is the half window of its decision.
        """
        d, upper = self.dim, upper_places(self.dim)
        outer = np.empty((d + 1, d + 1))
        outer[:d, :d] = weight * np.multiply.outer(psi, psi)
        outer[:d, d] = (weight * reward) * psi
        outer[d, d] = (weight * reward) * reward
        one = (1, outer[upper], weight * (guess * guess - 2.0 * reward * guess), weight)
        recent = Recent(half, 1, *one) if half else None
        return replace(self, open=add_sums(d, (self.open, Sums(*one, recent=recent))))

    def with_checkpoint(
        self, version: str, *, round: int = 0, for_epoch: int = 0, min_batch: int = 1
    ) -> StreamState:
        """Return the state with a checkpoint under a fresh `version`, if there is enough for one.

        With `for_epoch`, the newest checkpoint becomes the answer to that epoch; an answer is given
        once and never overtaken by a later checkpoint. With fewer than `min_batch` new observations
        no checkpoint is made, and the answer is the last one. `round` is the latest round counted,
        where agents share contexts. Write the state down durably before its upload is sent.
        """
        if self.answered > self.seen and (not self.acknowledged or for_epoch == self.answered):
            return self
        answered, newest = max(self.answered, for_epoch), self.newest
        fresh = self.open.n - (0 if newest.version else self.told)
        if not self.open.n or 0 < fresh < min_batch:
            return replace(self, answered=answered)
        made = Checkpoint(version, self.total, max(round, newest.round))
        cuts, parts, older = self._pruned([*self.checkpoints, made], [*self.parts, self.open])
        return replace(
            self,
            checkpoints=tuple(cuts),
            parts=tuple(parts),
            older=older,
            open=empty_sums(self.dim),
            answered=answered,
        )

    def upload(self, *, trigger: bool = False, report: Report | None = None) -> Upload:
        """Return the request that sends the newest checkpoint."""
        return Upload(
            base=self.base,
            checkpoint=self.newest,
            for_epoch=self.answered if self.answered > self.seen else None,
            trigger=trigger,
            seen_epoch=self.seen,
            report=Report() if report is None else report,
        )

    def register(
        self,
        *,
        task: str,
        schema_hash: str,
        uses: tuple[int, ...],
        library: str,
        accounts: tuple[Account | None, Account | None] = (None, None),
        log: str | None = None,
    ) -> Register:
        """Return the request that makes the stream known, and says what it will learn and spend."""
        return Register(
            stream=self.stream,
            task=task,
            schema_hash=schema_hash,
            uses=uses,
            library=library,
            continue_of=None if self.moved is None else Continuation(*self.moved),
            account=accounts[0],
            costs=accounts[1],
            log=log,
            replaces=self.replaces[-MOST_REPLACED:],
            pool=self.pool if self.total.n or self.pooled is not None else None,
            left=self.left,
        )

    def stored(self, answer: Uploaded) -> StreamState:
        """Return the state after an upload was accepted; one of a former stream is ignored."""
        if not self._knows(answer.revision):
            return self
        base = answer.revision if answer.revision.n >= self.base.n else self.base
        # A trigger that opened no epoch answered none: the next one gets a checkpoint of its own.
        heard = answer.open.epoch if answer.open is not None else 0
        answered = self.answered if self.answered == heard else min(self.answered, self.seen)
        return replace(self, base=base, answered=answered)

    def refused(self, problem: Refused, *, stream: str) -> Transition:
        """Return what follows from a refusal; `stream` is a fresh name, used where one is needed.

        Where the coordinator holds a checkpoint of this stream, it is behind (an old duplicate, or
        it was restored): the next upload, a cumulative total, brings it up to date. Where it holds
        another's, this stream is a copy or was rolled back: what is not acknowledged may already be
        counted there, so it is forgotten, and never sent again under another name.
        """
        if problem.more.get("stream", self.stream) != self.stream:
            return Transition(self, Effect.KEEP)
        if problem.code not in ("revision_conflict", "sealed", "already_continued"):
            unknown = problem.code == "unknown_stream"
            return Transition(self, Effect.REGISTER if unknown else Effect.KEEP)
        if problem.code == "already_continued":
            return Transition(self.anew(stream), Effect.CONFLICT)
        held = problem.more["stored"]
        revision = Revision(held["n"], held["version"])
        if not self._knows(revision):
            return Transition(self.anew(stream), Effect.CONFLICT)
        if problem.code == "sealed":
            return self._continued(stream, revision)
        after = replace(self, base=revision)
        return Transition(after, Effect.KEEP if after.acknowledged else Effect.RESEND)

    def adopt(self, news: News | KeptEpoch, *, next_round: int | None = None) -> Transition:
        """Return the state that computes with the epoch in `news`, where it can.

        `next_round` is the round of the agent's next decision, where agents share contexts: an
        epoch that contains rewards of that round or a later one must wait. An epoch without a sum
        ends the use of the one before: the agent goes on with its own data alone. After a CONFLICT
        the caller takes `anew` and forgets its pending decisions.
        """
        if news.epoch <= self.seen:
            return Transition(self, Effect.OLD)
        if next_round is not None and news.round >= next_round:
            return Transition(self, Effect.WAIT)
        after = replace(self, seen=news.epoch, doubt=0)
        own = news.own if news.own is not None and news.own.n > 0 else None
        if own is not None and not self._knows(own):
            return Transition(self, Effect.CONFLICT)
        if news.sums is None and self.pooled is not None:
            # Too few tasks are left for a sum. The one in use holds data that were taken out.
            after = replace(after, epoch=news.epoch, pooled=None, without=(), since=None)
            return Transition(after, Effect.ADOPTED)
        if news.sums is None or (own is not None and self._index(own) is None):
            return Transition(after, Effect.WAIT)
        without = news.without or ()
        after = replace(after, epoch=news.epoch, pooled=news.sums, without=without, since=own)
        return Transition(after, Effect.ADOPTED)

    def anew(self, stream: str) -> StreamState:
        """Return a new stream that has counted nothing; the adopted sum stays valid."""
        return replace(
            StreamState.start(stream, self.dim),
            seen=self.seen,
            epoch=self.epoch,
            pooled=self.pooled,
            without=self.without,
            conflicts=self.conflicts + 1,
            starts=self.starts,
            pool=self.pool,
            left=self.left,
        )

    def again(self, stream: str, open_: Sums, *, pool: int, left: Left) -> StreamState:
        """Return the stream that takes this one's place, with nothing, or with its data anew.

        No pooled sum is in use any more: this one's may rest on what led to the alarm.
        """
        return replace(
            StreamState.start(stream, self.dim),
            open=open_,
            seen=self.seen,
            epoch=self.epoch,
            conflicts=self.conflicts,
            starts=self.starts + 1,
            replaces=(*self.replaces, *self.former, self.stream),
            told=max(self.newest.sums.n, self.told) if open_.n else 0,
            pool=pool,
            left=left,
        )

    def _continued(self, stream: str, revision: Revision) -> Transition:
        """Return a new stream with what the sealed one did not get to send."""
        # What was taken over once is not taken over again: the first checkpoint holds all of it; if
        # nothing was stored, the rest would descend from two streams, and only one can be named.
        twice = self.moved is not None and revision == NOTHING
        if twice or self._index(revision) is None:
            return Transition(self.anew(stream), Effect.CONFLICT)
        fresh = replace(
            StreamState.start(stream, self.dim),
            open=self._after(revision),
            told=0 if revision.n else self.told,
            moved=(self.stream, revision),
            former=(*self.former, self.stream),
            seen=self.seen,
            epoch=self.epoch,
            conflicts=self.conflicts,
            starts=self.starts,
            pool=self.pool,
            left=self.left,
        )
        # A coordinator that was restored and then sealed the stream ends before the adopted
        # entry: that sum contains part of the rest, and must go.
        if self.since is None or self.since.n <= revision.n:
            fresh = replace(fresh, pooled=self.pooled, without=self.without)
        return Transition(fresh, Effect.CONTINUED)

    def _after(self, revision: Revision) -> Sums:
        """Return what was counted after one of the kept checkpoints."""
        k = self._index(revision)
        assert k is not None
        return add_sums(self.dim, (*self.parts[k:], self.open))

    def _index(self, revision: Revision) -> int | None:
        """Return which of the kept checkpoints this is, if it is one; the newest is the usual."""
        for k in reversed(range(len(self.checkpoints))):
            if self.checkpoints[k].revision == revision:
                return k
        return None

    def _knows(self, revision: Revision) -> bool:
        """Tell whether a checkpoint is one of this stream's."""
        return self._index(revision) is not None or revision in {NOTHING, *self.older}

    def _pruned(
        self, checkpoints: list[Checkpoint], parts: list[Sums]
    ) -> tuple[list[Checkpoint], list[Sums], tuple[Revision, ...]]:
        """Take the oldest sums away; return what is left, and the names of those that were."""
        older = list(self.older)
        while len(checkpoints) > KEPT_CHECKPOINTS:
            if self.since is None or checkpoints[0].revision != self.since:
                older.append(checkpoints.pop(0).revision)
                parts.pop(0)
            else:  # the sum in use begins here: join the next two parts instead
                older.append(checkpoints.pop(1).revision)
                parts[:2] = [add_sums(self.dim, parts[:2])]
        named = [revision for revision in older if revision != NOTHING]
        return checkpoints, parts, tuple(named[-KEPT_REVISIONS:])
