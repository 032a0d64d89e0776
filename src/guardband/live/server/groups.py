"""Requests that arrive while one of their kind is carried out are carried out together, next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

__all__ = ["MOST", "Groups"]

MOST = 128  # requests in one group: what a space's other requests may have to wait for
Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


class Groups(Generic[Ask, Answer]):
    """The requests of one kind and process that wait, by space; it runs in the event loop.

    Of uploads this is group commit. Nobody waits for a group to fill: a request that finds none
    of its kind under way begins.

    Parameters
    ----------
    work
        Carries out a group of requests to a space; returns the answer to each, or what to raise.
    """

    def __init__(
        self, work: Callable[[str, list[Ask]], Awaitable[list[Answer | Exception]]]
    ) -> None:
        self._work = work
        # A space is here while its groups are carried out.
        self._waiting: dict[str, list[tuple[Ask, asyncio.Future[Answer]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, space: str, request: Ask) -> Answer:
        """Have a request carried out; return the answer when its whole group is done."""
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        queue = self._waiting.get(space)
        if queue is None:
            queue = self._waiting[space] = []
            task = asyncio.create_task(self._carry_out(space))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        queue.append((request, done))
        return await done

    async def _carry_out(self, space: str) -> None:
        """Carry out groups until nobody waits."""
        while group := self._waiting[space][:MOST]:
            del self._waiting[space][:MOST]
            await self._answer(space, group)
        del self._waiting[space]

    async def _answer(self, space: str, group: list[tuple[Ask, asyncio.Future[Answer]]]) -> None:
        """Carry out a group; then, and not before, answer its senders."""
        results: list[Answer | Exception]
        try:
            results = await self._work(space, [request for request, _ in group])
        except Exception as error:
            results = [error] * len(group)
        for (_, done), result in zip(group, results, strict=True):
            if done.done():  # its sender has gone
                continue
            if isinstance(result, Exception):
                done.set_exception(result)
            else:
                done.set_result(result)
