"""Routes that read: spaces, summaries, events, metrics, health."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from guardband.live.protocol.messages import Refused, SpaceInfo, SpaceLine
from guardband.live.server.agents import USUAL, SpaceName, caller_of, service_of
from guardband.live.server.auth import Caller
from guardband.live.server.errors import answers
from guardband.live.server.metrics import exposition
from guardband.live.server.replies import (
    HistoryReply,
    StatusReply,
    SummaryReply,
)
from guardband.live.server.service import Service
from guardband.live.server.summary import history_of, summary_of
from guardband.live.store import SampleRow

__all__ = ["public", "router"]

router = APIRouter(tags=["operators"])
public = APIRouter(tags=["tools"])
BEAT_S = 15.0  # between two keep-alive lines of an event stream
READY_S = 5.0
TEXT = "text/plain; version=0.0.4; charset=utf-8"

# An event of a stream; before OpenAPI 3.2 the schema is that of each of them.
EVENT = {
    "type": "object",
    "properties": {"data": {"type": "string"}, "event": {"type": "string"}},
    "required": ["data"],
}


@router.get("/v1/spaces", responses=answers(*USUAL))
async def list_spaces(request: Request) -> list[SpaceLine]:
    """List the spaces that the token may see."""
    service, caller = service_of(request), caller_of(request)

    def read() -> list[SpaceLine]:
        with service.store.reading() as t:
            return [
                SpaceLine(
                    space=row.name,
                    config_version=row.config_version,
                    epoch=row.epoch,
                    tasks=len(t.tasks(row.name)),
                    paused=row.paused,
                )
                for row in t.spaces()
                if caller.sees(row.name)
            ]

    return await service.executor.do(read)


@router.get("/v1/spaces/{space}", responses=answers(*USUAL))
async def show_space(space: SpaceName, request: Request) -> SpaceInfo:
    """Return a space and its settings."""
    service = service_of(request)
    caller_of(request).must_see(space)

    def read() -> SpaceInfo:
        known, version = service.coordinator.space(space)
        with service.store.reading() as t:
            row, tasks = t.space(space), t.tasks(space)
        assert row is not None
        return SpaceInfo(
            space=space,
            config_version=version,
            epoch=row.epoch,
            tasks=len(tasks),
            paused=row.paused,
            schema_hash=known.schema_hash,
            config=known,
        )

    return await service.executor.do(read)


@router.get("/v1/spaces/{space}/summary", responses=answers(*USUAL))
async def summary(space: SpaceName, request: Request) -> SummaryReply:
    """Return everything that a page about a space shows."""
    service = service_of(request)
    caller_of(request).must_be("admin", "viewer").must_see(space)
    snapshot = await service.snapshot(space)
    found = summary_of(snapshot, service.alerts(snapshot))
    return found.model_copy(update={"answers": [*found.answers, *request.app.state.remarks()]})


@router.get("/v1/spaces/{space}/history", responses=answers(*USUAL))
async def history(
    space: SpaceName,
    request: Request,
    hours: Annotated[float, Query(gt=0, le=9_600, description="how far back")] = 1.0,
) -> HistoryReply:
    """Return how tasks fared over time, the more coarsely the farther back it reaches."""
    service = service_of(request)
    caller_of(request).must_be("admin", "viewer").must_see(space)

    def read() -> list[SampleRow]:
        service.coordinator.space(space)
        now = service.executor.now()
        return service.coordinator.samples(space, since=now - 3600.0 * hours, now=now)

    return await asyncio.to_thread(history_of, await service.executor.do(read))


@router.get(
    "/v1/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": 'Server-sent events: data: {"space", "what"}.',
            "content": {"text/event-stream": {"schema": EVENT}},
        },
        **answers(*USUAL),
    },
)
async def events(
    request: Request,
    seconds: Annotated[float, Query(gt=0, le=86_400, description="how long to stay")] = 3600.0,
) -> Response:
    """Say, as it happens, that something about a space is new; ask for its summary then."""
    service, caller = service_of(request), caller_of(request)
    caller.must_be("admin", "viewer")
    # The slot is taken before the answer begins: afterwards it could not be refused.
    return _Stream(_events(service, caller, seconds), service.watchers.one(caller.token.token))


@public.get("/healthz")
async def health() -> StatusReply:
    """Say that the process is up."""
    return StatusReply(status="up")


@public.get("/readyz", responses=answers(503))
async def ready(request: Request) -> StatusReply:
    """Say that the store answers."""
    service = service_of(request)
    try:
        async with asyncio.timeout(READY_S):
            await service.check()
    except Exception as error:
        raise Refused("store_unavailable", 503, "the store does not answer.") from error
    return StatusReply(status="ready")


@public.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {
            "description": "For Prometheus.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
        **answers(401, 403, 429, 500, 503),
    },
)
async def metrics(request: Request) -> Response:
    """Return the metrics of all spaces; needs a token of an admin or viewer of all of them."""
    service = service_of(request)
    caller: Caller | None = request.state.caller
    if caller is not None and not service.settings.open_metrics:
        caller.must_be("admin", "viewer")
        if caller.token.space is not None:
            raise Refused("wrong_space", 403, "metrics are about all spaces.")
    service.metrics.longpolls.set(service.polls.taken)
    snapshots = await service.snapshots()
    return Response(
        await asyncio.to_thread(exposition, service.metrics, snapshots), media_type=TEXT
    )


class _Stream(StreamingResponse):
    """A response of events, with the slot that it holds until it ends."""

    def __init__(self, lines: AsyncIterator[str], place: AbstractContextManager[None]) -> None:
        super().__init__(lines, media_type="text/event-stream")
        self._place = place
        place.__enter__()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._place.__exit__(None, None, None)


async def _events(service: Service, caller: Caller, seconds: float) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    yield ": here\n\n"
    async for each in service.broadcaster.watch(caller.sees, min(BEAT_S, seconds)):
        yield ": here\n\n" if each is None else _event(*each)
        if loop.time() >= end or service.tokens.get(caller.token.token) is None:
            return


def _event(space: str, what: str) -> str:
    body: dict[str, Any] = {"space": space, "what": what}
    return f"data: {json.dumps(body)}\n\n"
