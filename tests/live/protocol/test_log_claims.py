"""A log counts once in a space: which stream may learn it, as the coordinator decides."""

from __future__ import annotations

from dataclasses import replace

from live.protocol.harness import Harness, code_of
from live.protocol.world import make_space

from guardband.live.protocol.messages import NOTHING

LOG, OTHER = "a" * 64, "b" * 64


def test_one_stream_has_a_log():
    harness = Harness(space=make_space(contexts="per-request"))
    harness.join("movies")
    harness.join("movies", "second")
    harness.join("tv")
    for _ in range(2):  # saying it again changes nothing
        harness.register("movies", log=LOG)
        for who in ("second", "tv"):
            problem = code_of(harness.register, who, log=LOG)
            assert (problem.code, problem.status) == ("log_taken", 409)
            assert problem.more["owner"] == harness.stream("movies")
            assert "'movies'" in problem.detail
    harness.register("tv", log=OTHER)
    assert code_of(harness.register, "movies", log=OTHER).code == "log_taken"


def test_spaces_have_logs_of_their_own():
    harness = Harness(space=make_space(contexts="per-request"))
    harness.join("movies")
    harness.register("movies", log=LOG)
    harness.coordinator.create_space(
        harness.space.model_copy(update={"name": "away"}), who="test", now=0.0
    )
    request = harness.state("movies").register(
        task="movies",
        schema_hash=harness.space.schema_hash,
        uses=(0, 1, 2, 3),
        library="test",
        log=LOG,
    )
    elsewhere = request.model_copy(update={"stream": harness.fresh("stream")})
    harness.coordinator.register("away", elsewhere, now=0.0)


def test_a_stream_that_continues_another_has_its_logs():
    harness = Harness(space=make_space(contexts="per-request"))
    harness.join("movies")
    harness.register("movies", log=LOG)
    for _ in range(2):
        before = harness.stream("movies")
        harness.coordinator.seal(before, NOTHING, now=0.0)
        heir = replace(harness.state("movies"), stream=harness.fresh("stream"))
        harness.states["movies"] = replace(heir, moved=(before, NOTHING))
        harness.register("movies")
    harness.register("movies", log=LOG)
    harness.join("tv")
    assert code_of(harness.register, "tv", log=LOG).more["owner"] == harness.stream("movies")


def test_a_refused_log_leaves_no_trace():
    harness = Harness(space=make_space(contexts="per-request"))
    harness.join("movies")
    harness.register("movies", log=LOG)
    harness.join("tv")
    before = harness.store.snapshot()
    assert code_of(harness.register, "tv", log=LOG).code == "log_taken"
    assert harness.store.snapshot() == before
