"""Routes of agents: streams, uploads, news."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request, Response

from guardband.live.coordinator.coordinator import Known
from guardband.live.protocol.messages import (
    Alarmed,
    AlarmKept,
    EpochRecord,
    LookedAtRecord,
    News,
    Refused,
    Register,
    Registered,
    Report,
    Revision,
    Upload,
    Uploaded,
)
from guardband.live.protocol.types import LARGEST_WHOLE, Name, StreamId
from guardband.live.server.auth import Caller
from guardband.live.server.errors import answers
from guardband.live.server.replies import Done
from guardband.live.server.service import Service
from guardband.live.server.uploads import take_upload

__all__ = ["caller_of", "router", "service_of"]

router = APIRouter(tags=["agents"])
SpaceName = Annotated[Name, Path(description="the space")]
Stream = Annotated[StreamId, Path(description="the stream, a UUID")]
Number = Annotated[int, Query(ge=0, le=LARGEST_WHOLE)]
USUAL = (400, 401, 403, 404, 408, 413, 422, 429, 500, 503)


def service_of(request: Request) -> Service:
    """Return the running service."""
    service: Service = request.app.state.service
    return service


def caller_of(request: Request) -> Caller:
    """Return the caller; the middleware refuses requests without a token."""
    caller: Caller = request.state.caller
    return caller


@router.post(
    "/v1/spaces/{space}/streams",
    status_code=201,
    responses={200: {"model": Registered}, **answers(*USUAL, 409)},
)
async def register(
    space: SpaceName, message: Register, request: Request, response: Response
) -> Registered:
    """Make a stream known (201), or known again (200)."""
    service = service_of(request)
    caller_of(request).must_own(space, message.task)
    now = service.executor.now()

    def work() -> tuple[bool, Registered]:
        with service.store.reading() as t:
            known = t.stream(message.stream) is not None
        return known, service.coordinator.register(space, message, now=now)

    known, said = await service.executor.write(work)
    response.status_code = 200 if known else 201
    if message.left:  # the others have to begin again
        await service.look()
    service.broadcaster.notify(space, "agent")
    return said


@router.put("/v1/streams/{stream}/checkpoint", responses=answers(*USUAL, 409, 410))
async def upload(stream: Stream, message: Upload, request: Request) -> Uploaded:
    """Store a checkpoint durably, and answer the open epoch where it is one for it.

    409 `revision_conflict` has what is `stored`; 422 `invalid_increment` the `check` that failed.
    """
    return await take_upload(service_of(request), caller_of(request), stream, message)


@router.post("/v1/streams/{stream}/report", responses=answers(*USUAL))
async def report(stream: Stream, message: Report, request: Request) -> Done:
    """Send a report without an upload."""
    service = service_of(request)
    space, task = await service.home(stream)
    caller_of(request).must_own(space, task)
    await service.executor.write(
        service.coordinator.report, stream, message, now=service.executor.now()
    )
    service.broadcaster.notify(space, "report")
    return Done()


@router.post("/v1/streams/{stream}/alarm", responses=answers(*USUAL, 409))
async def alarm(stream: Stream, message: Alarmed, request: Request) -> AlarmKept:
    """Keep what an agent's monitors noticed; the answer says whether a person has looked at it."""
    service = service_of(request)
    space, task = await service.home(stream)
    caller_of(request).must_own(space, task)
    kept: AlarmKept = await service.executor.write(
        service.coordinator.alarm, stream, message, now=service.executor.now()
    )
    service.broadcaster.notify(space, "agent")
    return kept


@router.post("/v1/streams/{stream}/seal", responses=answers(*USUAL, 409))
async def seal(stream: Stream, revision: Annotated[Revision, Body()], request: Request) -> Done:
    """End a stream at what is stored of it."""
    service = service_of(request)
    space, task = await service.home(stream)
    caller_of(request).must_own(space, task)
    await service.executor.write(
        service.coordinator.seal, stream, revision, now=service.executor.now()
    )
    await service.look()
    service.broadcaster.notify(space, "agent")
    return Done()


@router.get("/v1/spaces/{space}/looked-at", responses=answers(*USUAL))
async def looked_at(space: SpaceName, request: Request) -> LookedAtRecord:
    """Return the rows of logs that were looked at when the space's settings were chosen."""
    service = service_of(request)
    caller_of(request).must_see(space)
    raw = await service.executor.do(service.coordinator.looked_at, space)
    return LookedAtRecord(record=b64encode(raw).decode())


@router.get(
    "/v1/spaces/{space}/epochs/next",
    response_model=News,
    responses={204: {"description": "Nothing new."}, **answers(*USUAL, 410)},
)
async def next_epoch(
    space: SpaceName,
    request: Request,
    stream: Annotated[
        StreamId | None, Query(description="the stream that asks; it counts as heard of")
    ] = None,
    after: Number = 0,
    open_after: Number = 0,
    config_version: Number = 0,
    compares: Annotated[
        bool, Query(description="tell also the sums without each other task: which one is odd?")
    ] = False,
    wait: Annotated[float, Query(ge=0, le=86_400, description="seconds; at most 25")] = 0.0,
) -> Any:
    """Wait for a newer epoch, an open one, or other settings; 204 where nothing came."""
    service, caller = service_of(request), caller_of(request)
    caller.must_see(space)
    if stream is not None:
        home, task = await service.home(stream)
        if home != space:
            raise Refused("unknown_stream", 404, f"space {space!r} has no such stream.")
        caller.must_own(space, task)

    known = Known(after, open_after, config_version, compares)

    async def ask() -> News | None:
        if stream is not None:
            return await service.news.ask(space, (stream, known))
        return await service.executor.do(
            service.coordinator.news_of_space, space, known, now=service.executor.now()
        )

    with service.polls.one(caller.token.token):
        seconds = min(wait, service.settings.poll_s)
        said = await _waiting(service, space, request, seconds, ask)
        # Its token may have been revoked meanwhile.
        if service.tokens.get(caller.token.token) is None:
            raise Refused("unknown_token", 401, "this token was revoked.")
    return Response(status_code=204) if said is None else said


@router.get("/v1/spaces/{space}/epochs/{epoch}", responses=answers(*USUAL))
async def epoch_of(
    space: SpaceName, epoch: Annotated[int, Path(ge=1, le=LARGEST_WHOLE)], request: Request
) -> EpochRecord:
    """Return a closed epoch: which streams are in it with what, and their sum."""
    service = service_of(request)
    task = caller_of(request).must_see(space).token.task
    found = await service.executor.do(service.coordinator.epoch, space, epoch)
    # Agents need the sum; who else is in it, and with how much, is not theirs to know.
    shown = tuple(line for line in found.manifest if task in (None, line.task))
    digest = None if found.sums is None else found.sha256
    return found.model_copy(update={"manifest": shown, "sha256": digest})


async def _waiting(
    service: Service, space: str, request: Request, seconds: float, ask: Any
) -> News | None:
    """Ask until there is news, the time is over, or the client has gone."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    gone: asyncio.Task[None] | None = None
    try:
        while True:
            seen = service.broadcaster.changes(space)
            said: News | None = await ask()
            left = end - loop.time()
            revoked = service.tokens.get(caller_of(request).token.token) is None
            if said is not None or left <= 0.0 or service.broadcaster.stopping or revoked:
                return said
            gone = gone or asyncio.create_task(_left(request))
            wait = asyncio.create_task(
                service.broadcaster.wait(space, seen, min(left, service.beat_s(space)))
            )
            await asyncio.wait((wait, gone), return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                wait.cancel()
                return None
    finally:
        if gone is not None:
            gone.cancel()


async def _left(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
