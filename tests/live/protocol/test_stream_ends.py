"""The end of streams: sealed, continued once, and never counted twice."""

from __future__ import annotations

from live.protocol.scenes import code_of

from guardband.live.client.stream_state import Effect
from guardband.live.protocol.messages import Revision


def test_a_sealed_stream_enters_with_its_end_and_its_rest_moves_once(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a, 2)
    scene.cut(a)
    scene.send(a)
    old = scene.stream(a)
    scene.observe(a, 3)
    twin = scene.copy(a, "twin")
    scene.coordinator.seal(old, scene.chain(a).base, now=0.0)
    scene.cut(a)
    scene.cut(twin)
    assert scene.refused(a) == Effect.CONTINUED
    assert scene.refused(twin) == Effect.CONTINUED
    assert scene.chain(a).total.n == 3
    scene.register(a)
    scene.register(a)  # again: the same
    assert code_of(scene.register, twin).code == "already_continued"
    scene.observe(b)
    scene.trigger(b)
    scene.answer(a)
    record = scene.coordinator.epoch("home", 1)
    assert record.n == 6
    assert {line.stream: line.n for line in record.manifest}[old] == 2


def test_a_copy_of_a_sealed_stream_hears_no_news(scene):
    """Its rest may be in the sum, under the name of the stream that took it."""
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.cut(a)
    scene.send(a)
    scene.observe(a, 2)
    twin = scene.copy(a, "twin")
    scene.coordinator.seal(scene.stream(a), scene.chain(a).base, now=0.0)
    scene.cut(a)
    scene.refused(a)
    scene.register(a)
    scene.observe(b)
    scene.trigger(b)
    scene.answer(a)
    problem = code_of(scene.news, twin)
    assert (problem.code, problem.status) == ("sealed", 410)
    assert scene.chain(twin).refused(problem, stream="x").effect == Effect.CONTINUED


def test_the_rest_does_not_move_where_somebody_went_on_with_the_stream(scene):
    a = scene.join("movies")
    scene.observe(a)
    scene.cut(a)
    scene.send(a)
    backup = scene.store.snapshot()
    scene.observe(a, 2)
    twin = scene.copy(a, "twin")
    scene.coordinator.seal(scene.stream(a), scene.chain(a).base, now=0.0)
    scene.cut(a)
    scene.refused(a)
    scene.register(a)
    scene.store.restore(backup)  # nothing sealed, nothing continued
    scene.cut(twin)
    scene.send(twin)  # with the rest
    problem = code_of(scene.register, a)
    assert problem.code == "already_continued"
    assert scene.chain(a).refused(problem, stream="x").effect == Effect.CONFLICT


def test_a_rest_moves_once_and_not_again(scene):
    """Copied, sealed, sealed again, and the coordinator restored to before all of it."""
    a = scene.join("movies")
    backup = scene.store.snapshot()
    scene.observe(a)
    scene.cut(a)
    scene.send(a)
    scene.observe(a, 2)
    twin = scene.copy(a, "twin")
    scene.coordinator.seal(scene.stream(a), scene.chain(a).base, now=0.0)
    scene.cut(a)
    assert scene.refused(a) == Effect.CONTINUED
    scene.register(a)
    scene.coordinator.seal(scene.stream(a), Revision(0, ""), now=0.0)  # before it sent the rest
    scene.cut(a)
    assert scene.refused(a) == Effect.CONFLICT
    scene.store.restore(backup)
    scene.cut(twin)
    scene.send(twin)  # has the rest, and nobody else has
    assert scene.stored(twin).n == 3
    assert scene.chain(a).total.n == 0


def test_only_what_is_stored_can_be_sealed(scene):
    a = scene.join("movies")
    assert (
        code_of(scene.coordinator.seal, scene.stream(a), Revision(3, "a" * 32), now=0.0).code
        == "revision_conflict"
    )
