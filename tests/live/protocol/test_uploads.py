"""Uploads: what is stored, what is answered again, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from live.look import events_of
from live.protocol.harness import Harness, code_of
from live.protocol.world import make_space

from guardband.live.client.stream_state import Effect
from guardband.live.protocol.messages import Checkpoint, Report, Revision, Upload
from guardband.live.protocol.sums import empty_sums
from guardband.live.protocol.types import LARGEST_DIM


def test_a_lost_reply_is_answered_again(harness):
    a = harness.join("movies")
    harness.observe(a, 3)
    harness.checkpoint(a)
    state = harness.state(a)
    first = harness.coordinator.upload(state.stream, state.upload(), now=0.0)
    before = harness.stored(a)
    again = harness.coordinator.upload(state.stream, state.upload(), now=0.0)
    assert first.revision == again.revision == state.newest.revision
    assert harness.stored(a) == before


def test_a_late_duplicate_is_refused_and_ignored(harness):
    a = harness.join("movies")
    harness.observe(a)
    harness.checkpoint(a)
    old = harness.state(a).upload()
    harness.send(a)
    harness.observe(a)
    harness.checkpoint(a)
    harness.send(a)
    problem = code_of(harness.coordinator.upload, harness.stream(a), old, now=0.0)
    assert (problem.code, problem.status) == ("revision_conflict", 409)
    assert problem.more["stored"]["n"] == 2
    step = harness.state(a).refused(problem, stream="x")
    assert step.effect == Effect.KEEP
    assert step.stream == harness.state(a)


def test_a_restored_snapshot_gives_up_what_was_not_acknowledged(harness):
    a = harness.join("movies")
    harness.observe(a, 2)
    harness.checkpoint(a)
    harness.send(a)
    harness.observe(a)  # in the snapshot, not acknowledged
    snapshot = harness.copy(a, "snapshot")
    harness.observe(a)
    harness.checkpoint(a)
    harness.send(a)  # the server has 4
    harness.checkpoint(snapshot)
    assert harness.refused(snapshot) == Effect.CONFLICT
    state = harness.state(snapshot)
    assert state.total.n == 0
    assert state.conflicts == 1
    assert state.stream != harness.stream(a)


def test_of_two_clones_one_goes_on(harness):
    a = harness.join("movies")
    harness.observe(a, 3)
    b = harness.copy(a, "twin")
    for who in (a, b):
        harness.observe(who, 2)
        harness.checkpoint(who)
    harness.send(a)
    assert harness.refused(b) == Effect.CONFLICT
    assert harness.stored(a).n == 5


def test_an_upload_needs_a_proper_version_and_round(harness):
    a = harness.join("movies")
    harness.observe(a)
    harness.checkpoint(a)
    good = harness.state(a).upload()
    bad = [("version", {"version": v}) for v in ("", "xyz", "A" * 32, "a" * 33)]
    bad += [("round", {"round": r}) for r in (-1, 2**60, 1.5)]
    for check, change in bad:
        request = good.model_copy(update={"checkpoint": good.checkpoint._replace(**change)})
        problem = code_of(harness.coordinator.upload, harness.stream(a), request, now=0.0)
        assert (problem.status, problem.more["check"]) == (422, check)
    assert harness.stored(a).n == 0


def test_a_refused_upload_is_written_down_once_a_minute(harness):
    a = harness.join("movies")
    harness.observe(a)
    harness.checkpoint(a)
    good = harness.state(a).upload()
    broken = good.checkpoint.sums._replace(weight=-1.0)
    bad = good.model_copy(update={"checkpoint": good.checkpoint._replace(sums=broken)})
    for now in (0.0, 1.0, 59.0, 61.0):
        code_of(harness.coordinator.upload, harness.stream(a), bad, now=now)
    events = events_of(harness.coordinator)
    assert [event.what for event in events].count("invalid increment") == 2


def test_a_report_that_is_too_large_stores_nothing(harness):
    a = harness.join("movies")
    harness.observe(a)
    harness.checkpoint(a)
    for large in (
        {"state": {"reason": "y" * 40_000}},
        {"counters": {f"k{i}": 1 for i in range(65)}},
        {"state": {"theta": [0.1] * (LARGEST_DIM + 1)}},
    ):
        with pytest.raises(ValueError, match="at most"):
            harness.state(a).upload(report=Report.model_validate(large))
    assert harness.stored(a).n == 0


def test_small_batches_are_refused_and_answered_with_the_last_checkpoint():
    harness = Harness(space=make_space(min_batch=3))
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a, 3)
    harness.observe(b, 3)
    harness.pool(a, b)
    harness.observe(a, 3)
    harness.observe(b, 2)
    harness.trigger(a)
    harness.answer(b)  # nothing to add: its checkpoint is that of before
    assert harness.state(b).open.n == 2
    record = harness.coordinator.epoch("home", 2)
    assert sorted(line.n for line in record.manifest) == [3, 6]
    state = harness.state(b)
    small = replace(state, open=empty_sums(state.dim)).upload()
    forced = Checkpoint("f" * 32, state.total, state.newest.round)
    problem = code_of(
        harness.coordinator.upload,
        state.stream,
        small.model_copy(update={"checkpoint": forced}),
        now=harness.now,
    )
    assert problem.more["check"] == "batch"


def test_an_upload_of_an_unknown_stream_is_refused(harness):
    checkpoint = Checkpoint("", empty_sums(4), 0)
    request = Upload(base=Revision(0, ""), checkpoint=checkpoint)
    problem = code_of(harness.coordinator.upload, "nobody", request, now=0.0)
    assert (problem.code, problem.status) == ("unknown_stream", 404)
