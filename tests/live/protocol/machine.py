"""T2: agents, a network and a coordinator under every fault at once, against an exact model."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from live.memory_store import MemoryStore
from live.protocol.world import DIM, NOTHING, USES, Book, Disk, Made, Player, make_space, name_of

from guardband.live.agent.chain import Chain, Verdict
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.messages import Cut, Mark, News, Refused, Upload, Uploaded
from guardband.live.store.base import StreamRow
from guardband.live.total import Total, matrix_of, total_sum

TASKS = st.sampled_from(sorted(USES))
PICK = st.integers(0, 2**16)
MOST_PLAYERS = 5
MISHAPS = st.sampled_from(
    ["none", "none", "lost", "not sent", "comes again", "unheard", "heard late"]
)


class Machine(RuleBasedStateMachine):
    """The rules are what may happen; the invariants what must stay true."""

    sync_before_send = True

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.book = Book()
        self.players: list[Player] = []
        self.requests: list[tuple[int, int, str, Upload]] = []  # player, life, stream, upload
        self.replies: list[tuple[int, int, str, Any]] = []
        self.copies: list[Any] = []  # of the coordinator's store, with the model's side of it
        self.made: dict[str, Made] = {"": Made(frozenset(), b"")}
        self.acked: dict[str, Mark] = {}  # by stream, since the last restore
        self.promised: dict[str, frozenset[Any]] = {}  # tags acknowledged to untainted players
        self.open = 0
        self.answers: dict[str, Mark] = {}  # to the open epoch
        self.entries: dict[str, Mark] = {}  # what each stream was last entered with
        self.closed: dict[int, str] = {}
        self.manifest: dict[str, Mark] = {}
        self.checked: dict[str, str] = {}
        self.told = 0  # the newest epoch that a client has named to the coordinator
        self.now = 1000.0
        self.names = 0

    # ---- set-up

    @initialize(
        batch=st.sampled_from([1, 1, 2]),
        streams=st.sampled_from([1, 1, 2]),
        interval=st.sampled_from([0.0, 0.0, 3.0]),
        contexts=st.sampled_from(["shared", "per-request"]),
    )
    def begin(self, batch: int, streams: int, interval: float, contexts: str) -> None:
        self.space = make_space(batch, streams, interval, contexts)
        self.coordinator = self.new_coordinator()
        self.coordinator.create_space(self.space, who="test", now=self.now)
        for task in ("movies", "tv"):
            self.join(task)

    def new_coordinator(self) -> Coordinator:
        return Coordinator(self.store)

    def fresh(self, kind: str) -> str:
        self.names += 1
        return name_of(kind, self.names)

    def join(self, task: str) -> None:
        disk = Disk(Chain.start(self.fresh("stream"), DIM))
        self.players.append(Player(task, disk, disk.copy()))
        self.enrol(len(self.players) - 1)

    @precondition(lambda self: len(self.players) < MOST_PLAYERS)
    @rule(task=TASKS)
    def somebody_joins(self, task: str) -> None:
        self.join(task)

    # ---- what agents do

    @rule(who=PICK, feature=PICK, reward=st.sampled_from([0.0, 1.0]), skip=st.integers(0, 2))
    def observe(self, who: int, feature: int, reward: float, skip: int) -> None:
        player = self.pick(who)
        room = self.book.room(player.task)
        if not room:
            return
        round_ = player.journal.round + 1 + skip
        self.check_barrier(player, round_)
        tag = self.book.new(room[feature % len(room)], reward, round_)
        player.journal = Disk(
            tag.counted(player.chain), (*player.journal.tags, tag), max(round_, tag.round)
        )

    @rule(who=PICK, trigger=st.booleans())
    def cut_and_send(self, who: int, trigger: bool) -> None:
        player = self.pick(who)
        chain = player.chain
        for_epoch = chain.seen + 1 if trigger or player.heard > chain.seen else 0
        for_epoch = max(for_epoch, player.heard if player.heard > chain.seen else 0)
        version = self.fresh("version")
        after = chain.cut(
            version,
            round=player.journal.round,
            for_epoch=for_epoch,
            min_batch=self.space.sync.min_batch,
        )
        if after.newest.version == version:
            tags = frozenset(player.journal.tags)
            self.made[version] = Made(tags, after.newest.total.as_bytes())
        player.journal = replace(player.journal, chain=after)
        self.send(who, trigger=trigger)

    @rule(who=PICK)
    def send_again(self, who: int) -> None:
        self.send(who, trigger=False)

    def send(self, who: int, *, trigger: bool) -> None:
        place = who % len(self.players)
        player = self.players[place]
        if self.sync_before_send:
            player.synced = player.journal.copy()
        chain = player.chain
        self.requests.append((place, player.life, chain.stream, chain.upload(trigger=trigger)))
        del self.requests[:-12]

    @rule(who=PICK, lost=st.booleans())
    def ask(self, who: int, lost: bool) -> None:
        """Poll; the answer may be lost, or arrive late."""
        place = who % len(self.players)
        player = self.players[place]
        chain = player.chain
        try:
            news: Any = self.coordinator.news(
                "home",
                chain.stream,
                after=chain.seen,
                open_after=player.heard,
                config_version=1,
                now=self.now,
            )
            self.told = max(self.told, chain.seen)
        except Refused as problem:
            news = problem
        self.note_closing()
        if not lost and news is not None:
            self.replies.append((place, player.life, chain.stream, news))

    @rule(who=PICK)
    def ask_and_hear(self, who: int) -> None:
        before = len(self.replies)
        self.ask(who, lost=False)
        if len(self.replies) > before:
            self.hear(len(self.replies) - 1)

    @rule(who=PICK, some=st.integers(1, 3), trigger=st.booleans(), mishap=MISHAPS)
    def exchange(self, who: int, some: int, trigger: bool, mishap: str) -> None:
        """Observe, cut, upload, hear the answer; or nearly so."""
        for k in range(some):
            self.observe(who, who + k, float((who >> k) % 2), 0)
        self.cut_and_send(who, trigger)
        if mishap == "not sent":
            return
        if mishap == "lost":
            self.requests.pop()
            return
        self.deliver(len(self.requests) - 1, mishap == "comes again")
        if mishap == "unheard":
            self.replies.pop()
        elif mishap != "heard late":
            self.hear(len(self.replies) - 1)

    @rule(who=PICK, answer=st.integers(0, 31), adopt=st.integers(0, 31), patient=st.booleans())
    def pooling(self, who: int, answer: int, adopt: int, patient: bool) -> None:
        """One opens an epoch, some answer, the deadline passes, some adopt it."""
        self.exchange(who, 1, True, "none")
        for place in range(len(self.players)):
            if answer >> place & 1:
                self.ask_and_hear(place)
                self.exchange(place, 1, False, "none")
        if patient:
            self.time_passes(2.5)
        for place in range(len(self.players)):
            if adopt >> place & 1:
                self.ask_and_hear(place)

    @rule(who=PICK)
    def good_day(self, who: int) -> None:
        """An epoch in which nothing goes wrong."""
        self.pooling(who, 31, 31, True)

    def enrol(self, who: int) -> None:
        player = self.pick(who)
        player.synced = player.journal.copy()
        request = player.chain.register(
            task=player.task,
            schema_hash=self.space.schema_hash,
            uses=USES[player.task],
            library="test",
        )
        try:
            self.coordinator.register("home", request, now=self.now)
        except Refused as problem:
            if self.space.contexts == "shared":
                self.expect(problem, "task_busy", "already_continued", "retracted")
            self.digest(player, problem)
        self.note_closing()

    @rule(who=PICK)
    def end_stream(self, who: int) -> None:
        """The agent, or an operator who believes it gone, seals its stream."""
        row = self.row(self.pick(who).chain.stream)
        if row is not None:
            self.coordinator.seal(row.stream, row.mark, now=self.now)
            self.note_closing()

    # ---- the network

    @precondition(lambda self: self.requests)
    @rule(which=PICK, twice=st.booleans())
    def deliver(self, which: int, twice: bool) -> None:
        """A request arrives, in any order, and perhaps again later."""
        place = which % len(self.requests)
        who, life, stream, upload = self.requests[place]
        if not twice:
            del self.requests[place]
        self.replies.append((who, life, stream, self.carry_out(stream, upload)))
        del self.replies[:-12]

    def carry_out(self, stream: str, upload: Upload) -> Any:
        row = self.row(stream)
        try:
            answer = self.coordinator.upload(stream, upload, now=self.now)
        except Refused as problem:
            fine = ("chain_conflict", "unknown_stream", "sealed", "retracted")
            self.expect(problem, *fine)
            self.note_closing()
            return problem
        assert row is not None
        if row.mark != upload.cut.mark:
            self.acked[stream] = upload.cut.mark
        self.told = max(self.told, upload.seen_epoch)
        self.note_closing(stream, upload)
        return answer

    @precondition(lambda self: self.requests)
    @rule(which=PICK)
    def lose_request(self, which: int) -> None:
        del self.requests[which % len(self.requests)]

    @precondition(lambda self: self.replies)
    @rule(which=PICK)
    def hear(self, which: int) -> None:
        who, life, stream, answer = self.replies.pop(which % len(self.replies))
        player = self.players[who]
        if player.life != life or player.chain.stream != stream:
            return
        if isinstance(answer, Refused):
            self.digest(player, answer)
        elif isinstance(answer, Uploaded):
            player.journal = replace(player.journal, chain=player.chain.stored(answer))
            if answer.open is not None:
                player.heard = answer.open.epoch
            if not player.tainted:
                acked = self.made[answer.mark.version].tags
                self.promised[stream] = self.promised.get(stream, frozenset()) | acked
        else:
            self.learn(player, answer)

    @precondition(lambda self: self.replies)
    @rule(which=PICK)
    def lose_reply(self, which: int) -> None:
        del self.replies[which % len(self.replies)]

    def digest(self, player: Player, problem: Refused) -> None:
        """Do what the chain says about a refusal."""
        before = player.chain
        step = before.refused(problem, stream=self.fresh("stream"))
        if step.verdict == Verdict.CONFLICT:
            self.give_up(player, step.chain)
        elif step.verdict == Verdict.CONTINUED:
            self.begin_with(player, step.chain)
            self.enrol(self.players.index(player))
        else:
            player.journal = replace(player.journal, chain=step.chain)
            if step.verdict == Verdict.REGISTER:
                self.enrol(self.players.index(player))

    def give_up(self, player: Player, chain: Chain) -> None:
        # Sealed twice before anything was sent; or a request of long ago reached a restored
        # coordinator and revived the sealed stream: then the rest of a stream is lost, too.
        excused = player.tainted or player.chain.moved is not None
        assert excused, "a chain that was never copied nor set back gave up its stream"
        self.begin_with(player, chain)
        self.enrol(self.players.index(player))

    def begin_with(self, player: Player, chain: Chain) -> None:
        """Go on with a new stream; the ledger follows what it holds, whatever that is."""
        held = tuple(self.book.read(chain.total, what="I4"))
        assert set(held) <= set(player.journal.tags)
        player.journal = replace(player.journal, chain=chain, tags=held)

    def learn(self, player: Player, news: News) -> None:
        if news.open is not None:
            player.heard = news.open.epoch
        chain = player.chain
        shared = self.space.contexts == "shared"
        step = chain.adopt(news, next_round=player.journal.round + 1 if shared else None)
        if step.verdict == Verdict.CONFLICT:
            self.give_up(player, chain.anew(self.fresh("stream")))
        else:
            assert step.chain.seen >= chain.seen, "I5: an epoch's number went back"
            if step.verdict == Verdict.ADOPTED:
                assert news.epoch > chain.epoch, "I5: an old epoch was adopted again"
            player.journal = replace(player.journal, chain=step.chain)

    # ---- what goes wrong with agents

    @rule(who=PICK)
    def crash(self, who: int) -> None:
        player = self.pick(who)
        player.life += 1
        player.heard = 0
        player.journal = replace(
            player.journal, chain=Chain.from_json(player.journal.chain.as_json())
        )

    @rule(who=PICK)
    def power_loss(self, who: int) -> None:
        player = self.pick(who)
        player.life += 1
        player.heard = 0
        player.journal = player.synced.copy()

    @rule(who=PICK)
    def snapshot(self, who: int) -> None:
        player = self.pick(who)
        player.kept = [*player.kept[-2:], player.journal.copy()]

    @precondition(lambda self: any(player.kept for player in self.players))
    @rule(who=PICK, which=PICK)
    def go_back(self, who: int, which: int) -> None:
        players = [player for player in self.players if player.kept]
        player = players[who % len(players)]
        player.life += 1
        player.heard, player.tainted = 0, True
        player.journal = player.kept[which % len(player.kept)].copy()
        player.synced = player.journal.copy()
        self.promised.pop(player.chain.stream, None)

    @precondition(lambda self: len(self.players) < MOST_PLAYERS)
    @rule(who=PICK)
    def clone(self, who: int) -> None:
        player = self.pick(who)
        player.tainted = True
        twin = Player(player.task, player.journal.copy(), player.journal.copy(), tainted=True)
        self.players.append(twin)
        self.promised.pop(player.chain.stream, None)

    @precondition(lambda self: len(self.players) < MOST_PLAYERS)
    @rule(who=PICK, answer=st.sampled_from([0, 31]), adopt=st.sampled_from([0, 31]))
    def move_house(self, who: int, answer: int, adopt: int) -> None:
        """An agent is copied to another host and its stream ended; the old one still runs."""
        place = who % len(self.players)
        self.exchange(place, 1, False, "none")
        self.observe(place, 0, 1.0, 0)
        self.clone(place)
        self.end_stream(place)
        self.exchange(place, 1, False, "none")
        self.observe(len(self.players) - 1, 0, 1.0, 3)  # the copy is ahead: no barrier for it
        self.pooling(place, answer, adopt, True)

    @precondition(lambda self: len(self.players) < MOST_PLAYERS)
    @rule(who=PICK, first=st.booleans())
    def move_house_twice(self, who: int, first: bool) -> None:
        """The same, and the new stream is ended at once; then the coordinator forgets all of it."""
        place, twin = who % len(self.players), len(self.players)
        self.copy_store()
        self.exchange(place, 1, False, "none")
        self.observe(place, 0, 1.0, 0)
        self.clone(place)
        for _ in range(2):
            self.end_stream(place)
            self.exchange(place, 1, False, "none")
        self.roll_back(len(self.copies) - 1)
        for player in (place, twin) if first else (twin, place):
            self.exchange(player, 1, False, "none")
            self.exchange(player, 1, False, "none")

    @precondition(lambda self: len(self.players) < MOST_PLAYERS)
    @rule(who=PICK)
    def twins(self, who: int) -> None:
        """An agent is copied; one of the two uploads what both have, the other only listens."""
        place = who % len(self.players)
        self.observe(place, 0, 1.0, 0)
        self.clone(place)
        self.observe(len(self.players) - 1, 0, 1.0, 3)
        self.pooling(place, 0, 31, True)

    @rule(who=PICK, kind=st.sampled_from(["uses", "psd", "n"]))
    def forge(self, who: int, kind: str) -> None:
        """An upload that no data can explain is refused, and changes nothing."""
        player = self.pick(who)
        row = self.row(player.chain.stream)
        if row is None or row.state == "sealed" or self.status(row.task) == "retracted":
            return
        gram = matrix_of(row.stored.total)
        n = row.n + 5
        if kind == "uses":
            outside = sorted(set(range(DIM)) - set(USES[player.task]))
            if not outside:
                return
            gram[outside[0], outside[0]] += 1.0
        elif kind == "psd":
            lift = 2.0 + 0.01 * np.abs(gram).max()  # no rounding error
            gram[1, DIM] += lift
            gram[DIM, 1] += lift
        else:
            gram[1, 1] += 1.0
            n = 2**60
        total = Total(n, gram[np.triu_indices(DIM + 1)], row.stored.total.surprise, 3.0)
        cut = Cut(self.fresh("version"), total._replace(weight=row.stored.total.weight + 1), 2**20)
        try:
            self.coordinator.upload(row.stream, Upload(base=row.mark, cut=cut), now=self.now)
        except Refused as problem:
            self.expect(problem, "invalid_increment")
            self.expect_same(row)
        else:
            raise AssertionError(f"I7: a forged upload was stored ({kind})")

    # ---- what goes wrong with the coordinator, and what people do

    @rule()
    def copy_store(self) -> None:
        model = (
            self.open,
            dict(self.answers),
            dict(self.entries),
            dict(self.closed),
            dict(self.manifest),
        )
        self.copies = [*self.copies[-2:], (self.store.snapshot(), model)]

    @precondition(lambda self: self.copies)
    @rule(which=PICK)
    def roll_back(self, which: int) -> None:
        """The coordinator is restored from a backup."""
        copy, model = self.copies[which % len(self.copies)]
        self.store.restore(copy)
        self.open, answers, entries, closed, manifest = model
        self.answers, self.entries, self.closed = dict(answers), dict(entries), dict(closed)
        self.manifest = dict(manifest)
        self.acked, self.told = {}, 0
        self.coordinator = self.new_coordinator()

    @rule(who=PICK)
    def seal_after_roll_back(self, who: int) -> None:
        """Agents pool, the coordinator forgets it, and ends a stream where it then believes it."""
        place = who % len(self.players)
        self.exchange(place, 1, False, "none")
        self.copy_store()
        self.pooling(place, 31, 31, True)
        self.roll_back(len(self.copies) - 1)
        self.end_stream(place)
        self.exchange(place, 1, False, "none")

    @rule()
    def restart(self) -> None:
        self.coordinator = self.new_coordinator()

    @rule(seconds=st.sampled_from([0.5, 2.5, 30.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.coordinator.tick(now=self.now)
        self.note_closing()

    @rule(on=st.booleans())
    def pause(self, on: bool) -> None:
        if on:
            self.coordinator.pause("home", "test", who="test", now=self.now)
        else:
            self.coordinator.resume("home", who="test", now=self.now)

    @rule(task=TASKS, verb=st.sampled_from(["quarantine", "retract", "restore", "restore"]))
    def judge(self, task: str, verb: str) -> None:
        try:
            getattr(self.coordinator, verb)("home", task, "test", who="test", now=self.now)
        except Refused as problem:
            self.expect(problem, "unknown_task")
        self.note_closing()

    # ---- the model's view of the coordinator

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

    def note_closing(self, stream: str = "", upload: Upload | None = None) -> None:
        """Follow the epochs after each call; compare a closed one with what must be in it."""
        row = self.space_row()
        closed = row.epoch != 0 and row.epoch not in self.closed
        number = row.epoch if closed else row.open
        if number != self.open:
            self.answers = {}  # opened just now, or opened again under another number
        if upload is not None and number and upload.for_epoch == number:
            self.answers.setdefault(stream, upload.cut.mark)
        self.open = row.open
        if closed:
            self.compare_epoch(row)

    def compare_epoch(self, row: Any) -> None:
        assert row.epoch > self.told, "I5: an epoch has a number that was seen before"
        record = self.coordinator.epoch("home", row.epoch)
        with self.store.reading() as t:
            streams = {each.stream: each for each in t.streams("home")}
            active = {each.task for each in t.tasks("home") if each.status == "active"}
            total = Total.from_bytes(t.epoch("home", row.epoch).total)  # type: ignore[union-attr, arg-type]
        expected: dict[str, Mark] = {}
        for name, stream in sorted(streams.items()):
            if stream.task not in active:
                continue
            if name in self.answers:
                mark = self.answers[name]
            elif stream.state == "sealed":
                mark = stream.mark
            else:
                mark = self.entries.get(name, NOTHING)  # late: as in the epoch before
            if mark.n:
                expected[name] = mark
        found = {line.stream: Mark(line.n, line.version) for line in record.manifest}
        assert found == expected, "the epoch-cut rule: an entry is the answer, or the one before"
        for name, mark in self.manifest.items():  # of the epoch before
            if name not in found:
                assert streams[name].task not in active, "I6: a stream left an epoch by itself"
            else:
                assert found[name].n >= mark.n, "I6: an entry went back"
        parts = [Total.from_bytes(self.made[mark.version].raw) for mark in found.values()]
        exact = total_sum(DIM, parts)
        assert total.as_bytes() == exact.as_bytes(), "I4: an epoch is not the sum of its manifest"
        assert record.sha256 == exact.sha256
        often = self.book.read(total, what="I1")
        assert max(often.values(), default=0) <= 1, "I1: an epoch counts an observation twice"
        self.entries |= found
        self.manifest, self.answers = found, {}
        self.closed[row.epoch] = record.sha256

    def check_barrier(self, player: Player, round_: int) -> None:
        """Nobody acts on a reward that was earned in the round it acts in, or later."""
        pooled = player.chain.pooled
        if pooled is not None and self.space.contexts == "shared":
            mine = set(player.journal.tags)
            for tag in self.book.read(pooled, what="I3"):
                assert tag in mine or tag.round < round_ or player.tainted, "a reward leaked"

    # ---- invariants

    @invariant()
    def all_hold(self) -> None:
        if self.players:
            self.I1_server_counts_once()
            self.I2_acknowledged_is_kept()
            self.I3_views_count_once()
            self.I4_totals_are_their_ledgers()
            self.I5_epochs_stay()  # and in `learn`: numbers only grow for every observer
            self.I7_stored_is_possible()  # I6 is checked with every new epoch, in `compare_epoch`

    def I1_server_counts_once(self) -> None:
        with self.store.reading() as t:
            totals = [row.stored.total for row in t.streams("home")]
        often = self.book.read(*totals, what="I1")
        assert max(often.values(), default=0) <= 1, "I1: an observation is stored twice"

    def I2_acknowledged_is_kept(self) -> None:
        for stream, mark in self.acked.items():
            row = self.row(stream)
            assert row is not None, "I2: an acknowledged stream is gone"
            assert row.n >= mark.n, "I2: an acknowledged stream went back"
            kept = self.made[row.version].tags
            assert self.made[mark.version].tags <= kept, "I2: an acknowledged observation is lost"

    def I3_views_count_once(self) -> None:
        for player in self.players:
            chain = player.chain
            own = chain.own
            found = self.book.read(own, what="I3")
            assert max(found.values(), default=0) <= 1, "I3: own observations counted twice"
            if chain.pooled is not None:
                found = self.book.read(chain.pooled, own, what="I3")
                assert max(found.values(), default=0) <= 1, "I3: a view counts an observation twice"

    def I4_totals_are_their_ledgers(self) -> None:
        for player in self.players:
            found = self.book.read(player.chain.total, what="I4")
            assert set(found) == set(player.journal.tags), "I4: a total is not its journal's sum"
        with self.store.reading() as t:
            for row in t.streams("home"):
                if row.n:
                    made = self.made[row.version]
                    assert row.total == made.raw, "I4: what is stored is not what was cut"
                    assert set(self.book.read(row.stored.total, what="I4")) == made.tags

    def I5_epochs_stay(self) -> None:
        with self.store.reading() as t:
            for row in t.epochs("home", 1000):
                if row.state == "closed":
                    assert self.closed.get(row.epoch) == row.sha256, "I5: an epoch changed"
                    assert Total.from_bytes(row.total or b"").sha256 == row.sha256

    def I7_stored_is_possible(self) -> None:
        with self.store.reading() as t:
            rows = t.streams("home")
        for row in rows:
            if self.checked.get(row.stream) == row.version:
                continue
            self.checked[row.stream] = row.version
            matrix = matrix_of(row.stored.total)
            outside = sorted(set(range(DIM)) - set(USES[row.task]))
            assert not matrix[outside].any(), "I7: a task wrote outside its features"
            top = max(1.0, np.abs(matrix).max())
            assert np.linalg.eigvalsh(matrix / top)[0] >= -1e-12, "I7: not a Gram matrix"
            trace = float(np.trace(matrix[:DIM, :DIM]))
            assert trace <= row.n * self.space.max_weight, "I7: W is larger than n allows"

    # ---- the end: faults stop, and everything heals

    def teardown(self) -> None:
        if not self.players or sys.exc_info()[0] is not None:
            return
        for player in self.players:
            player.life += 1
        for task in USES:
            self.judge(task, "restore")
        for _ in range(3):
            for place, player in enumerate(self.players):
                for _ in range(6):
                    if self.space.contexts == "shared":  # until the task's other stream is stale
                        self.time_passes(self.space.sync.live_s + 1.0)
                    chain = player.chain
                    answer = self.carry_out(chain.stream, chain.upload())
                    self.replies = [(place, player.life, chain.stream, answer)]
                    self.hear(0)
                    if player.chain.acknowledged and isinstance(answer, Uploaded):
                        break
                else:
                    raise AssertionError(f"an agent cannot get its cut stored: {answer!r}")
        # A sealed stream is no longer anybody's: what a restored coordinator lacks of it is lost.
        for stream in {player.chain.stream for player in self.players if not player.tainted}:
            row = self.row(stream)
            held = frozenset() if row is None else self.made[row.version].tags
            promised = self.promised.get(stream, frozenset())
            assert promised <= held, "P2: what was acknowledged did not come back"
        self.now += 200.0
        self.coordinator.tick(now=self.now)
        self.note_closing()
        self.I1_server_counts_once()
        self.I3_views_count_once()
