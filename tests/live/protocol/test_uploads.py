"""Uploads: what is stored, what is answered again, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from live.look import events_of
from live.protocol.scenes import Scene, code_of
from live.protocol.world import make_space

from guardband.live.client.stream_state import Effect
from guardband.live.protocol.messages import Checkpoint, Report, Revision, Upload
from guardband.live.protocol.sums import empty_sums


def test_a_lost_reply_is_answered_again(scene):
    a = scene.join("movies")
    scene.observe(a, 3)
    scene.cut(a)
    chain = scene.chain(a)
    first = scene.coordinator.upload(chain.stream, chain.upload(), now=0.0)
    before = scene.stored(a)
    again = scene.coordinator.upload(chain.stream, chain.upload(), now=0.0)
    assert first.revision == again.revision == chain.newest.revision
    assert scene.stored(a) == before


def test_a_late_duplicate_is_refused_and_ignored(scene):
    a = scene.join("movies")
    scene.observe(a)
    scene.cut(a)
    old = scene.chain(a).upload()
    scene.send(a)
    scene.observe(a)
    scene.cut(a)
    scene.send(a)
    problem = code_of(scene.coordinator.upload, scene.stream(a), old, now=0.0)
    assert (problem.code, problem.status) == ("revision_conflict", 409)
    assert problem.more["stored"]["n"] == 2
    step = scene.chain(a).refused(problem, stream="x")
    assert step.effect == Effect.KEEP
    assert step.stream == scene.chain(a)


def test_a_restored_snapshot_gives_up_what_was_not_acknowledged(scene):
    a = scene.join("movies")
    scene.observe(a, 2)
    scene.cut(a)
    scene.send(a)
    scene.observe(a)  # in the snapshot, not acknowledged
    snapshot = scene.copy(a, "snapshot")
    scene.observe(a)
    scene.cut(a)
    scene.send(a)  # the server has 4
    scene.cut(snapshot)
    assert scene.refused(snapshot) == Effect.CONFLICT
    chain = scene.chain(snapshot)
    assert chain.total.n == 0
    assert chain.conflicts == 1
    assert chain.stream != scene.stream(a)


def test_of_two_clones_one_goes_on(scene):
    a = scene.join("movies")
    scene.observe(a, 3)
    b = scene.copy(a, "twin")
    for who in (a, b):
        scene.observe(who, 2)
        scene.cut(who)
    scene.send(a)
    assert scene.refused(b) == Effect.CONFLICT
    assert scene.stored(a).n == 5


def test_an_upload_needs_a_proper_version_and_round(scene):
    a = scene.join("movies")
    scene.observe(a)
    scene.cut(a)
    good = scene.chain(a).upload()
    bad = [("version", {"version": v}) for v in ("", "xyz", "A" * 32, "a" * 33)]
    bad += [("round", {"round": r}) for r in (-1, 2**60, 1.5)]
    for check, change in bad:
        request = good.model_copy(update={"checkpoint": good.checkpoint._replace(**change)})
        problem = code_of(scene.coordinator.upload, scene.stream(a), request, now=0.0)
        assert (problem.status, problem.more["check"]) == (422, check)
    assert scene.stored(a).n == 0


def test_a_refused_upload_is_written_down_once_a_minute(scene):
    a = scene.join("movies")
    scene.observe(a)
    scene.cut(a)
    good = scene.chain(a).upload()
    broken = good.checkpoint.sums._replace(weight=-1.0)
    bad = good.model_copy(update={"checkpoint": good.checkpoint._replace(sums=broken)})
    for now in (0.0, 1.0, 59.0, 61.0):
        code_of(scene.coordinator.upload, scene.stream(a), bad, now=now)
    events = events_of(scene.coordinator)
    assert [event.what for event in events].count("invalid increment") == 2


def test_a_report_that_is_too_large_stores_nothing(scene):
    a = scene.join("movies")
    scene.observe(a)
    scene.cut(a)
    for large in (
        {"state": {"reason": "y" * 40_000}},
        {"counters": {f"k{i}": 1 for i in range(65)}},
        {"state": {"theta": [0.1] * 257}},
    ):
        with pytest.raises(ValueError, match="at most"):
            scene.chain(a).upload(report=Report.model_validate(large))
    assert scene.stored(a).n == 0


def test_small_batches_are_refused_and_answered_with_the_last_cut():
    scene = Scene(space=make_space(min_batch=3))
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a, 3)
    scene.observe(b, 3)
    scene.pool(a, b)
    scene.observe(a, 3)
    scene.observe(b, 2)
    scene.trigger(a)
    scene.answer(b)  # nothing to add: its cut is that of before
    assert scene.chain(b).open.n == 2
    record = scene.coordinator.epoch("home", 2)
    assert sorted(line.n for line in record.manifest) == [3, 6]
    chain = scene.chain(b)
    small = replace(chain, open=empty_sums(chain.dim)).upload()
    forced = Checkpoint("f" * 32, chain.total, chain.newest.round)
    problem = code_of(
        scene.coordinator.upload,
        chain.stream,
        small.model_copy(update={"checkpoint": forced}),
        now=scene.now,
    )
    assert problem.more["check"] == "batch"


def test_an_upload_of_an_unknown_stream_is_refused(scene):
    cut = Checkpoint("", empty_sums(4), 0)
    request = Upload(base=Revision(0, ""), checkpoint=cut)
    problem = code_of(scene.coordinator.upload, "nobody", request, now=0.0)
    assert (problem.code, problem.status) == ("unknown_stream", 404)
