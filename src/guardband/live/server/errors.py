"""Error responses: problem details (RFC 9457) with a stable code."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route

from guardband.live.protocol.messages import Refused
from guardband.live.server.logs import log
from guardband.live.store import StoreError

__all__ = ["ProblemDetails", "answer_to", "answers", "install", "problem"]

MEDIA_TYPE = "application/problem+json"
CODES = {
    400: "malformed",
    401: "unauthorised",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
    422: "invalid_request",
    429: "rate_limited",
    500: "internal",
    503: "unavailable",
}
WORDS = {
    400: "The request is not well formed.",
    401: "There is no valid token.",
    403: "The token does not allow this.",
    404: "It does not exist.",
    405: "The method is not allowed here.",
    408: "The request took too long to arrive.",
    409: "It does not fit what is stored.",
    410: "It is closed.",
    413: "The body is too long.",
    422: "The request has invalid values.",
    429: "Too many requests.",
    503: "Not available now; try again.",
}
MOST_ERRORS = 8  # a list of a thousand bad numbers is reported by its first few


class ProblemDetails(BaseModel):
    """Why a request failed; `code` is stable, `detail` is for reading."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="urn:guardband:problem:CODE")
    title: str
    status: int
    detail: str
    code: str


def problem(
    status: int,
    code: str | None = None,
    detail: str = "",
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """Return the answer for an error; `more` are further fields for programs."""
    code = code or CODES.get(status, "error")
    title = HTTPStatus(status).phrase
    own = {"type": f"urn:guardband:problem:{code}", "title": title, "status": status}
    own |= {"detail": detail or WORDS.get(status, title), "code": code}
    extra = dict(headers or {})
    if "retry_after_s" in more:
        extra["Retry-After"] = str(math.ceil(more["retry_after_s"]))
    if status == HTTPStatus.UNAUTHORIZED:
        extra["WWW-Authenticate"] = 'Bearer realm="guardband"'
    return JSONResponse({**more, **own}, status, headers=extra, media_type=MEDIA_TYPE)


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses=` of an operation that may fail with these statuses."""
    reference = {"$ref": "#/components/schemas/ProblemDetails"}
    return {
        status: {
            "description": WORDS.get(status, HTTPStatus(status).phrase),
            "content": {MEDIA_TYPE: {"schema": reference}},
        }
        for status in sorted(statuses)
    }


def install(app: FastAPI, operations: Sequence[BaseRoute]) -> None:
    """Make every error of `app` a problem; `operations` are the routes of its API."""
    app.state.operations = operations
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.add_exception_handler(Refused, _answer)
    app.add_exception_handler(StoreError, _answer)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


def answer_to(error: Exception) -> Response:
    """Return the answer to a request that was refused, or that found the store damaged."""
    if isinstance(error, Refused):
        return problem(error.status, error.code, error.detail, **error.more)
    log("store", logging.ERROR, detail=str(error))
    return problem(500, "store_damaged", str(error))


async def _answer(_: Request, error: Exception) -> Response:
    return answer_to(error)


def _path(location: Sequence[Any]) -> list[str]:
    """Return where in a request something is wrong, without the class that was tried."""
    return [str(part)[:64] for part in location if not str(part).endswith("Body")]


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        return problem(400, "invalid_json", f"the body is not JSON: {found[0]['ctx']['error']}.")
    # The values that were sent are not repeated: they may be long, or secret, or not even JSON.
    listed = [
        {"where": ".".join(_path(each["loc"])), "what": each["msg"][:300]}
        for each in found[:MOST_ERRORS]
    ]
    first = listed[0]
    if found[0]["type"] == "invalid_space":  # its settings do not fit together
        return problem(422, "invalid_space", first["what"], errors=listed)
    return problem(422, detail=f"{first['where']}: {first['what']}.", errors=listed)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(sorted(_methods(request)))
    return problem(error.status_code, headers=headers)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, in which every error is a problem."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = document["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
        app.openapi_schema = document
    return app.openapi_schema


def _methods(request: Request) -> set[str]:
    """Return with which methods there is something at the request's path."""
    return {
        method
        for route in request.app.state.operations
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
