"""Uploads, which all agents send all the time: their endpoint, and a short way to it."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from guardband.live.protocol.messages import Refused, Upload, Uploaded
from guardband.live.protocol.types import StreamId
from guardband.live.server.auth import Caller
from guardband.live.server.errors import answer_to
from guardband.live.server.service import Service
from guardband.live.store import StoreError

__all__ = ["UploadShortcut", "take_upload"]

BEFORE, AFTER = "/v1/streams/", "/checkpoint"
JSON = (b"content-type", b"application/json")
STREAM: TypeAdapter[str] = TypeAdapter(StreamId)
KINDS = {"revision_conflict": "conflict", "sealed": "conflict"}  # of refusals, for the metrics


async def take_upload(service: Service, caller: Caller, stream: str, message: Upload) -> Uploaded:
    """Have an upload of this caller carried out; return the answer once it is durable."""
    space, task = await service.home(stream)
    caller.must_own(space, task)
    result = service.metrics.uploads
    try:
        taken = await service.uploads.ask(space, (stream, message))
    except Refused as refusal:
        result.labels(space, task, KINDS.get(refusal.code, "invalid")).inc()
        if refusal.code == "invalid_increment":
            check = str(refusal.more.get("check", ""))
            service.metrics.invalid.labels(space, task, check).inc()
        raise
    result.labels(space, task, "duplicate" if taken.again else "accepted").inc()
    await service.saw(space, taken.said)
    return taken.said


class UploadShortcut:
    """ASGI middleware: sound uploads go straight to their endpoint, all else to the application.

    An upload that pydantic does not read is the application's, too, which reads it again and says
    what is wrong: there is one place for that, and the route is in the API's document.

    Parameters
    ----------
    app
        The application.
    service
        The running service.
    """

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        sound = _read(scope)
        if sound is None:
            await self.app(scope, receive, send)
            return
        try:
            said = await take_upload(self.service, scope["state"]["caller"], *sound)
        except (Refused, StoreError) as problem:
            await answer_to(problem)(scope, receive, send)
            return
        body = said.model_dump_json().encode()
        headers = [JSON, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _read(scope: Scope) -> tuple[str, Upload] | None:
    """Return the stream and the message of an upload; None for what is not one, or not sound."""
    if scope["type"] != "http" or scope["method"] != "PUT" or JSON not in scope["headers"]:
        return None
    path: str = scope["path"]
    if not path.startswith(BEFORE) or not path.endswith(AFTER):
        return None
    try:
        stream = STREAM.validate_python(path[len(BEFORE) : -len(AFTER)])
        return stream, Upload.model_validate_json(scope["state"]["body"])
    except ValidationError:
        return None
