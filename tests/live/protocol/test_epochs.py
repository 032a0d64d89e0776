"""Epochs: when they open and close, what is in them, and who is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from live.protocol.harness import Harness
from live.protocol.world import make_space

from guardband.live.client.stream_state import Effect
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.protocol.messages import Revision


def test_an_epoch_closes_when_all_live_streams_have_answered(harness):
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a, 2)
    harness.observe(b, 1)
    opened = harness.trigger(a)
    assert opened.open is not None
    assert (opened.open.epoch, opened.epoch) == (1, 0)
    closed = harness.answer(b)
    assert (closed.open, closed.epoch) == (None, 1)
    record = harness.coordinator.epoch("home", 1)
    assert (record.n, record.streams_in, record.streams_late) == (3, 2, 0)


def test_a_late_stream_keeps_its_previous_checkpoint_never_the_newest(harness):
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.observe(b)
    harness.pool(a, b)
    entry = harness.state(b).newest.revision
    harness.observe(a)
    harness.trigger(a)
    harness.observe(b, 4)
    harness.checkpoint(b)
    harness.send(b)  # stored, but not as an answer
    harness.wait(3.0)
    record = harness.coordinator.epoch("home", 2)
    assert {line.task: Revision(line.n, line.version) for line in record.manifest}["tv"] == entry
    assert harness.stored(b).n == 5
    assert harness.adopt(b).effect == Effect.WAIT or harness.state(b).since == entry


def test_the_first_answer_counts(harness):
    a, b, c = harness.join("movies"), harness.join("tv"), harness.join("books")
    for who in (a, b, c):
        harness.observe(who)
    harness.trigger(a)
    harness.answer(b)
    first = harness.state(b).newest
    harness.observe(b)
    state = replace(harness.state(b), answered=0).with_checkpoint("e" * 32, for_epoch=1)
    harness.coordinator.upload(state.stream, state.upload(), now=harness.now)
    harness.answer(c)
    manifest = {line.task: line.version for line in harness.coordinator.epoch("home", 1).manifest}
    assert manifest["tv"] == first.version


def test_a_deadline_starts_again_after_a_restart(harness):
    a = harness.join("movies")
    harness.join("tv")
    harness.observe(a)
    harness.trigger(a)
    harness.now = 1.9
    harness.coordinator = Coordinator(harness.store)
    assert not harness.wait(0.0)
    assert not harness.wait(1.0)
    assert harness.wait(1.1)
    assert harness.coordinator.epoch("home", 1).streams_late == 1


def test_who_does_not_know_the_newest_epoch_opens_none(harness):
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.observe(b)
    harness.trigger(a)
    harness.answer(b)
    harness.observe(b)
    harness.states[b] = replace(harness.state(b), answered=0)
    answer = harness.trigger(b)  # has not heard that epoch 1 is closed
    assert (answer.open, answer.epoch) == (None, 1)


def test_too_soon_is_remembered():
    harness = Harness(space=make_space(min_interval_s=10.0))
    a = harness.join("movies")
    harness.join("tv")
    harness.observe(a)
    harness.trigger(a)
    harness.wait(3.0)
    assert harness.adopt(a).effect == Effect.ADOPTED
    harness.observe(a)
    answer = harness.trigger(a)
    assert answer.open is None
    assert harness.state(a).answered <= harness.state(a).seen  # its checkpoint answered nothing
    assert not harness.wait(5.0)
    assert harness.wait(5.1)
    news = harness.news(a)
    assert news is not None
    assert news.open is not None
    assert news.open.epoch == 2


def test_no_sum_is_served_before_enough_tasks_are_in_it():
    harness = Harness(space=make_space(min_streams=2))
    a = harness.join("movies")
    harness.observe(a)
    assert harness.trigger(a).open is None  # alone
    b = harness.join("tv")
    assert harness.trigger(a).open is None  # it has nothing
    harness.observe(b)
    harness.pool(b, a)
    assert harness.state(a).pooled is not None
    # One is left out: an epoch says so at once, and no agent goes on with the sum.
    harness.coordinator.quarantine("home", "tv", "odd", who="me", now=harness.now)
    harness.answer(a)
    news = harness.news(a)
    assert news is not None
    assert (news.epoch, news.sums, news.streams, news.excluded) == (2, None, 1, 1)
    assert harness.coordinator.epoch("home", 2).sums is None
    assert harness.adopt(a).effect == Effect.ADOPTED
    assert (harness.state(a).pooled, harness.state(a).epoch) == (None, 2)
    assert harness.state(a).own.as_bytes() == harness.state(a).total.as_bytes()
    harness.observe(a)
    assert harness.trigger(a).open is None


def test_an_epoch_needs_something_new():
    harness = Harness()
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.observe(b)
    harness.pool(a, b)
    for _ in range(3):  # the same again
        assert harness.trigger(a).open is None
    assert harness.coordinator.space("home")[1] == 1
    # Those who are left out call for nothing that is not theirs.
    harness.coordinator.quarantine("home", "tv", "odd", who="me", now=harness.now)
    harness.answer(a)
    harness.adopt(a), harness.adopt(b)
    harness.observe(b, 5)
    assert harness.trigger(b).open is None


def test_the_price_of_a_choice_is_that_of_the_epoch():
    """It is paid where the epoch was closed without a task, whatever became of the task since."""
    harness = Harness()
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.observe(b)
    harness.pool(a, b)
    harness.coordinator.quarantine("home", "tv", "odd", who="me", now=harness.now)
    harness.answer(a)
    told = harness.news(a)
    assert told is not None
    assert (told.epoch, told.excluded) == (2, 1)
    harness.coordinator.retract("home", "tv", "consent", who="me", now=harness.now)
    harness.answer(a)
    told = harness.news(a)
    assert told is not None
    assert (told.epoch, told.excluded) == (3, 1)
    harness.coordinator.restore("home", "tv", "back", who="me", now=harness.now)
    told = harness.news(a)  # the newest closed epoch is still one without it
    assert told is not None
    assert (told.epoch, told.excluded) == (3, 1)


def test_nobody_counts_own_data_twice_after_pooling(harness):
    a, b = harness.join("movies"), harness.join("tv")
    for _ in range(4):
        harness.observe(a, 2)
        harness.observe(b, 1)
        harness.pool(a, b)
        harness.observe(a)
        assert max(harness.view(a).values()) == 1
        assert len(harness.view(a)) == harness.state(b).newest.sums.n + harness.state(a).total.n


def test_bytes_of_an_epoch_do_not_depend_on_who_asks(harness):
    a, b = harness.join("movies"), harness.join("tv")
    rng = np.random.default_rng(0)
    for who in (a, b):
        state = harness.state(who)
        for _ in range(50):
            psi = np.zeros(4)
            psi[:2] = rng.uniform(-0.5, 0.5, 2)
            state = state.counted(psi, rng.uniform(), rng.uniform(0.1, 4.0), rng.normal())
        harness.states[who] = state
    harness.rounds = {a: 1, b: 1}
    harness.pool(a, b)
    one, two = harness.state(a).pooled, harness.state(b).pooled
    assert one is not None
    assert two is not None
    assert one.sha256 == two.sha256 == harness.coordinator.epoch("home", 1).sha256
