"""Routes of operators: create and change spaces, pause, quarantine, tokens."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from guardband.live.coordinator import tokens
from guardband.live.protocol.messages import LookedAtRecord, RecordKept, Refused, SpaceSaved
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.types import Name
from guardband.live.server.agents import USUAL, SpaceName, caller_of, service_of
from guardband.live.server.auth import Caller
from guardband.live.server.errors import answers
from guardband.live.server.replies import Done, EndedReply, LookedAtReply, TokenLine, TokenReply
from guardband.live.server.requests import (
    AcknowledgeBody,
    AgentTokenBody,
    ConfigureBody,
    ReasonBody,
    TokenBody,
)
from guardband.live.server.service import Service
from guardband.live.store import TokenRow

__all__ = ["router"]

router = APIRouter(tags=["operators"])
Task = Annotated[Name, Path(description="the task")]
AlertId = Annotated[
    str, Path(pattern=r"^[a-z][a-z-]{0,39}$", min_length=1, max_length=40, description="its id")
]
TokenId = Annotated[
    str, Path(pattern=r"^[0-9a-f]{16}$", min_length=16, max_length=16, description="the token")
]


@router.post("/v1/spaces", status_code=201, responses=answers(*USUAL, 409))
async def create_space(space: SpaceSettings, request: Request) -> SpaceSaved:
    """Make a space."""
    service, caller = service_of(request), caller_of(request).must_be("admin")
    caller.must_see(space.name)
    spaces = await service.executor.do(service.coordinator.spaces)
    if len(spaces) >= service.settings.spaces:
        raise Refused("too_many_spaces", 409, f"there are {len(spaces)} spaces already.")
    version = await service.executor.write(
        service.coordinator.create_space, space, who=caller.who, now=service.executor.now()
    )
    await service.look()
    return SpaceSaved(space=space.name, schema_hash=space.schema_hash, config_version=version)


@router.post("/v1/looked-at", status_code=201, responses=answers(*USUAL))
async def keep_looked_at(body: LookedAtRecord, request: Request) -> RecordKept:
    """Keep a record of rows of logs that were looked at, for spaces that name it."""
    service, _ = service_of(request), caller_of(request).must_be("admin")
    try:
        raw = b64decode(body.record, validate=True)
    except ValueError as error:
        raise Refused("invalid_record", 422, f"the record is no base64: {error}.") from None
    kept = await service.executor.write(service.coordinator.keep_looked_at, raw)
    return RecordKept(sha256=kept)


@router.put("/v1/spaces/{space}", responses=answers(*USUAL, 409))
async def configure(space: SpaceName, body: ConfigureBody, request: Request) -> SpaceSaved:
    """Give a space other settings; what data mean (features, bounds, baseline) cannot change.

    409 `config_changed` where the body names another `config_version` than the space has now.
    """
    service, caller = service_of(request), _admin(request, space)
    if body.config.name != space:
        raise Refused("other_name", 409, f"the body is about {body.config.name!r}, not {space!r}.")
    new = body.config
    version = await service.executor.write(
        service.coordinator.configure,
        space,
        new,
        version=body.config_version,
        who=caller.who,
        now=service.executor.now(),
    )
    await service.look()
    return SpaceSaved(space=space, schema_hash=new.schema_hash, config_version=version)


@router.post("/v1/spaces/{space}/pause", responses=answers(*USUAL))
async def pause(space: SpaceName, body: ReasonBody, request: Request) -> Done:
    """Let every agent of the space play the baseline until it is resumed."""
    service, caller = service_of(request), _admin(request, space)
    await service.executor.write(
        service.coordinator.pause, space, body.reason, who=caller.who, now=service.executor.now()
    )
    await service.look()
    return Done()


@router.post("/v1/spaces/{space}/resume", responses=answers(*USUAL))
async def resume(space: SpaceName, request: Request) -> Done:
    """End a pause."""
    service, caller = service_of(request), _admin(request, space)
    await service.executor.write(
        service.coordinator.resume, space, who=caller.who, now=service.executor.now()
    )
    await service.look()
    return Done()


@router.post("/v1/spaces/{space}/alerts/{alert}/acknowledge", responses=answers(*USUAL))
async def acknowledge(
    space: SpaceName, alert: AlertId, body: AcknowledgeBody, request: Request
) -> Done:
    """Say that somebody has seen an alert: it stops paging, and stays until its cause is gone."""
    service, caller = service_of(request), _admin(request, space)
    active = [each.key for each, _ in service.alerts(await service.snapshot(space))]
    if (alert, body.task) not in active:
        known = ", ".join(f"{ident} {task or ''}".strip() for ident, task in active) or "none"
        raise Refused(
            "unknown_alert", 404, f"space {space!r} has no such alert now; it has {known}."
        )
    given = (space, alert, body.task, body.reason)
    await service.executor.write(
        service.coordinator.acknowledge, *given, who=caller.who, now=service.executor.now()
    )
    service.forget_snapshot(space)
    service.broadcaster.notify(space, "agent")
    return Done()


@router.post("/v1/spaces/{space}/agents/{task}/quarantine", responses=answers(*USUAL, 409))
async def quarantine(space: SpaceName, task: Task, body: ReasonBody, request: Request) -> Done:
    """Leave a task's data out from the next epoch on; they are still collected."""
    return await _set_status(request, space, task, "quarantine", body.reason)


@router.post("/v1/spaces/{space}/agents/{task}/retract", responses=answers(*USUAL))
async def retract(space: SpaceName, task: Task, body: ReasonBody, request: Request) -> Done:
    """Leave a task's data out from the next epoch on, and take no more of them."""
    return await _set_status(request, space, task, "retract", body.reason)


@router.post("/v1/spaces/{space}/agents/{task}/restore", responses=answers(*USUAL))
async def restore(space: SpaceName, task: Task, body: ReasonBody, request: Request) -> Done:
    """Take a task in again, from the next epoch on."""
    return await _set_status(request, space, task, "restore", body.reason)


@router.post("/v1/spaces/{space}/agents/{task}/readmit", responses=answers(*USUAL, 409))
async def readmit(space: SpaceName, task: Task, body: ReasonBody, request: Request) -> Done:
    """Let a task that has left the pool back, from the next epoch on."""
    return await _set_status(request, space, task, "readmit", body.reason)


@router.post("/v1/spaces/{space}/agents/{task}/resume", responses=answers(*USUAL))
async def resume_task(space: SpaceName, task: Task, request: Request) -> LookedAtReply:
    """Say that a person has looked at a task's alarms; its agents hold back no longer."""
    service, caller = service_of(request), _admin(request, space)
    alarms = await service.executor.write(
        service.coordinator.resume_task, space, task, who=caller.who, now=service.executor.now()
    )
    await service.look()
    service.broadcaster.notify(space, "agent")
    return LookedAtReply(alarms=alarms)


@router.post("/v1/spaces/{space}/agents/{task}/end", responses=answers(*USUAL))
async def end(space: SpaceName, task: Task, request: Request) -> EndedReply:
    """End all streams of a task whose agents have stopped; what they counted stays in the sum."""
    service, caller = service_of(request), _admin(request, space)
    ended = await service.executor.write(
        service.coordinator.end_task, space, task, who=caller.who, now=service.executor.now()
    )
    await service.look()
    service.broadcaster.notify(space, "agent")
    return EndedReply(streams=ended)


@router.get("/v1/me", responses=answers(*USUAL))
async def me(request: Request) -> TokenLine:
    """Say what the token that asks is for."""
    return _line(caller_of(request).token)


@router.get("/v1/tokens", responses=answers(*USUAL))
async def list_tokens(request: Request) -> list[TokenLine]:
    """List the tokens, without their secrets."""
    service, caller = service_of(request), caller_of(request).must_be("admin")
    within = caller.token.space
    return [_line(row) for row in service.tokens.all() if within in (None, row.space)]


@router.post("/v1/tokens", status_code=201, responses=answers(*USUAL, 409))
async def create_token(body: TokenBody, request: Request) -> TokenReply:
    """Make a token; the answer is the only place where its secret is shown."""
    service, caller = service_of(request), caller_of(request).must_be("admin")
    if caller.token.space not in (None, body.space):
        raise Refused("wrong_space", 403, "this admin token is for one space only.")
    task = body.task if isinstance(body, AgentTokenBody) else None
    work = partial(tokens.create_token, role=body.role, space=body.space, task=task, note=body.note)
    return await _make(service, caller, work)


@router.post("/v1/tokens/{id}/rotate", status_code=201, responses=answers(*USUAL, 409))
async def rotate_token(id: TokenId, request: Request) -> TokenReply:
    """Make a token with the same rights beside an old one; delete the old one when it is in use."""
    service, caller = service_of(request), caller_of(request).must_be("admin")
    work = partial(tokens.rotate_token, ident=id, within=caller.token.space)
    return await _make(service, caller, work)


@router.delete(
    "/v1/tokens/{id}",
    status_code=204,
    response_class=Response,
    responses=answers(*USUAL, 409),
)
async def delete_token(id: TokenId, request: Request) -> None:
    """Revoke a token, at once."""
    service, caller = service_of(request), caller_of(request).must_be("admin")
    await service.executor.write(
        tokens.revoke_token,
        service.store,
        id,
        within=caller.token.space,
        who=caller.who,
        now=service.executor.now(),
    )
    await service.read_tokens()


def _admin(request: Request, space: str) -> Caller:
    return caller_of(request).must_be("admin").must_see(space)


async def _set_status(request: Request, space: str, task: str, verb: str, reason: str) -> Done:
    service, caller = service_of(request), _admin(request, space)
    work = getattr(service.coordinator, verb)
    await service.executor.write(
        work, space, task, reason, who=caller.who, now=service.executor.now()
    )
    await service.look()
    service.broadcaster.notify(space, "agent")
    return Done()


async def _make(
    service: Service, caller: Caller, work: Callable[..., tuple[TokenRow, str]]
) -> TokenReply:
    """Make one token more, if there is room for it."""
    if len(service.tokens.all()) >= service.settings.tokens:
        raise Refused("too_many_tokens", 409, "delete tokens that are not in use.")
    row, text = await service.executor.write(
        work, service.store, who=caller.who, now=service.executor.now()
    )
    await service.read_tokens()
    return TokenReply(**_line(row).model_dump(), token=text)


def _line(row: TokenRow) -> TokenLine:
    return TokenLine(
        id=row.token,
        role=row.role,
        space=row.space,
        task=row.task,
        note=row.note,
        created=row.created_at,
    )
