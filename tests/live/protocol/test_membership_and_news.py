"""Spaces and tasks: who may join, who is left out, and what agents are told."""

from __future__ import annotations

import json

import pytest
from live.look import events_of, heartbeat_of, row_of
from live.protocol.scenes import Scene, code_of
from live.protocol.world import USES, make_space

from guardband.live.client.stream_state import StreamState
from guardband.live.protocol.messages import Report


def test_where_contexts_are_shared_a_task_has_one_live_stream():
    scene = Scene()
    a = scene.join("movies")
    problem = code_of(scene.join, "movies", "other")
    assert (problem.code, problem.status) == ("task_busy", 409)
    scene.observe(a)
    scene.cut(a)
    scene.send(a)
    scene.now += scene.space.sync.live_s
    scene.register("other")
    assert scene.refused_at(a) == "sealed"
    free = Scene(space=make_space(contexts="per-request"))
    free.join("movies")
    free.join("movies", "other")


def test_where_delta_is_split_equally_there_is_one_stream_per_task():
    scene = Scene(space=make_space(contexts="per-request").changed(shares="equal"))
    scene.join("movies")
    assert code_of(scene.join, "movies", "other").code == "too_many_streams"
    grown = scene.space.changed(agents=9)
    assert code_of(scene.coordinator.configure, "home", grown, who="", now=0.0).code == (
        "shares_fixed"
    )
    other = scene.space.changed(shares="registered")
    assert code_of(scene.coordinator.configure, "home", other, who="", now=0.0).code == (
        "shares_fixed"
    )


def test_quarantine_and_retract_leave_and_return_with_the_next_epoch(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a, 2)
    scene.observe(b, 1)
    scene.pool(a, b)
    scene.coordinator.quarantine("home", "tv", "odd", who="me", now=0.0)
    assert scene.coordinator.epoch("home", 1).n == 3  # what is closed stays
    scene.observe(a)
    scene.pool(a)
    assert [line.task for line in scene.coordinator.epoch("home", 2).manifest] == ["movies"]
    news = scene.news(b)
    assert news is not None
    assert news.own is None
    assert news.excluded == 1
    scene.adopt(b)
    assert max(scene.view(b).values()) == 1  # its own data are its own again
    scene.observe(b)
    scene.cut(b)
    scene.send(b)  # still collected
    scene.coordinator.retract("home", "tv", "consent", who="me", now=0.0)
    problem = code_of(scene.send, b)
    assert (problem.code, problem.status) == ("retracted", 403)
    scene.coordinator.restore("home", "tv", "fine", who="me", now=0.0)
    scene.observe(a)
    scene.trigger(a)
    scene.wait(3.0)
    manifest = {line.task: line.n for line in scene.coordinator.epoch("home", 3).manifest}
    assert manifest == {"movies": 4, "tv": 1}  # with the entry it had
    assert (
        code_of(scene.coordinator.restore, "home", "nobody", "", who="me", now=0.0).code
        == "unknown_task"
    )


def test_registering_is_checked(scene):
    a = scene.join("movies")
    wrong = {
        "schema_mismatch": {"schema_hash": "0"},
        "invalid_stream": {"stream": "../x"},
        "invalid_task": {"task": "a b"},
        "invalid_uses": {"uses": (0, 9)},
        "uses_mismatch": {"uses": (0,)},
        "stream_taken": {"task": "tv", "uses": USES["tv"]},
    }
    for code, change in wrong.items():
        assert code_of(scene.register, a, **change).code == code, code
    assert code_of(scene.coordinator.space, "away").code == "unknown_space"
    assert code_of(scene.coordinator.create_space, scene.space, who="", now=0.0).status == 409


def test_shares_of_delta_sum_to_at_most_one(scene):
    scene.join("movies")
    scene.join("tv")
    scene.join("books")
    told = [scene.register(task) for task in ("movies", "tv", "books")]
    assert [each.task_index for each in told] == [1, 2, 3]
    assert [each.delta_share for each in told] == pytest.approx([1 / 2, 1 / 6, 1 / 12])
    scene.chains["more"], scene.tasks["more"] = StreamState.start(scene.fresh("stream"), 4), "tv"
    problem = code_of(scene.register, "more", task="fourth")
    assert (problem.code, problem.status) == ("too_many_tasks", 409)
    # A second stream of a task has data, and so a share, of its own; the first keeps its own.
    scene.now += scene.space.sync.live_s
    assert scene.register("more").delta_share == pytest.approx(1 / 20)
    assert scene.register("more").task_index == 2
    assert scene.register("tv").delta_share == pytest.approx(1 / 6)


def test_a_space_grows_only_when_everybody_knows():
    scene = Scene(space=make_space().changed(agents=1))
    a = scene.join("movies")
    grown = scene.space.changed(agents=2)
    assert scene.coordinator.configure("home", grown, who="me", now=0.0) == 2
    problem = code_of(scene.join, "tv")
    assert problem.code == "agents_unseen"
    news = scene.news(a)
    assert news is not None
    assert news.config is not None
    assert (news.config.agents, news.config_version) == (2, 2)
    code_of(scene.join, "tv")  # told, but not confirmed
    scene.coordinator.news(
        "home", scene.stream(a), after=0, open_after=0, config_version=2, now=0.0
    )
    scene.join("tv")


def test_to_ask_for_the_settings_again_is_not_to_have_forgotten_them():
    scene = Scene(space=make_space().changed(agents=1))
    a = scene.join("movies")
    grown = scene.space.changed(agents=2)
    scene.coordinator.configure("home", grown, who="me", now=0.0)

    def poll(version: int, now: float) -> int:
        asked = {"after": 0, "open_after": 0, "config_version": version}
        scene.coordinator.news("home", scene.stream(a), **asked, now=now)
        with scene.store.reading() as t:
            return t.heartbeat(scene.stream(a)).config_version

    assert poll(2, 0.0) == 2
    assert [poll(0, 0.0), poll(1, 0.0), poll(0, 100.0)] == [2, 2, 2]
    scene.join("tv")


def test_configuration_keeps_what_data_depend_on(scene):
    scene.join("movies")
    scene.join("tv")
    configure = scene.coordinator.configure
    other = scene.space.changed(feature_bound=2.0)
    assert code_of(configure, "home", other, who="", now=0.0).code == "schema_mismatch"
    fewer = scene.space.changed(agents=1)
    assert code_of(configure, "home", fewer, who="", now=0.0).code == "too_many_tasks"
    assert configure("home", scene.space.changed(alpha=0.2), who="", now=0.0) == 2
    assert scene.coordinator.space("home")[0].alpha == 0.2


def test_a_pause_is_news(scene):
    a = scene.join("movies")
    assert scene.news(a) is None
    scene.coordinator.pause("home", "recall", who="me", now=0.0)
    news = scene.news(a)
    assert news is not None
    assert news.paused == "recall"
    scene.coordinator.resume("home", who="me", now=0.0)
    news = scene.news(a)
    assert news is not None
    assert news.paused is None
    assert [e.what for e in events_of(scene.coordinator)][:2] == ["resumed", "paused"]


def test_a_poll_is_a_sign_of_life(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.now = 100.0  # both are forgotten by now
    scene.observe(a)
    scene.trigger(a)
    assert row_of(scene.coordinator).epoch == 1  # nobody else is waited for
    scene.news(b)
    scene.adopt(a)
    scene.observe(a)
    scene.trigger(a)
    assert row_of(scene.coordinator).open == 2  # b is


def test_reports_are_kept_and_thinned(scene):
    a = scene.join("movies")
    for second in range(0, 7200, 5):
        report = Report(counters={"decisions": second})
        scene.coordinator.report(scene.stream(a), report, now=float(second))
    fine = scene.coordinator.samples("home", since=7200.0 - 3600.0, now=7200.0)
    assert len(fine) == 360
    assert [row.at for row in fine] == sorted(row.at for row in fine)
    coarse = scene.coordinator.samples("home", since=0.0, now=7200.0)
    assert 59 <= len(coarse) <= 61
    newest = json.loads(heartbeat_of(scene.coordinator, scene.stream(a)).report)
    assert newest["counters"] == {"decisions": 7195}


def test_a_report_cannot_hold_what_json_cannot(scene):
    a = scene.join("movies")
    with pytest.raises(ValueError, match="finite"):
        scene.coordinator.report(scene.stream(a), Report(gauges={"x": float("nan")}), now=0.0)
