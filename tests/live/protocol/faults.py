"""Faults of agents and of the coordinator, and what operators do to both."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from live.protocol.groups import Groups
from live.protocol.model import MOST_PLAYERS, PICK, TASKS
from live.protocol.stream_rows import StreamRows
from live.protocol.world import DIM, USES, Player

from guardband.live.client.stream_state import StreamState
from guardband.live.protocol.messages import Checkpoint, Refused, Upload
from guardband.live.protocol.sums import Sums, matrix_of


class Faults(Groups):
    """Crashes, copies, forgeries, backups and operators."""

    @rule(who=PICK)
    def crash(self, who: int) -> None:
        player = self.pick(who)
        player.start_from(player.journal)

    @rule(who=PICK)
    def power_loss(self, who: int) -> None:
        player = self.pick(who)
        player.start_from(player.synced)

    def taint(self, player: Player) -> None:
        """Note that two may have the same data from now on: what one drops the other may count."""
        player.tainted, player.over = True, set()
        self.dropped -= {tag for each in self.players for tag in each.journal.start}
        self.dropped = set() if player.kept else self.dropped

    @rule(who=PICK)
    def snapshot(self, who: int) -> None:
        player = self.pick(who)
        player.kept = [*player.kept[-2:], player.journal.copy()]

    @precondition(lambda self: any(player.kept for player in self.players))
    @rule(who=PICK, which=PICK)
    def go_back(self, who: int, which: int) -> None:
        players = [player for player in self.players if player.kept]
        player = players[who % len(players)]
        self.taint(player)
        player.start_from(player.kept[which % len(player.kept)])
        player.synced = player.journal.copy()
        self.promised.pop(player.state.stream, None)

    @precondition(lambda self: len(self.players) < MOST_PLAYERS)
    @rule(who=PICK)
    def clone(self, who: int) -> None:
        player = self.pick(who)
        self.taint(player)
        twin = Player(
            player.task,
            StreamRows(self.journal),
            player.journal.copy(),
            player.journal.copy(),
            tainted=True,
        )
        self.players.append(twin)
        self.promised.pop(player.state.stream, None)

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

    @precondition(lambda self: len(self.players) > 2)
    @rule(who=PICK)
    def answers_twice(self, who: int) -> None:
        """A reply of before lets an agent forget that it has answered: it answers once more."""
        place = who % len(self.players)
        self.exchange(place, 1, False, "heard late")
        old = self.replies.pop()
        self.exchange(place + 1, 1, True, "none")
        self.ask_and_hear(place)
        self.exchange(place, 1, False, "none")
        self.replies.append(old)
        self.hear(len(self.replies) - 1)
        self.exchange(place, 1, False, "none")
        self.time_passes(2.5)

    @rule(who=PICK, kind=st.sampled_from(["uses", "psd", "n", "rate"]))
    def forge(self, who: int, kind: str) -> None:
        """An upload that no data can explain is refused, and changes nothing."""
        player = self.pick(who)
        row = self.row(player.state.stream)
        if row is None or row.state == "sealed" or self.status(row.task) == "retracted":
            return
        gram = matrix_of(row.sums)
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
        elif kind == "rate":
            gram[1, 1] += 1.0
            n = row.n + self.room_at_the_door(row.task) + 1
        else:
            gram[1, 1] += 1.0
            n = 2**60
        total = Sums(n, gram[np.triu_indices(DIM + 1)], row.sums.surprise, 3.0)
        checkpoint = Checkpoint(
            self.fresh("version"), total._replace(weight=row.sums.weight + 1), 2**20
        )
        try:
            self.coordinator.upload(
                row.stream, Upload(base=row.revision, checkpoint=checkpoint), now=self.now
            )
        except Refused as problem:
            self.expect(problem, "invalid_increment")
            self.expect_same(row)
        else:
            raise AssertionError(f"I7: a forged upload was stored ({kind})")

    def room_at_the_door(self, task: str) -> int:
        """Return how many more observations a task can have made by now."""
        with self.store.reading() as t:
            rows = [row for row in t.streams("home") if row.task == task]
            known = [row for row in rows if row.pool >= 0]
        rules, first = self.space.uploads, min(row.registered_at for row in rows)
        assert rules.max_rate is not None
        most = rules.max_logged + int(rules.max_rate * (self.now - first))
        return most - sum(row.n for row in known)

    @rule(who=PICK, answers=st.booleans())
    def claim_an_epoch(self, who: int, answers: bool) -> None:
        """An epoch that the space cannot have reached is not believed, nor contributed to."""
        row, before = self.row(self.pick(who).state.stream), self.space_row()
        if row is None or self.status(row.task) == "retracted":
            return
        since = self.now - (before.created_at if before.closed_at is None else before.closed_at)
        apart = max(1.0, self.space.sync.min_interval_s)
        never = max(before.epoch + 100 + int(since / apart), before.floor) + 1
        checkpoint = Checkpoint(row.version, row.sums, row.round)
        claim = {"for_epoch": never + 1} if answers else {"seen_epoch": never}
        upload = Upload(base=row.revision, checkpoint=checkpoint, **claim)
        try:
            self.coordinator.upload(row.stream, upload, now=self.now)
        except Refused as problem:
            self.expect(problem, "invalid_epoch")
        else:
            raise AssertionError("I7: an epoch that never was is believed")
        assert self.space_row() == before, "I7: a refused claim changed the space"

    @precondition(lambda self: self.space.contexts == "per-request")
    @rule(task=TASKS, ended=st.booleans())
    def crowd(self, task: str, ended: bool) -> None:
        """A task gets no more streams than were declared, though it ends them; then undo it."""
        if self.status(task) == "retracted":
            return
        kept, names, most = self.store.snapshot(), self.names, self.space.uploads.max_streams
        assert most is not None
        with self.store.reading() as t:
            room = most - sum(row.task == task and row.pool >= 0 for row in t.streams("home"))
        for k in range(room + 1):
            state = StreamState.start(self.fresh("stream"), DIM)
            request = state.register(
                task=task,
                schema_hash=self.space.schema_hash,
                uses=USES[task],
                library="test",
            )
            try:
                self.coordinator.register("home", request, now=self.now)
            except Refused as problem:
                self.expect(problem, "too_many_streams")
                assert k == room, "I7: a stream that was declared is refused"
                break
            if ended:
                self.coordinator.seal(state.stream, state.newest.revision, now=self.now)
        else:
            raise AssertionError("I7: a task has more streams than were declared")
        self.store.restore(kept)
        self.names = names

    # ---- the coordinator

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
        """The coordinator is restored from a backup.

        Not after a departure if a folder was copied: which copy has taken over all data of a
        stream is then forgotten, and both may count them (docs/live-bugs.md, not repaired).
        """
        if self.space_row().pool and any(player.tainted for player in self.players):
            return
        copy, model = self.copies[which % len(self.copies)]
        self.store.restore(copy)
        self.open, answers, entries, closed, manifest = model
        self.answers, self.entries, self.closed = dict(answers), dict(entries), dict(closed)
        self.manifest = dict(manifest)
        self.acked, self.told, self.dropped, self.basis = {}, 0, set(), {}
        self.coordinator = self.new_coordinator()
        self.time_passes(0.0)  # its timer looks who fell silent since

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
            self.expect(problem, "unknown_task", "apart")
        self.note_closing()
