"""A web service in which an agent chooses the article on top of a page; clicks come later.

    uvicorn --app-dir examples/service service:app

POST /top says which article to show, POST /clicks that it was clicked. GET /healthz and /readyz
are for whoever restarts the service and sends it traffic.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel, Field

import guardband as gb

log = logging.getLogger("service")

COORDINATOR = os.environ.get("COORDINATOR", "local:./service-data")
STATE = os.environ.get("STATE", "./service-data/top")  # the agent is here: it survives restarts
PAGE = gb.SpaceSettings(
    name="page",
    features=gb.Features(numbers={"fresh": (0, 1), "popular": (0, 1), "match": (0, 1)}),
    agents=1,  # tasks that learn together
    contexts="per-request",  # every visitor has a hidden context of their own
    alpha=0.1,
    theta_bound=1.5,
    rewards={
        "window_s": float(os.environ.get("CLICK_WINDOW", "600")),
        "silence": "default",  # who has not clicked by then did not click: the reward is 0
    },
)


class Article(BaseModel):
    """An article that may be shown, described by numbers between 0 and 1."""

    name: str
    fresh: float
    popular: float
    match: float


class Offer(BaseModel):
    """What to show, and what to send back with a click."""

    article: str
    decision: str | None


class Click(BaseModel):
    """A visitor clicked on what this decision showed."""

    decision: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start the agent, and close it: nothing is lost without, but others hear of it sooner."""
    agent = await asyncio.to_thread(
        gb.connect, COORDINATOR, space="page", task="top", settings=PAGE, state_dir=STATE
    )

    @agent.on_decision
    def to_the_log(decision: gb.Decision) -> None:  # or to your own queue, table or stream
        log.info("decided %s: row %d, %s", decision.id, decision.action, decision.reason)

    app.state.agent = agent
    try:
        yield
    finally:
        await asyncio.to_thread(agent.close)


def the_agent(request: Request) -> gb.LiveAgent:
    """Return the agent of this process."""
    agent: gb.LiveAgent = request.app.state.agent
    return agent


Agent = Annotated[gb.LiveAgent, Depends(the_agent)]
Articles = Annotated[list[Article], Field(min_length=1, max_length=1000)]
app = FastAPI(title="The article on top", lifespan=lifespan)


@app.post("/top")
async def top(articles: Articles, agent: Agent) -> Offer:
    """Choose the article on top; the rule that is trusted shows the most popular one."""
    trusted = max(range(len(articles)), key=lambda k: articles[k].popular)
    rows = [article.model_dump(exclude={"name"}) for article in articles]
    try:
        decision = await agent.adecide(rows, baseline=trusted)
    except gb.GuardbandError:  # such as a full disk: the page is shown all the same
        log.exception("the agent could not decide")
        return Offer(article=articles[trusted].name, decision=None)
    return Offer(article=articles[decision.action].name, decision=decision.id)


@app.post("/clicks", status_code=202)
async def clicks(click: Click, agent: Agent) -> None:
    """Take in a click, from whichever process showed the article; the same one twice is no harm."""
    try:
        await agent.aobserve(click.decision, 1.0)
    except gb.UnknownDecisionError as error:
        raise HTTPException(404, str(error)) from None


@app.get("/healthz")
def healthz(agent: Agent) -> dict[str, Any]:
    """Answer 200 while the agent works, with or without its coordinator; restart it otherwise."""
    status = agent.status()
    return {name: status[name] for name in ("decisions", "pending", "counted", "mode", "trouble")}


@app.get("/readyz")
def readyz(agent: Agent) -> dict[str, bool]:
    """Answer 200 once the agent decides at full speed; before that it is slow, but not wrong."""
    if not agent.full_speed:
        raise HTTPException(503, "the kernels are still being compiled", {"Retry-After": "1"})
    return {"ready": True}
