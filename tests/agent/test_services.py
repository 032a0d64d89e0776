"""Agents inside services: event loops that are never blocked, and hooks that cannot do harm."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.agent.protocol import BanditAgent

MENU = np.array([[0.5, 0.2, 0.1], [0.1, 0.6, 0.2], [0.3, 0.3, 0.3]])


@contextmanager
def busy(agent: Any) -> Iterator[None]:
    """Hold the agent's lock, as another thread in the middle of a call does."""
    lock = agent._store.lock if hasattr(agent, "_store") else agent._group.lock
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            entered.set()
            leave.wait(10)  # a loop that waits for the lock goes on then, too late

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    try:
        yield
    finally:
        leave.set()
        thread.join()


def test_calls_can_be_awaited(agent: BanditAgent) -> None:
    async def serve() -> list[gb.Decision]:
        made = [await agent.adecide(MENU, 0, baseline_reward=0.5) for _ in range(3)]
        await agent.aobserve(made[0], 0.4)
        return made

    made = asyncio.run(serve())
    assert [each.action for each in made] == [0, 0, 0]
    assert len({each.id for each in made}) == 3
    assert (agent.rounds, agent.pending) == (3, 2)


def test_batches_can_be_awaited(agent: Any) -> None:
    async def serve() -> None:
        made = await agent.adecide_many([MENU, MENU], [0, 1])
        assert [each.action for each in made] == [0, 1]
        await agent.aobserve_many(made, [0.4, 0.5])

    asyncio.run(serve())
    assert (agent.rounds, agent.pending) == (2, 0)


def test_the_loop_goes_on_while_an_agent_is_busy(agent: BanditAgent) -> None:
    async def serve() -> None:
        with busy(agent):
            asked = asyncio.ensure_future(agent.adecide(MENU, 0))
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert not asked.done()
        assert (await asked).action == 0

    asyncio.run(asyncio.wait_for(serve(), 30))


def test_errors_come_to_whoever_awaits(agent: BanditAgent) -> None:
    with pytest.raises(gb.InvalidValueError, match="baseline 3 is not one of the 3 actions"):
        asyncio.run(agent.adecide(MENU, 3))
    with pytest.raises(gb.UnknownDecisionError):
        asyncio.run(agent.aobserve("nobody-1", 0.5))
    assert agent.rounds == 0


def test_what_was_decided_for_a_caller_who_is_gone_is_discarded(agent: BanditAgent) -> None:
    """Nobody has played it, and a default reward after its window would be a lie."""

    async def serve() -> None:
        with busy(agent):
            asked = asyncio.ensure_future(agent.adecide(MENU, 0))
            await asyncio.sleep(0.01)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked

    asyncio.run(serve())
    deadline = time.monotonic() + 30
    while (agent.rounds, agent.pending) != (1, 0):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_reward_is_taken_in_though_its_caller_is_gone(agent: BanditAgent) -> None:
    made = agent.decide(MENU, 0)

    async def serve() -> None:
        with busy(agent):
            told = asyncio.ensure_future(agent.aobserve(made, 0.5))
            await asyncio.sleep(0.01)
            told.cancel()
            with pytest.raises(asyncio.CancelledError):
                await told

    asyncio.run(serve())
    assert (agent.rounds, agent.pending) == (1, 0)


def test_what_can_be_awaited_says_what_it_takes(agent: BanditAgent) -> None:
    kind = type(agent)
    for name in ("decide", "decide_many", "observe", "observe_many"):
        found = getattr(kind, f"a{name}")
        assert inspect.iscoroutinefunction(found)
        assert inspect.signature(found) == inspect.signature(getattr(kind, name))
        assert found.__qualname__.rpartition(".")[2] == f"a{name}"
        assert f"`{name}`" in found.__doc__


def test_a_subclass_is_heeded() -> None:
    class Mine(gb.Agent):
        def decide(self, *given: Any, **named: Any) -> gb.Decision:
            return super().decide(*given, **named)._replace(reason="mine")

    assert asyncio.run(Mine(3).adecide(MENU, 0)).reason == "mine"


def test_hooks_hear_of_decisions_and_rewards(agent: BanditAgent) -> None:
    heard: list[Any] = []

    @agent.on_decision
    def log_decision(decision: gb.Decision) -> None:
        heard.append(decision)

    agent.on_reward(lambda name, reward: heard.append((name, reward)))
    first = agent.decide(MENU, 0)
    agent.observe(first, True)
    batch = agent.decide_many([MENU, MENU], [0, 1])
    agent.observe_many(batch, [0.25, 0.5])
    last = asyncio.run(agent.adecide(MENU, 2))
    told = [(batch[0].id, 0.25), (batch[1].id, 0.5)]
    assert heard[1:2] + heard[4:6] == [(first.id, 1.0), *told]
    assert [each.id for each in (heard[0], *heard[2:4], heard[6])] == [
        each.id for each in (first, *batch, last)
    ]
    assert log_decision.__name__ == "log_decision"  # the decorator leaves it as it was


def test_hooks_hear_of_nothing_that_was_refused(agent: BanditAgent) -> None:
    heard: list[Any] = []
    agent.on_decision(heard.append)
    agent.on_reward(lambda *about: heard.append(about))
    with pytest.raises(gb.InvalidValueError):
        agent.decide(MENU, 3)
    with pytest.raises(gb.UnknownDecisionError):
        agent.observe("nobody-1", 0.5)
    made = agent.decide(MENU, 0)
    with pytest.raises(gb.InvalidValueError):
        agent.observe(made, 7.0)
    assert [each.id for each in heard] == [made.id]


def test_a_hook_may_ask_the_agent(agent: BanditAgent) -> None:
    """No lock is held: another thread that the hook waits for gets its turn, too."""
    seen: list[int] = []

    def ask(_: gb.Decision) -> None:
        thread = threading.Thread(target=lambda: seen.append(agent.rounds))
        thread.start()
        thread.join(30)

    agent.on_decision(ask)
    agent.decide(MENU, 0)
    assert seen == [1]


def test_a_hook_that_fails_harms_nobody(
    agent: BanditAgent, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def fail(*about: Any) -> None:
        raise RuntimeError("the pipeline is down")

    agent.on_decision(fail)
    agent.on_decision(lambda decision: heard.append(decision.id))
    agent.on_reward(fail)
    with caplog.at_level(logging.ERROR, "guardband"):
        for k in range(10):
            made = agent.decide(MENU, 0)
            agent.observe(made, 0.5)
            assert (agent.rounds, agent.pending, len(heard)) == (k + 1, 0, k + 1)
    failed = [each for each in caplog.records if each.name == "guardband"]
    assert len(failed) == 5  # of 20: the 1st, 2nd, 4th, 8th and 16th
    assert "fail failed (16 so far)" in failed[-1].getMessage()
    assert "the pipeline is down" in str(failed[0].exc_info)


def test_hooks_are_plain_functions(agent: BanditAgent) -> None:
    async def later(decision: gb.Decision) -> None: ...

    with pytest.raises(gb.InvalidTypeError, match=r"not the coroutine .*later"):
        agent.on_decision(later)
    with pytest.raises(gb.InvalidTypeError, match="on_reward takes a function, not 3"):
        agent.on_reward(3)  # type: ignore[type-var]
