"""`guardband token`: create, list, rotate and delete tokens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.operator import WHO, Target, print_table, targeted

if TYPE_CHECKING:
    from guardband.live.coordinator import Coordinator

__all__ = ["token_app"]

token_app = typer.Typer(help="Create, list, rotate and delete tokens.", no_args_is_help=True)

Ident = Annotated[str, typer.Argument(help="The token's id, see: guardband token list")]


@token_app.command("create")
@targeted
def create(
    target: Target,
    space: Annotated[str | None, typer.Option(help="The space that it is for.")] = None,
    task: Annotated[str | None, typer.Option(help="The task, for an agent.")] = None,
    role: Annotated[str | None, typer.Option(help="admin, agent or viewer.")] = None,
    note: Annotated[str, typer.Option(help="Who has it, for the list.")] = "",
) -> None:
    """Create a token, and print it: this is the only time that it is shown.

    With --task it is an agent's, else a viewer's unless --role says otherwise.
    """
    from guardband.checks import check_choice

    role = check_choice(
        "role", role or ("viewer" if task is None else "agent"), ("admin", "agent", "viewer")
    )

    def here(coordinator: Coordinator) -> str:
        from guardband.live.coordinator import create_token

        return create_token(
            coordinator.store, role, space=space, task=task, note=note, who=WHO, now=time.time()
        )[1]

    given = {"role": role, "space": space, "task": task, "note": note}
    body = {key: value for key, value in given.items() if value is not None}
    typer.echo(target.do(here, "POST", "/v1/tokens", body, read=_text))


@token_app.command("rotate")
@targeted
def rotate(target: Target, ident: Ident) -> None:
    """Create a token with the same rights; delete the old one when the new one is in use."""

    def here(coordinator: Coordinator) -> str:
        from guardband.live.coordinator import rotate_token

        return rotate_token(coordinator.store, ident, who=WHO, now=time.time())[1]

    typer.echo(target.do(here, "POST", f"/v1/tokens/{ident}/rotate", read=_text))


@token_app.command("delete")
@targeted
def delete(target: Target, ident: Ident) -> None:
    """Revoke a token; a server that runs on the data folder notices within seconds."""

    def here(coordinator: Coordinator) -> None:
        from guardband.live.coordinator import revoke_token

        revoke_token(coordinator.store, ident, who=WHO, now=time.time())

    target.do(here, "DELETE", f"/v1/tokens/{ident}", read=lambda _: None)
    typer.echo(f"token {ident} is revoked.")


@token_app.command("list")
@targeted
def list_(target: Target) -> None:
    """List the tokens, without their secrets."""

    def here(coordinator: Coordinator) -> list[dict[str, Any]]:
        with coordinator.store.reading() as t:
            valid = [row for row in t.tokens() if row.revoked_at is None]
        return [{**row._asdict(), "id": row.token} for row in valid]

    found = target.do(here, "GET", "/v1/tokens", read=lambda lines: lines)
    print_table(("id", "role", "space", "task", "note"), found)


def _text(answer: Any) -> str:
    return str(answer["token"])
