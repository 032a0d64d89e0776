"""The coordinator's rules one by one, and the failures they are made for, told as stories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from live.protocol.scenes import Scene
from live.protocol.world import USES, make_space

from guardband.live.agent.chain import Chain, Verdict
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.messages import Cut, Mark, Refused, Report, Upload
from guardband.live.total import empty_total


@pytest.fixture
def scene():
    return Scene()


def code_of(call, *args, **rest) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*args, **rest)
    return caught.value


# ---- uploads: the table of compare-and-set


def test_a_lost_reply_is_answered_again(scene):
    a = scene.join("movies")
    scene.observe(a, 3)
    scene.cut(a)
    chain = scene.chain(a)
    first = scene.coordinator.upload(chain.stream, chain.upload(), now=0.0)
    before = scene.stored(a)
    again = scene.coordinator.upload(chain.stream, chain.upload(), now=0.0)
    assert first.mark == again.mark == chain.newest.mark
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
    assert (problem.code, problem.status) == ("chain_conflict", 409)
    assert problem.more["stored"]["n"] == 2
    step = scene.chain(a).refused(problem, stream="x")
    assert step.verdict == Verdict.KEEP
    assert step.chain == scene.chain(a)


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
    assert scene.refused(snapshot) == Verdict.CONFLICT
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
    assert scene.refused(b) == Verdict.CONFLICT
    assert scene.stored(a).n == 5


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
    assert scene.refused(a) == Verdict.RESEND
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
    assert scene.refused(a) == Verdict.REGISTER
    scene.register(a)
    scene.send(a)
    assert scene.stored(a).n == 3


def test_an_upload_needs_a_proper_version_and_round(scene):
    a = scene.join("movies")
    scene.observe(a)
    scene.cut(a)
    good = scene.chain(a).upload()
    bad = [("version", {"version": v}) for v in ("", "xyz", "A" * 32, "a" * 33)]
    bad += [("round", {"round": r}) for r in (-1, 2**60, 1.5)]
    for check, change in bad:
        request = replace(good, cut=good.cut._replace(**change))
        problem = code_of(scene.coordinator.upload, scene.stream(a), request, now=0.0)
        assert (problem.status, problem.more["check"]) == (422, check)
    assert scene.stored(a).n == 0


def test_a_refused_upload_is_written_down_once_a_minute(scene):
    a = scene.join("movies")
    scene.observe(a)
    scene.cut(a)
    good = scene.chain(a).upload()
    broken = good.cut.total._replace(weight=-1.0)
    bad = replace(good, cut=good.cut._replace(total=broken))
    for now in (0.0, 1.0, 59.0, 61.0):
        code_of(scene.coordinator.upload, scene.stream(a), bad, now=now)
    events = scene.coordinator.look("home").events
    assert [event.what for event in events].count("invalid increment") == 2


def test_a_report_that_is_too_large_stores_nothing(scene):
    a = scene.join("movies")
    scene.observe(a)
    scene.cut(a)
    request = scene.chain(a).upload(report=Report(state={"x": "y" * 40_000}))
    problem = code_of(scene.coordinator.upload, scene.stream(a), request, now=0.0)
    assert (problem.code, problem.status) == ("report_too_large", 413)
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
    small = replace(chain, open=empty_total(chain.dim)).upload()
    forced = Cut("f" * 32, chain.total, chain.newest.round)
    problem = code_of(
        scene.coordinator.upload, chain.stream, replace(small, cut=forced), now=scene.now
    )
    assert problem.more["check"] == "batch"


# ---- epochs


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
    entry = scene.chain(b).newest.mark
    scene.observe(a)
    scene.trigger(a)
    scene.observe(b, 4)
    scene.cut(b)
    scene.send(b)  # stored, but not as an answer
    scene.wait(3.0)
    record = scene.coordinator.epoch("home", 2)
    assert {line.task: Mark(line.n, line.version) for line in record.manifest}["tv"] == entry
    assert scene.stored(b).n == 5
    assert scene.adopt(b).verdict == Verdict.WAIT or scene.chain(b).since == entry


def test_the_first_answer_counts(scene):
    a, b, c = scene.join("movies"), scene.join("tv"), scene.join("books")
    for who in (a, b, c):
        scene.observe(who)
    scene.trigger(a)
    scene.answer(b)
    first = scene.chain(b).newest
    scene.observe(b)
    chain = replace(scene.chain(b), answered=0).cut("e" * 32, for_epoch=1)
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
    assert scene.adopt(a).verdict == Verdict.ADOPTED
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
    assert (news.epoch, news.total, news.streams, news.excluded) == (2, None, 1, 1)
    assert scene.coordinator.epoch("home", 2).total is None
    assert scene.adopt(a).verdict == Verdict.ADOPTED
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
    scene = Scene(space=replace(make_space(contexts="per-request"), shares="equal"))
    scene.join("movies")
    assert code_of(scene.join, "movies", "other").code == "too_many_streams"
    grown = replace(scene.space, agents=9)
    assert code_of(scene.coordinator.configure, "home", grown, who="", now=0.0).code == (
        "shares_fixed"
    )
    other = replace(scene.space, shares="registered")
    assert code_of(scene.coordinator.configure, "home", other, who="", now=0.0).code == (
        "shares_fixed"
    )


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
    events = [event.what for event in scene.coordinator.look("home").events]
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
    request = replace(scene.chain(a).upload(), seen_epoch=2**40)
    problem = code_of(scene.coordinator.upload, scene.stream(a), request, now=0.0)
    assert (problem.code, problem.status) == ("invalid_epoch", 422)


def claim(scene, who, seen, now=0.0):
    request = replace(scene.chain(who).upload(), seen_epoch=seen)
    return scene.coordinator.upload(scene.stream(who), request, now=now)


def restores(scene):
    events = scene.coordinator.look("home", events=1000).events
    return sum(event.what == "server restore" for event in events)


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
    assert scene.adopt(a).verdict == Verdict.ADOPTED
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
    again = replace(old, base=scene.chain(a).base, cut=scene.chain(a).newest)
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


# ---- the end of streams


def test_a_sealed_stream_enters_with_its_end_and_its_rest_moves_once(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a, 2)
    scene.cut(a)
    scene.send(a)
    old = scene.stream(a)
    scene.observe(a, 3)
    twin = scene.copy(a, "twin")
    scene.coordinator.seal(old, scene.chain(a).base, now=0.0)
    scene.cut(a)
    scene.cut(twin)
    assert scene.refused(a) == Verdict.CONTINUED
    assert scene.refused(twin) == Verdict.CONTINUED
    assert scene.chain(a).total.n == 3
    scene.register(a)
    scene.register(a)  # again: the same
    assert code_of(scene.register, twin).code == "already_continued"
    scene.observe(b)
    scene.trigger(b)
    scene.answer(a)
    record = scene.coordinator.epoch("home", 1)
    assert record.n == 6
    assert {line.stream: line.n for line in record.manifest}[old] == 2


def test_a_copy_of_a_sealed_stream_hears_no_news(scene):
    """Its rest may be in the sum, under the name of the stream that took it."""
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.cut(a)
    scene.send(a)
    scene.observe(a, 2)
    twin = scene.copy(a, "twin")
    scene.coordinator.seal(scene.stream(a), scene.chain(a).base, now=0.0)
    scene.cut(a)
    scene.refused(a)
    scene.register(a)
    scene.observe(b)
    scene.trigger(b)
    scene.answer(a)
    problem = code_of(scene.news, twin)
    assert (problem.code, problem.status) == ("sealed", 410)
    assert scene.chain(twin).refused(problem, stream="x").verdict == Verdict.CONTINUED


def test_the_rest_does_not_move_where_somebody_went_on_with_the_stream(scene):
    a = scene.join("movies")
    scene.observe(a)
    scene.cut(a)
    scene.send(a)
    backup = scene.store.snapshot()
    scene.observe(a, 2)
    twin = scene.copy(a, "twin")
    scene.coordinator.seal(scene.stream(a), scene.chain(a).base, now=0.0)
    scene.cut(a)
    scene.refused(a)
    scene.register(a)
    scene.store.restore(backup)  # nothing sealed, nothing continued
    scene.cut(twin)
    scene.send(twin)  # with the rest
    problem = code_of(scene.register, a)
    assert problem.code == "already_continued"
    assert scene.chain(a).refused(problem, stream="x").verdict == Verdict.CONFLICT


def test_a_rest_moves_once_and_not_again(scene):
    """Copied, sealed, sealed again, and the coordinator restored to before all of it."""
    a = scene.join("movies")
    backup = scene.store.snapshot()
    scene.observe(a)
    scene.cut(a)
    scene.send(a)
    scene.observe(a, 2)
    twin = scene.copy(a, "twin")
    scene.coordinator.seal(scene.stream(a), scene.chain(a).base, now=0.0)
    scene.cut(a)
    assert scene.refused(a) == Verdict.CONTINUED
    scene.register(a)
    scene.coordinator.seal(scene.stream(a), Mark(0, ""), now=0.0)  # before it sent the rest
    scene.cut(a)
    assert scene.refused(a) == Verdict.CONFLICT
    scene.store.restore(backup)
    scene.cut(twin)
    scene.send(twin)  # has the rest, and nobody else has
    assert scene.stored(twin).n == 3
    assert scene.chain(a).total.n == 0


def test_only_what_is_stored_can_be_sealed(scene):
    a = scene.join("movies")
    assert (
        code_of(scene.coordinator.seal, scene.stream(a), Mark(3, "a" * 32), now=0.0).code
        == "chain_conflict"
    )


# ---- spaces, tasks, news, reports


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
    scene.chains["more"], scene.tasks["more"] = Chain.start(scene.fresh("stream"), 4), "tv"
    problem = code_of(scene.register, "more", task="fourth")
    assert (problem.code, problem.status) == ("too_many_tasks", 409)
    # A second stream of a task has data, and so a share, of its own; the first keeps its own.
    scene.now += scene.space.sync.live_s
    assert scene.register("more").delta_share == pytest.approx(1 / 20)
    assert scene.register("more").task_index == 2
    assert scene.register("tv").delta_share == pytest.approx(1 / 6)


def test_a_space_grows_only_when_everybody_knows():
    scene = Scene(space=replace(make_space(), agents=1))
    a = scene.join("movies")
    grown = replace(scene.space, agents=2)
    assert scene.coordinator.configure("home", grown, who="me", now=0.0) == 2
    problem = code_of(scene.join, "tv")
    assert problem.code == "agents_unseen"
    news = scene.news(a)
    assert news is not None
    assert news.config is not None
    assert (news.config["agents"], news.config_version) == (2, 2)
    code_of(scene.join, "tv")  # told, but not confirmed
    scene.coordinator.news(
        "home", scene.stream(a), after=0, open_after=0, config_version=2, now=0.0
    )
    scene.join("tv")


def test_to_ask_for_the_settings_again_is_not_to_have_forgotten_them():
    scene = Scene(space=replace(make_space(), agents=1))
    a = scene.join("movies")
    grown = replace(scene.space, agents=2)
    scene.coordinator.configure("home", grown, who="me", now=0.0)

    def poll(version: int, now: float) -> int:
        asked = {"after": 0, "open_after": 0, "config_version": version}
        scene.coordinator.news("home", scene.stream(a), **asked, now=now)
        with scene.store.reading() as t:
            return t.pulse(scene.stream(a)).config_version

    assert poll(2, 0.0) == 2
    assert [poll(0, 0.0), poll(1, 0.0), poll(0, 100.0)] == [2, 2, 2]
    scene.join("tv")


def test_rules_from_before_a_restore_get_a_number_that_nobody_has(scene):
    a = scene.join("movies")
    lost = replace(scene.space, agents=scene.space.agents + 1)
    asked = {"after": 0, "open_after": 0}

    def poll(version: int, now: float = 200.0):
        told = scene.coordinator.news(
            "home", scene.stream(a), **asked, config_version=version, now=now
        )
        with scene.store.reading() as t:
            return told, t.pulse(scene.stream(a)).config_version

    told, heard = poll(9)  # it has seen version 9, this coordinator only 1
    assert (told.config_version, told.config, heard) == (10, scene.space.as_json(), 1)
    assert scene.coordinator.look("home").events[0].what == "server restore"
    assert code_of(scene.join, "tv").code == "agents_unseen"  # what it heard may be other numbers
    assert poll(10) == (None, 10)
    scene.join("tv")
    assert scene.coordinator.configure("home", lost, who="me", now=201.0) == 11
    # Nobody can drive the number up at will: not far at once, and not often.
    assert poll(10**9)[0].config_version == 11
    reached = [poll(scene.coordinator.space("home")[1] + 1)[0].config_version for _ in range(50)]
    assert max(reached) <= 11 + 2 * 10


def test_configuration_keeps_what_data_depend_on(scene):
    scene.join("movies")
    scene.join("tv")
    configure = scene.coordinator.configure
    other = replace(scene.space, feature_bound=2.0)
    assert code_of(configure, "home", other, who="", now=0.0).code == "schema_mismatch"
    fewer = replace(scene.space, agents=1)
    assert code_of(configure, "home", fewer, who="", now=0.0).code == "too_many_tasks"
    assert configure("home", replace(scene.space, alpha=0.2), who="", now=0.0) == 2
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
    assert [e.what for e in scene.coordinator.look("home").events][:2] == ["resumed", "paused"]


def test_a_poll_is_a_sign_of_life(scene):
    a, b = scene.join("movies"), scene.join("tv")
    scene.now = 100.0  # both are forgotten by now
    scene.observe(a)
    scene.trigger(a)
    assert scene.coordinator.look("home").row.epoch == 1  # nobody else is waited for
    scene.news(b)
    scene.adopt(a)
    scene.observe(a)
    scene.trigger(a)
    assert scene.coordinator.look("home").row.open == 2  # b is


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
    assert '"decisions": 7195' in scene.coordinator.look("home").pulses[scene.stream(a)].report


def test_a_report_cannot_hold_what_json_cannot(scene):
    a = scene.join("movies")
    bad = Report(gauges={"x": float("nan")})
    assert code_of(scene.coordinator.report, scene.stream(a), bad, now=0.0).code == "invalid_report"


def test_nobody_counts_own_data_twice_after_pooling(scene):
    a, b = scene.join("movies"), scene.join("tv")
    for _ in range(4):
        scene.observe(a, 2)
        scene.observe(b, 1)
        scene.pool(a, b)
        scene.observe(a)
        assert max(scene.view(a).values()) == 1
        assert len(scene.view(a)) == scene.chain(b).newest.total.n + scene.chain(a).total.n


def test_an_upload_of_an_unknown_stream_is_refused(scene):
    cut = Cut("", empty_total(4), 0)
    request = Upload(base=Mark(0, ""), cut=cut)
    problem = code_of(scene.coordinator.upload, "nobody", request, now=0.0)
    assert (problem.code, problem.status) == ("unknown_stream", 404)


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
