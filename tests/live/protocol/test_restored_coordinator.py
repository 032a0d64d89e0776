"""A coordinator that was restored from a backup, and clients that say it was."""

from __future__ import annotations

from live.look import events_of
from live.protocol.scenes import claim, code_of, restores

from guardband.live.client.stream_state import Effect
from guardband.live.coordinator.coordinator import Coordinator


def test_a_restored_coordinator_heals(scene):
    a = scene.join("movies")
    scene.observe(a, 2)
    scene.cut(a)
    scene.send(a)
    backup = scene.store.snapshot()
    for _ in range(3):
        scene.observe(a)
        scene.cut(a)
        scene.send(a)
    scene.store.restore(backup)
    scene.coordinator = Coordinator(scene.store)
    scene.observe(a)
    scene.cut(a)
    assert scene.refused(a) == Effect.RESEND
    scene.send(a)
    assert scene.stored(a).n == 6


def test_a_coordinator_that_knows_nothing_heals(scene):
    backup = scene.store.snapshot()
    a = scene.join("movies")
    scene.observe(a, 2)
    scene.cut(a)
    scene.send(a)
    scene.store.restore(backup)
    scene.observe(a)
    scene.cut(a)
    assert scene.refused(a) == Effect.REGISTER
    scene.register(a)
    scene.send(a)
    assert scene.stored(a).n == 3


def test_no_place_is_given_twice_after_a_restore(scene):
    scene.join("movies")
    backup = scene.store.snapshot()
    scene.join("tv")
    scene.observe("tv")
    scene.pool("tv", "movies")
    scene.store.restore(backup)
    scene.coordinator = Coordinator(scene.store)
    scene.news("movies")  # it has seen an epoch that the coordinator does not know
    late = scene.join("books")
    assert scene.register(late).delta_share < 1 / 6  # that was tv's


def test_numbers_go_on_after_a_restore(scene):
    a, b = scene.join("movies"), scene.join("tv")
    backup = scene.store.snapshot()
    for _ in range(3):
        scene.observe(a)
        scene.observe(b)
        scene.pool(a, b)
    scene.store.restore(backup)
    scene.coordinator = Coordinator(scene.store)
    scene.observe(a)
    answer = scene.trigger(a)
    assert answer.open is not None
    assert answer.open.epoch == 4
    events = [event.what for event in events_of(scene.coordinator)]
    assert "server restore" in events


def test_an_open_epoch_of_before_a_restore_gets_a_new_number(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.trigger(a)
    backup = scene.store.snapshot()  # with epoch 1 open
    scene.answer(b)
    scene.adopt(a)
    scene.adopt(b)
    scene.store.restore(backup)
    scene.coordinator = Coordinator(scene.store)
    news = scene.news(a)  # has seen 1
    assert news is not None
    assert news.open is not None
    assert news.open.epoch == 2


def test_seen_epochs_are_believed_within_reason(scene):
    a = scene.join("movies")
    request = scene.chain(a).upload().model_copy(update={"seen_epoch": 2**40})
    problem = code_of(scene.coordinator.upload, scene.stream(a), request, now=0.0)
    assert (problem.code, problem.status) == ("invalid_epoch", 422)


def test_a_number_that_one_client_knows_keeps_nobody_from_pooling(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.observe(b)
    scene.pool(a, b)
    claim(scene, b, 100, now=scene.now)  # and is never heard of again
    scene.observe(a)
    opened = scene.trigger(a)  # has seen 1, and cannot see 100
    assert opened.open is not None
    assert opened.open.epoch == 101
    scene.answer(a)
    scene.wait(3.0)
    assert scene.adopt(a).effect == Effect.ADOPTED
    assert scene.chain(a).seen == 101
    assert scene.coordinator.epoch("home", 101).n == 3
    # From here on, the wish of somebody who has not seen 101 is out of date again.
    scene.observe(b)
    assert scene.trigger(b).open is None


def test_a_wish_that_was_fulfilled_opens_nothing_after_a_restore(scene):
    a, b = scene.join("movies"), scene.join("tv")
    backup = scene.store.snapshot()
    scene.observe(a)
    scene.cut(a, for_epoch=1)
    old = scene.chain(a).upload(trigger=True)
    scene.send(a, trigger=True)
    scene.answer(b)
    scene.adopt(a)
    scene.store.restore(backup)
    scene.coordinator = Coordinator(scene.store)
    scene.observe(a)
    scene.pool(a, b)  # numbered 2: somebody has seen 1
    assert scene.chain(a).epoch == 2
    again = old.model_copy(
        update={"base": scene.chain(a).base, "checkpoint": scene.chain(a).newest}
    )
    answer = scene.coordinator.upload(scene.stream(a), again, now=scene.now)
    assert (answer.epoch, answer.open) == (2, None)


def test_claims_add_up_to_no_more_than_a_space_may_have_reached(scene):
    a = scene.join("movies")
    claim(scene, a, 100_000)
    for seen in (100_001, 200_000):
        assert code_of(claim, scene, a, seen).code == "invalid_epoch"
    claim(scene, a, 100_060, now=60.0)  # one a second since it was created
    assert code_of(claim, scene, a, 100_061, now=60.0).code == "invalid_epoch"
    with scene.store.reading() as t:
        assert t.space("home").floor == 100_060


def test_claims_are_heeded_so_often_and_written_down_once_a_minute(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.trigger(a)
    for seen in range(1, 101):
        claim(scene, a, seen, now=1.0)
    with scene.store.reading() as t:
        assert t.space("home").floor == 10
        assert t.space("home").open == 11
    assert restores(scene) == 1
    claim(scene, a, 100, now=6.9)
    with scene.store.reading() as t:
        assert t.space("home").floor == 10
    claim(scene, a, 100, now=7.0)  # the honest ask again, and are heard
    claim(scene, b, 101, now=7.0)  # a task has its own claims
    with scene.store.reading() as t:
        assert t.space("home").floor == 101
    assert restores(scene) == 1
    claim(scene, a, 102, now=61.0)
    assert restores(scene) == 2


def test_rules_from_before_a_restore_get_a_number_that_nobody_has(scene):
    a = scene.join("movies")
    lost = scene.space.changed(agents=scene.space.agents + 1)
    asked = {"after": 0, "open_after": 0}

    def poll(version: int, now: float = 200.0):
        told = scene.coordinator.news(
            "home", scene.stream(a), **asked, config_version=version, now=now
        )
        with scene.store.reading() as t:
            return told, t.heartbeat(scene.stream(a)).config_version

    told, heard = poll(9)  # it has seen version 9, this coordinator only 1
    assert (told.config_version, told.config, heard) == (10, scene.space, 1)
    assert events_of(scene.coordinator)[0].what == "server restore"
    assert code_of(scene.join, "tv").code == "agents_unseen"  # what it heard may be other numbers
    assert poll(10) == (None, 10)
    scene.join("tv")
    assert scene.coordinator.configure("home", lost, who="me", now=201.0) == 11
    # Nobody can drive the number up at will: not far at once, and not often.
    assert poll(10**9)[0].config_version == 11
    reached = [poll(scene.coordinator.space("home")[1] + 1)[0].config_version for _ in range(50)]
    assert max(reached) <= 11 + 2 * 10
