"""A coordinator and named agents without a network: for tests of one sequence of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from live.look import events_of
from live.memory_store import MemoryStore
from live.protocol.world import DIM, USES, Book, make_space, name_of

from guardband.live.client.stream_state import Effect, StreamState, Transition
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.protocol.messages import News, Refused, Registered, Uploaded
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import Store


class Harness:
    """A coordinator and agents that talk to it without faults, unless a test makes them."""

    def __init__(self, store: Store | None = None, space: SpaceSettings | None = None) -> None:
        self.store = MemoryStore() if store is None else store
        self.space = make_space() if space is None else space
        self.coordinator = Coordinator(self.store)
        self.coordinator.create_space(self.space, who="test", now=0.0)
        self.book = Book()
        self.states: dict[str, StreamState] = {}
        self.tasks: dict[str, str] = {}
        self.rounds: dict[str, int] = {}
        self.now, self.names = 0.0, 0

    def fresh(self, kind: str) -> str:
        self.names += 1
        return name_of(kind, self.names)

    def state(self, who: str) -> StreamState:
        return self.states[who]

    def stream(self, who: str) -> str:
        return self.states[who].stream

    def join(self, task: str, who: str | None = None) -> str:
        who = task if who is None else who
        self.states[who] = StreamState.start(self.fresh("stream"), DIM)
        self.tasks[who], self.rounds[who] = task, 0
        self.register(who)
        return who

    def register(self, who: str, **changes: Any) -> Registered:
        request = self.states[who].register(
            task=self.tasks[who],
            schema_hash=self.space.schema_hash,
            uses=USES[self.tasks[who]],
            library="test",
        )
        return self.coordinator.register("home", request.model_copy(update=changes), now=self.now)

    def copy(self, who: str, name: str) -> str:
        self.states[name], self.tasks[name] = self.states[who], self.tasks[who]
        self.rounds[name] = self.rounds[who]
        return name

    def observe(self, who: str, times: int = 1, reward: float = 1.0) -> None:
        for _ in range(times):
            self.rounds[who] += 1
            feature = self.book.room(self.tasks[who])[0]
            tag = self.book.new(feature, reward, self.rounds[who])
            self.states[who] = tag.counted(self.states[who])

    def checkpoint(self, who: str, *, for_epoch: int = 0) -> None:
        self.states[who] = self.states[who].with_checkpoint(
            self.fresh("version"),
            round=self.rounds[who],
            for_epoch=for_epoch,
            min_batch=self.space.sync.min_batch,
        )

    def send(self, who: str, *, trigger: bool = False) -> Uploaded:
        state = self.states[who]
        answer = self.coordinator.upload(state.stream, state.upload(trigger=trigger), now=self.now)
        self.states[who] = state.stored(answer)
        return answer

    def refused(self, who: str) -> Effect:
        """Send what will be refused, and follow the transition of the state."""
        state = self.states[who]
        try:
            self.coordinator.upload(state.stream, state.upload(), now=self.now)
        except Refused as problem:
            step = state.refused(problem, stream=self.fresh("stream"))
            self.states[who] = step.stream
            return step.effect
        raise AssertionError("it was accepted")

    def refused_at(self, who: str) -> str:
        """Send something new that will be refused; return the code."""
        self.observe(who)
        self.checkpoint(who)
        try:
            self.send(who)
        except Refused as problem:
            return problem.code
        raise AssertionError("it was accepted")

    def news(self, who: str) -> News | None:
        state = self.states[who]
        return self.coordinator.news(
            "home", state.stream, after=state.seen, open_after=0, config_version=1, now=self.now
        )

    def adopt(self, who: str) -> Transition:
        news = self.news(who)
        assert news is not None
        step = self.states[who].adopt(news, next_round=self.rounds[who] + 1)
        self.states[who] = step.stream
        return step

    def trigger(self, who: str) -> Uploaded:
        self.checkpoint(who, for_epoch=self.states[who].seen + 1)
        return self.send(who, trigger=True)

    def answer(self, who: str) -> Uploaded:
        news = self.news(who)
        assert news is not None
        assert news.open is not None
        self.checkpoint(who, for_epoch=news.open.epoch)
        return self.send(who)

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.coordinator.tick(now=self.now)

    def pool(self, first: str, *others: str) -> None:
        """One whole epoch of these agents; the next round is later than all of theirs."""
        self.trigger(first)
        for who in others:
            self.answer(who)
        self.wait(3.0)
        last = max(self.rounds.values())
        for who in (first, *others):
            self.rounds[who] = last
            assert self.adopt(who).effect == Effect.ADOPTED

    def stored(self, who: str) -> Any:
        with self.store.reading() as t:
            return t.stream(self.stream(who))

    def view(self, who: str) -> dict[Any, int]:
        """What an agent computes with, and how often each observation is in it."""
        state = self.states[who]
        sums = [state.own] if state.pooled is None else [state.pooled, state.own]
        return dict(self.book.read(*sums, what=who))


def code_of(call: Callable[..., Any], *args: Any, **rest: Any) -> Refused:
    """Make a call that must be refused; return the refusal."""
    with pytest.raises(Refused) as caught:
        call(*args, **rest)
    return caught.value


def claim(harness: Harness, who: str, seen: int, now: float = 0.0) -> Uploaded:
    """Say that an agent has seen an epoch."""
    request = harness.state(who).upload().model_copy(update={"seen_epoch": seen})
    return harness.coordinator.upload(harness.stream(who), request, now=now)


def restores(harness: Harness) -> int:
    """Return how often the audit says that the coordinator was restored."""
    events = events_of(harness.coordinator, most=1000)
    return sum(event.what == "server restore" for event in events)
