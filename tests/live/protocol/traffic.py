"""What agents do, and a network that loses, repeats and reorders what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from live.protocol.model import MOST_PLAYERS, PICK, TASKS, Model
from live.protocol.stream_rows import StreamRows
from live.protocol.world import DIM, USES, Disk, Made, Player

from guardband.live.client.stream_state import Effect, StreamState
from guardband.live.protocol.messages import News, Refused, Registered, Upload, Uploaded
from guardband.live.store import SpaceRow, StreamRow

MISHAPS = st.sampled_from(
    ["none", "none", "lost", "not sent", "comes again", "unheard", "heard late"]
)


FINE = ("revision_conflict", "unknown_stream", "sealed", "retracted")  # refusals of uploads


class Traffic(Model):
    """Agents that observe, make checkpoints, send, ask and hear."""

    sync_before_send = True

    def join(self, task: str) -> None:
        disk = Disk(StreamState.start(self.fresh("stream"), DIM))
        self.players.append(Player(task, StreamRows(self.journal), disk, disk.copy()))
        self.enrol(len(self.players) - 1)

    @precondition(lambda self: len(self.players) < MOST_PLAYERS)
    @rule(task=TASKS)
    def somebody_joins(self, task: str) -> None:
        self.join(task)

    @rule(who=PICK, feature=PICK, reward=st.sampled_from([0.0, 1.0]), skip=st.integers(0, 2))
    def observe(self, who: int, feature: int, reward: float, skip: int) -> None:
        player = self.pick(who)
        room = self.book.room(player.task)
        if not room:
            return
        round_ = player.journal.round + 1 + skip
        self.check_barrier(player, round_)
        tag = self.book.new(room[feature % len(room)], reward, round_)
        if player.state.pooled is not None:
            others = frozenset(self.parts.get(player.state.pooled.sha256, ())) - {player.task}
            self.basis[player.state.stream, tag] = others
        counted, tags = tag.counted(player.state, self.space.half_at(round_)), player.journal.tags
        start = (*player.journal.start, tag)
        player.journal = replace(
            player.journal,
            state=counted,
            tags=(*tags, tag),
            round=max(round_, tag.round),
            start=start,
        )

    @rule(who=PICK, trigger=st.booleans())
    def cut_and_send(self, who: int, trigger: bool) -> None:
        player = self.pick(who)
        state = player.state
        for_epoch = state.seen + 1 if trigger or player.heard > state.seen else 0
        for_epoch = max(for_epoch, player.heard if player.heard > state.seen else 0)
        version = self.fresh("version")
        after = state.with_checkpoint(
            version,
            round=player.journal.round,
            for_epoch=for_epoch,
            min_batch=self.space.sync.min_batch,
        )
        if after.newest.version == version:
            tags = frozenset(player.journal.tags)
            self.made[version] = Made(tags, after.newest.sums.as_bytes())
        player.keep(after)
        self.send(who, trigger=trigger)

    @rule(who=PICK)
    def send_again(self, who: int) -> None:
        self.send(who, trigger=False)

    def send(self, who: int, *, trigger: bool) -> None:
        place = who % len(self.players)
        player = self.players[place]
        if self.sync_before_send:
            player.synced = player.journal.copy()
        state = player.state
        self.requests.append((place, player.life, state.stream, state.upload(trigger=trigger)))
        del self.requests[:-12]

    @rule(who=PICK, lost=st.booleans())
    def ask(self, who: int, lost: bool) -> None:
        """Poll; the answer may be lost, or arrive late."""
        place = who % len(self.players)
        player = self.players[place]
        state = player.state
        try:
            news: Any = self.coordinator.news(
                "home",
                state.stream,
                after=state.seen,
                open_after=player.heard,
                config_version=1,
                now=self.now,
            )
            self.told = max(self.told, state.seen)
        except Refused as problem:
            news = problem
        self.note_closing()
        if not lost and news is not None:
            self.replies.append((place, player.life, state.stream, news))

    @rule(who=PICK)
    def ask_and_hear(self, who: int) -> None:
        before = len(self.replies)
        self.ask(who, lost=False)
        if len(self.replies) > before:
            self.hear(len(self.replies) - 1)

    @rule(who=PICK, some=st.integers(1, 3), trigger=st.booleans(), mishap=MISHAPS)
    def exchange(self, who: int, some: int, trigger: bool, mishap: str) -> None:
        """Observe, make a checkpoint, upload, hear the answer; or nearly so."""
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

    @rule(seconds=st.sampled_from([0.5, 2.5, 30.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.coordinator.tick(now=self.now)
        self.note_closing()

    def enrol(self, who: int) -> None:
        player = self.pick(who)
        player.synced = player.journal.copy()
        request = player.state.register(
            task=player.task,
            schema_hash=self.space.schema_hash,
            uses=USES[player.task],
            library="test",
        )
        try:
            answer = self.coordinator.register("home", request, now=self.now)
            self.dropped |= player.over
            player.over = set()
            self.hear_of_departure(player, answer)
            self.follow_pool(player, answer.begin, answer.pool)
        except Refused as problem:
            if self.space.contexts == "shared":
                self.expect(problem, "task_busy", "already_continued", "retracted")
            self.digest(player, problem)
        self.note_closing()

    @rule(who=PICK)
    def end_stream(self, who: int) -> None:
        """The agent, or an operator who believes it gone, seals its stream."""
        row = self.row(self.pick(who).state.stream)
        if row is not None:
            self.coordinator.seal(row.stream, row.revision, now=self.now)
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
        """Have one upload carried out; return the answer."""
        before, row = self.space_row(), self.row(stream)
        try:
            answer = self.coordinator.upload(stream, upload, now=self.now)
        except Refused as problem:
            return self.note_refusal(problem)
        self.note_stored(row, upload)
        self.note_closing((stream, upload))
        self.I9_epochs_close_when_all_have_answered(before, upload)
        return answer

    def note_refusal(self, problem: Refused) -> Refused:
        self.expect(problem, *FINE)
        self.note_closing()
        return problem

    def note_stored(self, row: StreamRow | None, upload: Upload) -> None:
        """Take note that an upload to a stream, as it was before, was acknowledged."""
        assert row is not None
        if row.revision != upload.checkpoint.revision:
            self.acked[row.stream] = upload.checkpoint.revision
        self.told = max(self.told, upload.seen_epoch)

    def I9_epochs_close_when_all_have_answered(self, before: SpaceRow, *uploads: Upload) -> None:
        """The last answer closes an epoch, and no other; `before` is the space before them."""
        row, since = self.space_row(), self.now - self.space.sync.live_s
        with self.store.reading() as t:
            if row.epoch > before.epoch:
                assert t.unanswered("home", row.epoch, since) == 0, "I9: closed too early"
            elif row.open and any(each.for_epoch == row.open for each in uploads):
                assert t.unanswered("home", row.open, since) > 0, "I9: all answered, still open"

    @precondition(lambda self: self.requests)
    @rule(which=PICK)
    def lose_request(self, which: int) -> None:
        del self.requests[which % len(self.requests)]

    @precondition(lambda self: self.replies)
    @rule(which=PICK)
    def hear(self, which: int) -> None:
        who, life, stream, answer = self.replies.pop(which % len(self.replies))
        player = self.players[who]
        if player.life != life or player.state.stream != stream:
            return
        if isinstance(answer, Refused):
            self.digest(player, answer)
        elif isinstance(answer, Uploaded):
            player.keep(player.state.stored(answer))
            if answer.open is not None:
                player.heard = answer.open.epoch
            if not player.tainted:
                acked = self.made[answer.revision.version].tags
                self.promised[stream] = self.promised.get(stream, frozenset()) | acked
        else:
            self.learn(player, answer)

    @precondition(lambda self: self.replies)
    @rule(which=PICK)
    def lose_reply(self, which: int) -> None:
        del self.replies[which % len(self.replies)]

    # ---- what agents make of answers

    def hear_of_departure(self, player: Player, news: News | Registered) -> None:
        raise NotImplementedError

    def follow_pool(self, player: Player, begin: str, pool: int) -> bool:
        raise NotImplementedError

    def digest(self, player: Player, problem: Refused) -> None:
        """Follow the transition of the state after a refusal."""
        before = player.state
        step = before.refused(problem, stream=self.fresh("stream"))
        if step.effect == Effect.CONFLICT:
            self.give_up(player, step.stream)
        elif step.effect == Effect.CONTINUED:
            self.begin_with(player, step.stream)
            self.enrol(self.players.index(player))
        else:
            player.keep(step.stream)
            if step.effect == Effect.REGISTER:
                self.enrol(self.players.index(player))

    def give_up(self, player: Player, state: StreamState) -> None:
        # Sealed twice before anything was sent; or a request of long ago reached a restored
        # coordinator and revived the sealed stream: then the rest of a stream is lost, too.
        excused = player.tainted or player.state.moved is not None
        assert excused, "a state that was never copied nor set back gave up its stream"
        self.begin_with(player, state)
        player.journal.start = player.journal.tags  # what it had may count elsewhere
        self.enrol(self.players.index(player))

    def begin_with(self, player: Player, state: StreamState) -> None:
        """Go on with a new stream; the record follows what it holds, whatever that is."""
        held = tuple(self.book.read(state.total, what="I4"))
        assert set(held) <= set(player.journal.tags)
        for tag in held:
            rests_on = self.basis.get((player.state.stream, tag), frozenset())
            self.basis[state.stream, tag] = rests_on
        player.keep(state, tags=held)

    def learn(self, player: Player, news: News) -> None:
        if news.open is not None:
            player.heard = news.open.epoch
        self.hear_of_departure(player, news)
        if self.follow_pool(player, news.begin, news.pool):
            return
        state = player.state
        timed = self.space.timed
        step = state.adopt(news, next_round=player.journal.round + 1 if timed else None)
        if step.effect == Effect.CONFLICT:
            self.give_up(player, state.anew(self.fresh("stream")))
        else:
            assert step.stream.seen >= state.seen, "I5: an epoch's number went back"
            if step.effect == Effect.ADOPTED:
                assert news.epoch > state.epoch, "I5: an old epoch was adopted again"
            player.keep(step.stream)
