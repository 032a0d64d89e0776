"""T2m: seeded bugs, each a small change to the protocol; the model must find every one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from live.protocol import stream_rows
from live.protocol.machine import Machine

from guardband.live.client.stream_state import Effect, StreamState, Transition
from guardband.live.coordinator import membership, operator_requests
from guardband.live.coordinator import upload_checks as increments
from guardband.live.coordinator import uploads as rules
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.coordinator.epochs import answer
from guardband.live.coordinator.restores import RestoreClaims

Patch = pytest.MonkeyPatch
MUTANTS: dict[str, Callable[[Patch], type[Machine]]] = {}


def mutant(change: Callable[[Patch], type[Machine] | None]) -> Callable[[Patch], type[Machine]]:
    def made(patch: Patch) -> type[Machine]:
        return change(patch) or Machine

    MUTANTS[change.__name__] = made
    return made


class Proxy:
    """A transaction with some answers changed."""

    def __init__(self, t: Any, **changes: Any) -> None:
        self._t, self._changes = t, changes

    def __getattr__(self, name: str) -> Any:
        return self._changes.get(name) or getattr(self._t, name)


# ---- the agent's side


@mutant
def resend_on_conflict(patch: Patch) -> None:
    """What was not acknowledged goes into the new stream."""
    right = StreamState.anew

    def anew(self: StreamState, stream: str) -> StreamState:
        kept = any(checkpoint.revision == self.base for checkpoint in self.checkpoints)
        rest = self._after(self.base) if kept else self.open
        return replace(right(self, stream), open=rest)

    patch.setattr(StreamState, "anew", anew)


@mutant
def subtract_acknowledged(patch: Patch) -> None:
    """Own data are taken to be in the epoch up to what was acknowledged, not up to its entry."""
    right = StreamState.adopt

    def adopt(self: StreamState, news: Any, *, next_round: int | None = None) -> Transition:
        step = right(self, news, next_round=next_round)
        if step.effect != Effect.ADOPTED:
            return step
        known = step.stream.base.n > 0 and step.stream.base in {
            c.revision for c in step.stream.checkpoints
        }
        since = step.stream.base if known else None
        return Transition(replace(step.stream, since=since), step.effect)

    patch.setattr(StreamState, "adopt", adopt)


@mutant
def own_entry_ignored(patch: Patch) -> None:
    """The epoch is adopted as if it had nothing of one's own."""
    right = StreamState.adopt
    patch.setattr(
        StreamState,
        "adopt",
        lambda self, news, next_round=None: right(
            self, news.model_copy(update={"own": None}), next_round=next_round
        ),
    )


@mutant
def any_entry_is_mine(patch: Patch) -> None:
    """An own entry with a foreign version is no conflict: the newest checkpoint will do."""
    right = StreamState.adopt

    def adopt(self: StreamState, news: Any, *, next_round: int | None = None) -> Transition:
        own = news.own
        if own is not None and not self._knows(own):
            below = [c.revision for c in self.checkpoints if c.revision.n <= own.n]
            news = news.model_copy(update={"own": below[-1] if below else None})
        return right(self, news, next_round=next_round)

    patch.setattr(StreamState, "adopt", adopt)


@mutant
def old_epochs_adopted(patch: Patch) -> None:
    """An answer that arrives late sets the agent back."""
    right = StreamState.adopt

    def adopt(self: StreamState, news: Any, *, next_round: int | None = None) -> Transition:
        return right(replace(self, seen=-1), news, next_round=next_round)

    patch.setattr(StreamState, "adopt", adopt)


@mutant
def no_barrier(patch: Patch) -> None:
    """An epoch is adopted although it holds rewards of the coming round."""
    right = StreamState.adopt
    patch.setattr(StreamState, "adopt", lambda self, news, next_round=None: right(self, news))


@mutant
def sum_kept_when_continued(patch: Patch) -> None:
    """A stream that goes on after a seal keeps a sum that contains part of its rest."""
    right = StreamState._continued

    def continued(self: StreamState, stream: str, revision: Any) -> Transition:
        step = right(self, stream, revision)
        return Transition(replace(step.stream, pooled=self.pooled), step.effect)

    patch.setattr(StreamState, "_continued", continued)


@mutant
def rest_moves_twice(patch: Patch) -> None:
    """What a sealed stream left moves on when its successor is sealed, too."""
    right = StreamState._continued

    def continued(self: StreamState, stream: str, revision: Any) -> Transition:
        return right(replace(self, moved=None), stream, revision)

    patch.setattr(StreamState, "_continued", continued)


@mutant
def w_without_u(patch: Patch) -> None:
    """W and U are not sent together: U is that of the checkpoint before."""
    right = StreamState.upload

    def upload(self: StreamState, **rest: Any) -> Any:
        request = right(self, **rest)
        if len(self.checkpoints) < 2:
            return request
        gram = request.checkpoint.sums.gram.copy()
        for row, place in enumerate((4, 8, 11, 13)):  # the last column, by rows
            gram[place] = self.checkpoints[-2].sums.gram[place]
            assert row < 4
        torn = request.checkpoint._replace(sums=request.checkpoint.sums._replace(gram=gram))
        return request.model_copy(update={"checkpoint": torn})

    patch.setattr(StreamState, "upload", upload)


@mutant
def sent_before_it_is_safe(patch: Patch) -> type[Machine]:
    """The journal is made durable after the upload, not before."""

    class Late(Machine):
        sync_before_send = False

    return Late


@mutant
def journal_forgets_its_entry(patch: Patch) -> None:
    """After a crash an agent no longer knows up to where the adopted sum holds its own data."""
    right = stream_rows.load_stream
    patch.setattr(stream_rows, "load_stream", lambda *rest: replace(right(*rest), since=None))


@mutant
def checkpoints_written_late(patch: Patch) -> None:
    """What a step changed is written with the next step."""
    right, last = stream_rows.save_stream, {}

    def save(journal: Any, number: int, before: Any, after: StreamState) -> None:
        right(journal, number, before, last.get(number, after) if before else after)
        last[number] = after

    patch.setattr(stream_rows, "save_stream", save)


# ---- the coordinator's side


@mutant
def no_version_check(patch: Patch) -> None:
    """Only n is compared, not the version."""
    right = Coordinator._compare_and_set

    def compare(self: Any, space: Any, task: Any, held: Any, request: Any) -> Any:
        if request.checkpoint.sums.n == held.n:
            return held
        if request.base.n == held.n:
            request = request.model_copy(update={"base": held.revision})
        return right(self, space, task, held, request)

    patch.setattr(Coordinator, "_compare_and_set", compare)


@mutant
def newest_wins(patch: Patch) -> None:
    """Whatever has the larger n is stored, on whatever it builds."""
    right = Coordinator._compare_and_set

    def compare(self: Any, space: Any, task: Any, held: Any, request: Any) -> Any:
        if request.checkpoint.sums.n > held.n:
            request = request.model_copy(update={"base": held.revision})
        return right(self, space, task, held, request)

    patch.setattr(Coordinator, "_compare_and_set", compare)


@mutant
def smaller_n_accepted(patch: Patch) -> None:
    """An old duplicate overwrites what came after it."""
    right = Coordinator._compare_and_set

    def compare(self: Any, space: Any, task: Any, held: Any, request: Any) -> Any:
        checkpoint = request.checkpoint
        if held.state == "open" and 0 < checkpoint.sums.n < held.n:
            total = checkpoint.sums.as_bytes()
            return held._replace(n=checkpoint.sums.n, version=checkpoint.version, total=total)
        return right(self, space, task, held, request)

    patch.setattr(Coordinator, "_compare_and_set", compare)


@mutant
def late_stream_uses_newest(patch: Patch) -> None:
    """A stream that did not answer enters with whatever it has stored."""
    right = operator_requests.close_epoch

    def close(t: Any, row: Any, space: Any, *, now: float) -> Any:
        for stream in t.streams(row.name):
            if stream.answer_epoch < row.open:
                t.put(answer(stream, row.open))
        return right(t, row, space, now=now)

    patch.setattr(operator_requests, "close_epoch", close)


@mutant
def last_answer_wins(patch: Patch) -> None:
    """A second answer to the same epoch replaces the first."""
    right = Coordinator._apply_upload

    def take(self: Any, t: Any, record: Any, space: Any, request: Any, *, now: float) -> Any:
        if request.for_epoch == record.space.open:
            record = record._replace(stream=record.stream._replace(answer_epoch=0))
        return right(self, t, record, space, request, now=now)

    patch.setattr(Coordinator, "_apply_upload", take)


@mutant
def retracted_still_summed(patch: Patch) -> None:
    """Tasks that were quarantined or retracted stay in the sum."""
    right = operator_requests.close_epoch

    def close(t: Any, row: Any, space: Any, *, now: float) -> Any:
        blind = Proxy(t, tasks=lambda name: [r._replace(status="active") for r in t.tasks(name)])
        return right(blind, row, space, now=now)  # type: ignore[arg-type]

    patch.setattr(operator_requests, "close_epoch", close)


@mutant
def numbers_used_again(patch: Patch) -> None:
    """After a restore, epochs get numbers that agents have already seen."""
    patch.setattr(RestoreClaims, "note_epoch", lambda self, t, row, *seen, **rest: row)


@mutant
def continued_by_everybody(patch: Patch) -> None:
    """Two copies of an agent may both take the rest of a sealed stream."""
    right = membership._hand_over

    def hand_over(t: Any, *rest: Any, now: float) -> None:
        def stream(name: str) -> Any:
            row = t.stream(name)
            return None if row is None else row._replace(continued_by=None)

        right(Proxy(t, stream=stream), *rest, now=now)  # type: ignore[arg-type]

    patch.setattr(membership, "_hand_over", hand_over)


@mutant
def sealed_streams_hear_news(patch: Patch) -> None:
    """An agent whose stream was sealed adopts sums that may hold its rest."""
    right = Coordinator._news_for

    def news_for(self: Any, row: Any, record: Any, *rest: Any, now: float) -> Any:
        if record is not None:
            record = record._replace(stream=record.stream._replace(state="open"))
        return right(self, row, record, *rest, now=now)

    patch.setattr(Coordinator, "_news_for", news_for)


@mutant
def foreign_features_accepted(patch: Patch) -> None:
    """Nobody checks that a task writes only where it may."""
    right = increments.check_increment

    def check(space: Any, uses: Any, *rest: Any, **more: Any) -> None:
        right(space, range(space.dim), *rest, **more)

    patch.setattr(rules, "check_increment", check)


@mutant
def no_eigenvalues(patch: Patch) -> None:
    """Nobody checks that an increment is positive semi-definite."""
    patch.setattr(increments, "_check_eigenvalues", lambda *rest: None)
