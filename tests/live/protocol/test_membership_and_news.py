"""Spaces and tasks: who may join, who is left out, and what agents are told."""

from __future__ import annotations

import json

import numpy as np
import pytest
from live.look import events_of, heartbeat_of, row_of
from live.protocol.harness import Harness, code_of
from live.protocol.world import USES, make_space

from guardband.live.client.stream_state import StreamState
from guardband.live.protocol.messages import News, Report


def test_where_contexts_are_shared_a_task_has_one_live_stream():
    harness = Harness()
    a = harness.join("movies")
    problem = code_of(harness.join, "movies", "other")
    assert (problem.code, problem.status) == ("task_busy", 409)
    harness.observe(a)
    harness.checkpoint(a)
    harness.send(a)
    harness.now += harness.space.sync.live_s
    harness.register("other")
    assert harness.refused_at(a) == "sealed"
    free = Harness(space=make_space(contexts="per-request"))
    free.join("movies")
    free.join("movies", "other")


def test_where_delta_is_split_equally_there_is_one_stream_per_task():
    harness = Harness(space=make_space(contexts="per-request").changed(shares="equal"))
    harness.join("movies")
    assert code_of(harness.join, "movies", "other").code == "too_many_streams"
    grown = harness.space.changed(agents=9)
    assert code_of(harness.coordinator.configure, "home", grown, who="", now=0.0).code == (
        "shares_fixed"
    )
    other = harness.space.changed(shares="registered")
    assert code_of(harness.coordinator.configure, "home", other, who="", now=0.0).code == (
        "shares_fixed"
    )


def test_quarantine_and_retract_leave_and_return_with_the_next_epoch(harness):
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a, 2)
    harness.observe(b, 1)
    harness.pool(a, b)
    harness.coordinator.quarantine("home", "tv", "odd", who="me", now=0.0)
    assert harness.coordinator.epoch("home", 1).n == 3  # what is closed stays
    harness.observe(a)
    harness.pool(a)
    assert [line.task for line in harness.coordinator.epoch("home", 2).manifest] == ["movies"]
    news = harness.news(b)
    assert news is not None
    assert news.own is None
    assert news.excluded == 1
    harness.adopt(b)
    assert max(harness.view(b).values()) == 1  # its own data are its own again
    harness.observe(b)
    harness.checkpoint(b)
    harness.send(b)  # still collected
    harness.coordinator.retract("home", "tv", "consent", who="me", now=0.0)
    problem = code_of(harness.send, b)
    assert (problem.code, problem.status) == ("retracted", 403)
    harness.coordinator.restore("home", "tv", "fine", who="me", now=0.0)
    harness.observe(a)
    harness.trigger(a)
    harness.wait(3.0)
    manifest = {line.task: line.n for line in harness.coordinator.epoch("home", 3).manifest}
    assert manifest == {"movies": 4, "tv": 1}  # with the entry it had
    assert (
        code_of(harness.coordinator.restore, "home", "nobody", "", who="me", now=0.0).code
        == "unknown_task"
    )


def test_registering_is_checked(harness):
    a = harness.join("movies")
    wrong = {
        "schema_mismatch": {"schema_hash": "0"},
        "invalid_stream": {"stream": "../x"},
        "invalid_task": {"task": "a b"},
        "invalid_uses": {"uses": (0, 9)},
        "uses_mismatch": {"uses": (0,)},
        "stream_taken": {"task": "tv", "uses": USES["tv"]},
    }
    for code, change in wrong.items():
        assert code_of(harness.register, a, **change).code == code, code
    assert code_of(harness.coordinator.space, "away").code == "unknown_space"
    assert code_of(harness.coordinator.create_space, harness.space, who="", now=0.0).status == 409


def test_shares_of_delta_sum_to_at_most_one(harness):
    harness.join("movies")
    harness.join("tv")
    harness.join("books")
    told = [harness.register(task) for task in ("movies", "tv", "books")]
    assert [each.task_index for each in told] == [1, 2, 3]
    assert [each.delta_share for each in told] == pytest.approx([1 / 2, 1 / 6, 1 / 12])
    harness.states["more"], harness.tasks["more"] = (
        StreamState.start(harness.fresh("stream"), 4),
        "tv",
    )
    problem = code_of(harness.register, "more", task="fourth")
    assert (problem.code, problem.status) == ("too_many_tasks", 409)
    # A second stream of a task has data, and so a share, of its own; the first keeps its own.
    harness.now += harness.space.sync.live_s
    assert harness.register("more").delta_share == pytest.approx(1 / 20)
    assert harness.register("more").task_index == 2
    assert harness.register("tv").delta_share == pytest.approx(1 / 6)


def test_a_space_grows_only_when_everybody_knows():
    harness = Harness(space=make_space().changed(agents=1))
    a = harness.join("movies")
    grown = harness.space.changed(agents=2)
    assert harness.coordinator.configure("home", grown, who="me", now=0.0) == 2
    problem = code_of(harness.join, "tv")
    assert problem.code == "agents_unseen"
    news = harness.news(a)
    assert news is not None
    assert news.config is not None
    assert (news.config.agents, news.config_version) == (2, 2)
    code_of(harness.join, "tv")  # told, but not confirmed
    harness.coordinator.news(
        "home", harness.stream(a), after=0, open_after=0, config_version=2, now=0.0
    )
    harness.join("tv")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, True),
        ({"agents": 2}, False),  # without the other there is nobody
        ({"contexts": "shared"}, False),
        ({"sync": {"min_streams": 2}}, False),
        ({"on_alarm": "warn"}, False),
        ({"delta_alarm": 0.0}, False),
        ({"agents": 50_000}, False),
    ],
)
def test_who_compares_hears_the_sums_without_each_other_task(settings, told):
    space = make_space(contexts="per-request").changed(**{"agents": 3} | settings)
    harness = Harness(space=space)
    names = [harness.join(task) for task in ("movies", "tv", "books")[: space.agents]]
    for who in names:
        harness.observe(who)
        harness.checkpoint(who)
        harness.send(who)
        harness.observe(who)
    harness.pool(*names)

    def news(compares: bool) -> News:
        known = {"after": 0, "open_after": 0, "config_version": 1, "compares": compares}
        found = harness.coordinator.news("home", harness.stream(names[0]), **known, now=harness.now)
        assert found is not None
        return found

    assert news(compares=False).without is None
    found = news(compares=True)
    assert (found.without is not None) == told
    if told:
        own = harness.states[names[0]].newest.sums
        # By their names: without books, which leaves tv; and without tv.
        for one, other in zip(found.without, (names[1], names[2]), strict=True):
            rest = harness.states[other].newest.sums
            np.testing.assert_allclose(one.gram, own.gram + rest.gram)


def test_to_ask_for_the_settings_again_is_not_to_have_forgotten_them():
    harness = Harness(space=make_space().changed(agents=1))
    a = harness.join("movies")
    grown = harness.space.changed(agents=2)
    harness.coordinator.configure("home", grown, who="me", now=0.0)

    def poll(version: int, now: float) -> int:
        asked = {"after": 0, "open_after": 0, "config_version": version}
        harness.coordinator.news("home", harness.stream(a), **asked, now=now)
        with harness.store.reading() as t:
            return t.heartbeat(harness.stream(a)).config_version

    assert poll(2, 0.0) == 2
    assert [poll(0, 0.0), poll(1, 0.0), poll(0, 100.0)] == [2, 2, 2]
    harness.join("tv")


def test_configuration_keeps_what_data_depend_on(harness):
    harness.join("movies")
    harness.join("tv")
    configure = harness.coordinator.configure
    other = harness.space.changed(feature_bound=2.0)
    assert code_of(configure, "home", other, who="", now=0.0).code == "schema_mismatch"
    fewer = harness.space.changed(agents=1)
    assert code_of(configure, "home", fewer, who="", now=0.0).code == "too_many_tasks"
    assert configure("home", harness.space.changed(alpha=0.2), who="", now=0.0) == 2
    assert harness.coordinator.space("home")[0].alpha == 0.2


def test_a_pause_is_news(harness):
    a = harness.join("movies")
    assert harness.news(a) is None
    harness.coordinator.pause("home", "recall", who="me", now=0.0)
    news = harness.news(a)
    assert news is not None
    assert news.paused == "recall"
    harness.coordinator.resume("home", who="me", now=0.0)
    news = harness.news(a)
    assert news is not None
    assert news.paused is None
    assert [e.what for e in events_of(harness.coordinator)][:2] == ["resumed", "paused"]


def test_a_poll_is_a_sign_of_life(harness):
    a, b = harness.join("movies"), harness.join("tv")
    harness.now = 100.0  # both are forgotten by now
    harness.observe(a)
    harness.trigger(a)
    assert row_of(harness.coordinator).epoch == 1  # nobody else is waited for
    harness.news(b)
    harness.adopt(a)
    harness.observe(a)
    harness.trigger(a)
    assert row_of(harness.coordinator).open == 2  # b is


def test_reports_are_kept_and_thinned(harness):
    a = harness.join("movies")
    for second in range(0, 7200, 5):
        report = Report(counters={"decisions": second})
        harness.coordinator.report(harness.stream(a), report, now=float(second))
    fine = harness.coordinator.samples("home", since=7200.0 - 3600.0, now=7200.0)
    assert len(fine) == 360
    assert [row.at for row in fine] == sorted(row.at for row in fine)
    coarse = harness.coordinator.samples("home", since=0.0, now=7200.0)
    assert 59 <= len(coarse) <= 61
    newest = json.loads(heartbeat_of(harness.coordinator, harness.stream(a)).report)
    assert newest["counters"] == {"decisions": 7195}


def test_a_report_cannot_hold_what_json_cannot(harness):
    a = harness.join("movies")
    with pytest.raises(ValueError, match="finite"):
        harness.coordinator.report(harness.stream(a), Report(gauges={"x": float("nan")}), now=0.0)
