"""The model of agents and coordinator: what it records, and what must be in an epoch."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize
from live.memory_store import MemoryStore
from live.protocol.stream_rows import clean
from live.protocol.world import DIM, DOOR, NOTHING, USES, Book, Made, Player, make_space, name_of

from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.coordinator.departures import AWAY
from guardband.live.protocol.messages import Refused, Revision, Upload
from guardband.live.protocol.sums import Sums, add_sums
from guardband.live.store import StreamRow

TASKS = st.sampled_from(sorted(USES))
PICK = st.integers(0, 2**16)
MOST_PLAYERS = 5


class Model(RuleBasedStateMachine):
    """What is known of all agents, and what an epoch must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.journal = clean()
        self.book = Book()
        self.players: list[Player] = []
        self.requests: list[tuple[int, int, str, Upload]] = []  # player, life, stream, upload
        self.replies: list[tuple[int, int, str, Any]] = []
        self.copies: list[Any] = []  # of the coordinator's store, with the model's side of it
        self.made: dict[str, Made] = {"": Made(frozenset(), b"")}
        self.acked: dict[str, Revision] = {}  # by stream, since the last restore
        self.promised: dict[str, frozenset[Any]] = {}  # tags acknowledged to untainted players
        self.open = 0
        self.answers: dict[str, Revision] = {}  # to the open epoch
        self.entries: dict[str, Revision] = {}  # what each stream was last entered with
        self.closed: dict[int, str] = {}
        self.manifest: dict[str, Revision] = {}
        # What each task has in an epoch, by its sum: a store that was set back numbers anew.
        self.parts: dict[str, dict[str, frozenset[Any]]] = {}
        self.checked: dict[str, str] = {}
        self.dropped: set[Any] = set()  # observations of starts that are over
        # By stream and observation: on which tasks' data its weight rests.
        self.basis: dict[tuple[str, Any], frozenset[str]] = {}
        self.told = 0  # the newest epoch that a client has named to the coordinator
        self.now = 1000.0
        self.names = 0

    @initialize(
        batch=st.sampled_from([1, 1, 2]),
        streams=st.sampled_from([1, 1, 2]),
        interval=st.sampled_from([0.0, 0.0, 3.0]),
        contexts=st.sampled_from(["shared", "per-request"]),
        told=st.sampled_from([{}, {"tolerate": 1}, {"window": 6}]),
    )
    def begin(
        self, batch: int, streams: int, interval: float, contexts: str, told: dict[str, int]
    ) -> None:
        streams = 1 if told else streams
        batch = 1 if "window" in told else batch
        self.space = make_space(batch, streams, interval, contexts, DOOR, **told)
        self.coordinator = self.new_coordinator()
        self.coordinator.create_space(self.space, who="test", now=self.now)
        for task in ("movies", "tv"):
            self.join(task)

    def new_coordinator(self) -> Coordinator:
        return Coordinator(self.store)

    def join(self, task: str) -> None:
        raise NotImplementedError

    def fresh(self, kind: str) -> str:
        self.names += 1
        return name_of(kind, self.names)

    def pick(self, who: int) -> Player:
        return self.players[who % len(self.players)]

    def row(self, stream: str) -> StreamRow | None:
        with self.store.reading() as t:
            return t.stream(stream)

    def space_row(self) -> Any:
        with self.store.reading() as t:
            return t.space("home")

    def status(self, task: str) -> str:
        with self.store.reading() as t:
            row = t.task("home", task)
        return "" if row is None else row.status

    def expect(self, problem: Refused, *codes: str) -> None:
        assert problem.code in codes, f"{problem.code}: {problem.detail}"

    def expect_same(self, row: StreamRow) -> None:
        assert self.row(row.stream) == row, "I7: a refused upload changed its stream"

    def note_closing(self, *accepted: tuple[str, Upload]) -> None:
        """Follow the epochs after each call; compare a closed one with what must be in it."""
        row = self.space_row()
        closed = row.epoch != 0 and row.epoch not in self.closed
        number = row.epoch if closed else row.open
        if number != self.open:
            self.answers = {}  # opened just now, or opened again under another number
        for stream, upload in accepted:
            if number and upload.for_epoch == number:
                self.answers.setdefault(stream, upload.checkpoint.revision)
        self.open = row.open
        if closed:
            self.compare_epoch(row)

    def compare_epoch(self, row: Any) -> None:
        assert row.epoch > self.told, "I5: an epoch has a number that was seen before"
        record = self.coordinator.epoch("home", row.epoch)
        with self.store.reading() as t:
            streams = {each.stream: each for each in t.streams("home")}
            active = {each.task for each in t.tasks("home") if each.status == "active"}
            away = {each.task for each in t.tasks("home") if each.status in AWAY}
            total = Sums.from_bytes(t.epoch("home", row.epoch).total)  # type: ignore[union-attr, arg-type]
        expected: dict[str, Revision] = {}
        for name, stream in sorted(streams.items()):
            if stream.task not in active or stream.pool != row.pool:
                continue
            if name in self.answers:
                revision = self.answers[name]
            elif stream.state == "sealed":
                revision = stream.revision
            else:
                revision = self.entries.get(name, NOTHING)  # late: as in the epoch before
            if revision.n:
                expected[name] = revision
        found = {line.stream: Revision(line.n, line.version) for line in record.manifest}
        assert found == expected, "the rule of epochs: an entry is the answer, or the one before"
        for name, revision in self.manifest.items():  # of the epoch before
            if name not in found:
                gone = streams[name].task not in active or streams[name].pool != row.pool
                assert gone, "I6: a stream left an epoch by itself"
            else:
                assert found[name].n >= revision.n, "I6: an entry went back"
        parts = [Sums.from_bytes(self.made[revision.version].raw) for revision in found.values()]
        exact = add_sums(DIM, parts)
        assert total.as_bytes() == exact.as_bytes(), "I4: an epoch is not the sum of its manifest"
        assert record.sha256 == exact.sha256
        often = self.book.read(total, what="I1")
        assert max(often.values(), default=0) <= 1, "I1: an epoch counts an observation twice"
        tags = [self.made[revision.version].tags for revision in found.values()]
        self.check_window(total, frozenset().union(*tags))
        assert not self.dropped & set(often), "I10: an epoch holds data of a start that is over"
        parted = self.parts[record.sha256] = {}
        for name, revision in found.items():
            task, held = streams[name].task, self.made[revision.version].tags
            parted[task] = parted.get(task, frozenset()) | held
            rests_on = frozenset().union(*(self.basis.get((name, tag), ()) for tag in held))
            assert not rests_on & away, "I10: a weight rests on data of a task that left"
        self.entries |= found
        self.manifest, self.answers = found, {}
        self.closed[row.epoch] = record.sha256

    def check_without(self, player: Player) -> None:
        """I8: beside the sum of an epoch, an agent has those of all but one other task."""
        state = player.state
        if state.pooled is None or not self.space.tolerate:
            assert state.without == (), "I8: sums without a task that are not of use"
            return
        parts = self.parts[state.pooled.sha256]
        others = sorted(set(parts) - {player.task})
        wanted = [
            frozenset().union(*(tags for task, tags in parts.items() if task != other))
            for other in others
        ]
        found = [self.book.read(sums, what="I8") for sums in state.without]
        assert [frozenset(each) for each in found] == wanted, "I8: not the sums without a task"
        for each in found:
            assert max(each.values(), default=0) <= 1, "I8: an observation counts twice"

    def check_window(self, sums: Sums, tags: frozenset[Any]) -> None:
        """I9: what counts are the newest half window and the one before, and no more; nor less."""
        halves = {tag: self.space.half_at(tag.round) for tag in tags}
        newest = max(halves.values(), default=0)
        assert sums.half == newest, "I9: sums are of another half window"
        found = frozenset(self.book.read(sums, what="I9"))
        assert found == {tag for tag, half in halves.items() if half >= newest - 1}, "I9: too old"
        if newest:
            found = frozenset(self.book.read(sums.newest, what="I9"))
            assert found == {tag for tag, half in halves.items() if half == newest}, "I9: not new"

    def check_barrier(self, player: Player, round_: int) -> None:
        """No agent acts on a reward that was earned in the round it acts in, or later."""
        pooled = player.state.pooled
        if pooled is not None and self.space.timed:
            mine = set(player.journal.tags)
            for tag in self.book.read(pooled, what="I3"):
                assert tag in mine or tag.round < round_ or player.tainted, "a reward leaked"
