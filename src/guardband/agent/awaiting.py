"""Calls for event loops: made in another thread, so that the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from guardband.agent.decision import Decision
from guardband.errors import GuardbandError

__all__ = ["awaitable"]

Given = ParamSpec("Given")
Caller = TypeVar("Caller")
Result = TypeVar("Result")


def awaitable(
    method: Callable[Concatenate[Caller, Given], Result],
) -> Callable[Concatenate[Caller, Given], Coroutine[Any, Any, Result]]:
    """Return a method as a coroutine: an agent's lock, journal or kernels hold up no event loop.

    A decision whose caller is cancelled while it is made is discarded: nobody can have played it.
    """

    @functools.wraps(method)
    async def call(self: Caller, /, *args: Given.args, **named: Given.kwargs) -> Result:
        # By its name: a subclass may have its own.
        work = functools.partial(getattr(self, method.__name__), *args, **named)
        context = contextvars.copy_context()  # of the request, for hooks that trace it
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.run_in_executor(None, context.run, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(functools.partial(_give_up, self))
            raise

    call.__name__ = f"a{method.__name__}"
    call.__qualname__ = call.__qualname__.removesuffix(method.__name__) + call.__name__
    call.__doc__ = f"As `{method.__name__}`, for event loops: `await` it, the loop goes on."
    return call


def _give_up(agent: Any, done: asyncio.Future[Any]) -> None:
    """Discard what was decided for a caller that is gone; the loop waits for no disk."""
    made = None if done.exception() else done.result()
    unseen = [made] if isinstance(made, Decision) else made  # a reward's result is None
    if unseen:
        threading.Thread(target=_discard, args=(agent, unseen), name="guardband-discard").start()


def _discard(agent: Any, unseen: list[Decision]) -> None:
    for decision in unseen:
        with contextlib.suppress(GuardbandError):  # closed meanwhile: it waits in the journal
            agent.discard(decision)
