"""The agent's side of a stream: what it counted, its checkpoints, and what it may compute with.

A state never changes; every step returns the next one. It knows no clock, no network and no random
numbers: names of streams and versions are given to it. Write it down after every step
(`save_stream`), and make that durable before a checkpoint is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from guardband.kernels.types import Floats
from guardband.live.protocol.messages import (
    NOTHING,
    Account,
    Checkpoint,
    Continuation,
    News,
    Refused,
    Register,
    Report,
    Revision,
    Upload,
    Uploaded,
)
from guardband.live.protocol.sums import Sums, add_sums, empty_sums, upper_places

__all__ = ["KEPT_REVISIONS", "Effect", "KeptEpoch", "StreamState", "Transition"]

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


class KeptEpoch(NamedTuple):
    """What a journal keeps of an epoch until it can be adopted; `News` has the same."""

    epoch: int
    sums: Sums | None  # None: nothing that one can compute with
    own: Revision | None  # this stream's entry in it; None: it has none
    round: int  # the latest round that it contains, where tasks share contexts
    excluded: int = 0  # tasks that operators left out of it
    without: tuple[Sums, ...] | None = ()  # the sums without each other task, where one may lie


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
        The checkpoints whose sums are kept, oldest first; the last is what the next upload sends.
    parts
        What was counted between one checkpoint and the next; sums of parts are never differences.
    open
        What was counted since the last checkpoint.
    older
        The revisions of older checkpoints.
    base
        What the coordinator is believed to hold.
    answered
        The newest epoch for which the last checkpoint is the answer.
    seen
        The newest epoch ever heard of.
    epoch, pooled, since
        The adopted epoch, its sum, and this stream's entry in that sum (None: it has none).
    without
        That sum without each other task, where one of them may lie.
    moved
        The sealed stream whose rest this one took, with the checkpoint at which it ended.
    conflicts
        How often a stream had to be given up.
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
    conflicts: int = 0

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
        if self.since is None:
            return add_sums(self.dim, (self.checkpoints[0].sums, *self.parts, self.open))
        return self._after(self.since)

    def counted(self, psi: Floats, reward: float, weight: float, guess: float) -> StreamState:
        """Return the state with one more observation, rounded as the kernels round it."""
        d, upper = self.dim, upper_places(self.dim)
        outer = np.empty((d + 1, d + 1))
        outer[:d, :d] = weight * np.multiply.outer(psi, psi)
        outer[:d, d] = (weight * reward) * psi
        outer[d, d] = (weight * reward) * reward
        n, gram, surprise, weights, *rest = self.open
        more = Sums(
            n + 1,
            gram + outer[upper],
            surprise + weight * (guess * guess - 2.0 * reward * guess),
            weights + weight,
            *rest,
        )
        return replace(self, open=more)

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
        after = self
        if self.open.n >= max(1, min_batch):
            made = Checkpoint(version, self.total, max(round, self.newest.round))
            after = replace(
                self,
                checkpoints=(*self.checkpoints, made),
                parts=(*self.parts, self.open),
                open=empty_sums(self.dim),
            )._pruned()
        return replace(after, answered=max(after.answered, for_epoch))

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
        )

    def stored(self, answer: Uploaded) -> StreamState:
        """Return the state after an upload was accepted; one of a former stream is ignored."""
        if not self._knows(answer.revision):
            return self
        base = answer.revision if answer.revision.n >= self.base.n else self.base
        # A trigger that opened no epoch answered none: the next epoch gets a checkpoint of its own.
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
        after = replace(self, seen=news.epoch)
        own = news.own if news.own is not None and news.own.n > 0 else None
        if own is not None and not self._knows(own):
            return Transition(self, Effect.CONFLICT)
        if news.sums is None and self.pooled is not None:
            # Too few tasks are left for a sum. The one in use holds data that were taken out.
            return Transition(
                replace(after, epoch=news.epoch, pooled=None, without=(), since=None),
                Effect.ADOPTED,
            )
        if news.sums is None or (own is not None and self._index(own) is None):
            return Transition(after, Effect.WAIT)
        without = news.without or ()
        after = replace(after, epoch=news.epoch, pooled=news.sums, without=without, since=own)
        return Transition(after, Effect.ADOPTED)

    def anew(self, stream: str) -> StreamState:
        """Return a new stream that has counted nothing; the adopted sum stays valid."""
        fresh = StreamState.start(stream, self.dim)
        return replace(
            fresh,
            seen=self.seen,
            epoch=self.epoch,
            pooled=self.pooled,
            without=self.without,
            conflicts=self.conflicts + 1,
        )

    def _continued(self, stream: str, revision: Revision) -> Transition:
        """Return a new stream with what the sealed one did not get to send."""
        # What was taken over once is not taken over again: the first checkpoint holds all of it, so
        # where nothing was stored, the rest would descend from two streams, and only one can be
        # named.
        twice = self.moved is not None and revision == NOTHING
        if twice or self._index(revision) is None:
            return Transition(self.anew(stream), Effect.CONFLICT)
        fresh = replace(
            StreamState.start(stream, self.dim),
            open=self._after(revision),
            moved=(self.stream, revision),
            seen=self.seen,
            epoch=self.epoch,
            conflicts=self.conflicts,
        )
        # A coordinator that was restored and then sealed the stream ends before the adopted
        # entry: that sum contains part of the rest, and must go.
        contained = self.since is not None and self.since.n > revision.n
        if not contained:
            fresh = replace(fresh, pooled=self.pooled, without=self.without)
        return Transition(fresh, Effect.CONTINUED)

    def _after(self, revision: Revision) -> Sums:
        """Return what was counted after one of the kept checkpoints."""
        k = self._index(revision)
        assert k is not None
        return add_sums(self.dim, (*self.parts[k:], self.open))

    def _index(self, revision: Revision) -> int | None:
        """Return which of the kept checkpoints this is, if it is one; the newest is the usual."""
        for k in range(len(self.checkpoints) - 1, -1, -1):
            each = self.checkpoints[k]
            if each.version == revision.version and each.sums.n == revision.n:
                return k
        return None

    def _knows(self, revision: Revision) -> bool:
        """Tell whether a checkpoint is one of this stream's."""
        return (
            revision == NOTHING or self._index(revision) is not None or revision in set(self.older)
        )

    def _pruned(self) -> StreamState:
        """Return the state without its oldest sums, of which the names are kept."""
        checkpoints, parts, older = list(self.checkpoints), list(self.parts), list(self.older)
        while len(checkpoints) > KEPT_CHECKPOINTS:
            if self.since is None or checkpoints[0].revision != self.since:
                older.append(checkpoints.pop(0).revision)
                parts.pop(0)
            else:  # the sum in use begins here: join the next two parts instead
                older.append(checkpoints.pop(1).revision)
                parts[:2] = [add_sums(self.dim, parts[:2])]
        named = tuple(revision for revision in older if revision != NOTHING)
        return replace(
            self,
            checkpoints=tuple(checkpoints),
            parts=tuple(parts),
            older=named[-KEPT_REVISIONS:],
        )
