"""Tasks that leave the pool: what the coordinator keeps of alarms, and who begins how again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from live.look import events_of
from live.protocol.harness import Harness, code_of
from live.protocol.world import DIM, make_space

from guardband.live.client.stream_state import Effect, StreamState
from guardband.live.protocol.messages import Alarmed
from guardband.live.protocol.sums import empty_sums


@pytest.fixture
def harness():
    return Harness(space=make_space(contexts="per-request"))


def restart(harness, who, left="anew", pool=0):
    """Let an agent begin another stream in place of its own; return the coordinator's answer."""
    old = harness.stream(who)
    harness.states[who] = StreamState.start(harness.fresh("stream"), DIM)
    return harness.register(who, replaces=(old,), left=left, pool=pool)


def status(harness, task):
    with harness.store.reading() as t:
        return t.task("home", task).status


def pooled(harness):
    """Return three tasks that have pooled one observation each."""
    names = [harness.join(task) for task in ("movies", "tv", "books")]
    for who in names:
        harness.observe(who)
    harness.pool(*names)
    return names


def test_an_alarm_is_kept_once_and_a_person_looks_at_it(harness):
    a = harness.join("movies")
    stream = harness.stream(a)
    alarm = Alarmed(raised_in=stream, kind="fit", round=7, evidence=9.5)
    tell = harness.coordinator.alarm
    assert not tell(stream, alarm, now=5.0).looked_at
    assert not tell(stream, alarm, now=6.0).looked_at
    with harness.store.reading() as t:
        (row,) = t.alarms("home")
    assert (row.task, row.kind, row.round, row.evidence, row.since) == ("movies", "fit", 7, 9.5, 5)
    version = harness.coordinator.space("home")[1]
    assert harness.coordinator.resume_task("home", "movies", who="ann", now=8.0) == 1
    assert harness.coordinator.resume_task("home", "movies", who="ann", now=9.0) == 0
    assert harness.coordinator.space("home")[1] == version + 1  # its agents are woken
    assert tell(stream, alarm, now=9.0).looked_at
    with harness.store.reading() as t:
        (row,) = t.alarms("home")
    assert (row.looked_at, row.looked_by) == (8.0, "ann")
    said = [e.what for e in events_of(harness.coordinator)]
    assert said[:2] == ["alarms looked at", "alarm"]
    refusal = code_of(harness.coordinator.resume_task, "home", "radio", who="", now=9.0)
    assert refusal.code == "unknown_task"
    b = harness.join("tv")
    assert code_of(tell, harness.stream(b), alarm, now=9.0).code == "stream_taken"


def test_an_agent_may_say_that_somebody_has_looked(harness):
    stream = harness.stream(harness.join("movies"))
    alarm = Alarmed(raised_in=stream, kind="certificates", round=1, evidence=1.0, looked_at=True)
    assert harness.coordinator.alarm(stream, alarm, now=1.0).looked_at
    assert harness.coordinator.resume_task("home", "movies", who="ann", now=2.0) == 0


def test_who_leaves_is_in_no_later_sum_and_the_others_begin_again(harness):
    a, b, c = pooled(harness)
    answer = restart(harness, a)
    assert (answer.pool, answer.begin) == (1, "")
    assert answer.delta_share == 1 / 2  # the place of the stream before
    assert status(harness, "movies") == "anew"
    news = harness.news(b)
    assert (news.pool, news.begin, news.apart) == (1, "declared", False)
    assert harness.news(c).sums is None
    old = harness.stream(b)
    harness.states[b] = StreamState.start(harness.fresh("stream"), DIM)
    assert harness.register(b, replaces=(old,), pool=1).begin == ""
    harness.observe(b)
    harness.observe(a)
    harness.checkpoint(a)
    harness.send(a)
    harness.states[b] = harness.state(b).with_checkpoint(harness.fresh("version"), for_epoch=2)
    harness.states[b] = replace(harness.state(b), seen=1)
    harness.send(b, trigger=True)
    harness.wait(3.0)
    record = harness.coordinator.epoch("home", 2)
    assert [line.task for line in record.manifest] == ["tv"]
    with harness.store.reading() as t:
        assert t.epoch("home", 2).excluded == 1
    news = harness.news(a)
    assert (news.apart, news.sums, news.own) == (True, None, None)
    harness.coordinator.readmit("home", "movies", "mended", who="ann", now=harness.now)
    for who in (a, b):
        news = harness.news(who)
        assert (news.pool, news.begin, news.apart) == (2, "declared", False)
        restart(harness, who, left="", pool=2)
        harness.observe(who)
        harness.states[who] = replace(harness.state(who), seen=2)
    harness.pool(a, b)
    record = harness.coordinator.epoch("home", 3)
    assert sorted(line.task for line in record.manifest) == ["movies", "tv"]


def test_a_coordinator_of_before_a_task_was_let_back_learns_of_it(harness):
    a, b, _ = pooled(harness)
    restart(harness, a, left="fit")
    kept = harness.store.snapshot()
    harness.coordinator.readmit("home", "movies", "mended", who="ann", now=harness.now)
    restart(harness, b, left="", pool=2)
    harness.store.restore(kept)
    answer = harness.register(b, pool=2)  # it has pooled with "movies", which is apart here
    assert (answer.pool, answer.begin) == (3, "nothing")


def test_an_epoch_waits_for_no_answer_of_who_has_yet_to_begin_again(harness):
    a, b, c = pooled(harness)
    restart(harness, a)
    for who in (b, c):  # neither has heard of the pool that it is in now
        harness.observe(who)
        harness.checkpoint(who, for_epoch=2)
        harness.states[who] = replace(harness.state(who), seen=1)
    assert harness.send(b, trigger=True).open.epoch == 2
    assert harness.send(c).open is None  # both have answered
    assert harness.coordinator.epoch("home", 2).manifest == ()


def test_only_readmit_lets_a_task_back(harness):
    a, _, _ = pooled(harness)
    restart(harness, a, left="fit")
    coordinator = harness.coordinator
    for verb in (coordinator.quarantine, coordinator.retract, coordinator.restore):
        refusal = code_of(verb, "home", "movies", "why", who="ann", now=1.0)
        assert refusal.code == "apart"
    assert status(harness, "movies") == "apart"


def test_an_epoch_waits_for_nobody_who_leaves(harness):
    a, b, c = pooled(harness)
    for who in (b, c):
        harness.observe(who)
        harness.checkpoint(who, for_epoch=2)
        harness.states[who] = replace(harness.state(who), seen=1)
    harness.send(b, trigger=True)
    assert harness.send(c).open.epoch == 2
    assert restart(harness, a, left="fit").epoch == 2  # all others had answered


def test_one_of_two_does_not_make_the_other_begin_with_nothing(harness):
    a, b, c = pooled(harness)
    restart(harness, c, left="fit")  # which leaves two
    answer = restart(harness, a, pool=1)
    assert (answer.pool, answer.begin, status(harness, "movies")) == (2, "", "anew")
    news = harness.news(b)
    assert (news.pool, news.begin, news.apart) == (2, "declared", False)
    assert status(harness, "tv") == "active"
    answer = restart(harness, b, pool=2)  # both have: they pool again, without the third
    assert (answer.pool, harness.news(a).begin) == (3, "nothing")
    assert status(harness, "books") == "apart"
    assert [status(harness, task) for task in ("movies", "tv")] == ["active"] * 2
    assert harness.news(c).begin == ""


def test_one_task_does_not_make_one_in_quarantine_begin_with_nothing(harness):
    a, b = harness.join("movies"), harness.join("tv")
    for who in (a, b):
        harness.observe(who)
    harness.pool(a, b)
    harness.coordinator.quarantine("home", "tv", "odd", who="ann", now=harness.now)
    restart(harness, a)
    assert (status(harness, "movies"), status(harness, "tv")) == ("anew", "quarantined")
    assert harness.news(b).begin == "declared"


def test_a_later_alarm_of_a_stream_is_news(harness):
    stream = harness.stream(harness.join("movies"))

    def tell(round_, now, **more):
        alarm = Alarmed(raised_in=stream, kind="assumptions", round=round_, evidence=9.5, **more)
        return harness.coordinator.alarm(stream, alarm, now=now).looked_at

    def rows():
        with harness.store.reading() as t:
            return [(each.round, each.since, each.looked_at) for each in t.alarms("home")]

    tell(7, 1.0)
    harness.coordinator.resume_task("home", "movies", who="ann", now=2.0)
    assert tell(7, 3.0)
    assert not tell(30, 4.0)
    assert rows() == [(30, 4.0, None)]
    tell(7, 5.0, looked_at=True)  # late news of the first changes nothing
    assert rows() == [(30, 4.0, None)]
    assert [e.what for e in events_of(harness.coordinator)].count("alarm") == 2
    tell(30, 6.0, looked_at=True)
    assert rows() == [(30, 4.0, 6.0)]


def test_once_most_of_the_pool_started_anew_all_begin_with_nothing(harness):
    a, b, c = pooled(harness)
    restart(harness, a)
    answer = restart(harness, b)  # it has not heard of the pool that it leaves
    assert (answer.pool, answer.begin) == (2, "nothing")
    assert [status(harness, task) for task in ("movies", "tv", "books")] == ["active"] * 3
    assert harness.news(a).begin == "nothing"
    assert harness.news(c).begin == "nothing"
    said = [e.what for e in events_of(harness.coordinator)]
    assert said[:3] == ["pool began anew", "left pool", "left pool"]


def test_who_is_apart_already_stays_as_it_is(harness):
    a, b, c = pooled(harness)
    restart(harness, a, left="fit")
    old = harness.stream(b)
    harness.states[b] = StreamState.start(harness.fresh("stream"), DIM)
    harness.register(b, replaces=(old,), pool=1)
    restart(harness, b, left="fit", pool=1)
    news = harness.news(a)
    assert (news.pool, news.begin, news.apart) == (2, "", True)
    assert harness.news(c).begin == "declared"


def test_an_agent_alone_starts_again_under_the_same_share():
    space = make_space(contexts="per-request").changed(agents=1, shares="equal")
    harness = Harness(space=space)
    a = harness.join("movies")
    harness.observe(a)
    harness.trigger(a)
    harness.wait(3.0)
    answer = restart(harness, a)
    assert (answer.pool, answer.delta_share, status(harness, "movies")) == (0, 1.0, "active")
    harness.observe(a)
    harness.states[a] = replace(harness.state(a), seen=1)
    harness.trigger(a)
    harness.wait(3.0)
    assert harness.coordinator.epoch("home", 2).n == 1


def test_what_cannot_be_is_refused(harness):
    a, b = harness.join("movies"), harness.join("tv")
    readmit = harness.coordinator.readmit
    assert code_of(readmit, "home", "tv", "", who="", now=0.0).code == "not_apart"
    refusal = code_of(
        harness.register, b, stream=harness.fresh("stream"), replaces=(harness.stream(a),)
    )
    assert refusal.code == "stream_taken"
    old = harness.stream(a)
    restart(harness, a, left="fit")
    harness.states[a] = StreamState.start(harness.fresh("stream"), DIM)
    refusal = code_of(harness.register, a, replaces=(old,))
    assert refusal.code == "already_continued"
    quarantine = harness.coordinator.quarantine
    assert code_of(quarantine, "home", "movies", "", who="", now=0.0).code == "apart"


def test_a_restored_coordinator_lets_all_begin_with_nothing(harness):
    a, b, _ = pooled(harness)
    backup = harness.store.snapshot()
    restart(harness, a)
    harness.store.restore(backup)
    harness.states[b] = StreamState.start(harness.fresh("stream"), DIM)
    answer = harness.register(b, pool=1)
    assert (answer.pool, answer.begin) == (2, "nothing")
    said = [e.what for e in events_of(harness.coordinator)]
    assert said[0] == "server restore"


def test_a_copy_of_a_stream_that_was_forgotten_and_replaced_begins_with_nothing(harness):
    """A restored coordinator lacks the stream; who follows it takes all its data along."""
    a = harness.join("movies")
    backup = harness.store.snapshot()
    harness.states[a] = StreamState.start(harness.fresh("stream"), DIM)
    harness.register(a)
    harness.observe(a)
    harness.store.restore(backup)
    b = harness.copy(a, "copy")
    restart(harness, a, left="fit")
    assert harness.register(b).begin == "nothing"
    harness.states[b] = harness.state(b).again(
        harness.fresh("stream"), empty_sums(DIM), pool=1, left=""
    )
    assert code_of(harness.register, b).code == "already_continued"


def test_a_copy_of_an_earlier_stream_begins_with_nothing_though_its_end_was_forgotten(harness):
    """A restored coordinator lacks the streams between: who begins again names all of them."""
    a = harness.join("movies")
    harness.observe(a)
    backup = harness.store.snapshot()
    b, names = harness.copy(a, "copy"), [harness.stream(a)]
    for _ in range(2):  # its stream is ended, and it goes on with another one
        harness.observe(a)
        harness.checkpoint(a)
        harness.send(a)
        harness.coordinator.seal(names[-1], harness.state(a).newest.revision, now=harness.now)
        harness.observe(a)
        harness.checkpoint(a)
        assert harness.refused(a) is Effect.CONTINUED
        harness.register(a)
        names.append(harness.stream(a))
    harness.store.restore(backup)
    own, name = harness.state(a), harness.fresh("stream")
    harness.states[a] = own.again(name, own.total, pool=0, left="fit")
    assert harness.states[a].replaces == tuple(names)
    harness.register(a)
    with harness.store.reading() as t:
        rows = {row.stream: (row.pool, row.continued_by) for row in t.streams("home")}
    replaced = zip(names, [*names[1:], name], strict=True)
    assert rows == {each: (-1, by) for each, by in replaced} | {name: (1, None)}
    assert harness.refused_at(b) == "sealed"


def test_data_of_a_start_that_is_over_stay_away_though_the_next_start_was_never_heard_of(harness):
    """A retracted task begins anew twice: its second registration alone is answered."""
    a = harness.join("movies")
    harness.observe(a)
    harness.checkpoint(a)
    harness.send(a)
    first = harness.stream(a)
    for times in (1, 2):
        empty = empty_sums(DIM)
        again = harness.state(a).again(harness.fresh("stream"), empty, pool=0, left="anew")
        harness.states[a] = again
        assert len(again.replaces) == times
    harness.register(a)
    with harness.store.reading() as t:
        assert t.stream(first).pool == -1


@pytest.mark.parametrize("left", ["fit", "anew"])
def test_a_task_in_quarantine_leaves_and_is_told_no_sum_with_what_it_counted(harness, left):
    a, b, c = pooled(harness)
    harness.coordinator.quarantine("home", "movies", "", who="ann", now=harness.now)
    answer = restart(harness, a, left=left)
    assert (status(harness, "movies"), answer.apart, answer.pool) == ("apart", True, 1)
    assert harness.news(a).sums is None
    restart(harness, b, left="anew", pool=1)
    restart(harness, c, left="anew", pool=1)  # more than are left: the pool begins anew
    assert status(harness, "movies") == "apart"  # a person has put it aside
