"""The end of streams: sealed, continued once, and never counted twice."""

from __future__ import annotations

from live.protocol.harness import code_of

from guardband.live.client.stream_state import Effect
from guardband.live.protocol.messages import Revision


def test_a_sealed_stream_enters_with_its_end_and_its_rest_moves_once(harness):
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a, 2)
    harness.checkpoint(a)
    harness.send(a)
    old = harness.stream(a)
    harness.observe(a, 3)
    twin = harness.copy(a, "twin")
    harness.coordinator.seal(old, harness.state(a).base, now=0.0)
    harness.checkpoint(a)
    harness.checkpoint(twin)
    assert harness.refused(a) == Effect.CONTINUED
    assert harness.refused(twin) == Effect.CONTINUED
    assert harness.state(a).total.n == 3
    harness.register(a)
    harness.register(a)  # again: the same
    assert code_of(harness.register, twin).code == "already_continued"
    harness.observe(b)
    harness.trigger(b)
    harness.answer(a)
    record = harness.coordinator.epoch("home", 1)
    assert record.n == 6
    assert {line.stream: line.n for line in record.manifest}[old] == 2


def copied_and_sealed(harness, a):
    """Let a stream be copied with a rest that was not uploaded, sealed and continued.

    Returns the copy.
    """
    harness.observe(a, 2)
    twin = harness.copy(a, "twin")
    harness.coordinator.seal(harness.stream(a), harness.state(a).base, now=0.0)
    harness.checkpoint(a)
    assert harness.refused(a) == Effect.CONTINUED
    harness.register(a)
    return twin


def test_a_copy_of_a_sealed_stream_hears_no_news(harness):
    """Its rest may be in the sum, under the name of the stream that took it."""
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.checkpoint(a)
    harness.send(a)
    twin = copied_and_sealed(harness, a)
    harness.observe(b)
    harness.trigger(b)
    harness.answer(a)
    problem = code_of(harness.news, twin)
    assert (problem.code, problem.status) == ("sealed", 410)
    assert harness.state(twin).refused(problem, stream="x").effect == Effect.CONTINUED


def test_the_rest_does_not_move_where_somebody_went_on_with_the_stream(harness):
    a = harness.join("movies")
    harness.observe(a)
    harness.checkpoint(a)
    harness.send(a)
    backup = harness.store.snapshot()
    twin = copied_and_sealed(harness, a)
    harness.store.restore(backup)  # nothing sealed, nothing continued
    harness.checkpoint(twin)
    harness.send(twin)  # with the rest
    problem = code_of(harness.register, a)
    assert problem.code == "already_continued"
    assert harness.state(a).refused(problem, stream="x").effect == Effect.CONFLICT


def test_a_rest_moves_once_and_not_again(harness):
    """Copied, sealed, sealed again, and the coordinator restored to before all of it."""
    a = harness.join("movies")
    backup = harness.store.snapshot()
    harness.observe(a)
    harness.checkpoint(a)
    harness.send(a)
    twin = copied_and_sealed(harness, a)
    harness.coordinator.seal(harness.stream(a), Revision(0, ""), now=0.0)  # before it sent the rest
    harness.checkpoint(a)
    assert harness.refused(a) == Effect.CONFLICT
    harness.store.restore(backup)
    harness.checkpoint(twin)
    harness.send(twin)  # has the rest, and nobody else has
    assert harness.stored(twin).n == 3
    assert harness.state(a).total.n == 0


def test_only_what_is_stored_can_be_sealed(harness):
    a = harness.join("movies")
    assert (
        code_of(harness.coordinator.seal, harness.stream(a), Revision(3, "a" * 32), now=0.0).code
        == "revision_conflict"
    )
