"""The middleware around all routes: authentication, rate limits, body size, time limits, logging.

What can be refused without the body is refused before the body is read.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import mmap
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guardband.live.protocol.digests import HEADER, digest_of, matches
from guardband.live.server.auth import Caller
from guardband.live.server.errors import problem
from guardband.live.server.limits import TokenBucket
from guardband.live.server.logs import log
from guardband.live.server.settings import Settings

__all__ = ["AuthRateLimit", "RequestContext"]

# What a machine lacks for a while: files, memory, room on a disk, or one that may be written.
PRESSURE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EROFS, errno.EDQUOT)
NO_BODY = ("GET", "HEAD", "OPTIONS")
# At most so many bytes does a body take while it is read, for each of these characters in it.
READ_BYTES = {b",": 160, b"[": 256, b"{": 640}
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class ClientDisconnected(Exception):  # noqa: N818 - not an error of the program
    """The client has disconnected, or does not read the response."""


class RequestContext:
    """What the middleware knows of one request."""

    def __init__(self, scope: Scope, caller: Caller | None) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.caller = caller
        self.status = 0
        self.received = self.sent = 0
        self.started = time.perf_counter()


class AuthRateLimit:
    """ASGI middleware around the whole application: see the module's docstring.

    Parameters
    ----------
    app
        The application.
    caller
        Returns who an Authorization header names; None if its token is not valid.
    settings
        The limits.
    body_limit
        Returns how long the body of a request may be; it depends on the largest space.
    on_done
        Called with every request when it has ended.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        caller: Callable[[bytes | None], Awaitable[Caller | None]],
        settings: Settings,
        body_limit: Callable[[Scope], int],
        on_done: Callable[[RequestContext], None],
    ) -> None:
        self.app, self.caller, self.settings = app, caller, settings
        self.body_limit, self.on_done = body_limit, on_done
        self.uploads = TokenBucket(settings.uploads_per_s, settings.upload_burst)
        self.streams = TokenBucket(settings.streams_per_s, settings.stream_burst)
        self.others = TokenBucket(settings.requests_per_s, settings.request_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        caller = await self.caller(_header(scope, b"authorization"))
        context = RequestContext(scope, caller)
        state = scope.setdefault("state", {})
        state["caller"] = caller
        if caller is not None and "connection" in state:
            state["connection"].trust()

        tell = self._teller(context, send)
        try:
            refusal = self._refusal(scope, context)
            if refusal is None and context.method not in NO_BODY:
                whole = await self._body(scope, receive, context)
                refusal = whole if isinstance(whole, Response) else None
                if isinstance(whole, bytes):
                    scope["state"]["body"], receive = whole, _replay(whole, receive)
                    refusal = _damaged(scope, whole)
                    _seek_room(whole)
            await (refusal or self.app)(scope, receive, tell)
        except ClientDisconnected:
            context.status = context.status or 499  # as in nginx; for the log only
        except Exception as error:
            lack = _lack(error)
            if lack is None:
                log(
                    "error",
                    logging.ERROR,
                    trace=True,
                    method=context.method,
                    path=context.path[:200],
                )
                answer = problem(500, detail="an error of the server; it has been logged.")
            else:
                log("pressure", logging.ERROR, detail=lack, path=context.path[:200])
                detail = f"the server cannot do it now ({lack}); send it again later."
                answer = problem(503, "pressure", detail, retry_after_s=1)
            if context.status:
                raise
            await answer(scope, receive, tell)
        finally:
            self._done(context)

    def _teller(self, context: RequestContext, send: Send) -> Send:
        """Return what sends an answer: with the headers of all, the digest of its body, in time."""
        started: list[Message] = []

        async def tell(message: Message) -> None:
            self._note(context, message)
            if _is_whole(message):
                started.append(message)  # until its body is known, whose digest it tells
                return
            if started:
                body = message.get("body", b"")
                MutableHeaders(scope=started[0]).setdefault(HEADER, digest_of(body))
            try:
                async with asyncio.timeout(self.settings.send_s):
                    while started:
                        await send(started.pop())
                    await send(message)
            except TimeoutError:
                raise ClientDisconnected from None

        return tell

    def _refusal(self, scope: Scope, context: RequestContext) -> Response | None:
        """Return the response that refuses the request, or None."""
        guarded = context.path.startswith("/v1/") or context.path == "/v1"
        guarded |= context.path == "/metrics" and not self.settings.open_metrics
        if not guarded:
            return None
        if context.caller is None:
            known = _header(scope, b"authorization") is not None
            detail = "send the header Authorization: Bearer gb_..., with a token that is valid."
            return problem(401, "unknown_token" if known else "no_token", detail)
        bucket = self.others
        if context.path.startswith("/v1/streams/"):
            bucket = self.uploads
        elif context.method == "POST" and context.path.endswith("/streams"):
            bucket = self.streams
        wait = bucket.wait_of(context.caller.token.token, time.monotonic())
        if wait > 0:
            each = f"{bucket.rate:g} requests a second"
            detail = f"this token has used up its {each}; wait {wait:.2g} s."
            return problem(429, detail=detail, retry_after_s=wait)
        return None

    async def _body(
        self, scope: Scope, receive: Receive, context: RequestContext
    ) -> bytes | Response:
        """Return the whole body, or the response to one that is too long or too slow."""
        most = self.body_limit(scope)
        length = _header(scope, b"content-length") or b"0"
        if not length.isdigit() or int(length[:20]) > most:
            return _too_long(most)
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self.settings.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    parts.append(message.get("body", b""))
                    context.received += len(parts[-1])
                    if context.received > most:
                        return _too_long(most)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            return problem(408, headers={"Connection": "close"})

    def _note(self, context: RequestContext, message: Message) -> None:
        """Count what is sent, and add the headers that all responses have."""
        if message["type"] == "http.response.start":
            context.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
            if context.path.startswith("/v1"):
                headers.setdefault("Cache-Control", "no-store")
        elif message["type"] == "http.response.body":
            context.sent += len(message.get("body", b""))

    def _done(self, context: RequestContext) -> None:
        self.on_done(context)
        log(
            "request",
            method=context.method,
            path=context.path[:200],
            status=context.status,
            ms=round(1e3 * (time.perf_counter() - context.started), 2),
            received=context.received,
            sent=context.sent,
            who=context.caller.who if context.caller else None,
        )


def _too_long(most: int) -> Response:
    return problem(413, detail=f"a body may have {most:,} bytes here.", limit=most)


def _damaged(scope: Scope, body: bytes) -> Response | None:
    """Return the answer to a body that was damaged on its way, or None."""
    header = _header(scope, HEADER.encode())
    if header is None or matches(header.decode("latin-1"), body):
        return None
    detail = "the body is not what its Content-Digest says: it was damaged; send it again."
    return problem(400, "damaged_body", detail)


def _seek_room(body: bytes) -> None:
    """Raise OSError where the system has no memory to read a body: its parser ends the process.

    The memory is asked for and given back, not written to, so that it costs nothing.
    """
    needed = sum(size * body.count(each) for each, size in READ_BYTES.items())
    mmap.mmap(-1, len(body) + needed + 1).close()


def _is_whole(message: Message) -> bool:
    """Tell whether a message begins an answer in JSON, all of whose body comes at once."""
    if message["type"] != "http.response.start":
        return False
    headers = MutableHeaders(scope=message)
    return "json" in headers.get("content-type", "") and "content-length" in headers


def _lack(error: Exception) -> str | None:
    """Return what the machine lacks for a while, if an error says so."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, OSError) and error.errno in PRESSURE:
        return str(error.strerror)
    return None


def _header(scope: Scope, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a channel that gives the body at once, and then whatever comes after it."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
