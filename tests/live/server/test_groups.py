"""Uploads that share a commit: nobody hears of it before, and each hears of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from guardband.live.coordinator.uploads import Taken
from guardband.live.protocol.messages import Refused
from guardband.live.server.groups import MOST, Groups
from guardband.live.server.store_executor import StoreExecutor


class Slow:
    """A coordinator whose commits wait until they are told how to end."""

    def __init__(self) -> None:
        self.store = None
        self.groups: list[list[str]] = []
        self.begun, self.ends = threading.Semaphore(0), threading.Semaphore(0)
        self.fails = False

    def uploads(self, name: str, requests: Any, *, now: float) -> list[Any]:
        self.groups.append([stream for stream, _ in requests])
        self.begun.release()
        assert self.ends.acquire(timeout=20.0)
        if self.fails:
            raise Refused("store_unavailable", 503, "away.")
        refused = Refused("sealed", 410, "sealed.")
        return [
            refused if stream == "bad" else Taken(stream, again=False) for stream, _ in requests
        ]


class Rig:
    def __init__(self) -> None:
        self.slow = Slow()
        self.executor = StoreExecutor(self.slow, lambda seconds: None)  # type: ignore[arg-type]
        self.groups = Groups[Any, Any](self.carry_out)

    async def carry_out(self, space: str, group: list[Any]) -> list[Any]:
        return await self.executor.write(self.slow.uploads, space, group, now=0.0)

    def send(self, *streams: str) -> list[asyncio.Task[Any]]:
        return [asyncio.create_task(self.groups.ask("home", (stream, None))) for stream in streams]

    async def until_begun(self) -> None:
        assert await asyncio.to_thread(self.slow.begun.acquire, timeout=20.0)


def run(scenario: Any) -> Rig:
    async def whole() -> Rig:
        rig = Rig()
        await asyncio.wait_for(scenario(rig), 60.0)
        rig.executor.close()
        return rig

    return asyncio.run(whole())


def test_what_arrives_during_a_commit_shares_the_next_and_nobody_is_answered_before():
    async def scenario(rig: Rig) -> None:
        (first,) = rig.send("a")
        await rig.until_begun()
        rest = rig.send("b", "bad", "c")
        await asyncio.sleep(0.05)
        assert not first.done()
        rig.slow.ends.release()
        assert (await first).said == "a"
        await rig.until_begun()
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in rest)
        rig.slow.ends.release()
        answers = await asyncio.gather(*rest, return_exceptions=True)
        assert [getattr(each, "said", None) for each in answers] == ["b", None, "c"]
        assert isinstance(answers[1], Refused)

    assert run(scenario).slow.groups == [["a"], ["b", "bad", "c"]]


def test_a_commit_that_fails_is_told_to_all_and_the_next_is_tried():
    async def scenario(rig: Rig) -> None:
        tasks = rig.send("a", "b")
        await rig.until_begun()
        rig.slow.fails = True
        rig.slow.ends.release()
        for task in tasks:
            with pytest.raises(Refused, match="away"):
                await task
        rig.slow.fails = False
        again = rig.send("a")
        rig.slow.ends.release()
        assert (await again[0]).said == "a"

    run(scenario)


def test_who_has_gone_keeps_nobody_waiting():
    async def scenario(rig: Rig) -> None:
        first, second = rig.send("a", "b")
        await rig.until_begun()
        first.cancel()
        rig.slow.ends.release()
        assert (await second).said == "b"
        assert rig.groups._waiting == {}

    run(scenario)


def test_groups_have_a_largest_size():
    async def scenario(rig: Rig) -> None:
        rig.send("a")
        await rig.until_begun()
        rest = rig.send(*("x" for _ in range(MOST + 1)))
        for _ in range(3):
            rig.slow.ends.release()
        await asyncio.gather(*rest)

    assert [len(each) for each in run(scenario).slow.groups] == [1, MOST, 1]
