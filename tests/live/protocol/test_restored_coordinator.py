"""A coordinator that was restored from a backup, and clients whose requests show it."""

from __future__ import annotations

from live.look import events_of
from live.protocol.harness import Harness, claim, code_of, restores
from live.protocol.world import make_space

from guardband.live.client.stream_state import Effect
from guardband.live.coordinator.coordinator import Coordinator


def test_a_restored_coordinator_heals(harness):
    a = harness.join("movies")
    harness.observe(a, 2)
    harness.checkpoint(a)
    harness.send(a)
    backup = harness.store.snapshot()
    for _ in range(3):
        harness.observe(a)
        harness.checkpoint(a)
        harness.send(a)
    harness.store.restore(backup)
    harness.coordinator = Coordinator(harness.store)
    harness.observe(a)
    harness.checkpoint(a)
    assert harness.refused(a) == Effect.RESEND
    harness.send(a)
    assert harness.stored(a).n == 6


def test_a_coordinator_that_knows_nothing_heals(harness):
    backup = harness.store.snapshot()
    a = harness.join("movies")
    harness.observe(a, 2)
    harness.checkpoint(a)
    harness.send(a)
    harness.store.restore(backup)
    harness.observe(a)
    harness.checkpoint(a)
    assert harness.refused(a) == Effect.REGISTER
    harness.register(a)
    harness.send(a)
    assert harness.stored(a).n == 3


def test_no_place_is_given_twice_after_a_restore(harness):
    harness.join("movies")
    backup = harness.store.snapshot()
    harness.join("tv")
    harness.observe("tv")
    harness.pool("tv", "movies")
    harness.store.restore(backup)
    harness.coordinator = Coordinator(harness.store)
    harness.news("movies")  # it has seen an epoch that the coordinator does not know
    late = harness.join("books")
    assert harness.register(late).delta_share < 1 / 6  # that was tv's


def test_numbers_go_on_after_a_restore(harness):
    a, b = harness.join("movies"), harness.join("tv")
    backup = harness.store.snapshot()
    for _ in range(3):
        harness.observe(a)
        harness.observe(b)
        harness.pool(a, b)
    harness.store.restore(backup)
    harness.coordinator = Coordinator(harness.store)
    harness.observe(a)
    answer = harness.trigger(a)
    assert answer.open is not None
    assert answer.open.epoch == 4
    events = [event.what for event in events_of(harness.coordinator)]
    assert "server restore" in events


def test_an_open_epoch_of_before_a_restore_gets_a_new_number(harness):
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.trigger(a)
    backup = harness.store.snapshot()  # with epoch 1 open
    harness.answer(b)
    harness.adopt(a)
    harness.adopt(b)
    harness.store.restore(backup)
    harness.coordinator = Coordinator(harness.store)
    news = harness.news(a)  # has seen 1
    assert news is not None
    assert news.open is not None
    assert news.open.epoch == 2


def test_seen_epochs_are_believed_within_reason(harness):
    a = harness.join("movies")
    request = harness.state(a).upload().model_copy(update={"seen_epoch": 2**40})
    problem = code_of(harness.coordinator.upload, harness.stream(a), request, now=0.0)
    assert (problem.code, problem.status) == ("invalid_epoch", 422)


def test_a_number_that_one_client_knows_keeps_nobody_from_pooling(harness):
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.observe(b)
    harness.pool(a, b)
    claim(harness, b, 100, now=harness.now)  # and is never heard of again
    harness.observe(a)
    opened = harness.trigger(a)  # has seen 1, and cannot see 100
    assert opened.open is not None
    assert opened.open.epoch == 101
    harness.answer(a)
    harness.wait(3.0)
    assert harness.adopt(a).effect == Effect.ADOPTED
    assert harness.state(a).seen == 101
    assert harness.coordinator.epoch("home", 101).n == 3
    # From here on, a request of an agent that has not seen 101 is out of date again.
    harness.observe(b)
    assert harness.trigger(b).open is None


def test_a_wish_that_was_fulfilled_opens_nothing_after_a_restore(harness):
    a, b = harness.join("movies"), harness.join("tv")
    backup = harness.store.snapshot()
    harness.observe(a)
    harness.checkpoint(a, for_epoch=1)
    old = harness.state(a).upload(trigger=True)
    harness.send(a, trigger=True)
    harness.answer(b)
    harness.adopt(a)
    harness.store.restore(backup)
    harness.coordinator = Coordinator(harness.store)
    harness.observe(a)
    harness.pool(a, b)  # numbered 2: an agent has seen 1
    assert harness.state(a).epoch == 2
    again = old.model_copy(
        update={"base": harness.state(a).base, "checkpoint": harness.state(a).newest}
    )
    answer = harness.coordinator.upload(harness.stream(a), again, now=harness.now)
    assert (answer.epoch, answer.open) == (2, None)


def test_claims_add_up_to_no_more_than_a_space_may_have_reached(harness):
    a = harness.join("movies")
    claim(harness, a, 100)
    for seen in (101, 100_000):
        assert code_of(claim, harness, a, seen).code == "invalid_epoch"
    claim(harness, a, 160, now=60.0)  # one a second since it was created
    assert code_of(claim, harness, a, 161, now=60.0).code == "invalid_epoch"
    with harness.store.reading() as t:
        assert t.space("home").floor == 160


def test_claims_count_from_the_newest_epoch_at_the_space_s_own_pace():
    harness = Harness(space=make_space(min_interval_s=30.0))
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.observe(b)
    harness.pool(a, b)
    later = harness.now + 3600.0  # 120 intervals
    assert code_of(claim, harness, b, 1 + 100 + 121, now=later).code == "invalid_epoch"
    claim(harness, b, 1 + 100 + 120, now=later)


def test_a_contribution_to_an_epoch_that_never_was_is_refused(harness):
    a = harness.join("movies")
    harness.observe(a)
    harness.checkpoint(a)
    request = harness.state(a).upload()
    for epoch, code in ((103, "invalid_epoch"), (102, None)):  # 100, one a second, and the next
        sent = request.model_copy(update={"for_epoch": epoch})
        if code is None:
            harness.coordinator.upload(harness.stream(a), sent, now=1.0)
        else:
            refused = code_of(harness.coordinator.upload, harness.stream(a), sent, now=1.0)
            assert refused.code == code
            assert harness.stored(a).n == 0


def test_claims_are_heeded_so_often_and_written_down_once_a_minute(harness):
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.trigger(a)
    for seen in range(1, 101):
        claim(harness, a, seen, now=1.0)
    with harness.store.reading() as t:
        assert t.space("home").floor == 10
        assert t.space("home").open == 11
    assert restores(harness) == 1
    claim(harness, a, 100, now=6.9)
    with harness.store.reading() as t:
        assert t.space("home").floor == 10
    claim(harness, a, 100, now=7.0)  # the honest ask again, and are heard
    claim(harness, b, 101, now=7.0)  # a task has its own claims
    with harness.store.reading() as t:
        assert t.space("home").floor == 101
    assert restores(harness) == 1
    claim(harness, a, 102, now=61.0)
    assert restores(harness) == 2


def test_rules_from_before_a_restore_get_a_number_that_nobody_has(harness):
    a = harness.join("movies")
    lost = harness.space.changed(agents=harness.space.agents + 1)
    asked = {"after": 0, "open_after": 0}

    def poll(version: int, now: float = 200.0):
        told = harness.coordinator.news(
            "home", harness.stream(a), **asked, config_version=version, now=now
        )
        with harness.store.reading() as t:
            return told, t.heartbeat(harness.stream(a)).config_version

    told, heard = poll(9)  # it has seen version 9, this coordinator only 1
    assert (told.config_version, told.config, heard) == (10, harness.space, 1)
    assert events_of(harness.coordinator)[0].what == "server restore"
    assert code_of(harness.join, "tv").code == "agents_unseen"  # what it heard may be other numbers
    assert poll(10) == (None, 10)
    harness.join("tv")
    assert harness.coordinator.configure("home", lost, who="me", now=201.0) == 11
    # Nobody can drive the number up at will: not far at once, and not often.
    assert poll(10**9)[0].config_version == 11
    reached = [poll(harness.coordinator.space("home")[1] + 1)[0].config_version for _ in range(50)]
    assert max(reached) <= 11 + 2 * 10
