"""Alarms: agents that begin again, tasks that leave the pool and are let back."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from live.protocol.faults import Faults
from live.protocol.model import MOST_PLAYERS, PICK, TASKS
from live.protocol.world import DIM, Player

from guardband.live.client.stream_state import StreamState
from guardband.live.protocol.messages import News, Refused, Registered


class Departing(Faults):
    """Agents whose monitors raise alarms at any time, and operators who let tasks back."""

    @rule(who=PICK, fit=st.booleans())
    def raise_alarm(self, who: int, fit: bool) -> None:
        """An agent starts anew, or goes on alone with its own data: it does not fit."""
        player = self.pick(who)
        if player.journal.apart and fit:
            return
        left = player.state.left if player.journal.apart else "fit" if fit else "anew"
        player.journal.apart = True
        self.begin_again(player, player.state.pool, left, declared=fit)

    @rule(who=PICK, fit=st.booleans(), adopt=st.integers(0, 31))
    def leave_after_pooling(self, who: int, fit: bool, adopt: int) -> None:
        """Agents pool, one leaves, some of the others hear of it and pool again."""
        self.good_day(who)
        self.raise_alarm(who, fit)
        for place in range(len(self.players)):
            if adopt >> place & 1:
                self.ask_and_hear(place)
        self.good_day(who + 1)

    @precondition(lambda self: len({player.task for player in self.players}) > 2)
    @rule(who=PICK, early=st.booleans())
    def most_start_anew(self, who: int, early: bool) -> None:
        """Agents pool, all but one start anew, and so the last must; it may hear of it early."""
        self.good_day(who)
        last, fresh = self.pick(who), self.space_row().fresh
        alone = sum(each.task == last.task for each in self.players) == 1
        before = set() if last.journal.apart else set(last.journal.start)
        for place in range(1, len(self.players)):
            self.raise_alarm(who + place, fit=False)
        if early:
            self.ask_and_hear(who)
        self.good_day(who)
        if alone and self.space_row().fresh > fresh <= last.state.pool:
            kept = before & set(last.journal.start)
            assert not kept or last.state.pool < self.space_row().fresh, "I10: old data are kept"

    @precondition(lambda self: len(self.players) > 1)
    @rule(who=PICK)
    def leave_after_moving(self, who: int) -> None:
        """An agent whose stream was ended goes on with another one, and then begins again."""
        self.exchange(who, 1, False, "none")
        self.end_stream(who)
        self.exchange(who, 1, False, "none")
        self.raise_alarm(who, fit=False)
        self.readmit(self.pick(who).task)
        self.good_day(who)

    @precondition(lambda self: len(self.players) < MOST_PLAYERS - 1)
    @rule(who=PICK, first=st.booleans())
    def leave_after_forgetting(self, who: int, first: bool) -> None:
        """The coordinator forgets an agent's new stream; it begins again, and so does a copy.

        The stream may be the agent's first.
        """
        self.copy_store()
        if first:
            self.join(self.pick(who).task)
        place, twin = -1 if first else who, len(self.players)
        place %= twin
        self.exchange(place, 1, False, "none")
        if not first:
            self.end_stream(place)
            self.exchange(place, 1, False, "none")
        self.roll_back(len(self.copies) - 1)
        self.clone(place)
        self.raise_alarm(place, fit=True)
        self.exchange(place, 1, False, "none")
        self.exchange(twin, 1, False, "none")

    @rule(task=TASKS)
    def readmit(self, task: str) -> None:
        try:
            self.coordinator.readmit("home", task, "test", who="test", now=self.now)
        except Refused as problem:
            self.expect(problem, "unknown_task", "not_apart")
        self.note_closing()

    def begin_again(self, player: Player, pool: int, left: str, *, declared: bool) -> None:
        """Go on in a stream of its own place, with all data of the start, or with nothing.

        With a window, monitors have the data of its newest half alone at declared weights.
        """
        if not (declared or player.tainted):
            player.over |= set(player.journal.start)
        sums, start = StreamState.start("", DIM), player.journal.start if declared else ()
        half = max((self.space.half_at(tag.round) for tag in start), default=0)
        tags = tuple(tag for tag in start if self.space.half_at(tag.round) == half)
        for tag in tags:
            sums = tag.counted(sums, half)
        after = player.state.again(self.fresh("stream"), sums.total, pool=pool, left=left)
        player.keep(after, tags=tags, start=tags)
        self.enrol(self.players.index(player))

    def hear_of_departure(self, player: Player, news: News | Registered) -> None:
        player.journal.apart = news.apart
        if not news.apart and player.state.left:
            player.keep(replace(player.state, left=""))

    def follow_pool(self, player: Player, begin: str, pool: int) -> bool:
        if begin:
            left = player.state.left if player.journal.apart else ""
            self.begin_again(player, pool, left, declared=begin == "declared")
        elif pool != player.state.pool:
            player.keep(replace(player.state, pool=pool))
        return bool(begin)
