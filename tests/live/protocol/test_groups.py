"""Uploads in groups: one commit, one answer each; and what an epoch costs where many answer."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from live.memory_store import MemoryTransaction
from live.protocol.harness import Harness, code_of
from live.protocol.world import make_space

from guardband.live.coordinator.coordinator import Known
from guardband.live.coordinator.uploads import Taken
from guardband.live.protocol.messages import Refused, Upload
from guardband.live.store import SpaceRow
from guardband.live.store.sqlite import SqliteStore


def new(harness: Harness, who: str, **more: Any) -> tuple[str, Upload]:
    """Return an agent's next upload, with one observation more."""
    harness.observe(who)
    harness.checkpoint(who)
    return harness.stream(who), harness.state(who).upload().model_copy(update=more)


def together(harness: Harness, *requests: tuple[str, Upload]) -> list[Taken | Exception]:
    return harness.coordinator.uploads("home", requests, now=harness.now)


def space_row(harness: Harness) -> SpaceRow:
    with harness.store.reading() as t:
        row = t.space("home")
    assert row is not None
    return row


def damage(harness: Harness, who: str) -> None:
    with harness.store.transaction("home") as t:
        row = t.stream(harness.stream(who))
        t.put(row._replace(total=row.total[:-1] + bytes([row.total[-1] ^ 1])))


def test_a_refused_upload_leaves_its_neighbours_alone(harness):
    a, b, c = harness.join("movies"), harness.join("tv"), harness.join("books")
    bad = new(harness, b)
    broken = bad[1].checkpoint.sums._replace(weight=-1.0)
    checkpoint = bad[1].checkpoint._replace(sums=broken)
    bad = (bad[0], bad[1].model_copy(update={"checkpoint": checkpoint}))
    nobody = ("00000000-0000-0000-0000-000000000000", bad[1])
    first, refused, unknown, last = together(harness, new(harness, a), bad, nobody, new(harness, c))
    assert isinstance(refused, Refused)
    assert isinstance(unknown, Refused)
    assert (refused.code, unknown.code) == ("invalid_increment", "unknown_stream")
    for who, answer in ((a, first), (c, last)):
        assert isinstance(answer, Taken)
        assert (
            answer.said.revision
            == harness.stored(who).revision
            == harness.state(who).newest.revision
        )
    assert harness.stored(b).n == 0


def test_a_damaged_stream_is_sent_again_among_its_neighbours(harness):
    names = [harness.join("movies"), harness.join("tv"), harness.join("books")]
    for who in names:
        harness.observe(who)
        harness.checkpoint(who)
        harness.send(who)
    damage(harness, "tv")
    done = together(harness, *(new(harness, who) for who in names))
    assert all(isinstance(each, Taken) for each in done)
    assert [harness.stored(who).n for who in names] == [2, 2, 2]


def test_a_group_whose_commit_fails_is_acknowledged_to_nobody(harness):
    a, b = harness.join("movies"), harness.join("tv")
    requests = [new(harness, a), new(harness, b)]
    harness.store.fails = True
    assert code_of(together, harness, *requests).code == "store_unavailable"
    harness.store.fails = False
    assert [harness.stored(who).n for who in (a, b)] == [0, 0]
    assert all(isinstance(each, Taken) for each in together(harness, *requests))


def test_a_write_that_the_store_refuses_undoes_the_group(harness, monkeypatch):
    """As where the disk is full: what was written of an upload before must not stay."""
    a, b = harness.join("movies"), harness.join("tv")
    requests = [new(harness, a), new(harness, b)]
    right, full = MemoryTransaction.put, Refused("store_unavailable", 503, "full.")

    def put(t: Any, row: Any) -> None:
        if getattr(row, "stream", None) == harness.stream(b):
            raise full
        right(t, row)

    monkeypatch.setattr(MemoryTransaction, "put", put)
    monkeypatch.setattr(MemoryTransaction, "touch", lambda *rest: None)
    assert code_of(together, harness, *requests) is full
    assert [harness.stored(who).n for who in (a, b)] == [0, 0]


def test_uploads_of_one_stream_are_carried_out_one_after_the_other(harness):
    a = harness.join("movies")
    first = new(harness, a)
    again = first
    base = first[1].checkpoint.revision
    harness.observe(a)
    harness.checkpoint(a)
    request = harness.state(a).upload().model_copy(update={"base": base})
    second = (harness.stream(a), request)
    one, same, two, late = together(harness, first, again, second, first)
    assert isinstance(one, Taken)
    assert isinstance(same, Taken)
    assert isinstance(two, Taken)
    assert (one.again, same.again, two.again) == (False, True, False)
    assert isinstance(late, Refused)
    assert (late.code, late.more["stored"]["n"]) == ("revision_conflict", 2)


def test_an_epoch_opens_and_closes_within_one_group(harness):
    a, b = harness.join("movies"), harness.join("tv")
    opens = new(harness, a, trigger=True, for_epoch=1)
    answers = together(harness, opens, new(harness, b, for_epoch=1))
    for answer in answers:
        assert isinstance(answer, Taken)
        assert (answer.said.epoch, answer.said.open) == (1, None)
    assert harness.coordinator.epoch("home", 1).streams_in == 2


def test_the_counter_goes_with_the_answers(harness):
    names = [harness.join("movies"), harness.join("tv"), harness.join("books")]
    harness.observe(names[0])
    harness.trigger(names[0])
    assert space_row(harness).outstanding == 2
    together(harness, new(harness, names[1]))  # no answer
    assert space_row(harness).outstanding == 2
    together(harness, new(harness, names[1], for_epoch=1, base=harness.stored(names[1]).revision))
    assert space_row(harness).outstanding == 1
    harness.coordinator.seal(
        harness.stream(names[2]), harness.stored(names[2]).revision, now=harness.now
    )
    assert (space_row(harness).epoch, space_row(harness).outstanding) == (1, 0)


@pytest.mark.parametrize("size", [1, 8])
def test_an_epoch_looks_at_all_streams_when_it_opens_and_when_it_is_complete(
    monkeypatch, size: int
):
    """So the looks, each of which costs M, do not grow with M."""
    looks, right = [], MemoryTransaction.unanswered
    monkeypatch.setattr(
        MemoryTransaction, "unanswered", lambda t, *rest: looks.append(rest) or right(t, *rest)
    )
    counts = []
    for streams in (4, 16):
        harness = Harness(space=make_space(contexts="per-request"))
        names = [harness.join("movies", f"agent {k}") for k in range(streams)]
        looks.clear()
        harness.observe(names[0])
        harness.trigger(names[0])
        rest = [new(harness, who, for_epoch=1) for who in names[1:]]
        for k in range(0, len(rest), size):
            together(harness, *rest[k : k + size])
        assert space_row(harness).epoch == 1
        counts.append(len(looks))
    assert counts == [2, 2]


def test_who_asks_too_soon_after_another_costs_the_same_at_any_size(tmp_path: Path):
    """A look at all streams for each that asks would cost M^2 within an interval."""
    steps: list[int] = []

    def note(seen: dict[str, Any]) -> None:
        steps.append(seen["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    def asking(harness: Harness, who: str) -> int:
        harness.observe(who)
        steps.clear()
        assert harness.trigger(who).open is None
        return sum(steps)

    first, later = [], []
    for streams in (4, 16):
        with closing(SqliteStore(tmp_path / f"{streams}.db")) as store:
            space = make_space(contexts="per-request", min_streams=2, min_interval_s=30.0)
            harness = Harness(store, space)
            names = [harness.join("tv"), *(harness.join("movies", f"{k}") for k in range(streams))]
            harness.observe(names[1])
            harness.checkpoint(names[1])
            harness.send(names[1])
            for who in names:
                harness.observe(who)
            harness.pool(*names)
            store.connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
            first.append(asking(harness, names[0]))
            later.append({asking(harness, who) for who in names[1:]})
            assert space_row(harness).wanted_by == harness.stream(names[0])
    assert first[0] < first[1]  # which looks at them
    assert len(later[0]) == 1
    assert later[0] == later[1]


def test_a_group_is_one_query_one_commit_and_two_writes_each(tmp_path: Path):
    store = SqliteStore(tmp_path / "coordinator.db")
    harness = Harness(store, make_space(contexts="per-request"))
    names = [harness.join("movies", f"agent {k}") for k in range(10)]
    requests = [new(harness, who) for who in names]
    statements: list[str] = []
    store.connection.exec_trace = lambda _, text, __: statements.append(text) or True
    together(harness, *requests)
    store.connection.exec_trace = None
    assert sum(text.startswith("select") for text in statements) == 1
    assert len(statements) == 3 + 2 * len(names)  # and begin and commit
    store.close()


def test_who_asks_together_hears_what_each_would_hear_alone(harness):
    names = [harness.join("movies"), harness.join("tv"), harness.join("books")]
    for who in names:
        harness.observe(who)
    harness.pool(names[0], names[1])  # books is late
    harness.coordinator.seal(harness.stream("books"), harness.stored("books").revision, now=9.0)
    asks = [(harness.stream(who), Known(0, 0, 1)) for who in names]
    asks += [(harness.stream("tv"), Known(1, 0, 1)), (harness.stream("tv"), Known(10**6, 0, 1))]
    asks.append(("00000000-0000-0000-0000-000000000000", Known(0, 0, 1)))
    together_ = harness.coordinator.news_of("home", asks, now=9.0)
    for (stream, known), said in zip(asks, together_, strict=True):
        (alone,) = harness.coordinator.news_of("home", [(stream, known)], now=9.0)
        if isinstance(said, Refused):
            assert isinstance(alone, Refused)
            assert said.code == alone.code
        else:
            assert repr(said) == repr(alone)
    codes = [each.code if isinstance(each, Refused) else None for each in together_]
    assert codes == [None, None, "sealed", None, "invalid_epoch", "unknown_stream"]
    assert [each is None for each in together_] == [False, False, False, True, False, False]


def test_news_of_many_cost_two_queries_and_their_heartbeats_one_commit(tmp_path: Path):
    store = SqliteStore(tmp_path / "coordinator.db")
    harness = Harness(store, make_space(contexts="per-request"))
    names = [harness.join("movies", f"agent {k}") for k in range(10)]
    for who in names:
        harness.observe(who)
    harness.pool(*names)
    statements: list[str] = []
    store.connection.exec_trace = lambda _, text, __: statements.append(text) or True
    asks = [(harness.stream(who), Known(0, 0, 1)) for who in names]
    harness.coordinator.news_of("home", asks, now=harness.now)
    assert sum(text.startswith("select") for text in statements) == 2
    statements.clear()
    harness.coordinator.news_of("home", asks, now=harness.now + 30.0)
    store.connection.exec_trace = None
    assert sum(text.startswith("update pulse") for text in statements) == len(names)
    assert statements.count("commit") == 2  # of the first look, and of the notes
    store.close()
