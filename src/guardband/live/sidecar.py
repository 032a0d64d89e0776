"""An agent as a local HTTP service, for programs in other languages: `decide` and `reward`.

The agent runs in this process; programs on the same machine ask it over loopback. No request
waits for the coordinator. They need a secret, or may use a socket file instead of a port.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hmac import compare_digest
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from guardband.agent import Decision
from guardband.errors import InputError, UnknownDecisionError
from guardband.files import write_atomically
from guardband.live.client.agent import LiveAgent
from guardband.live.client.journal import JournalError
from guardband.live.client.outcomes import OtherRewardError
from guardband.live.protocol.messages import Refused
from guardband.live.server import errors
from guardband.live.server.errors import answers, problem
from guardband.live.server.logs import log
from guardband.live.server.middleware import AuthRateLimit, RequestContext
from guardband.live.server.settings import Settings
from guardband.live.sidecar_messages import (
    Accepted,
    AlarmReply,
    ChoiceReply,
    DecideBody,
    DecisionReply,
    DiscardBody,
    OverrideBody,
    Readiness,
    RewardBody,
    SidecarHealth,
)

__all__ = ["SETTINGS", "is_loopback", "make_sidecar", "sidecar_token"]

BODY_BYTES = 8 * 2**20  # the features of some thousand actions
SETTINGS = Settings(body_bytes=BODY_BYTES, connections=500)
USUAL = (400, 401, 403, 404, 408, 413, 422, 503)
ABOUT = (
    "One task's agent, for programs in any language: ask it what to play, tell it the reward. It "
    "answers on this machine only. Errors are problem details (RFC 9457) with a stable `code`."
)

router = APIRouter(tags=["agent"])


@router.post("/v1/decide", responses=answers(*USUAL))
def decide(body: DecideBody, request: Request) -> DecisionReply:
    """Choose one of the actions, and write it down."""
    decision = _agent(request).decide(
        body.features,
        body.baseline,
        body.baseline_reward,
        support=body.support,
        weights=body.weights,
        covariance=body.covariance,
        labels=body.labels,
        value=body.value,
        cost=body.cost,
        round=body.round,
    )
    return _reply(decision)


@router.post("/v1/reward", responses=answers(*USUAL, 409))
def reward(body: RewardBody | DiscardBody, request: Request) -> Accepted:
    """Take in the reward of a decision, or exclude it; sending it again changes nothing."""
    agent = _agent(request)
    if isinstance(body, DiscardBody):
        agent.discard(body.id)
        log("discarded", id=body.id, why=body.discard)
        return Accepted(id=body.id, status="discarded")
    agent.observe(body.id, body.reward, cost=body.cost)
    return Accepted(id=body.id, status="kept")


@router.post("/v1/override", responses=answers(*USUAL))
def override(body: OverrideBody, request: Request) -> Accepted:
    """Say, before the reward, that another action was played than the one decided."""
    _agent(request).override(body.id, action=body.action)
    return Accepted(id=body.id, status="overridden")


@router.get("/healthz", responses=answers(403, 503))
def healthz(request: Request) -> SidecarHealth:
    """Say how the agent is doing; it works also while the coordinator cannot be reached."""
    return _health(_agent(request))


@router.post("/v1/resume", responses=answers(403, 503))
def resume(request: Request) -> SidecarHealth:
    """Say that a person has looked at the alarms; play more than the baseline again."""
    _agent(request).resume()
    return _health(_agent(request))


def _health(agent: LiveAgent) -> SidecarHealth:
    health = agent.health
    return SidecarHealth(
        status="ok",
        noticed=not health.ok,
        alarms=[AlarmReply(**alarm._asdict()) for alarm in health.alarms],
        watched=list(health.watched),
        followed=list(health.followed),
        **agent.status(),
    )


@router.get("/readyz", responses=answers(403, 503))
def readyz(request: Request) -> Readiness:
    """Say whether the agent is at full speed; before that it decides slowly, or by its baseline."""
    if not _agent(request).full_speed:
        raise Refused(
            "compiling",
            503,
            "the kernels are still being compiled: until then small menus are decided in "
            "milliseconds, and for large ones the baseline is played.",
            retry_after_s=1.0,
        )
    return Readiness(status="full speed")


def make_sidecar(agent: LiveAgent, token: str | None) -> FastAPI:
    """Return the application around an agent, which it closes when it ends.

    Parameters
    ----------
    agent
        Of one task.
    token
        What programs must send to decide and to tell rewards; None: whoever can connect may, as
        over a socket file.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            agent.close()

    app = FastAPI(
        title="guardband agent",
        version=version("guardband"),
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.agent = agent
    app.include_router(router)
    errors.install(app, router.routes)
    for kind in (ValueError, TypeError, UnknownDecisionError, JournalError):
        app.add_exception_handler(kind, _answer)
    app.add_middleware(
        LocalOnly,
        secret=token,
        settings=SETTINGS,
        body_limit=lambda _: BODY_BYTES,
        on_done=lambda _: None,
    )
    return app


class LocalOnly(AuthRateLimit):
    """The server's middleware with another rule: one secret, and only programs of this machine.

    A web page can make a browser send requests to this machine: they have the page's address in
    Origin, or another name than this machine's in Host. No page gets an answer, from here neither.

    Parameters
    ----------
    secret
        What programs must send; None: nothing.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        secret: str | None,
        settings: Settings,
        body_limit: Callable[[Scope], int],
        on_done: Callable[[RequestContext], None],
    ) -> None:
        super().__init__(
            app, caller=_nobody, settings=settings, body_limit=body_limit, on_done=on_done
        )
        self._expected = None if secret is None else f"Bearer {secret}".encode()

    def _refusal(self, scope: Scope, context: RequestContext) -> Response | None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not _names_loopback(f"//{host}"):
            return problem(403, "wrong_host", "ask as 127.0.0.1 or localhost.")
        if b"origin" in headers:
            return problem(403, "wrong_origin", "web pages get no answer here.")
        if self._expected is None or not context.path.startswith("/v1/"):
            return None
        if compare_digest(headers.get(b"authorization", b""), self._expected):
            return None
        detail = "send the header Authorization: Bearer ..., with what is in sidecar.token."
        return problem(401, "no_token" if b"authorization" not in headers else None, detail)


async def _nobody(_: bytes | None) -> None:
    """Return whose token of a coordinator it is: there are none here."""


def sidecar_token(folder: Path) -> str:
    """Return the secret in `sidecar.token` of a folder; it is made where there is none."""
    path = folder / "sidecar.token"
    if not path.exists():
        with write_atomically(path, private=True) as file:
            file.write(f"{secrets.token_urlsafe(32)}\n".encode())
    return path.read_text().strip()


def is_loopback(host: str) -> bool:
    """Tell whether an address is on this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _names_loopback(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def _agent(request: Request) -> LiveAgent:
    agent: LiveAgent = request.app.state.agent
    return agent


async def _answer(request: Request, error: Exception) -> Response:
    """Turn an error of the agent into a problem response."""
    if isinstance(error, JournalError):
        return problem(503, "journal", str(error), retry_after_s=1.0)
    if isinstance(error, UnknownDecisionError):
        return problem(404, "unknown_decision", str(error))
    if isinstance(error, OtherRewardError):
        return problem(409, "other_reward", str(error))
    if not isinstance(error, InputError):  # no check of ours: it may be a bug
        log("error", logging.WARNING, trace=True, where=request.url.path)
    return problem(422, "invalid_request", str(error))


def _reply(decision: Decision) -> DecisionReply:
    given = _plain(decision._asdict()) | {"certified": decision.certified.tolist()}
    choices = [ChoiceReply(**_plain(choice._asdict())) for choice in decision.choices]
    return DecisionReply(**given, choices=choices)


def _plain(given: dict[str, Any]) -> dict[str, Any]:
    """Return fields for JSON: what is not a finite number is null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in given.items()
    }
