"""Epochs: when they open and close, what is in them, and who is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from live.protocol.scenes import Scene
from live.protocol.world import make_space

from guardband.live.client.stream_state import Effect
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.protocol.messages import Revision


def test_an_epoch_closes_when_all_live_streams_have_answered(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a, 2)
    scene.observe(b, 1)
    opened = scene.trigger(a)
    assert opened.open is not None
    assert (opened.open.epoch, opened.epoch) == (1, 0)
    closed = scene.answer(b)
    assert (closed.open, closed.epoch) == (None, 1)
    record = scene.coordinator.epoch("home", 1)
    assert (record.n, record.streams_in, record.streams_late) == (3, 2, 0)


def test_a_late_stream_keeps_its_previous_cut_never_the_newest(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.observe(b)
    scene.pool(a, b)
    entry = scene.chain(b).newest.revision
    scene.observe(a)
    scene.trigger(a)
    scene.observe(b, 4)
    scene.cut(b)
    scene.send(b)  # stored, but not as an answer
    scene.wait(3.0)
    record = scene.coordinator.epoch("home", 2)
    assert {line.task: Revision(line.n, line.version) for line in record.manifest}["tv"] == entry
    assert scene.stored(b).n == 5
    assert scene.adopt(b).effect == Effect.WAIT or scene.chain(b).since == entry


def test_the_first_answer_counts(scene):
    a, b, c = scene.join("movies"), scene.join("tv"), scene.join("books")
    for who in (a, b, c):
        scene.observe(who)
    scene.trigger(a)
    scene.answer(b)
    first = scene.chain(b).newest
    scene.observe(b)
    chain = replace(scene.chain(b), answered=0).with_checkpoint("e" * 32, for_epoch=1)
    scene.coordinator.upload(chain.stream, chain.upload(), now=scene.now)
    scene.answer(c)
    manifest = {line.task: line.version for line in scene.coordinator.epoch("home", 1).manifest}
    assert manifest["tv"] == first.version


def test_a_deadline_starts_again_after_a_restart(scene):
    a = scene.join("movies")
    scene.join("tv")
    scene.observe(a)
    scene.trigger(a)
    scene.now = 1.9
    scene.coordinator = Coordinator(scene.store)
    assert not scene.wait(0.0)
    assert not scene.wait(1.0)
    assert scene.wait(1.1)
    assert scene.coordinator.epoch("home", 1).streams_late == 1


def test_who_does_not_know_the_newest_epoch_opens_none(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.observe(b)
    scene.trigger(a)
    scene.answer(b)
    scene.observe(b)
    scene.chains[b] = replace(scene.chain(b), answered=0)
    answer = scene.trigger(b)  # has not heard that epoch 1 is closed
    assert (answer.open, answer.epoch) == (None, 1)


def test_too_soon_is_remembered():
    scene = Scene(space=make_space(min_interval_s=10.0))
    a = scene.join("movies")
    scene.join("tv")
    scene.observe(a)
    scene.trigger(a)
    scene.wait(3.0)
    assert scene.adopt(a).effect == Effect.ADOPTED
    scene.observe(a)
    answer = scene.trigger(a)
    assert answer.open is None
    assert scene.chain(a).answered <= scene.chain(a).seen  # its cut answered nothing
    assert not scene.wait(5.0)
    assert scene.wait(5.1)
    news = scene.news(a)
    assert news is not None
    assert news.open is not None
    assert news.open.epoch == 2


def test_no_sum_is_served_before_enough_tasks_are_in_it():
    scene = Scene(space=make_space(min_streams=2))
    a = scene.join("movies")
    scene.observe(a)
    assert scene.trigger(a).open is None  # alone
    b = scene.join("tv")
    assert scene.trigger(a).open is None  # it has nothing
    scene.observe(b)
    scene.pool(b, a)
    assert scene.chain(a).pooled is not None
    # One is left out: an epoch says so at once, and nobody goes on with the sum.
    scene.coordinator.quarantine("home", "tv", "odd", who="me", now=scene.now)
    scene.answer(a)
    news = scene.news(a)
    assert news is not None
    assert (news.epoch, news.sums, news.streams, news.excluded) == (2, None, 1, 1)
    assert scene.coordinator.epoch("home", 2).sums is None
    assert scene.adopt(a).effect == Effect.ADOPTED
    assert (scene.chain(a).pooled, scene.chain(a).epoch) == (None, 2)
    assert scene.chain(a).own.as_bytes() == scene.chain(a).total.as_bytes()
    scene.observe(a)
    assert scene.trigger(a).open is None


def test_an_epoch_needs_something_new():
    scene = Scene()
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.observe(b)
    scene.pool(a, b)
    for _ in range(3):  # the same again
        assert scene.trigger(a).open is None
    assert scene.coordinator.space("home")[1] == 1
    # Those who are left out call for nothing that is not theirs.
    scene.coordinator.quarantine("home", "tv", "odd", who="me", now=scene.now)
    scene.answer(a)
    scene.adopt(a), scene.adopt(b)
    scene.observe(b, 5)
    assert scene.trigger(b).open is None


def test_the_price_of_a_choice_is_that_of_the_epoch():
    """It is paid where the epoch was closed without a task, whatever became of the task since."""
    scene = Scene()
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.observe(b)
    scene.pool(a, b)
    scene.coordinator.quarantine("home", "tv", "odd", who="me", now=scene.now)
    scene.answer(a)
    told = scene.news(a)
    assert told is not None
    assert (told.epoch, told.excluded) == (2, 1)
    scene.coordinator.retract("home", "tv", "consent", who="me", now=scene.now)
    scene.answer(a)
    told = scene.news(a)
    assert told is not None
    assert (told.epoch, told.excluded) == (3, 1)
    scene.coordinator.restore("home", "tv", "back", who="me", now=scene.now)
    told = scene.news(a)  # the newest closed epoch is still one without it
    assert told is not None
    assert (told.epoch, told.excluded) == (3, 1)


def test_nobody_counts_own_data_twice_after_pooling(scene):
    a, b = scene.join("movies"), scene.join("tv")
    for _ in range(4):
        scene.observe(a, 2)
        scene.observe(b, 1)
        scene.pool(a, b)
        scene.observe(a)
        assert max(scene.view(a).values()) == 1
        assert len(scene.view(a)) == scene.chain(b).newest.sums.n + scene.chain(a).total.n


def test_bytes_of_an_epoch_do_not_depend_on_who_asks(scene):
    a, b = scene.join("movies"), scene.join("tv")
    rng = np.random.default_rng(0)
    for who in (a, b):
        chain = scene.chain(who)
        for _ in range(50):
            psi = np.zeros(4)
            psi[:2] = rng.uniform(-0.5, 0.5, 2)
            chain = chain.counted(psi, rng.uniform(), rng.uniform(0.1, 4.0), rng.normal())
        scene.chains[who] = chain
    scene.rounds = {a: 1, b: 1}
    scene.pool(a, b)
    one, two = scene.chain(a).pooled, scene.chain(b).pooled
    assert one is not None
    assert two is not None
    assert one.sha256 == two.sha256 == scene.coordinator.epoch("home", 1).sha256
