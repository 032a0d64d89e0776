"""What every store must do. A test class inherits from it and has a fixture `store`."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from live.protocol.world import make_space

from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.protocol.messages import Revision
from guardband.live.protocol.sums import empty_sums
from guardband.live.store import (
    AlarmRow,
    EntryRow,
    EpochRow,
    HeartbeatRow,
    SampleRow,
    SpaceRow,
    Store,
    StreamRow,
    TaskRow,
    TokenRow,
)

ZERO = empty_sums(2).as_bytes()


def counting(n: int) -> bytes:
    """Sums that claim so many observations."""
    return empty_sums(2)._replace(n=n).as_bytes()


SPACE = SpaceRow("home", '{"a": "ü"}', 3, 2, 7, 9, 8, "s1", "because", 1.5, 2.5, 4, 2)
BARE = SpaceRow("bare", "{}", 1, 1, 0, 0, 0, None, None, 0.25, None)
STREAM = StreamRow(
    "s1", "home", "movies", "open", None, 1.0, "0.1", 5, "ab" * 16, 4, counting(5),
    8, 3, "cd" * 16, 2, counting(3), 7, 2, "ef" * 16, 1, counting(2), 1, 4,
)  # fmt: skip
HEARTBEAT = HeartbeatRow("s1", "home", "movies", 10.0, 7, 3, "{}", None, None)
TASK = TaskRow("home", "movies", 1, "[0, 1]", "active", "", 1.0)
OPEN = EpochRow("home", 8, "open", "s1", 3.0, None, 0, 0, 0, 0, 0, 0, None, None, None)
CLOSED = EpochRow("home", 7, "closed", "s1", 1.0, 2.0, 2, 2, 1, 2, 2**53, 6, ZERO, "00", -0.5)


class StoreContract:
    """The tests."""

    def put(self, store: Store, *rows: Any) -> None:
        with store.transaction("home") as t:
            for row in rows:
                t.put(row)

    def test_an_empty_store_has_nothing(self, store):
        with store.reading() as t:
            assert t.space("home") is None
            assert t.stream("s1") is None
            assert t.record("s1") is None
            assert t.records(["s1"]) == {}
            assert t.heartbeat("s1") is None
            assert t.task("home", "movies") is None
            assert t.epoch("home", 1) is None
            assert t.token("x") is None
            assert t.meta("x") is None
            assert t.spaces() == t.tasks("home") == t.streams("home") == t.heartbeats("home") == []
            assert t.epochs("home", 9) == t.entries("home", 1) == t.tokens() == []
            assert t.events(None, 9) == t.samples("home", 0, 0.0) == []
            assert t.unanswered("home", 1, 0.0) == 0
            assert t.count_streams("home", "movies") == (0, 0)
            assert t.counted("home", "movies") == (0, 0.0)
            assert t.contributors("home") == set()

    def test_rows_come_back_as_they_were(self, store):
        token = TokenRow("id", "ff", "agent", "home", "movies", "n", 1.0, None)
        entry = EntryRow("home", 7, "s1", "movies", 5, "ab" * 16)
        sample = SampleRow("home", "s1", 0, 4, "movies", 40.5, "{}")
        alarm = AlarmRow("s1", "fit", "home", "movies", 7, 9.5, 3.0, 4.0, "ann")
        rows = (SPACE, BARE, TASK, STREAM, HEARTBEAT, OPEN, CLOSED, token, entry, sample, alarm)
        self.put(store, *rows)
        with store.reading() as t:
            assert t.space("home") == SPACE
            assert t.spaces() == [BARE, SPACE]
            assert t.task("home", "movies") == TASK
            assert t.stream("s1") == STREAM
            assert t.streams("home") == [STREAM]
            assert t.record("s1") == (STREAM, SPACE, TASK, HEARTBEAT, None)
            assert t.record("s1", after=7) == (STREAM, SPACE, TASK, HEARTBEAT, None)
            assert t.record("s1", after=6) == (STREAM, SPACE, TASK, HEARTBEAT, CLOSED)
            assert t.records(["s1", "nobody"]) == {"s1": (STREAM, SPACE, TASK, HEARTBEAT, None)}
            assert t.heartbeat("s1") == HEARTBEAT
            assert t.heartbeats("home") == [HEARTBEAT]
            assert t.epoch("home", 7) == CLOSED
            assert t.epochs("home", 5) == [OPEN, CLOSED]
            assert t.epochs("home", 1) == [OPEN]
            assert t.entries("home", 7) == [entry]
            assert t.samples("home", 0, 40.0) == [sample]
            assert t.samples("home", 0, 41.0) == t.samples("home", 1, 0.0) == []
            assert t.token("id") == token
            assert t.alarm("s1", "fit") == alarm
            assert (t.alarms("home"), t.alarms("bare")) == ([alarm], [])
            assert type(t.stream("s1").total) is bytes
            assert t.stream("s1").revision == Revision(5, "ab" * 16)

    def test_a_row_is_written_over_the_one_with_its_key(self, store):
        self.put(store, STREAM, HEARTBEAT, SPACE)
        changed = STREAM._replace(n=6, state="sealed", continued_by="s2", entry_total=ZERO)
        self.put(store, changed, SPACE._replace(paused=None, closed_at=None))
        with store.reading() as t:
            assert t.streams("home") == [changed]
            assert t.space("home") == SPACE._replace(paused=None, closed_at=None)

    def test_lists_are_in_order(self, store):
        names = ["b", "B", "a-", "a", "Ä", "aa"]  # byte by byte, whatever the locale says
        self.put(store, *(STREAM._replace(stream=name) for name in names))
        self.put(store, *(HEARTBEAT._replace(stream=name) for name in names))
        places = {"z": 1, "a": 2, "m": 3}
        self.put(store, *(TASK._replace(task=k, place=v) for k, v in places.items()))
        with store.reading() as t:
            assert [row.stream for row in t.streams("home")] == sorted(names)
            assert [row.stream for row in t.heartbeats("home")] == sorted(names)
            assert [row.task for row in t.tasks("home")] == ["z", "a", "m"]

    def test_a_failed_transaction_leaves_nothing(self, store):
        self.put(store, SPACE, STREAM, HEARTBEAT, OPEN)
        with pytest.raises(KeyError), store.transaction("home") as t:  # noqa: PT012
            t.put(SPACE._replace(epoch=99))
            t.put(BARE)
            t.put_meta("k", "v")
            t.add_event(1.0, "home", "me", "what", "{}")
            t.touch("s1", 99.0, 99, 99)
            t.set_outstanding("home", 99)
            t.delete_epoch("home", 8)
            raise KeyError
        with store.reading() as t:
            assert t.spaces() == [SPACE]
            assert t.heartbeat("s1") == HEARTBEAT
            assert t.epoch("home", 8) == OPEN
            assert t.meta("k") is None
            assert t.events(None, 9) == []

    def test_a_transaction_sees_its_own_writes(self, store):
        with store.transaction("home") as t:
            t.put(SPACE)
            t.put_meta("k", "v")
            assert t.space("home") == SPACE
            t.put(SPACE._replace(epoch=8))
            assert t.space("home").epoch == 8
            assert t.meta("k") == "v"
            t.put_meta("k", "w")
            assert t.meta("k") == "w"

    def test_many_writes_keep_their_order(self, store):
        names = [f"s{k}" for k in range(5)]
        with store.transaction("home") as t:
            t.put(SPACE)
            for k, name in enumerate(names):
                t.put(STREAM._replace(stream=name, n=1))
                t.put(HEARTBEAT._replace(stream=name, last_seen=1.0))
                t.touch(name, 20.0 + k, 9, None)
                t.put(STREAM._replace(stream=name, n=k))
            t.touch("s4", 30.0, None, None)
            t.set_outstanding("home", 4)
            t.set_outstanding("home", 3)
        with store.reading() as t:
            assert [t.stream(name).n for name in names] == [0, 1, 2, 3, 4]
            assert [t.heartbeat(name).last_seen for name in names] == [20.0, 21.0, 22.0, 23.0, 30.0]
            assert t.space("home") == SPACE._replace(outstanding=3)

    def test_touch_leaves_what_is_not_given(self, store):
        self.put(store, HEARTBEAT._replace(report='{"x": 1}'))
        with store.transaction("home") as t:
            t.touch("s1", 20.0, None, 4)
            t.touch("nobody", 20.0, 1, 1)
        with store.transaction("home") as t:
            t.touch("s1", 21.0, 9, None)
            known = t.heartbeat("s1")
        wanted = HEARTBEAT._replace(
            last_seen=21.0, seen_epoch=9, config_version=4, report='{"x": 1}'
        )
        assert known == wanted

    def test_who_owes_an_answer(self, store):
        streams = {"s1": ("open", 7), "s2": ("open", 8), "s3": ("sealed", 0), "s4": ("open", 0)}
        for name, (state, answered) in streams.items():
            row = STREAM._replace(stream=name, state=state, answer_epoch=answered)
            self.put(store, row, HEARTBEAT._replace(stream=name))
        other = STREAM._replace(stream="s5", task="tv", answer_epoch=0)
        self.put(store, other, HEARTBEAT._replace(stream="s5", task="tv"))
        self.put(store, TASK, TASK._replace(task="tv", place=2, status="quarantined"))
        elsewhere = STREAM._replace(stream="s6", space="away")
        self.put(store, elsewhere, HEARTBEAT._replace(stream="s6", space="away"))
        former = STREAM._replace(stream="s7", state="sealed", pool=-1)  # replaced
        self.put(store, SPACE, former, HEARTBEAT._replace(stream="s7"))
        self.put(store, HEARTBEAT._replace(stream="s4", last_seen=5.0))
        with store.reading() as t:
            assert t.unanswered("home", 8, 10.0) == 1  # s1
            assert t.unanswered("home", 8, 0.0) == 2  # and s4, heard of long ago
            assert t.unanswered("home", 9, 10.0) == 2  # and s2
            assert t.count_streams("home", "movies") == (3, 4)
            assert t.count_streams("home", "tv") == (1, 1)
            assert t.contributors("home") == {"movies"}  # tv is quarantined

    def test_events_are_numbered_and_newest_first(self, store):
        for k, space in enumerate(["home", "away", "home"]):
            with store.transaction(space) as t:
                t.add_event(float(k), space, "me", f"w{k}", "{}")
        with store.reading() as t:
            assert [e.what for e in t.events("home", 9)] == ["w2", "w0"]
            assert [e.what for e in t.events(None, 2)] == ["w2", "w1"]
            first = t.events(None, 9)[-1]
            assert [e.what for e in t.events("home", 9, after=first.seq)] == ["w2"]

    def test_old_samples_are_forgotten(self, store):
        for slot in range(4):
            for level in (0, 1):
                body = SampleRow("home", "s1", level, slot, "movies", 10.0 * slot, "{}")
                self.put(store, body)
        with store.transaction("home") as t:
            t.delete_samples("home", 0, 15.0)
            assert [row.slot for row in t.samples("home", 0, 0.0)] == [2, 3]
            assert len(t.samples("home", 1, 0.0)) == 4

    def test_an_open_epoch_can_be_dropped(self, store):
        self.put(store, OPEN, CLOSED)
        with store.transaction("home") as t:
            t.delete_epoch("home", 8)
        with store.reading() as t:
            assert t.epochs("home", 9) == [CLOSED]

    def test_threads_do_not_lose_each_others_work(self, store):
        self.put(store, SPACE._replace(epoch=0))

        def work() -> None:
            for _ in range(20):
                with store.transaction("home") as t:
                    row = t.space("home")
                    t.put(row._replace(epoch=row.epoch + 1))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.reading() as t:
            assert t.space("home").epoch == 80

    def test_nothing_is_wrong_with_it(self, store):
        self.put(store, SPACE, STREAM)
        assert store.check() == []

    def test_damaged_sums_are_found_and_not_used(self, store):
        from live.protocol.harness import Harness  # noqa: PLC0415 - a harness builds on stores

        harness = Harness(store)
        name = harness.join("movies")
        harness.observe(name, 2)
        harness.pool(name)
        with store.transaction("home") as t:
            row, epoch = t.stream(harness.stream(name)), t.epoch("home", 1)
            damaged = row.total[:-1] + bytes([row.total[-1] ^ 1])
            t.put(row._replace(total=damaged))
            t.put(epoch._replace(total=damaged))
        # The epoch is added up again from its entries, and has the digest that it had.
        assert harness.coordinator.epoch("home", 1).sums.sha256 == epoch.sha256
        harness.observe(name)
        harness.checkpoint(name)
        harness.send(name)
        with store.reading() as t:
            assert t.stream(harness.stream(name)).sums.n == 3
            (event,) = [each for each in t.events("home", 10) if each.what == "damaged stream"]
            # What is left is its entry in the epoch.
            assert json.loads(event.detail) == {"stream": row.stream, "n": 2, "left": 2}
            entry = t.stream(harness.stream(name))
        with store.transaction("home") as t:
            bad = entry.entry_total[:-1] + bytes([entry.entry_total[-1] ^ 1])
            t.put(entry._replace(entry_total=bad))
        # Now nothing is left to add it up from: nobody is told a sum.
        assert harness.coordinator.epoch("home", 1).sums is None

    def test_a_coordinator_works_on_it(self, store):
        from live.protocol.harness import Harness  # noqa: PLC0415 - a harness builds on stores

        harness = Harness(store)
        a, b = harness.join("movies"), harness.join("tv")
        for _ in range(3):
            harness.observe(a, 2)
            harness.observe(b, 1)
            harness.pool(a, b)
        record = harness.coordinator.epoch("home", 3)
        assert record.n == 9
        assert [line.n for line in record.manifest] == [
            harness.state(name).newest.revision.n for name in sorted((a, b), key=harness.stream)
        ]
        assert record.sums is not None
        assert record.sums.sha256 == record.sha256
        again = Coordinator(store)
        assert again.space("home")[0] == make_space()
        assert again.news(
            "home", harness.stream(a), after=0, open_after=0, config_version=1, now=9.0
        ).own == Revision(6, harness.state(a).newest.version)
