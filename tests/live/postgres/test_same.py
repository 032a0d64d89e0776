"""Whatever is done to them, the stores in memory, in SQLite and in PostgreSQL hold the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from live.memory_store import MemoryStore

from guardband.live.store import (
    EntryRow,
    EpochRow,
    HeartbeatRow,
    SampleRow,
    SpaceRow,
    Store,
    StreamRow,
    TaskRow,
    TokenRow,
    Transaction,
)
from guardband.live.store.sqlite import SqliteStore

pytestmark = pytest.mark.slow

NAMES = ("home", "Home", "a-b", "a.b", "é")
TEXTS = ("", "{}", 'quote " and \\ and ;--', "line\nbreak", "Ω ≤ 🙂", "%s %(x)s $1")
SIGNS = (0.0, -0.0, 0.1, 1e-300, 1.7976931348623157e308, 1234567.890625)
NUMBERS = (0, 1, 7, 2**31, 2**53)
BYTES = (b"", b"\x00\xff", bytes(range(256)))


class Deeds:
    """Random deeds, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed).choice

    def name(self) -> str:
        return self.pick(NAMES)

    def text(self) -> str:
        return self.pick(TEXTS)

    def time(self) -> float:
        return self.pick(SIGNS)

    def number(self) -> int:
        return self.pick(NUMBERS)

    def maybe(self, value: Any) -> Any:
        return self.pick((value, None))

    def cut(self) -> tuple[int, str, int, bytes]:
        return self.number(), self.text(), self.number(), self.pick(BYTES)

    def home(self) -> tuple[str, str, str]:
        """Return a stream with its space and task, which are always the same for it."""
        stream = self.name()
        return stream, NAMES[len(stream) % 2], NAMES[len(stream) % 3]

    def row(self) -> Any:
        n, t, x, b = self.number, self.text, self.time, lambda: self.pick(BYTES)
        name, few, maybe = self.name, lambda: self.pick((1, 2, 3)), self.maybe
        state = self.pick(("open", "sealed", "closed"))
        status = self.pick(("active", "quarantined"))
        makers: tuple[Callable[[], Any], ...] = (
            lambda: SpaceRow(name(), t(), n(), n(), n(), n(), n(), maybe(t()), maybe(t()), x(),
                             maybe(x())),
            lambda: TaskRow(name(), name(), n(), t(), status, t(), x()),
            lambda: StreamRow(*self.home(), state, maybe(t()), x(), t(), *self.cut(),
                              few(), *self.cut(), few(), *self.cut()),
            lambda: HeartbeatRow(*self.home(), x(), n(), n(), t(), maybe(x()), maybe(x())),
            lambda: EpochRow(name(), few(), state, t(), x(), maybe(x()), n(), n(), n(), n(), n(),
                             n(), maybe(b()), maybe(t()), maybe(x())),
            lambda: EntryRow(name(), few(), name(), name(), n(), t()),
            lambda: SampleRow(name(), name(), few(), few(), name(), x(), t()),
            lambda: TokenRow(name(), t(), "viewer", maybe(t()), maybe(t()), t(), x(), maybe(x())),
        )  # fmt: skip
        return self.pick(makers)()

    def deed(self) -> Callable[[Transaction], None]:
        """Return one thing to do to any store."""
        kind = self.pick(("put",) * 12 + ("touch", "note", "meta", "epoch", "samples"))
        name, other, few, x, t = self.name(), self.name(), self.pick((1, 2, 3)), self.time(), ""
        if kind == "put":
            row = self.row()
            return lambda work: work.put(row)
        if kind == "touch":
            seen, version = self.maybe(self.number()), self.maybe(self.number())
            return lambda work: work.touch(name, x, seen, version)
        t = self.text()
        return {
            "note": lambda work: work.add_event(x, name, other, t, t),
            "meta": lambda work: work.put_meta(f"key {name}", t),
            "epoch": lambda work: work.delete_epoch(name, few),
            "samples": lambda work: work.delete_samples(name, few, x),
        }[kind]


def everything(store: Store) -> Iterator[tuple[str, Any]]:
    """Yield all that can be read."""
    with store.reading() as t:
        yield "spaces", t.spaces()
        yield "tokens", t.tokens()
        yield "events", [row[1:] for row in t.events(None, 1000)]  # numbers may have gaps
        for name in NAMES:
            yield f"{name}: meta", t.meta(f"key {name}")
            yield f"{name}: one", (t.space(name), t.stream(name), t.heartbeat(name), t.token(name))
            # Places may be the same here, and are not in life.
            yield f"{name}: tasks", sorted(t.tasks(name), key=lambda row: (row.place, row.task))
            yield f"{name}: streams", (t.streams(name), t.heartbeats(name))
            yield f"{name}: epochs", (t.epochs(name, 2), t.epochs(name, 100))
            yield f"{name}: events", [row[1:] for row in t.events(name, 3)]
            for other in NAMES:
                yield f"{name}, {other}", (t.task(name, other), t.count_streams(name, other))
            for k in (1, 2, 3):
                yield f"{name}, {k}", (t.epoch(name, k), t.entries(name, k))
                yield f"{name}: owe {k}", t.unanswered(name, k, 0.1)
                ordered = t.samples(name, k, 0.1)
                assert [row.at for row in ordered] == sorted(row.at for row in ordered)
                yield f"{name}: samples {k}", sorted(ordered)


@pytest.mark.parametrize("seed", range(6))
def test_all_stores_hold_the_same(store, tmp_path, seed) -> None:
    stores = [MemoryStore(), SqliteStore(tmp_path / "gb.db"), store]
    deeds = Deeds(seed)
    for k in range(60):
        many = [deeds.deed() for _ in range(1 + k % 7)]
        space = deeds.name()
        for each in stores:
            try:
                with each.transaction(space) as t:
                    for deed in many:
                        deed(t)
                    if k % 5 == 4:
                        raise KeyError("changed my mind")
            except KeyError:
                pass
    memory, sqlite, postgres = (dict(everything(each)) for each in stores)
    assert len(str(memory)) > 5_000  # they are not all empty
    for question, answer in memory.items():
        assert sqlite[question] == answer, question
        assert postgres[question] == answer, question
    stores[1].close()
