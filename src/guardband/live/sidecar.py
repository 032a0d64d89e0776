"""An agent as a local HTTP service, for programs in other languages: `decide` and `reward`.

The agent runs in this process; programs on the same machine ask it over loopback. No request
waits for the coordinator.
"""

from __future__ import annotations

import ipaddress
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel, Field
from starlette.responses import Response
from starlette.types import Scope

from guardband.agent import Decision
from guardband.errors import InputError, UnknownDecisionError
from guardband.live.client.agent import LiveAgent
from guardband.live.client.journal import JournalError
from guardband.live.client.outcomes import OtherRewardError
from guardband.live.protocol.types import Count, FeatureName, Message, Modest, Text, Whole
from guardband.live.server import errors
from guardband.live.server.auth import Tokens
from guardband.live.server.errors import answers, problem
from guardband.live.server.logs import log
from guardband.live.server.middleware import AuthRateLimit, RequestContext
from guardband.live.server.settings import Settings

__all__ = ["SETTINGS", "is_loopback", "make_sidecar"]

BODY_BYTES = 8 * 2**20  # the features of some thousand actions
SETTINGS = Settings(body_bytes=BODY_BYTES, connections=500)
USUAL = (400, 403, 404, 408, 413, 422, 503)
ABOUT = (
    "One task's agent, for programs in any language: ask it what to play, tell it the reward. It "
    "answers on this machine only. Errors are problem details (RFC 9457) with a stable `code`."
)

Row = Annotated[list[Modest], Field(min_length=1, max_length=256)]
Menu = Annotated[list[Row], Field(min_length=1, max_length=100_000)]
Cell = str | bool | int | Modest | Annotated[list[Modest], Field(max_length=256)] | None
NamedRow = Annotated[dict[FeatureName, Cell], Field(min_length=1, max_length=256)]
NamedMenu = Annotated[list[NamedRow], Field(min_length=1, max_length=100_000)]
Label = Whole | Annotated[Text, Field(min_length=1, max_length=200)]
Ident = Annotated[Text, Field(min_length=1, max_length=200)]
router = APIRouter(tags=["agent"])


class DecideBody(Message):
    """One round's offer."""

    features: Annotated[
        Menu | NamedMenu,
        Field(
            description="one row per action: numbers, or by name where the space has named features"
        ),
    ]
    baseline: Annotated[
        Label, Field(description="the row that the baseline would play, or with labels its label")
    ]
    labels: Annotated[
        list[Label] | None, Field(max_length=100_000, description="one per action")
    ] = None
    baseline_reward: Annotated[
        float | None, Field(description="the baseline's expected reward, where it is known")
    ] = None
    support: Annotated[
        list[Menu] | None, Field(description="features in each possible context")
    ] = None
    weights: Annotated[list[float] | None, Field(description="the contexts' chances")] = None
    covariance: Annotated[
        list[list[Row]] | None, Field(description="of the features' difference, by action")
    ] = None
    value: Annotated[
        list[float] | None,
        Field(max_length=100_000, description="what each action is worth to the caller"),
    ] = None
    cost: Annotated[
        list[float] | None,
        Field(max_length=100_000, description="what each action costs, paid from the budget"),
    ] = None
    round: Annotated[
        Count | None,
        Field(description="where tasks share contexts: the number of the round"),
    ] = None


class RewardBody(Message):
    """The reward of a decision."""

    id: Ident
    reward: float
    cost: Annotated[
        float | None, Field(description="what it cost, where that is only known afterwards")
    ] = None


class DiscardBody(Message):
    """A decision that does not count, for a cause that has nothing to do with its reward."""

    id: Ident
    discard: Annotated[Text, Field(min_length=1, description="why")]


class OverrideBody(Message):
    """Another action than the one decided was played, by somebody who saw the features alone."""

    id: Ident
    action: Annotated[Whole, Field(description="the row of what was played")]


class ChoiceReply(BaseModel):
    """A certified action; see `gb.Decision.choices`."""

    action: int
    lower: float | None
    margin: float | None
    value: float | None


class DecisionReply(BaseModel):
    """What to play, why, and what is promised; see `gb.Decision`."""

    id: str
    action: int
    kind: Literal["learned", "explored", "trial", "baseline"]
    reason: str
    mean: float | None
    lower: float | None
    upper: float | None
    floor: float | None
    propensity: float
    margin: float | None
    promise: str
    certificate: str
    certified: list[bool]
    choices: Annotated[list[ChoiceReply], Field(description="the certified actions, best first")]
    label: int | str | None
    budget_left: float | None
    cost: float | None
    cost_left: float | None


class Accepted(BaseModel):
    """The reward, the discard or the override is in the journal."""

    id: str
    status: Literal["kept", "discarded", "overridden"]


class SidecarHealth(BaseModel):
    """How the agent is doing."""

    status: Literal["ok"]
    space: str
    task: str
    mode: str
    decisions: int
    pending: int
    counted: int
    epoch: int
    trouble: str | None


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
    return SidecarHealth(status="ok", **_agent(request).status())


def make_sidecar(agent: LiveAgent) -> FastAPI:
    """Return the application around an agent, which it closes when it ends."""

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
        LoopbackOnly,
        tokens=Tokens(),  # none: every program on this machine may ask
        settings=SETTINGS,
        body_limit=lambda _: BODY_BYTES,
        on_done=lambda _: None,
    )
    return app


class LoopbackOnly(AuthRateLimit):
    """The server's middleware with another rule: no token, but only requests of this machine.

    A web page can make a browser send requests to this machine: they have the page's address in
    Origin, or another name than this machine's in Host.
    """

    def _refusal(self, scope: Scope, context: RequestContext) -> Response | None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin")
        if not _names_loopback(f"//{host}"):
            return problem(403, "wrong_host", "ask as 127.0.0.1 or localhost.")
        if origin is not None and not _names_loopback(origin.decode("latin-1")):
            return problem(403, "wrong_origin", "pages from elsewhere get no answer here.")
        return None


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
