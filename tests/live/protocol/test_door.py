"""Uploads that no task could have made are refused at the door."""

from __future__ import annotations

import pytest
from live.protocol.harness import Harness, code_of
from live.protocol.world import make_space

import guardband as gb
from guardband.live.protocol.space import UploadSettings


def test_more_observations_than_time_and_the_declared_rate_allow_are_refused():
    rules = UploadSettings(max_rate=2.0, max_logged=3)
    harness = Harness(space=make_space(contexts="per-request", uploads=rules))
    harness.now = 50.0
    a = harness.join("movies")
    harness.observe(a, 4)
    harness.checkpoint(a)
    problem = code_of(harness.send, a)
    assert (problem.code, problem.more["check"]) == ("invalid_increment", "rate")
    assert "uploads.max_rate=2" in problem.detail
    assert harness.stored(a).n == 0
    harness.now += 0.5  # 3 + 2 * 0.5 = 4
    harness.send(a)
    # Two streams of a task have made no more than the task can have, ...
    other = harness.join("movies", "other")
    harness.observe(other)
    harness.checkpoint(other)
    assert code_of(harness.send, other).more["check"] == "rate"
    # ... and another task has its own time.
    third = harness.join("tv")
    harness.observe(third, 3)
    harness.checkpoint(third)
    harness.send(third)
    harness.now += 0.5
    harness.send(other)


def test_a_billion_observations_are_refused_where_a_rate_is_declared():
    harness = Harness(space=make_space(uploads=UploadSettings(max_rate=1000.0)))
    a = harness.join("movies")
    harness.observe(a)
    harness.checkpoint(a)
    made = harness.state(a).upload()
    many = made.checkpoint._replace(sums=made.checkpoint.sums._replace(n=10**9))
    forged = made.model_copy(update={"checkpoint": many})
    problem = code_of(harness.coordinator.upload, harness.stream(a), forged, now=3600.0)
    assert problem.more["check"] == "rate"
    assert harness.stored(a).n == 0
    free = Harness()
    b = free.join("movies")
    free.coordinator.upload(free.stream(b), forged, now=3600.0)  # nothing is declared


def test_more_state_folders_than_declared_are_refused():
    rules = UploadSettings(max_streams=2)
    harness = Harness(space=make_space(contexts="per-request", uploads=rules))
    harness.join("movies", "one")
    ended = harness.join("movies", "two")
    harness.coordinator.seal(harness.stream(ended), harness.state(ended).base, now=1.0)
    problem = code_of(harness.join, "movies", "three")
    assert (problem.code, problem.status) == ("too_many_streams", 409)
    assert "uploads.max_streams=2" in problem.detail
    harness.register("one")  # what is known may come again
    harness.join("tv")
    more = harness.space.changed(uploads=UploadSettings(max_streams=3))
    harness.coordinator.configure("home", more, who="test", now=2.0)
    harness.register("three")


def test_rows_of_logs_are_allowed_beside_a_rate_only():
    with pytest.raises(gb.InvalidValueError, match=r"uploads\.max_rate"):
        make_space(uploads={"max_logged": 5})  # type: ignore[arg-type]
